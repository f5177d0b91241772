"""Write `irtool/dispatch/torch/signatures.pyi`: what editors and mypy know of `irtool.torch` and `irtool.Tensor`, by their schemas.

    python tools/stubs.py          rewrite the file (a test asks that it is current)
"""
from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Iterator
from inspect import Parameter
from pathlib import Path
from typing import Any

from irtool.dispatch.torch.namespace import PREFIXES, VARIADIC, Torch
from irtool.dispatch.torch.torch_functional import functions
from irtool.dispatch.torch.torch_names import NAMES, TRANSFORMATIONS
from irtool.ops import OPS, signatures
from irtool.ops.size_facts import FACTORIES
from irtool.ops.tensor import Tensor, operator_names
from irtool.ops.tensor_facts import BY_NAME
from irtool.ops.tensor_methods import ATTRIBUTES, METHODS
from irtool.torchscript.nn_functional import OPERATORS

FILE = Path(__file__).parent.parent / "irtool" / "dispatch" / "torch" / "signatures.pyi"
HEAD = '''"""The functions and methods of `irtool.torch` and `irtool.Tensor`. Written by tools/stubs.py."""
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, overload

import numpy as np
from irtool.dispatch.torch import grad_mode
from irtool.dispatch.torch.torch_names import Generator as _Generator
from irtool.ops import tensor_facts

_int = int
_float = float
_bool = bool
_complex = complex
_Like = Tensor | np.ndarray[Any, Any]
'''
CLASSES = {"finfo": "tensor_facts.finfo", "iinfo": "tensor_facts.iinfo", "Size": "tensor_facts.Size", "device": "tensor_facts.Place",
           "Generator": "_Generator", "Tensor": "_Tensor", "no_grad": "grad_mode.no_grad", "inference_mode": "grad_mode.no_grad",
           "enable_grad": "grad_mode.enable_grad"}
UNKNOWN = re.compile(r"\b(?!None\b|Any\b|str\b|object\b|list\b|tuple\b|dict\b|_)[A-Za-z]\w*")
OBJECTS = ("__getattr__", "__reduce__", "__dir__", "__repr__")
MEMBERS = {"shape": "tensor_facts.Size", "ndim": "_int", "device": "str", "dtype": "tensor_facts.Dtype", "array": "Any", "T": "Tensor",
           "mT": "Tensor", "H": "Tensor", "mH": "Tensor", "real": "Tensor", "imag": "Tensor", "is_cuda": "_bool", "is_sparse": "_bool",
           "is_quantized": "_bool", "is_mps": "_bool", "requires_grad": "_bool", "is_leaf": "_bool", "itemsize": "_int", "nbytes": "_int"}
