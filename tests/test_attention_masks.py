"""Masks of torch's kernels for whole layers, and of _masked_softmax: what is not 0 does not count, whatever the dtype."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool

torch: Any = irtool.torch
RNG = np.random.default_rng(5)
X, QKV, BIAS, W, B = (RNG.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 4), (12, 4), (12,), (4, 4), (4,)))
LAYER = (X, 4, 2, QKV, BIAS, W, B, False, False, 1e-5, B, B, B, B, W, B, W, B)
AWAY = {0: np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]]), 1: np.array([[0, 0, 1], [0, 0, 0]]), 2: (RNG.random((2, 2, 3, 3)) < 0.3) * 1}
AWAY[2][..., 0] = 0


def attended(mask: np.ndarray, kind: int | None) -> np.ndarray:
    return np.asarray(torch._native_multi_head_attention(X, X, X, 4, 2, QKV, BIAS, W, B, mask, True, True, kind)[0])


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("number", [0.5, -2.0, -np.inf, np.nan, 1])
def test_a_mask_of_numbers_is_one_of_bools(kind: int, number: float) -> None:
    mask, whole = np.where(AWAY[kind] == 1, np.float32(number), np.float32(0)), AWAY[kind] == 1
    assert np.array_equal(attended(mask, kind), attended(whole, kind))
    both = [np.asarray(torch._transformer_encoder_layer_fwd(*LAYER, each, kind)) for each in (mask, whole)]
    assert np.array_equal(both[0], both[1]) and np.isfinite(both[0]).all()


def test_rows_that_are_all_masked_are_nan() -> None:
    mask = np.array([[True, True, True], [False, True, False], [False, False, False]])
    weights = np.asarray(torch._masked_softmax(RNG.standard_normal((1, 1, 3, 3)), mask, 3, 0))[0, 0]
    assert np.isnan(weights[0]).all() and weights[1, 1] == 0 and np.allclose(weights[1:].sum(-1), 1)
    assert np.isnan(attended(mask, 0)).all((0, 2)).tolist() == [True, False, False]


@pytest.mark.parametrize(("kind", "shape", "said"), [
    (None, (3, 3), "Mask Type should be defined"), (3, (3, 3), "Mask Type should be 0"), (0, (2, 3), r"should be \(L, L\)"),
    (1, (3, 3), r"should be \(B, L\)"), (2, (3, 3), "should match input shape"), (0, (2, 3, 3), "should match input shape"),
])
def test_other_shapes_are_refused_in_torchs_words(kind: int | None, shape: tuple[int, ...], said: str) -> None:
    with pytest.raises(irtool.RunError, match=said):
        attended(np.zeros(shape, np.bool_), kind)


@pytest.mark.parametrize(("kind", "shape"), [(0, (3, 3)), (1, (3, 3)), (2, (3, 2, 3, 3)), (1, (2, 3)), (2, (3, 3)), (None, (3, 3))])
def test_types_of_masks_under_vmap(kind: int | None, shape: tuple[int, ...]) -> None:
    """As one by one: scores (batch, heads, length, length) with a batch as long as the length, which a mask of either could mean."""
    scores, masks = RNG.standard_normal((2, 3, 2, 3, 3)), RNG.random((2, *shape)) < 0.4

    def softened(x: Any, mask: Any) -> Any:
        return torch._masked_softmax(x, mask, 3, kind)

    try:
        want = [np.asarray(softened(torch.tensor(x), torch.tensor(mask))) for x, mask in zip(scores, masks)]
    except irtool.RunError as error:
        with pytest.raises(irtool.RunError, match=str(error)[:20]):
            irtool.vmap(softened)(scores, masks)
    else:
        np.testing.assert_allclose(np.asarray(irtool.vmap(softened)(scores, masks)), np.stack(want), rtol=1e-12)
