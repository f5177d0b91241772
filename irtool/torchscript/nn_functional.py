"""torch.nn.functional, torch.nn.init and torch.nn.modules.utils: their functions as irtool's own TorchScript (`irtool.ops.composed`), and
operators.

A name that is in no table is looked up among the operators (`F.conv2d` is `aten::conv2d`). Functions of torch that have several forms are
here too: an argument (`return_indices`) or its type (`dims` of tensordot) chooses the form.
"""
from __future__ import annotations

import ast
from copy import copy
from functools import cache
from itertools import product
from pathlib import Path

from irtool.torchscript.meanings import Builtin, Called, Choice, Overloads, Sugared
from irtool.torchscript.source_text import Function, read

OPERATORS = {"logsigmoid": "aten::log_sigmoid"}
"""Functions that are operators with another name."""
MODULES = ("functional", "functional_nets", "several_forms")
"""The modules of `irtool.ops.composed` that define functions of torch."""
HELPERS = ("legacy_", "reduction_number", "tensordot_", "norm_", "unique_", "consecutive_", "stft", "cdist_", "sizes_of", "size_of_scales",
           "power_of", "pooled_power", "unpooled_size", "dropped", "mask_of_numbers", "check_", "fractional_s", "lu_")
"""Prefixes of names that torch.nn.functional does not have."""
INDICES = {**{f"max_pool{n}d": (6, f"max_pool{n}d_with_indices") for n in (1, 2, 3)},
           **{f"adaptive_max_pool{n}d": (2, f"adaptive_max_pool{n}d_with_indices") for n in (1, 2, 3)},
           **{f"fractional_max_pool{n}d": (4, f"fractional_max_pool{n}d_with_indices") for n in (2, 3)}}
"""Functions with `return_indices` -> its position, and the function for True."""
OVERLOADS = {
    "tensordot": ("tensordot_of_int", "tensordot_of_tuple", "tensordot_of_lists", "tensordot_of_tensor"),
    "stft": ("stft",), "cdist": ("cdist_of_mode",),
    "norm": ("norm_of_word", "norm_over_one_by_name", "norm_of_word_over_one", "norm_over_one", "norm_of_number"),
}
"""Functions of torch that differ by the types of their arguments."""
SIZES, SCALES = ("Optional[int]", "Optional[List[int]]"), ("Optional[float]", "Optional[List[float]]")
TYPED: dict[str, dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("interpolate", "upsample_bilinear"), {"size": SIZES, "scale_factor": SCALES}),
    **dict.fromkeys(("upsample", "upsample_nearest"), {"size": SIZES, "scale_factor": SCALES[:1]}),
}
"""Functions that torch declares for several types of a parameter -> the parameters and their types. A tuple becomes the list that a
declaration wants, which no union of these types would say."""
WRITTEN_IN_PYTHON = frozenset((*OVERLOADS, "unique", "unique_consecutive"))
"""Names of torch whose meaning is not the operator of the same name."""
FLAGS = {"unique": ("unique", 2), "unique_consecutive": ("consecutive", 1)}
"""Functions of torch whose number of results depends on two flags -> the prefix of their names here, and the position of the first flag."""
FOLDER = Path(__file__).parent.parent / "ops" / "composed"
PACKAGE = "irtool.ops.composed."


def function(name: str) -> Sugared | None:
    """The meaning of `F.name`, unless it is a plain operator."""
    if name in OPERATORS:
        return Builtin(OPERATORS[name])
    definition = None if name.startswith(HELPERS) else defined(name)
    if definition is not None and name in INDICES:
        position, with_them = INDICES[name]
        return Choice(position, "return_indices", Called(form(with_them)), Called(definition))
    if name in TYPED:
        return Overloads(name, declarations(name), are_known=True)
    return None if definition is None else Called(definition)


def initializer(name: str) -> Sugared | None:
    """The meaning of `torch.nn.init.name`."""
    known = functions_of("initializers").get(name)
    return None if known is None else Called(known)


def module_utility(name: str) -> Sugared | None:
    """The meaning of `torch.nn.modules.utils.name`: `_pair(2)` is `[2, 2]`."""
    if name not in ("_single", "_pair", "_triple", "_quadruple"):
        return None
    known = functions_of("ntuples")
    return Overloads(name, [known[f"{name[1:]}_of_{numbers}"] for numbers in ("ints", "floats")], are_known=True)


def torch_function(name: str) -> Sugared | None:
    """The meaning of `torch.name`, if a function in Python wraps the operators."""
    if name in OVERLOADS:
        return Overloads(name, [form(each) for each in OVERLOADS[name]], are_known=True)
    if name == "lu":
        return Choice(2, "get_infos", Called(form("lu_with_infos")), Called(form("lu_alone")))
    if name not in FLAGS:
        return None
    start, position = FLAGS[name]
    alone, inverse, counts, both = (Called(form(f"{start}_{end}")) for end in ("alone", "with_inverse", "with_counts", "with_all"))
    return Choice(position, "return_inverse", Choice(position + 1, "return_counts", both, inverse),
                  Choice(position + 1, "return_counts", counts, alone))


def form(name: str) -> Function:
    """One form of a function with several forms."""
    return functions_of("several_forms")[name]


@cache
def declarations(name: str) -> list[Function]:
    """A function of `TYPED` under each choice of types for its parameters."""
    general = defined(name)
    assert general is not None
    declared = []
    for chosen in product(*TYPED[name].values()):
        types = dict(zip(TYPED[name], chosen, strict=True))
        definition = copy(general.definition)
        definition.args = copy(definition.args)
        definition.args.args = [copy(each) for each in definition.args.args]
        for each in definition.args.args:
            if each.arg in types:
                each.annotation = ast.copy_location(ast.parse(types[each.arg], mode="eval").body, each)
        declared.append(Function(ast.fix_missing_locations(definition), general.place, general.unit))
    return declared


def defined(name: str) -> Function | None:
    """The function of a name, if one of the modules defines it."""
    return next((functions_of(module)[name] for module in MODULES if f"\ndef {name}(" in text_of(module)), None)


@cache
def text_of(module: str) -> str:
    """The text of a module of `irtool.ops.composed`, read on first use."""
    return (FOLDER / f"{module}.py").read_text(encoding="utf-8")


@cache
def functions_of(module: str) -> dict[str, Function]:
    """The functions of a module of `irtool.ops.composed`, from its text, which is not executed. Only its imports of functions count."""
    unit = read(text_of(module), f"irtool/ops/composed/{module}.py")
    for name, source in list(unit.modules.items()):
        if source == f"{PACKAGE}script_types.is_scripting":
            unit.modules[name] = "torch.jit.is_scripting"
        elif source.startswith("irtool."):
            del unit.modules[name]
            home = source.removeprefix(PACKAGE).partition(".")[0]
            if source.startswith(PACKAGE) and home != "script_types":
                unit.functions[name] = functions_of(home)[name]
    unit.modules["torch"] = "torch"
    return unit.functions
