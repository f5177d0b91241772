"""irtool.Tensor takes what torch.Tensor takes: sizes in every spelling, tuples, indices, assignments, casts."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ops.tensor import Tensor

X = np.arange(12.0).reshape(3, 4)

SAME = {
    "x.view(-1)": X.reshape(-1), "x.view(4, 3)": X.reshape(4, 3), "x.view([2, -1])": X.reshape(2, -1), "x.view((4, 3))": X.reshape(4, 3),
    "x.reshape(-1)": X.reshape(-1), "x.permute(1, 0)": X.T, "x.sum((0, 1))": np.float64(66), "x.unflatten(1, (2, 2))": X.reshape(3, 2, 2),
    "x.float()": X.astype(np.float32), "x.long()": X.astype(np.int64), "x.bool()": X.astype(bool), "abs(-x)": X,
    "list(x)[1]": X[1], "x[[0, 2]]": X[[0, 2]], "x[:, [1, 3]]": X[:, [1, 3]], "x[-1]": X[-1], "x[1:, ::2]": X[1:, ::2],
    "x[..., -1]": X[..., -1],
    "x.logsumexp(1)": np.log(np.exp(X).sum(1)), "x.var(1)": X.var(1, ddof=1), "x.prod(1)": X.prod(1), "x.roll(1, 0)": np.roll(X, 1, 0),
    "x.amax(1)": X.max(1), "x.norm(dim=1)": np.sqrt((X * X).sum(1)), "x.norm()": np.sqrt((X * X).sum()),
    "x.repeat(2, 1)": np.tile(X, (2, 1)),
    "x.expand(2, 3, 4)": np.stack([X, X]), "x.sum(1, dtype=6)": X.sum(1).astype(np.float32),
    "x[x > 3]": X[X > 3], "x[None, 0]": X[None, 0], "x[True]": X[True], "x[False, 0]": X[False, 0], "x[[]]": X[[]],
    "x[x.sum() > 0]": X[None], "x[0, 0][x.sum() < 0]": X[0, 0][False], "x[1, x.sum() > 0, 2:]": X[None, 1, 2:],
    "x[None][..., x > 3]": X[None][..., X > 3], "x.unsqueeze(2)[x > 3, 0]": X[X > 3], "x[x.numpy().argmax() // 5]": X[2],
}


@pytest.mark.parametrize("text", SAME)
def test_calls(text: str) -> None:
    found = np.asarray(eval(text, {"x": Tensor(X)}))
    assert found.dtype == SAME[text].dtype and found.shape == SAME[text].shape
    np.testing.assert_allclose(found, SAME[text], rtol=1e-14)


def test_facts() -> None:
    assert Tensor(X).tolist() == X.tolist() and Tensor(X).numpy() is not None
    with pytest.raises(TypeError, match="0-d"):
        list(Tensor(1.0))
    assert Tensor(X.astype(np.float32)).view(dtype=3).dtype == 3


def assign_row(x: Any) -> None:
    x[0] = 5.0


def assign_places(x: Any) -> None:
    x[1:, 2] = x[0, 1]


def assign_where(x: Any) -> None:
    x[x > 3] = 0.0


def assign_pairs(x: Any) -> None:
    x[[0, 1], [1, 2]] = 7.0


def assign_all(x: Any) -> None:
    x[True] = 2.0
    x[False] = 3.0


def assign_by_one_flag(x: Any) -> None:
    x[x.sum() > 0, 1] = 2.0
    x[0, 0, ...][x.sum() > 0] = 4.0
    x[x.sum() < 0] = 3.0


def assign_in_place(x: Any) -> None:
    x[..., 0] += 1
    x[0, 1:3] = x[1, :2] * 2


@pytest.mark.parametrize("function", [assign_row, assign_places, assign_where, assign_pairs, assign_all, assign_by_one_flag,
                                      assign_in_place])
def test_assignments(function: Any) -> None:
    mine, its = Tensor(X.copy()), X.copy()
    function(mine)
    function(its)
    assert np.array_equal(np.asarray(mine), its)


def test_in_a_transformation() -> None:
    for text in ("x.logsumexp(1)", "x.var(1)", "x.prod(1)", "x.roll(1, 0) * x", "x.norm(dim=1)", "x.amax(1)"):
        def f(x: Any, text: str = text) -> Any:
            return eval(text, {"x": x}).sum()
        assert np.array_equal(np.asarray(irtool.vmap(irtool.grad(f))(np.stack([X, X]))[1]), np.asarray(irtool.grad(f)(X)))
    found = irtool.grad(lambda x: (x.view(-1).float() * 2).sum())(X)
    assert found.dtype == 7 and np.array_equal(np.asarray(found), np.full((3, 4), 2.0))


def test_several_results_have_names() -> None:
    x = Tensor(X)
    assert np.array_equal(np.asarray(x.max(1).values), X.max(1))
    assert np.array_equal(np.asarray(irtool.torch.sort(x, 1).indices)[0], range(4))
    assert np.array_equal(np.asarray(irtool.vmap(lambda x: x.max(0).values)(X)), X.max(1))
    values, indices = irtool.jit(lambda x: x.topk(2, 1))(X)
    assert np.array_equal(np.asarray(values), X[:, :1:-1]) and np.asarray(indices).tolist() == [[3, 2]] * 3
    with pytest.raises(AttributeError):
        x.max(1).value          # noqa: B018  that there is no such name is what is asked


def test_jitted_functions_take_arguments_by_name() -> None:
    scaled = irtool.jit(lambda x, by=1: x * by)
    assert np.array_equal(np.asarray(scaled(X, by=3)), 3 * X) and np.array_equal(np.asarray(scaled(X)), X)
    assert np.array_equal(np.asarray(scaled(by=X, x=X)), X * X) and len(scaled.graphs()) == 3
