"""Operators of `irtool.Tensor` are torch's: in place where Python says so, from the right too, and before NumPy's."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

X = np.array([1.0, -2.0, 3.0])
N = np.array([5, 9, 12])


def test_augmented_assignments_write_in_place() -> None:
    """A view of the tensor sees them, as in torch and in compiled source."""
    x = irtool.Tensor(X.copy())
    row = x[1:]
    row += 1
    x *= 2
    assert x.tolist() == [2.0, -2.0, 8.0] and row.tolist() == [-2.0, 8.0]


def test_what_does_not_fit_in_place_is_refused() -> None:
    n = irtool.Tensor(N.copy())
    with pytest.raises(irtool.RunError, match="can't be cast to the desired output type Long"):
        n += 1.5
    x = irtool.Tensor(X.copy())
    with pytest.raises(irtool.RunError, match="doesn't match the broadcast shape"):
        x += irtool.Tensor(np.zeros((2, 3)))


def test_gradients_and_batches_go_through_augmented_assignments() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        part = y[1:]
        part *= x[:2]
        y -= 1
        return (y * y).sum()

    def same(x: Any) -> Any:
        first, rest = x[0] - 1, x[1:] * x[:2] - 1
        return first * first + (rest * rest).sum()
    assert np.allclose(irtool.grad(f)(X), irtool.grad(same)(X))
    assert np.allclose(irtool.vmap(irtool.grad(f))(np.stack([X, 2 * X])), irtool.vmap(irtool.grad(same))(np.stack([X, 2 * X])))


@pytest.mark.parametrize("text, wanted", [
    ("7 // n", [1, 0, 0]), ("7.5 // n", [1.0, 0.0, 0.0]), ("17 % n", [2, 8, 5]), ("n << 1", [10, 18, 24]), ("n >> 1", [2, 4, 6]),
    ("4 & n", [4, 0, 4]), ("1 | n", [5, 9, 13]), ("1 ^ n", [4, 8, 13]), ("+n", [5, 9, 12]), ("[10, 20][n[0] - 4]", 20),
    ("f'{n[0]:03d}'", "005"), ("m @ n", [10, 18, 24]), ("(n * 1j).imag", [5.0, 9.0, 12.0])])
def test_operators(text: str, wanted: Any) -> None:
    found = eval(text, {"n": irtool.Tensor(N), "m": 2 * np.eye(3, dtype=np.int64)})
    assert (found.tolist() if isinstance(found, irtool.Tensor) else found) == wanted


def test_arrays_from_the_left_are_operands_of_the_tensor() -> None:
    """NumPy would look at the elements, which transformations hide."""
    assert np.array_equal(irtool.grad(lambda x: (X * x).sum())(X), X)
    assert np.array_equal(irtool.vmap(lambda x: X - x)(np.stack([X, X])), np.zeros((2, 3)))
    assert np.array_equal(irtool.jit(lambda x: X * x + X - np.float64(2) * x + np.float32(3) * x)(X), X * X + X + X)
    assert isinstance(X + irtool.Tensor(X), irtool.Tensor) and isinstance(np.float32(2) * irtool.Tensor(X), irtool.Tensor)
    assert irtool.grad(lambda x: (x * np.int64(3) * np.float32(0.5)).sum())(X).tolist() == [1.5, 1.5, 1.5]


def test_arguments_by_torchs_names_for_python() -> None:
    x = irtool.Tensor(np.arange(6.0).reshape(2, 3))
    assert x.sum(axis=1, keepdims=True).shape == [2, 1] and torch.sum(input=x, axis=0).tolist() == [3.0, 5.0, 7.0]
    assert torch.add(input=x, other=1).tolist() == (x + 1).tolist()
    assert irtool.vmap(lambda row: row.mean(axis=0))(x).tolist() == [1.0, 4.0]
    with pytest.raises(irtool.UnsupportedError, match="aten::sum"):
        x.sum(dims=1)


NUMBERS = ["0", "0.0", "-0.0", "False", "1", "1.0", "True", "2", "-1", "1e999", "-1e999", "1j"]
"""Neighbours are equal for Python, and different for operators."""
OF_A_NUMBER = """
x * {}; x + {}; x - {}; {} - x; x / {}; {} / x; x ** {}; {} ** x; x == {}; x < {}; torch.fmod(x, {}); torch.copysign(x, {})
torch.full_like(x, {}); torch.full((2,), {}); torch.tensor([{0}, {0}]); torch.where(x == 0, x, {}); x.masked_fill(x == 0, {})
torch.nn.functional.pad(x, [1, 1], value={}); torch.add(x, x, alpha={}); torch.nn.functional.elu(x, {}); torch.logit(x, {})
torch.xlogy(x, {}); torch.atan2(x, x * 0 + {})
""".strip().replace("\n", "; ").split("; ")
ARRAYS = [np.array([1.5, -2.0, 0.0]), np.array([3, -2, 0]), np.float32([0.5, -0.0, 2])]


@pytest.mark.parametrize("text", OF_A_NUMBER)
def test_equal_numbers_are_not_taken_for_each_other(text: str) -> None:
    """Whatever ran before, a call gives what the interpreter gives for its source."""
    for x in ARRAYS:
        for number in sorted(set(NUMBERS) - {"False", "True"}):      # ints in TorchScript
            expression = text.format(number).replace("1e999", "float('inf')").replace("alpha=-0.0", "alpha=(-0.0)")
            try:
                graph = irtool.from_script(f"def f(x):\n    return {expression}\n").graph()
                (wanted,) = irtool.run(graph, [x], interpret=True)
            except irtool.Error:
                continue
            found = np.asarray(eval(expression, {"torch": torch, "x": irtool.Tensor(x)}))
            assert found.dtype == wanted.dtype and np.array_equal(found, wanted, equal_nan=True), expression
            if " - x" not in text:      # neg and add in TorchScript, rsub in Python, as in torch
                assert np.array_equal(np.signbit(found.real), np.signbit(wanted.real)), expression


@pytest.mark.oracle
@pytest.mark.parametrize("text", OF_A_NUMBER)
def test_operators_with_numbers_are_torchs(text: str) -> None:
    torchs: Any = pytest.importorskip("torch")
    for x in [*ARRAYS, np.array([1 + 2j, 0, -1j]), np.array([True, False])]:
        for number in NUMBERS:
            code = compile(text.format(number), "an expression", "eval")

            def f(x: Any) -> Any:
                return eval(code, {"torch": torch, "x": x})     # noqa: B023
            try:
                wanted = eval(code, {"torch": torchs, "x": torchs.from_numpy(x.copy())}).resolve_conj().numpy()
            except (RuntimeError, TypeError):
                with pytest.raises(irtool.Error):
                    f(irtool.Tensor(x))
                continue
            for found in map(np.asarray, (f(irtool.Tensor(x)), irtool.jit(f)(x))):
                assert found.dtype == wanted.dtype and np.allclose(found, wanted, rtol=1e-5, equal_nan=True), (number, x, found, wanted)
                if wanted.dtype.kind == "f":
                    assert np.array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0])), (number, x, found, wanted)