GIVE_TENSORS = {"__getitem__", *(f"__{prefix}{name}__" for prefix in ("", "r") for name in (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift neg abs invert pos lt le gt ge eq ne".split()))}


def in_class(text: str, takes: bool = False) -> str:
    """An annotation inside a class that has members of the names of Python's types. takes: of an argument, which may be an array."""
    text = re.sub(r"\b(int|float|bool|complex)\b", r"_\1", text).replace("Generator", "_Generator")
    return re.sub(r"\bTensor\b", "_Like" if takes else "_Tensor", text)


def shown(parameter: Parameter, text: str) -> str:
    """A parameter of a stub."""
    default = parameter.default
    is_literal = default is None or type(default) in (bool, int, float, str) and repr(default) not in ("inf", "-inf", "nan", "...")
    plain = repr(default) if is_literal else "..."
    name = "__input" if parameter.name == "self" else parameter.name        # of a function that is a method too
    star = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    return f"{star}{name}: {text}" + ("" if default is Parameter.empty else f" = {plain}")


def defined(name: str, parameters: list[Parameter], gives: str, types: Callable[[Parameter], str]) -> str:
    """One `def` in a class."""
    parts = ["self"]
    for each in parameters:
        if each.kind is Parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        parts.append(shown(each, types(each)))
    return f"def {name}({', '.join(parts)}) -> {gives}: ..."


def of_operator(name: str, kind: str, is_method: bool) -> list[str]:
    """The overloads of an operator, with those that take the numbers of its only list one by one."""
    found: list[str] = []
    if not OPS.of_kind(kind) and not OPS.of_kind(kind.removesuffix("_")):
        return []
    for schema, takes_out in signatures.overloads(kind):
        if is_method and [(each.name in ("self", "input"), each.type_text) for each in schema.arguments[:1]] != [(True, "Tensor")]:
            continue
        parameters = list(signatures.parameters(schema, takes_out, is_method))[is_method:]
        if not is_method and kind.removeprefix("aten::") in FACTORIES:
            parameters.append(Parameter("requires_grad", Parameter.KEYWORD_ONLY, default=False, annotation="bool"))
        gives = in_class(signatures.result(schema))
        positional = [each for each in parameters if each.kind is not Parameter.KEYWORD_ONLY]
        rest = [each for each in parameters if each.kind is Parameter.KEYWORD_ONLY]
        if name in VARIADIC and not is_method:
            gives = in_class(signatures.result(schema))
            parameters = [Parameter("tensors", Parameter.VAR_POSITIONAL, annotation="Tensor | Sequence[Tensor]"), *rest]
        found.append(defined(name, parameters, gives, lambda each: in_class(str(each.annotation), True)))
        first = positional[0] if is_method and positional else positional[-1] if positional else None
        if first and len(positional) == 1 and "Sequence[int]" in str(first.annotation):
            spread = [Parameter(first.name, Parameter.VAR_POSITIONAL, annotation="int"), *rest]
            found.append(defined(name, spread, gives, lambda each: in_class(str(each.annotation), True)))
    return list(dict.fromkeys(found))


def of_python(name: str, function: Any, skip: int = 0) -> list[str]:
    """The `def` of a function in Python. What it gives is said where its operator's schemas say it."""
    declared = inspect.signature(function)
    operators = {signatures.result(schema) for schema, _ in signatures.overloads(f"aten::{name.strip('_') if name[:2] == '__' else name}")}

    def typed(annotation: Any) -> str:
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
        text = re.sub(r"\bOptional\[([^\[\]]*(?:\[[^\[\]]*\])?)\]", r"\1 | None", text.replace("List[", "Sequence["))
        text = in_class(text)
        return "Any" if annotation is Parameter.empty or UNKNOWN.search(text.replace("Sequence", "_")) else text

    gives = typed(declared.return_annotation)
    gives = in_class(operators.pop()) if gives == "Any" and len(operators) == 1 else gives
    if gives == "Any" and name in GIVE_TENSORS:
        gives = "_Tensor"
    return [defined(name, list(declared.parameters.values())[skip:], gives,
                    lambda each: typed(each.annotation).replace("_Tensor", "_Like"))]


def written(lines: list[str]) -> Iterator[str]:
    """The `def`s of one name, with `@overload` where they are several."""
    for line in lines:
        if len(lines) > 1:
            yield "    @overload"
        yield f"    {line}"


def is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


def class_of(title: str, members: dict[str, list[str] | str]) -> str:
    """A class: for each name its `def`s, or its type."""
    lines = [f"class {title}:"]
    for name, member in sorted(members.items()):
        lines += [f"    {name}: {member}"] if isinstance(member, str) else written(member)
    return "\n".join([*lines, *["    ..."] * (not members)]) + "\n"


def tensor_members() -> dict[str, list[str] | str]:
    operators = {name: of_operator(name, f"aten::{name}", True) for name in operator_names() if is_name(name)}
    members: dict[str, list[str] | str] = {name: lines for name, lines in operators.items() if lines}
    members |= {name: of_python(name, function, 1) for name, function in METHODS.items()}
    members |= {name: MEMBERS.get(name, "Any") for name in ATTRIBUTES} | MEMBERS
    for name, member in vars(Tensor).items():
        if inspect.isfunction(member) and name not in OBJECTS and not hasattr(member, "__signature__"):
            members[name] = of_python(name, member, 1)
    members["view"] = ["def view(self, *size: _int | Sequence[_int] | tensor_facts.Dtype, dtype: _int | None = None) -> _Tensor: ..."]
    members["size"] = ["def size(self) -> tensor_facts.Size: ...", "def size(self, dim: _int) -> _int: ..."]
    members["item"] = ["def item(self) -> Any: ..."]
    return members


def torch_members(operators: dict[str, list[str] | str]) -> dict[str, list[str] | str]:
    members = dict(operators)
    members |= {name: "Final[tensor_facts.Dtype]" for name in BY_NAME}
    for name, value in NAMES.items():
        if name in CLASSES:
            members[name] = f"type[{CLASSES[name]}]"
        elif is_name(name):
            members[name] = of_python(name, value) if inspect.isfunction(value) else {
                int: "_int", float: "_float"}.get(type(value), "tensor_facts.Dtype" if isinstance(value, int) else "Any")
    for name, member in vars(Torch).items():
        if inspect.isfunction(member) and is_name(name):
            members[name] = of_python(name, member, 1)
    return members | {name: f"_{name.title()}" for name in PREFIXES} | {"nn": "_NN", "func": "_Func", "jit": "Any", "ops": "Any"}


def text() -> str:
    """The file as it should be."""
    operators: dict[str, list[str] | str] = {name: lines for name in operator_names() if is_name(name)
                                             if (lines := of_operator(name, f"aten::{name}", False))}
    functional = operators | {name: operators[kind.removeprefix("aten::")] for name, kind in OPERATORS.items()
                              if kind.removeprefix("aten::") in operators}
    for name, function in functions().items():
        functional[name] = of_python(name, function)
    prefixed = [class_of(f"_{prefix.title()}", {
        name: of_operator(name, f"aten::{prefix}_{name}", False) for each in operators if each.startswith(f"{prefix}_")
        if is_name(name := each.removeprefix(f"{prefix}_"))}) for prefix in PREFIXES]
    transformations: dict[str, list[str] | str] = {name: of_python(name, value) for name, value in TRANSFORMATIONS.items()}
    new = {name: lines for name, lines in functional.items() if lines is not operators.get(name)}
    return "\n".join([HEAD, class_of("Tensor", tensor_members()), "_Tensor = Tensor\n", class_of("_Operators", operators), *prefixed,
                      class_of("_Functional(_Operators)", new), class_of("_NN", {"functional": "_Functional"}),
                      class_of("_Func", transformations),
                      class_of("_Torch(_Operators)", {name: each for name, each in torch_members(operators).items()
                                                      if each is not operators.get(name)}),
                      "torch: Final[_Torch]\n"])


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
