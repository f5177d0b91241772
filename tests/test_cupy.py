"""Everything runs on CuPy arrays: the operators' samples and facts, on a stand-in for CuPy that has what CuPy has, and no more."""
from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import fake_cupy
import numpy as np
import pytest
from op_facts import FACTS
from side_by_side import difference

from irtool import Error
from irtool.ops import OPS
from irtool.ops.arrays import backend, code_of, seeded, using
from irtool.ops.call import call_op, overload


@pytest.fixture(autouse=True)
def cupy() -> Iterator[Any]:
    """The stand-in, where `import cupy` looks."""
    with fake_cupy.installed() as found:
        yield found


def moved(value: Any, known: dict[int, Any] | None = None) -> Any:
    """Arrays on the device; one that is there twice is there twice again."""
    known = {} if known is None else known
    if isinstance(value, np.ndarray):
        if id(value) not in known:
            known[id(value)] = fake_cupy.NAMESPACE.asarray(value)
        return known[id(value)]
    if isinstance(value, list | tuple):
        return type(value)([moved(each, known) for each in value])
    return value


def back(value: Any) -> Any:
    """Arrays on the host. What is on the host already should not be."""
    assert not isinstance(value, np.ndarray | np.generic), f"a result that is no CuPy array: {value!r}"
    if isinstance(value, fake_cupy.ndarray):
        return value.get(order="K")
    if isinstance(value, list | tuple):
        return type(value)([back(each) for each in value])
    return value


def outcome(call: Any) -> Any:
    try:
        with np.errstate(all="ignore"), seeded(0):
            return call()
    except Error as error:
        return f"{type(error).__name__}: {error}"


def compared(name: str, sample: Any, schema: str) -> str | None:
    """How the results of a call differ."""
    wanted = outcome(lambda: overload(name)(sample.arguments(schema)))
    with using(backend("cupy")):
        found = outcome(lambda: back(overload(name)(moved(sample.arguments(schema)))))
    return difference(found, wanted)


@pytest.mark.parametrize("family", sorted({op.family for op in OPS.values()}))
def test_samples_give_the_same(family: str) -> None:
    problems = []
    for name, op in OPS.items():
        if op.family == family:
            for number, sample in enumerate(op.samples.get(name, ())):
                schema = next(text for text, own in zip(op.schemas, op.names, strict=True) if own == name)
                if why := compared(name, sample, schema):
                    problems.append(f"{name}, sample {number}: {why}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(("title", "name", "args", "named"), FACTS, ids=[fact[0] for fact in FACTS])
def test_facts_are_the_same(title: str, name: str, args: Any, named: dict[str, Any]) -> None:
    given = {key: code_of(value) if isinstance(value, np.dtype) else value for key, value in named.items()}
    wanted = outcome(lambda: call_op(name, deepcopy(list(args)), **deepcopy(given)))
    with using(backend("cupy")):
        found = outcome(lambda: back(call_op(name, moved(list(args)), **{key: moved(value) for key, value in given.items()})))
    assert difference(found, wanted) is None
