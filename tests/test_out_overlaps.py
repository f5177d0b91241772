"""`out=` that shares memory with an operand: refused where torch refuses it or reads what it has just written, of all overloads."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ir.schema import parse_schema
from irtool.ops import OPS
from irtool.ops.call import call_op

LENIENT = {"aten::linalg_solve.out", "aten::linalg_lu_solve.out"}
"""Overloads that take right-hand sides which torch refuses or takes by their memory layout."""
SQUARES = [[np.random.default_rng(0).random((3, *size))[place] for place in range(3)] for size in ((2, 2), (2, 2, 2), (1,), (3,), (1, 3))]
FILLED: dict[str, Any] = {"dim": 0, "n": 2, "value": 0.5, "weight": 0.5, "exponent": 2}
"""Numbers for arguments of some names; torch falls over others, such as sizes that do not fit."""
PLACES = ("whole", "next", "before", "first of", "last of", "in front", "behind")
"""Where the tensor that is written lies: on the operand, an element further in it, at an end of it, or around it."""
Call = tuple[Any, list[Any]]


def alternatives(overload: str) -> Iterator[tuple[str, Any]]:
    """The overloads with out= of one plain overload, and torch's functions."""
    torch = pytest.importorskip("torch")
    kind, _, variant = overload.removeprefix("aten::").partition(".")
    packet = getattr(torch.ops.aten, kind, None)
    names = [each.name for each in schema_of(overload).arguments]
    for other in packet.overloads() if packet else ():
        function = getattr(packet, other)
        given = [each.name for each in function._schema.arguments if not each.is_out]
        if other.endswith("out") and given == names and len(function._schema.arguments) == len(names) + 1:
            yield f"aten::{kind}.{other}", function


def schema_of(overload: str) -> Any:
    """The schema of an overload that has a stanza."""
    return parse_schema(OPS[overload].schemas[OPS[overload].names.index(overload)])


def arguments(overload: str) -> Iterator[list[Any]]:
    """The arguments of samples, and square matrices."""
    schema = schema_of(overload)
    yield from (sample.arguments(schema.text) for sample in OPS[overload].samples.get(overload, ()))
    for few in SQUARES if OPS[overload].family != "decomposition" else ():     # of which torch writes behind memory for such arguments
        tensors, args = cycle(few), []
        for each in schema.arguments:
            kind = each.type.text
            args.append(next(tensors) if kind == "Tensor" else each.default if each.has_default else
                        few[:2] if kind == "Tensor[]" else FILLED.get(each.name))
        if all(value is not None or each.has_default for value, each in zip(args, schema.arguments, strict=True)):
            yield args


def placed(operand: Any, shape: tuple[int, ...], where: str) -> tuple[Any, slice, slice] | None:
    """Memory, and where in it the operand and the written tensor lie; None if they cannot lie so."""
    size, count = operand.size, int(np.prod(shape))
    if where == "whole":
        return (np.empty(size, operand.dtype), slice(size), slice(size)) if operand.shape == shape else None
    if where in ("next", "before"):
        step = size // operand.shape[0] if operand.ndim and operand.shape[0] > 1 else 0
        places = slice(step, size + step), slice(size)
        return (np.empty(size + step, operand.dtype), *places[::1 if where == "next" else -1]) if step and operand.shape == shape else None
    if where in ("first of", "last of"):
        part = slice(count) if where == "first of" else slice(size - count, size)
        return (np.empty(size, operand.dtype), slice(size), part) if 0 < count < size else None
    part = slice(size) if where == "in front" else slice(count - size, count)
    return (np.zeros(count, operand.dtype), part, slice(count)) if 0 < size < count else None


