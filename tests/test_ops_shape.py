"""Views, joining and indexing: what shares memory, what is copied, and torch's words for misuse."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from irtool import RunError
from irtool.ops.call import call_op


def call(name: str, *args: Any, **named: Any) -> Any:
    return call_op(f"aten::{name}", list(args), **named)


def grid(*shape: int) -> np.ndarray:
    return np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape)


VIEWS: list[tuple[str, tuple[Any, ...]]] = [
    ("view", ([3, 2],)), ("reshape", ([6],)), ("select.int", (1, -1)), ("slice.Tensor", (0, 0, 1, 1)), ("transpose.int", (0, 1)),
    ("permute", ([1, 0],)), ("expand", ([4, 2, 3],)), ("squeeze", ()), ("unsqueeze", (1,)), ("diagonal", (1, 0, 1)),
    ("unfold", (1, 2, 1)), ("as_strided", ([2, 2], [1, 2], 1)), ("movedim.int", (0, 1)), ("narrow", (1, 1, 2)), ("t", ()),
    ("flatten.using_ints", (0, 1)), ("unflatten.int", (1, [3, 1])), ("numpy_T", ()), ("mT", ()), ("contiguous", ()), ("swapaxes", (0, 1)),
]


@pytest.mark.parametrize(("name", "arguments"), VIEWS, ids=[name for name, _ in VIEWS])
def test_a_view_shares_memory_and_can_be_written(name: str, arguments: Sequence[Any]) -> None:
    source = grid(2, 3)
    view = call(name, source, *arguments)
    assert np.shares_memory(view, source)
    view[...] = 100
    assert (source == 100).any()


@pytest.mark.parametrize(("name", "arguments"), [("split.Tensor", (2, 1)), ("chunk", (2, 1)), ("unbind.int", (1,)), ("hsplit.int", (3,)),
                                                 ("split_with_sizes", ([1, 2], 1)), ("tensor_split.sections", (2, 1))])
def test_parts_are_views(name: str, arguments: Sequence[Any]) -> None:
    source = grid(2, 3)
    assert all(np.shares_memory(part, source) for part in call(name, source, *arguments))


def test_copies_of_views_do_not_share() -> None:
    source = grid(2, 3)
    for name, arguments in (("expand_copy", ([4, 2, 3],)), ("permute_copy", ([1, 0],)), ("select_copy.int", (0, 1)), ("view_copy", ([6],))):
        assert not np.shares_memory(call(name, source, *arguments), source), name


def test_reshape_copies_only_when_it_must() -> None:
    source = grid(2, 3)
    assert np.shares_memory(call("reshape", source, [3, 2]), source)
    assert not np.shares_memory(call("reshape", source.T, [6]), source)


def test_complex_numbers_are_seen_as_pairs_and_back() -> None:
    source = np.array([[1 + 2j, 3 - 4j]], np.complex64)
    pairs = call("view_as_real", source)
    assert pairs.shape == (1, 2, 2) and np.shares_memory(pairs, source)
    assert (call("view_as_complex", pairs) == source).all()


def test_zero_dimensional_results_stay_so() -> None:
    source = grid(3)
    assert call("index.Tensor", source, [np.array(1)]).shape == ()
    assert call("select.int", source, 0, 1).shape == ()
    assert [part.shape for part in call("unbind_copy.int", source, 0)] == [()] * 3
    assert call("contiguous", np.array(1.0)).shape == ()


def test_cat_skips_empty_vectors_and_promotes() -> None:
    joined = call("cat", [np.zeros(0, np.float32), np.ones((1, 2), np.int64), np.ones((1, 2), np.float32)], 0)
    assert joined.shape == (2, 2) and joined.dtype == np.float32


def test_index_put_accumulates_repetitions() -> None:
    target, places = np.zeros(3, np.float32), np.array([1, 1, 2])
    assert call("index_put", target, [places], np.ones(3, np.float32), True).tolist() == [0, 2, 1]
    assert target.tolist() == [0, 0, 0]
    call("index_put_", target, [places], np.ones(3, np.float32), True)
    assert target.tolist() == [0, 2, 1]


def test_gather_and_scatter_are_opposite() -> None:
    rng = np.random.default_rng(0)
    source, order = grid(3, 4), np.argsort(rng.random((3, 4)), 1)
    back = call("scatter.src", np.zeros((3, 4), np.float32), 1, order, call("gather", source, 1, order))
    assert (back == source).all()


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_repeats_the_tensor(mode: str) -> None:
    names: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    source = grid(1, 2, 4, 5)
    assert (call("pad", source, [1, 2, 2, 1], mode) == np.pad(source, [(0, 0), (0, 0), (2, 1), (1, 2)], names[mode])).all()


X = grid(2, 3)
LONG = np.array([3])
MISUSES: list[tuple[str, tuple[Any, ...], str]] = [
    ("view", (X, [5]), "shape '[5]' is invalid for input of size 6"),
    ("view", (X.T, [6]), "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
                         "contiguous subspaces). Use .reshape(...) instead."),
    ("view", (X, [-1, -1]), "only one dimension can be inferred"),
    ("view", (X, [-1, 4]), "shape '[-1, 4]' is invalid for input of size 6"),
    ("view", (grid(0, 3), [-1, 0]), "cannot reshape tensor of 0 elements into shape [-1, 0] because the unspecified dimension size -1 can "
                                    "be any value and is ambiguous"),
    ("reshape", (X, [-2, 3]), "invalid shape dimension -2 at index 0 of shape [-2, 3]"),
    ("expand", (X, [4, 3]), "The expanded size of the tensor (4) must match the existing size (2) at non-singleton dimension 0.  Target "
                            "sizes: [4, 3].  Tensor sizes: [2, 3]"),
    ("expand", (X, [3]), "expand(torch.FloatTensor{[2, 3]}, size=[3]): the number of sizes provided (1) must be greater or equal to the "
                         "number of dimensions in the tensor (2)"),
    ("select.int", (X, 1, 7), "select(): index 7 out of range for tensor of size [2, 3] at dimension 1"),
    ("narrow", (X, 1, 2, 3), "start (2) + length (3) exceeds dimension size (3)."),
    ("transpose.int", (X, 0, 4), "Dimension out of range (expected to be in range of [-2, 1], but got 4)"),
    ("permute", (X, [0, 0]), "permute(): duplicate dims are not allowed."),
    ("split.Tensor", (X, -1), "split expects split_size be non-negative, but got split_size=-1"),
    ("split_with_sizes", (grid(5, 3), [2, 2]), "split_with_sizes expects split_sizes to sum exactly to 5 (input tensor's size at dimension "
                                               "0), but got split_sizes=[2, 2]"),
    ("chunk", (X, 0), "chunk expects `chunks` to be greater than 0, got: 0"),
    ("unfold", (X, 0, 3, 1), "maximum size for tensor at dimension 0 is 2 but size is 3"),
    ("cat", ([X, grid(2, 4)],), "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number 1 in "
                                "the list."),
    ("cat", ([X, grid(2)],), "Tensors must have same number of dimensions: got 2 and 1"),
    ("cat", ([],), "torch.cat(): expected a non-empty list of Tensors"),
    ("stack", ([grid(2), grid(3)],), "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1"),
    ("index_select", (X, 0, LONG), "index out of range in self"),
    ("index.Tensor", (X, [LONG]), "index 3 is out of bounds for dimension 0 with size 2"),
    ("index.Tensor", (X, [np.array([True, False, True])]), "The shape of the mask [3] at index 0 does not match the shape of the indexed "
                                                           "tensor [2, 3] at index 0"),
    ("index.Tensor", (X, [np.arange(2), np.arange(3)]), "shape mismatch: indexing tensors could not be broadcast together with shapes [2], "
                                                        "[3]"),
    ("gather", (X, 0, np.array([[3]])), "index 3 is out of bounds for dimension 0 with size 2"),
    ("gather", (X, 0, LONG), "Index tensor must have the same number of dimensions as input tensor"),
    ("masked_fill.Scalar", (X, X, 1.0), "masked_fill_ only supports boolean masks, but got mask with dtype float"),
    ("repeat", (X, [2]), "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"),
    ("flip", (X, [0, 0]), "dim 0 appears multiple times in the list of dims"),
    ("take", (X, np.array([9])), "out of range: tried to access index 9 on a tensor of 6 elements."),
    ("pad", (X, [1]), "Padding length must be divisible by 2"),
    ("diagonal", (X, 0, 1, 1), "diagonal dimensions cannot be identical 1, 1"),
]


@pytest.mark.parametrize(("name", "arguments", "message"), MISUSES, ids=[f"{name}-{place}" for place, (name, _, _) in enumerate(MISUSES)])
def test_misuse_is_answered_as_torch_answers(name: str, arguments: Sequence[Any], message: str) -> None:
    with pytest.raises(RunError) as raised:
        call(name, *arguments)
    assert raised.value.message == message
