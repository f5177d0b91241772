"""Operators that write into an argument beside the first (running statistics, noise): a trace gives all of their results, and goes on with
the operands it had."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.ops import OPS
from irtool.ops.arrays import seeded
from irtool.ops.tensor import call
from tests.shared_memory import calls, schema_of


def writes_elsewhere(name: str) -> bool:
    """Does an overload write, but not into its first argument?"""
    schema = schema_of(name)
    first = schema.arguments[0].alias if schema.arguments else None
    return schema.is_mutable and not (first is not None and first.is_write)


NAMES = [name for name in OPS if name.startswith("aten::") and writes_elsewhere(name)]


def flat(value: Any) -> list[Any]:
    """The arrays of a result."""
    return [each for item in value for each in flat(item)] if isinstance(value, list | tuple) else [np.asarray(value)]


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_gives_what_the_function_gives(name: str) -> None:
    compared = 0
    for which, args in calls(name):
        places = [place for place, value in enumerate(args) if isinstance(value, np.ndarray)]

        def function(*tensors: Any, args: list[Any] = args, places: list[int] = places) -> Any:
            mine = list(args)
            for place, tensor in zip(places, tensors, strict=True):
                mine[place] = tensor
            with seeded(3):
                result = call(name, tuple(mine), {})
            return [result, [tensor * 1 for tensor in tensors]]

        def given(args: list[Any] = args, places: list[int] = places) -> list[Any]:
            return [args[place].copy() for place in places]

        try:
            expected = flat(function(*map(irtool.Tensor, given())))
        except irtool.Error:        # another dtype or number, which the operator refuses
            continue
        compared += 1
        found = irtool.run(irtool.trace(function, given()), given(), seed=3)
        for one, other in zip(flat(found), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=f"{name} {which}")
    assert compared > 3 and len(NAMES) > 2


def test_a_tensor_is_copied_to_itself_under_every_layer() -> None:
    """Even one that is repeated in memory: such a copy writes nothing, so it is not refused."""
    def function(x: Any) -> Any:
        whole = call("aten::expand", (x * 2, [2, 3], False), {})
        return call("aten::copy_", (whole, whole, False), {})

    x = np.arange(3.0)
    expected = np.stack([x * 2, x * 2])
    for found in (function(irtool.Tensor(x)), irtool.vmap(function)(x[None])[0], irtool.jit(function)(x),
                  irtool.jvp(function, (x,), (x,))[0]):
        np.testing.assert_array_equal(np.asarray(found), expected)
    np.testing.assert_array_equal(irtool.grad(lambda x: function(x).sum())(x), [4, 4, 4])


def in_training(x: Any, mean: Any, var: Any, training: bool) -> Any:
    return torch.nn.functional.batch_norm(x, mean[0], var, training=training), mean * 2


def inside(x: Any, mean: Any, var: Any, training: bool) -> Any:
    made = torch.tensor([1.0, 2.0], dtype=torch.float64)
    torch.nn.functional.instance_norm(x.t()[None], made, var, use_input_stats=training)
    return made, var + 0


def differentiated(x: Any, mean: Any, var: Any, training: bool) -> Any:
    return irtool.grad(lambda x: (torch.nn.functional.batch_norm(x, mean[1], var, training=training) ** 3).sum())(x)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("function", [in_training, inside, differentiated])
def test_jit_and_traces_update_running_statistics_as_eager_does(function: Any, training: bool) -> None:
    """Schemas do not say that these operators write."""
    def arguments() -> list[Any]:
        return [torch.tensor(np.arange(8.0).reshape(4, 2) ** 2), torch.tensor(np.ones((2, 2))), torch.tensor(np.ones(2))]
    fast, wanted = irtool.jit(function), arguments()
    results = flat(function(*wanted, training))
    assert training == (wanted[2].tolist() != [1, 1])
    for _ in range(3):
        found = arguments()
        for one, other in zip(flat(fast(*found, training)), results, strict=True):
            np.testing.assert_array_equal(one, other)
        assert [each.tolist() for each in found] == [each.tolist() for each in wanted]
    graph = irtool.trace(lambda *args: function(*args, training), arguments())
    for one, other in zip(irtool.run(graph, [np.asarray(each) for each in arguments()]), results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_jit_refuses_to_update_statistics_that_are_no_arguments() -> None:
    mean, var = torch.zeros(2), torch.ones(2)
    fast = irtool.jit(lambda x, training: torch.nn.functional.batch_norm(x, mean, var, training=training))
    with pytest.raises(irtool.Error, match="batch_norm, which updates running_mean, inside irtool.jit writes into a tensor"):
        fast(np.ones((3, 2), np.float32), True)
    assert mean.tolist() == [0, 0]
    assert fast(np.ones((3, 2), np.float32), False).shape == [3, 2]
