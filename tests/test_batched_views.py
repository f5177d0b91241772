"""What is written into a view inside vmap reaches the tensor that it views exactly where it does without vmap."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ops import OPS
from irtool.ops.call import call_op
from irtool.ops.facts import facts_of_overload
from irtool.ops.tensor import call as call_kind

VIEWS = sorted(name for name in OPS if name.startswith("aten::") and facts_of_overload(name).is_view and OPS[name].samples.get(name))
LAYOUTS = {"as it is": lambda x: x * 1.0, "a column": lambda x: irtool.torch.stack([x * 1.0, x * 2.0], 0)[0],
           "transposed": lambda x: (x * 1.0).transpose(0, -1).contiguous().transpose(0, -1) if x.ndim > 1 else x * 1.0,
           "every other": lambda x: irtool.torch.stack([x * 1.0, x * 2.0], -1).select(-1, 0)}


def written(name: str, arguments: list[Any], make: Any) -> Any:
    """A function of x: x laid out by `make`, after a write into a view of it."""
    def function(x: Any) -> Any:
        x = make(x)
        view = call_kind(name.partition(".")[0], [x, *arguments[1:]], {})
        view.mul_(3.0)
        return x
    return function


@pytest.mark.parametrize("name", VIEWS)
def test_a_write_into_a_view_reaches_the_same_elements_under_vmap(name: str) -> None:
    for call in OPS[name].samples[name]:
        arguments = call.arguments(next(text for text in OPS[name].schemas if text.startswith(name + "(")))
        array = arguments[0]
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or any(isinstance(each, np.ndarray) for each in arguments[1:]):
            continue
        if not isinstance(call_op(name, list(arguments)), np.ndarray):
            continue
        batch = np.stack([array, array + 1.0, array * 2.0])
        for words, make in LAYOUTS.items():
            function = written(name, list(arguments), make)
            try:
                loop = np.stack([np.asarray(function(irtool.torch.tensor(each))) for each in batch])
            except irtool.Error:
                continue
            try:
                batched = np.asarray(irtool.vmap(function)(batch))
            except irtool.Error:        # refused, as overlapping places are
                continue
            np.testing.assert_allclose(batched, loop, err_msg=f"{name}, {words}")


@pytest.mark.parametrize("fill", [lambda view: view.zero_(), lambda view: view.fill_(2.0), lambda view: view[1:].zero_()])
def test_one_number_is_written_into_an_expanded_tensor_under_layers_as_outside(fill: Any) -> None:
    def function(x: Any) -> Any:
        y = x * 1.0
        fill(y.expand(2, 3))
        return y + x
    batch = np.arange(3.0).reshape(3, 1)
    np.testing.assert_array_equal(irtool.vmap(function)(batch), [np.asarray(function(irtool.torch.tensor(row))) for row in batch])
    np.testing.assert_array_equal(irtool.grad(lambda x: function(x).sum())(batch[1]), [1.0])


@pytest.mark.parametrize("alike", [lambda v: irtool.torch.nn.functional.dropout(v, 0.5, False), lambda v: irtool.torch.atleast_1d(v),
                                   lambda v: v.sum_to_size(v.shape), lambda v: irtool.torch.atleast_3d(v)])
def test_what_gives_its_operand_back_shares_its_memory_under_layers(alike: Any) -> None:
    """Though its schema does not say so."""
    def function(x: Any) -> Any:
        y = x * 1.0
        z = alike(y)
        y.mul_(3.0)
        return z + 0.0
    batch = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(irtool.vmap(function)(batch), [np.asarray(function(irtool.torch.tensor(row))) for row in batch])
    np.testing.assert_array_equal(irtool.grad(lambda x: function(x).sum())(batch[1]), [3.0, 3.0])
    np.testing.assert_array_equal(irtool.jit(function)(batch[1]), function(irtool.torch.tensor(batch[1])))
