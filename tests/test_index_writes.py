"""What index_add, index_copy, index_fill, index_reduce and indexing compute and refuse is what torch computes and refuses."""
from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import irtool

SHAPES: list[tuple[int, ...]] = [(), (1,), (2,), (0,), (2, 3), (2, 1), (1, 3), (0, 3), (2, 0), (0, 0), (1, 2, 3)]
INDICES: list[Any] = [0, -1, [], [0], [2], [-1], [-4], [0, 0], [1, 0], [0, 5]]


def tried(call: Any) -> Any:
    """The result as an array; None where there is an error."""
    try:
        return np.asarray(call())
    except (irtool.Error, RuntimeError, IndexError):
        return None


def agree(call: Any, torch: Any, what: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want, got = tried(lambda: call(torch)), tried(lambda: call(irtool.torch))
    assert (got is None) == (want is None), f"{what}: torch {'refuses' if want is None else 'computes'}"
    if want is not None:
        np.testing.assert_array_equal(got, want, what, strict=True)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["index_add", "index_copy", "index_reduce"])
def test_sources(name: str) -> None:
    torch = pytest.importorskip("torch")
    tail = ["amax"] if name == "index_reduce" else []
    for shape, source, index, dim, dtype in itertools.product(SHAPES, SHAPES, INDICES, (0, 1), ("int64", "int32")):
        if dim < max(len(shape), 1) and (dtype == "int64" or index == [0]):
            def call(xp: Any, shape: Any = shape, source: Any = source, index: Any = index, dim: int = dim, dtype: str = dtype) -> Any:
                numbers = xp.arange(1.0, 1.0 + int(np.prod(source))).reshape(source)
                return getattr(xp.zeros(shape), name)(dim, xp.tensor(index, dtype=getattr(xp, dtype)), numbers, *tail)

            agree(call, torch, f"{name} of {source} into {shape} at {index}, dim {dim}, {dtype}")


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["bool", "complex64", "uint8", "float16"])
def test_index_reduce_of_dtypes(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    for shape, count, include_self in itertools.product([(), (0,), (1,), (3,), (0, 2), (3, 0), (3, 2)], (0, 1, 2), (True, False)):
        def call(xp: Any, shape: Any = shape, count: int = count, include_self: bool = include_self) -> Any:
            target, index = xp.ones(shape, dtype=getattr(xp, dtype)), xp.zeros([count], dtype=xp.int64)
            source = xp.ones([count, *shape[1:]] if shape else [], dtype=getattr(xp, dtype))
            return target.index_reduce(0, index, source, "prod", include_self=include_self)

        agree(call, torch, f"index_reduce of {dtype}{list(shape)} at {count} places, include_self={include_self}")


FORMS = {
    "fill": lambda xp, x, dim, index: x.index_fill(dim, index, 1.5),
    "select": lambda xp, x, dim, index: xp.index_select(x, dim, index),
    "index": lambda xp, x, dim, index: x[(slice(None),) * dim + (index,)],
    "put": lambda xp, x, dim, index: x.index_put([index], xp.tensor(1.5)),
    "take": lambda xp, x, dim, index: xp.take(x, index),
}


@pytest.mark.oracle
@pytest.mark.parametrize("form", FORMS)
def test_places(form: str) -> None:
    torch = pytest.importorskip("torch")
    for shape, index, dim in itertools.product([*SHAPES, (2, 0, 3)], INDICES, (0, 1, 2)):
        if dim < max(len(shape), 1) and (shape or form != "index"):
            def call(xp: Any, shape: Any = shape, index: Any = index, dim: int = dim) -> Any:
                x = xp.arange(float(np.prod(shape))).reshape(shape)
                return FORMS[form](xp, x, dim, xp.tensor(index, dtype=xp.int64))

            agree(call, torch, f"{form} of {shape} at {index}, dim {dim}")
