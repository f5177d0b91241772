"""Numbers and sizes that torch refuses, found by changing one argument of the samples: what is not said is a wrong answer."""
from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.ir.schema import schemas
from irtool.ops import OPS
from irtool.ops.call import call_op, overload
from irtool.ops.samples.draw import Call

A, B, LABELS = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]), np.full((2, 3), 0.25), np.array([0, 2])
STATE, WIDE, LINE = np.zeros((2, 4)), np.ones((16, 3)), np.ones((1, 2, 4))
PACKED = [np.ones((4, 3)), np.ones((4, 4)), np.ones(4), np.ones(4)]
ATTENTION = np.ones((1, 2, 3, 2))
REFUSED: dict[str, tuple[str, list[Any]]] = {
    "no reduction": ("aten::l1_loss", [A, B, 5]), "a negative one": ("aten::kl_div", [A, B, -1]),
    "of classes": ("aten::nll_loss", [A, LABELS, None, 3, -100]), "of both": ("aten::cross_entropy_loss", [A, LABELS, None, 5]),
    "beta": ("aten::smooth_l1_loss", [A, B, 1, math.nan]), "delta": ("aten::huber_loss", [A, B, 1, math.nan]),
    "probabilities": ("aten::binary_cross_entropy", [B, A, None, 1]), "ignored": ("aten::cross_entropy_loss", [A, B, None, 1, 2]),
    "int32 labels": ("aten::nll_loss", [A, LABELS.astype(np.int32)]),
    "uint8 labels": ("aten::multi_margin_loss", [A, LABELS.astype(np.uint8)]),
    "eps": ("aten::cosine_similarity", [A, B, 1, math.nan]), "order": ("aten::cdist", [A, B, math.nan]),
    "order of pdist": ("aten::pdist", [A, math.nan]), "maxnorm": ("aten::renorm", [A, 2, 0, math.nan]),
    "lambda": ("aten::softshrink", [A, math.nan]), "weights": ("aten::cov", [A, 1, None, np.array([1.0, math.nan, 1.0])]),
    "half": ("aten::_softmax", [A, 1, True]), "a mode": ("aten::_pad_enum", [A[None], [1, 1], -1]),
    "an unrolled dimension": ("aten::_trilinear", [A, A, A, [2], [1], [0], [2], -2]),
    "no dimension": ("aten::fft_fftshift", [A, []]), "chunks": ("aten::_chunk_cat", [[A, B.astype(np.float32)], 0, 2]),
    "a bias": ("aten::bilinear", [A, A, np.ones((4, 3, 3)), np.ones(1)]),
    "output padding": ("aten::conv_transpose1d", [LINE, np.ones((2, 3, 3)), None, [2], [1], [-1]]),
    "no output": ("aten::conv_transpose1d", [LINE, np.ones((2, 3, 3)), None, [2], [5], [1]]),
    "padding": ("aten::im2col", [np.ones((1, 2, 4, 5)), [2, 2], [1, 1], [-1, 1], [1, 2]]),
    "dilation": ("aten::im2col", [np.ones((1, 2, 4, 5)), [2, 2], [1, 0], [0, 1], [1, 2]]),
    "channels": ("aten::conv_tbc", [np.ones((5, 2, 0)), np.ones((2, 3, 4)), np.ones(4), 0]),
    "maps": ("aten::affine_grid_generator", [np.ones((2, 2, 3)), [3, 1, 2, 4], True]),
    "pivots": ("aten::linalg_lu_solve", [np.eye(3), np.array([1, 2, 3]), np.ones((3, 2))]),
    "few pivots": ("aten::linalg_lu_solve", [np.eye(3), np.array([1, 2], np.int32), np.ones((3, 2))]),
    "batches of a cell": ("aten::lstm_cell", [np.ones((2, 3)), [STATE, STATE[:1]], WIDE, np.ones((16, 4))]),
    "one state": ("aten::lstm_cell", [np.ones((2, 3)), [STATE], WIDE, np.ones((16, 4))]),
    "gates": ("aten::gru_cell", [np.ones((2, 3)), STATE, WIDE, np.ones((16, 4))]),
    "a vector": ("aten::rnn_tanh_cell", [np.ones(3), np.ones(4), np.ones((4, 3)), np.ones((4, 4))]),
    "batch sizes": ("aten::rnn_tanh.data", [np.ones((3, 3)), np.array([2]), np.zeros((1, 2, 4)), PACKED, True, 1, 0.0, False, False]),
    "dtype of them": ("aten::rnn_tanh.data",
                      [np.ones((3, 3)), np.array([2, 1], np.int32), np.zeros((1, 2, 4)), PACKED, True, 1, 0.0, False, False]),
    "a share": ("aten::scaled_dot_product_attention", [ATTENTION, ATTENTION, ATTENTION, None, math.nan]),
    "heads": ("aten::_scaled_dot_product_flash_attention_for_cpu", [ATTENTION, ATTENTION, ATTENTION[..., :1]]),
    "dimensions of attention": ("aten::_scaled_dot_product_flash_attention_for_cpu", [ATTENTION[0], ATTENTION[0], ATTENTION[0]]),
    "one statistic": ("aten::batch_norm", [LINE, None, None, np.ones(2), None, True, 0.1, 1e-3, False]),
    "the other one": ("aten::_batch_norm_impl_index", [LINE, None, None, None, np.ones(2), True, 0.1, 1e-3, False]),
    "no statistic of two": ("aten::_batch_norm_no_update", [LINE, None, None, None, np.ones(2), 0.1, 1e-3]),
    "an approximation": ("aten::gelu_backward", [A, B, "mean"]), "a path": ("aten::einsum", ["ij,kj->ik", [A, B], [0]]),
    "a path to itself": ("aten::einsum", ["ij,kj->ik", [A, B], [1, 1]]), "a path beyond": ("aten::einsum", ["ij,kj->ik", [A, B], [0, -1]]),
    "indices of segments": ("aten::segment_reduce", [A, "sum", np.array([1, 1]), np.array([0, 1]), None, 0, False, None]),
    "a singular matrix": ("aten::linalg_ldl_factor_ex", [np.zeros((2, 2)), False, True]),
    "statistics": ("aten::instance_norm", [LINE, None, None, np.ones((1, 2)), np.ones(2), False, 0.1, 1e-3, False]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what: str) -> None:
    name, args = REFUSED[what]
    with pytest.raises(irtool.Error):
        call_op(name, args)


NUMBERS = ("float", "float?", "int", "int?", "SymInt", "SymInt?", "Generator?")
OVERLOADS = [name for kind, op in sorted(OPS.items()) if kind.startswith("aten::") for name in op.samples]


def test_complex_tensors_are_no_numbers_and_words_no_generators() -> None:
    taken = []
    for name in OVERLOADS:
        chosen = overload(name)
        kind = name.partition(".")[0]
        text = next(text for text, each in zip(chosen.op.schemas, chosen.op.names, strict=True) if each == name)
        sample: Call = chosen.op.samples[name][0]
        for place, argument in enumerate(chosen.schema.arguments):
            takes_tensors = any("Tensor" in each.type_text for other in schemas(kind) for each in other.arguments[place:place + 1])
            if argument.type_text in NUMBERS and not takes_tensors:
                values: list[Any] = [as_tensors(each) for each in sample.arguments(text)]
                values[place] = "no generator" if argument.type_text == "Generator?" else torch.tensor(1j)
                named = {each.name: value for each, value in zip(chosen.schema.arguments, values, strict=True) if each.keyword_only}
                with contextlib.suppress(irtool.Error):
                    getattr(torch.ops.aten, kind.removeprefix("aten::"))(*values[:len(values) - len(named)], **named)
                    taken.append((name, argument.name))
    assert not taken


def as_tensors(value: Any) -> Any:
    if isinstance(value, list):
        return [as_tensors(each) for each in value]
    return torch.tensor(value.copy()) if isinstance(value, np.ndarray) else value


@pytest.mark.oracle
def test_torch_refuses_the_same() -> None:
    """All but reductions, which torch takes for `none` in some losses and for `sum` in others, and rows
    that belong to no time."""
    torch = pytest.importorskip("torch")

    def tensor(value: Any) -> Any:
        return [*map(tensor, value)] if isinstance(value, list) else torch.tensor(value) if isinstance(value, np.ndarray) else value

    taken = []
    for what, (name, args) in REFUSED.items():
        kind, _, overload = name.removeprefix("aten::").partition(".")
        try:
            getattr(getattr(torch.ops.aten, kind), overload or "default")(*map(tensor, args))
            taken.append(what)
        except (RuntimeError, IndexError, ValueError):
            pass
    assert taken == ["no reduction", "a negative one", "of classes", "of both", "batch sizes"]


def test_matrices_are_exponentiated_each_by_its_own_norm() -> None:
    """A large matrix cost the small ones of its batch their digits, and one that is not finite made all of them 0."""
    small, large = np.array([[1e-6, 2e-6], [3e-6, -1e-6]]), np.array([[0.0, 1e8], [-1e8, 0.0]])
    alone = call_op("aten::matrix_exp", [small])
    batch = call_op("aten::matrix_exp", [np.stack([small, large, np.full((2, 2), math.nan), np.zeros((2, 2))])])
    np.testing.assert_array_equal(batch[0], alone)
    np.testing.assert_allclose(alone, np.eye(2) + small + small @ small / 2, rtol=1e-11)
    np.testing.assert_allclose(batch[1], [[math.cos(1e8), math.sin(1e8)], [-math.sin(1e8), math.cos(1e8)]], atol=1e-6)
    assert np.isnan(batch[2]).all()
    np.testing.assert_allclose(batch[3], np.eye(2), rtol=1e-15)


def test_numbers_that_have_an_answer() -> None:
    """All scores dropped, norms of order 0, margins beside nan, bytes as targets."""
    attention = call_op("aten::scaled_dot_product_attention", [ATTENTION, ATTENTION, ATTENTION], dropout_p=1.0)
    np.testing.assert_array_equal(attention, np.zeros_like(ATTENTION))
    np.testing.assert_array_equal(call_op("aten::norm_except_dim", [np.array([[1.0, 0.0], [2.0, 3.0]]), 0, 0]), [[1.0], [2.0]])
    assert call_op("aten::multi_margin_loss", [np.array([[math.nan, 0.0, 5.0]]), np.array([2])]) == 0.0
    targets = np.array([1, 255], np.uint8)
    assert call_op("aten::hinge_embedding_loss", [np.array([0.25, 0.5]), targets, 1.0, 2]) == 0.75
    np.testing.assert_allclose(call_op("aten::margin_ranking_loss", [np.ones(2), np.zeros(2), targets, 0.0, 0]), [255.0, 1.0])
    bytes_ = [np.array([200, 3], np.uint8), np.array([3, 7], np.uint8), np.array([5, 1], np.uint8)]        # products wrap as bytes
    np.testing.assert_array_equal(call_op("aten::margin_ranking_loss", [*bytes_, 0.5, 0]), np.array([39.5, 4.5], np.float32))
