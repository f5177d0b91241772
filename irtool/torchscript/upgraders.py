"""Operators whose meaning changed, with their old meaning: calls in the code of archives of older versions.

irtool's own functions express the old meaning in today's operators. Source: the upgraders of PyTorch (torch/csrc/jit/operator_upgraders),
and what torch does with such files.
"""
from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cache

from irtool.ir.graph import Value
from irtool.ir.schema import Schema, schemas
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.source_text import Function, read

OPTIONS = "dtype: Optional[int]=None, layout: Optional[int]=None, device: Optional[Device]=None, pin_memory: Optional[bool]=None"
PASSED = "dtype=dtype, layout=layout, device=device, pin_memory=pin_memory"
TEXT = f"""
def div_tensor(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode="trunc")
def div_number(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode="trunc")
def div_whole(self: Tensor, other: number) -> Tensor:
    return torch.div(self, other) if self.is_floating_point() else torch.div(self, int(other), rounding_mode="trunc")
def div_whole_(self: Tensor, other: number) -> Tensor:
    return self.div_(other) if self.is_floating_point() else self.div_(int(other), rounding_mode="trunc")
def div_out(self: Tensor, other: Tensor, out: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point() or out.is_floating_point():
        return torch.div(self, other, out=out)
    return torch.div(self, other, rounding_mode="trunc", out=out)
def div_tensor_(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return self.div_(other)
    return self.div_(other, rounding_mode="trunc")
def div_number_(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return self.div_(other)
    return self.div_(other, rounding_mode="trunc")
def full(size: List[int], fill_value: number, {OPTIONS}) -> Tensor:
    if dtype is None:
        return torch.full(size, float(fill_value), {PASSED})
    return torch.full(size, fill_value, {PASSED})
def linspace(start: number, end: number, steps: Optional[int]=None, {OPTIONS}) -> Tensor:
    return torch.linspace(start, end, 100 if steps is None else steps, {PASSED})
def linspace_out(start: number, end: number, steps: Optional[int]=None, *, out: Tensor) -> Tensor:
    return torch.linspace(start, end, 100 if steps is None else steps, out=out)
def logspace(start: number, end: number, steps: Optional[int]=None, base: float=10., {OPTIONS}) -> Tensor:
    return torch.logspace(start, end, 100 if steps is None else steps, base, {PASSED})
def logspace_out(start: number, end: number, steps: Optional[int]=None, base: float=10., *, out: Tensor) -> Tensor:
    return torch.logspace(start, end, 100 if steps is None else steps, base, out=out)
"""
CHANGED = {
    "aten::div": (4, "div_tensor div_number div_out"), "aten::div_": (4, "div_tensor_ div_number_"), "aten::full": (5, "full"),
}
"""Kind -> the version from which on it has today's meaning, and functions that express the meaning before."""
FIRST = {"aten::div": (1, "div_tensor div_whole div_out"), "aten::div_": (1, "div_tensor_ div_whole_")}
"""The same in the first form of archives, up to torch 1.2: numbers had the dtype of the tensor that they met."""
WIDER = {"aten::linspace": (8, "linspace linspace_out"), "aten::logspace": (9, "logspace logspace_out")}
"""The same for kinds that accepted more arguments: the functions are for calls that no overload of today accepts."""


def upgraded(e: Emitter, node: ast.AST, kind: str, positional: Sequence[Value], named: Mapping[str, Value],
             is_method: bool) -> Value | None:
    """The meaning of a call in the version of the archive that contains it; None if it is today's."""
    from irtool.torchscript.calls import default, inline

    library = e.place.library
    is_first = library is not None and library.version == 0 and kind in FIRST
    version, names = (FIRST if is_first else CHANGED).get(kind) or WIDER.get(kind) or (0, "")
    if library is None or library.version >= version or _outermost(e).function.owner is None:     # torch upgrades methods only
        return None
    if kind in WIDER and e.resolver.choose(schemas(kind), positional, named, is_method)[0] is not None:
        return None
    candidates = {name: _schema(kind, name) for name in names.split()}
    match, _ = e.resolver.choose([*candidates.values()], positional, named, is_method)
    if match is None:
        return None
    (function,) = [_functions()[name] for name, each in candidates.items() if each is match.schema]
    inputs = [default(e, recipe[1]) if recipe[0] == "default" else e.make(recipe) for recipe in match.recipes]
    e.at(node)
    return inline(e, e.compilation.graph_of(function), inputs)


def _outermost(e: Emitter) -> Emitter:
    while e.outer is not None:
        e = e.outer
    return e


@cache
def _functions() -> Mapping[str, Function]:
    return read(TEXT, "torch.upgraders").functions


@cache
def _schema(kind: str, name: str) -> Schema:
    from irtool.torchscript.calls import schema_of_function

    schema = schema_of_function(_functions()[name], schemas(kind)[0].returns[0].type)
    return Schema(schema.text, kind, schema.arguments, (), False, False)
