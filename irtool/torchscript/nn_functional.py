"""torch.nn.functional: its functions as irtool's own TorchScript (`irtool.ops.composed`), inlined in calls, and operators.

A name that is in no table is looked up among the operators (`F.conv2d` is `aten::conv2d`). Functions of torch that have several forms are
here too: an argument (`return_indices`) or its type (`dims` of tensordot) chooses the form.
"""
from __future__ import annotations

from functools import cache
from pathlib import Path

from irtool.torchscript.meanings import Builtin, Called, Choice, Overloads, Sugared
from irtool.torchscript.source_text import Function, read

OPERATORS = {"logsigmoid": "aten::log_sigmoid"}
"""Functions that are operators with another name."""
MODULES = ("functional", "functional_nets", "several_forms")
"""The modules of `irtool.ops.composed` that define functions of torch."""
HELPERS = ("legacy_", "reduction_number", "tensordot_", "norm_", "unique_", "consecutive_", "stft", "cdist_", "sizes_of", "size_of_scales",
           "power_of", "pooled_power", "unpooled_size", "dropped", "mask_of_numbers", "check_")
"""Prefixes of names that torch.nn.functional does not have."""
INDICES = {**{f"max_pool{n}d": (6, f"max_pool{n}d_with_indices") for n in (1, 2, 3)},
           **{f"adaptive_max_pool{n}d": (2, f"adaptive_max_pool{n}d_with_indices") for n in (1, 2, 3)}}
"""Functions with `return_indices` -> its position, and the function for True."""
OVERLOADS = {
    "tensordot": ("tensordot_of_int", "tensordot_of_tuple", "tensordot_of_lists", "tensordot_of_tensor"),
    "stft": ("stft",), "cdist": ("cdist_of_mode",),
    "norm": ("norm_of_word", "norm_over_one_by_name", "norm_of_word_over_one", "norm_over_one", "norm_of_number"),
}
"""Functions of torch that differ by the types of their arguments."""
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
    return None if definition is None else Called(definition)


def torch_function(name: str) -> Sugared | None:
    """The meaning of `torch.name`, if a function in Python wraps the operators."""
    if name in OVERLOADS:
        return Overloads(name, [form(each) for each in OVERLOADS[name]])
    if name not in FLAGS:
        return None
    start, position = FLAGS[name]
    alone, inverse, counts, both = (Called(form(f"{start}_{end}")) for end in ("alone", "with_inverse", "with_counts", "with_all"))
    return Choice(position, "return_inverse", Choice(position + 1, "return_counts", both, inverse),
                  Choice(position + 1, "return_counts", counts, alone))


def form(name: str) -> Function:
    """One form of a function with several forms."""
    return functions_of("several_forms")[name]


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