def outcome(call: Callable[[], Any], out: Any) -> Any:
    """What is in a tensor after a call; None where it is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except (irtool.Error, RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return None
    return np.array(out)


def to_torch(value: Any) -> Any:
    """Arrays become tensors with memory of their own."""
    import torch

    if isinstance(value, list):
        return [to_torch(each) for each in value]
    return torch.tensor(value) if isinstance(value, np.ndarray) else value


def copied(args: list[Any]) -> list[Any]:
    """Arguments with arrays of their own, in rows."""
    return [copied(each) if isinstance(each, list) else each.copy() if isinstance(each, np.ndarray) else each for each in args]


def is_same(one: Any, other: Any) -> bool:
    """The same elements, but for rounding."""
    return one.dtype == other.dtype and np.allclose(one, other, 1e-4, 1e-5, equal_nan=True)


FOUND = [name for name, op in OPS.items() if name.startswith("aten::") and op.family != "random" and not schema_of(name).is_mutable
         and [each.type_text for each in schema_of(name).returns] == ["Tensor"] and op.family != "fake_quantize"]


@pytest.mark.oracle
@pytest.mark.parametrize("family", sorted({OPS[name].family for name in FOUND}))
def test_what_torch_refuses_or_gets_wrong_is_refused(family: str) -> None:
    torch = pytest.importorskip("torch")
    for name in [each for each in FOUND if OPS[each].family == family]:
        for written, function in alternatives(name):
            words = [each.name for each in function._schema.arguments]
            for args in arguments(name):
                result = outcome_of_plain(name, args)
                for place, value in enumerate(args) if result is not None else ():
                    operand = value[0] if isinstance(value, list) and value else value
                    if not isinstance(operand, np.ndarray) or operand.dtype != result.dtype or written in LENIENT:
                        continue
                    for where in PLACES:
                        found = placed(operand, result.shape, where)
                        if found is None:
                            continue
                        memory, source, target = found
                        memory[source] = operand.reshape(-1)
                        apart, theirs = torch.tensor(memory[target]).reshape(result.shape), torch.tensor(memory)
                        wanted = outcome(lambda: function(**dict(zip(words, [*to_torch(args), apart], strict=True))), apart)   # noqa: B023
                        if wanted is None:
                            continue
                        given, out = theirs[source].reshape(operand.shape), theirs[target].reshape(result.shape)
                        given = out if where == "whole" else given
                        got = outcome(lambda: function(**dict(zip(words, [*replaced(to_torch(args), place, given), out]))), out)  # noqa: B023, B905
                        mine, here = memory[source].reshape(operand.shape), memory[target].reshape(result.shape)
                        mine = here if where == "whole" else mine
                        ours = outcome(lambda: call_op(written, [*replaced(copied(args), place, mine), here]), here)  # noqa: B023
                        if got is None or not is_same(got, wanted):
                            assert ours is None, (written, where, words[place])
                        else:
                            assert ours is None or is_same(ours, wanted), (written, where, words[place])


def outcome_of_plain(name: str, args: list[Any]) -> Any:
    """The result of a plain overload; None where it is refused, or is no tensor with elements."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call_op(name, copied(args))
    except irtool.Error:
        return None
    return result if isinstance(result, np.ndarray) and result.size else None


def replaced(args: list[Any], place: int, value: Any) -> list[Any]:
    """Arguments with another tensor at a place, or in front in the list at that place."""
    return [*args[:place], [value, *args[place][1:]] if isinstance(args[place], list) else value, *args[place + 1:]]


@pytest.mark.parametrize("call", [
    "torch.matmul(x, x, out=x)", "torch.mm(x, y, out=y)", "torch.sum(x, 0, out=x[0])", "torch.cat([x[:1]], out=x[:1])",
    "torch.abs(x.view(-1)[1:], out=x.view(-1)[:-1])"])
@pytest.mark.parametrize("options", [{}, {"native": False}, {"optimize": False}, {"profiling": True}])
def test_all_ways_refuse_it(call: str, options: dict[str, Any]) -> None:
    module = irtool.from_script(f"def f(x: Tensor, y: Tensor):\n    x, y = x * 2, y * 2\n    {call}\n    return x, y\n")
    executor = irtool.compile(module, **options)
    for run in (executor.run, lambda inputs: irtool.run(module, inputs), lambda inputs: irtool.run(module, inputs, interpret=True)) * 2:
        with pytest.raises(irtool.Error, match="refer to a single memory location|shares memory with an operand"):
            run([np.eye(2), np.eye(2)])
