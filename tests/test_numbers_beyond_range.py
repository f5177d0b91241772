"""Numbers as arguments beyond their range: torch reads some as the end of the range, and refuses others."""
from __future__ import annotations

import numpy as np
import pytest

import irtool
from irtool.ops.call import call_op
from irtool.testing.finite_differences import flattened

NAN, INF = np.nan, np.inf
R = np.random.default_rng(5).normal
X, CLASSES, SHARES, WEIGHT = R(size=(4, 3)), np.array([0, 1, 2, 1]), np.abs(R(size=(4, 3))), np.array([1.0, 2.0, 3.0])
Q, MASK = R(size=(2, 3, 4)), np.array([[True, False, True]] * 3)


def results(name, args, wrt):
    """The results of a call, and the gradients for cotangents of ones."""
    letters = "abcdefghijk"[:len(args)]
    kinds = ["Optional[Tensor]" if value is None else "Tensor" if isinstance(value, np.ndarray) else type(value).__name__ for value in args]
    module = irtool.from_script(f"def f({', '.join(f'{letter}: {kind}' for letter, kind in zip(letters, kinds, strict=True))}):\n"
                                f"    return torch.ops.aten.{name}({', '.join(letters)})\n")
    outs = flattened(irtool.run(module, list(args), interpret=True)[0])
    return [*outs, *irtool.vjp(module, list(args), [np.ones_like(out) for out in outs], list(wrt))]


def same(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)


SAME = {
    "smoothing of classes": ("cross_entropy_loss", (X, CLASSES, None, 1, -100), 0.0, (-1.5, -INF, NAN), (), (0,)),
    "weighted": ("cross_entropy_loss", (X, CLASSES, WEIGHT, 1, -100), 0.0, (-1.5, -INF, NAN), (), (0,)),
    "smoothing of shares": ("cross_entropy_loss", (X, SHARES, WEIGHT, 1, -100), 0.0, (-1.5, -INF, NAN), (), (0, 1)),
    "attention": ("scaled_dot_product_attention", (Q, Q, Q, None), 0.0, (-1.5, -INF, NAN), (False,), (0, 1, 2)),
    "weights of attention": ("_scaled_dot_product_attention_math", (Q, Q, Q, None), 0.0, (-1.5, -INF, NAN), (False,), (0, 1, 2)),
    "a mask of no dropout": ("_scaled_dot_product_attention_math", (Q, Q, Q, None), 0.0, (0.0, -1.5), (False, MASK), (0, 1, 2)),
    "margins": ("multi_margin_loss", (X, CLASSES), 1.0, (1.5, True), (1.0,), (0,)),
    "squared margins": ("multi_margin_loss", (X, CLASSES), 2.0, (2.9,), (1.0,), (0,)),
}
"""Operator, arguments before the number, a number in its range, numbers that mean the same, arguments behind it, what has a gradient."""


@pytest.mark.parametrize("case", SAME)
def test_numbers_that_mean_the_same(case):
    name, before, within, others, behind, wrt = SAME[case]
    plain = behind if case != "a mask of no dropout" else (False, None)
    expected = results(name, (*before, within, *plain), wrt)
    for number in others:
        same(results(name, (*before, number, *behind), wrt), expected)


def test_byte_targets_are_classes_but_torch_does_not_gather_weights_by_them():
    bytes = CLASSES.astype(np.uint8)
    same(*(results("cross_entropy_loss", (X, classes, WEIGHT, 1, -100, 0.0), (0,)) for classes in (bytes, CLASSES)))
    with pytest.raises(irtool.Error, match=r"gather\(\): Expected dtype int32/int64 for index"):
        call_op("aten::cross_entropy_loss", [X, bytes, WEIGHT, 1, -100, 0.5])


@pytest.mark.parametrize(("name", "args", "words"), [
    ("cross_entropy_loss", (X, CLASSES, None, 1, -100, 1.5), "label_smoothing must be between 0.0 and 1.0. Got: 1.5"),
    ("cross_entropy_loss", (X, SHARES, None, 1, -100, INF), "label_smoothing must be between 0.0 and 1.0. Got: inf"),
    ("cross_entropy_loss", (X, SHARES.astype(np.int64), None, 1, 1, 1.5),
     "Expected floating point type for target with class probabilities, got Long"),
    ("cross_entropy_loss", (X, SHARES, None, 1, 1, 1.5), "ignore_index is not supported for floating point target"),
    ("scaled_dot_product_attention", (Q, Q, Q, None, 1.5), "dropout probability has to be between 0 and 1, but got 1.5"),
    ("scaled_dot_product_attention", (Q[None], Q[None], Q[None], None, -1.5), "do not support dropout > 0"),
    ("multi_margin_loss", (X, CLASSES, 0.5), "only p == 1 and p == 2 supported"),
    ("softshrink", (X, INF), r"lambda must be in range \[0, 1.79769e\+308\] for input dtype Double, but found inf"),
    ("softshrink", (X, NAN), "lambda must be greater or equal to 0, but found to be nan"),
    ("elu_backward", (X, -1.5, 1, 1, True, X), "In-place elu backward calculation is triggered with a negative slope"),
    ("scatter_reduce.two", (np.zeros(0, bool), 0, np.zeros(0, int), np.zeros(0, bool), "mean"),
     '"div_floor_cpu" not implemented for \'Bool\''),
    ("cdist", (X, X, 2.0, 3), "possible modes: 0, 1, 2, but was: 3"),
    ("embedding_bag", (X, CLASSES, CLASSES[:2], False, 3), "`mode` must be sum, mean, or max."),
    ("embedding_bag.padding_idx", (X, CLASSES, CLASSES[:2], False, 0, False, None, False, 4),
     "padding_idx must be within the number of embeddings, -4 through 3, but got 4"),
    ("trapezoid.dx", (X, True), "trapezoid: Currently, we only support dx as a real number"),
    ("cumulative_trapezoid.dx", (X, True), "cumulative_trapezoid: Currently, we only support dx as a real number"),
])
def test_numbers_that_are_refused(name, args, words):
    with pytest.raises(irtool.Error, match=words):
        call_op(f"aten::{name}", list(args))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_tensor_that_is_no_int_is_none(dtype):
    whole = irtool.from_script("def f(x: Tensor):\n    return int(x.max())\n")
    for number in (NAN, INF, -INF, *([1e30, -9.3e18] if dtype != np.float16 else [])):
        for interpret in (True, False):
            with pytest.raises(irtool.Error, match="value cannot be converted to type int64_t without overflow"):
                irtool.run(whole, [np.array(number, dtype)], interpret=interpret)
    assert call_op("aten::Int.Tensor", [np.array(-7.9, dtype)]) == -7


def test_a_correction_of_nan_leaves_no_degree_of_freedom():
    assert call_op("aten::var.correction", [X, None, NAN, False]) == INF
    assert np.isnan(call_op("aten::std.correction", [np.ones(3), None, NAN, False]))
