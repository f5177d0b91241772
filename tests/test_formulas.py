"""Gradient formulas run as Python: kinks and ties as torch has them, what is stated about operators, the handle they run on."""
from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.autodiff.formula_graphs import compiled
from irtool.ir.schema import parse_schema, schema_named
from irtool.ops import OPS
from irtool.ops.formula import formula_of, run_formula, why_no_gradient
from irtool.ops.tensor import Tensor, calling, torch

# -- what eager torch does at kinks, ties and edges
KINKS: list[tuple[str, list[Any], list[Any]]] = [
    ("relu", [[0.0]], [0.0]), ("abs", [[0.0]], [0.0]), ("maximum", [[1.0], [1.0]], [0.5]), ("max", [[1.0, 1.0]], [0.5, 0.5]),
    ("amax", [[1.0, 1.0], [0], False], [0.5, 0.5]), ("max.dim", [[1.0, 1.0], 0, False], [1.0, 0.0]), ("clamp", [[1.0], 1.0, 2.0], [1.0]),
    ("hardtanh", [[1.0], -1.0, 1.0], [0.0]), ("relu6", [[6.0]], [0.0]), ("hardswish", [[3.0]], [1.0]), ("hardswish", [[-3.0]], [0.0]),
    ("threshold", [[1.0], 1.0, 0.0], [0.0]), ("hardshrink", [[0.5], 0.5], [0.0]), ("leaky_relu", [[0.0], 0.1], [0.1]),
    ("elu", [[0.0], 2.0, 1.0, 1.0], [2.0]), ("fmax", [[1.0], [1.0]], [1.0]), ("sqrt", [[0.0]], [np.inf]),
    ("pow.Tensor_Scalar", [[2.0], 0], [0.0]), ("linalg_vector_norm", [[0.0, 0.0], 2, None, False, None], [0.0, 0.0]),
    ("std.correction", [[1.0, 1.0], None, 1, False], [0.0, 0.0]), ("prod", [[0.0, 3.0], None], [3.0, 0.0]),
    ("hypot", [[0.0], [0.0]], [np.nan]), ("atan2", [[0.0], [0.0]], [0.0]), ("cumprod", [[2.0, 0.0, 3.0], 0, None], [1.0, 8.0, 0.0]),
    ("clamp.Tensor", [[1.0], [3.0], [2.0]], [0.0]), ("sinc", [[0.0]], [0.0]), ("floor", [[0.5]], [0.0]),
    ("median", [[1.0, 1.0]], [0.5, 0.5]),
]


@pytest.mark.parametrize(("name", "args", "expected"), KINKS, ids=[name for name, _, _ in KINKS])
def test_kinks_are_torchs(name: str, args: list[Any], expected: list[float]) -> None:
    floats = [np.array(arg) if isinstance(arg, list) and isinstance(arg[0], float) else arg for arg in args]
    (output, *_), backward = run_formula(f"aten::{name}", floats)
    np.testing.assert_allclose(backward(np.ones(np.shape(output)))[0], expected)


@pytest.mark.parametrize("defined", [(True, False), (False, True)])
def test_a_formula_copes_with_results_that_take_no_part(defined: tuple[bool, bool]) -> None:
    (var, mean), backward = run_formula("aten::var_mean.correction", [np.arange(4.0), None, 1, False])
    found = backward(np.ones(()) if defined[0] else None, np.ones(()) if defined[1] else None)[0]
    expected = 2 * (np.arange(4.0) - 1.5) / 3 if defined[0] else np.full(4, 0.25)
    np.testing.assert_allclose(found, expected)


def test_gradients_come_back_in_the_dtype_of_the_argument() -> None:
    _, backward = run_formula("aten::mul.Tensor", [np.ones(3, np.float32), np.ones((2, 3))])
    first, second = backward(np.ones((2, 3)))
    assert (first.dtype, first.shape, second.dtype) == (np.float32, (3,), np.float64)


def test_complex_gradients_are_torchs() -> None:
    _, backward = run_formula("aten::mul.Tensor", [np.array([1 + 2j]), np.array([3 - 1j])])
    np.testing.assert_allclose(backward(np.array([1 + 0j]))[0], [3 + 1j])


# -- what is stated
def test_every_formula_takes_the_arguments_of_its_schemas() -> None:
    for name, op in OPS.items():
        formula = op.formula(name)
        if formula is not None:
            schema = parse_schema(next(text for text, own in zip(op.schemas, op.names, strict=True) if own == name))
            assert formula.__code__.co_argcount == len(schema.arguments), name


def test_nothing_has_a_formula_and_none() -> None:
    both = [name for name, op in OPS.items() if name in op.formulas and name in op.no_gradient]
    assert both == []


def test_forms_of_an_operator_share_its_formula() -> None:
    assert formula_of("aten::add_.Tensor") is formula_of("aten::add.Tensor") is formula_of("aten::add.out")
    assert formula_of("aten::relu_") is formula_of("aten::relu")
    assert why_no_gradient("aten::eq.Tensor") and formula_of("aten::eq.Tensor") is None
    assert schema_named("aten::add_.Tensor") is not None


def test_every_formula_compiles() -> None:
    for formula in {formula for name, op in OPS.items() if (formula := op.formula(name)) is not None}:
        compiled(formula, formula.__name__)


# -- the handle
@pytest.mark.parametrize(("run", "expected"), [
    (lambda x: 1 - x, [1, 0, -1]), (lambda x: 2 / (x + 1), [2, 1, 2 / 3]), (lambda x: 2 ** x, [1, 2, 4]), (lambda x: x[1:], [1, 2]),
    (lambda x: x[..., None].size(), [3, 1]), (lambda x: torch.where(x > 0, x, -1), [-1, 1, 2]), (lambda x: x.view(3, 1).t()[0], [0, 1, 2]),
    (lambda x: x.sum_to_size([1]), [3]), (lambda x: x[x > 0], [1, 2]), (lambda x: x.to(torch.float32).dtype, 6),
])
def test_a_tensor_has_torchs_operators_and_methods(run: Callable[[Tensor], Any], expected: Any) -> None:
    found = run(Tensor(np.arange(3.0)))
    np.testing.assert_allclose(found.array if isinstance(found, Tensor) else found, expected)


def test_calls_go_through_the_layer_on_top() -> None:
    seen: list[str] = []

    def layer(kind: str, args: Any, named: Any) -> Any:
        seen.append(kind)
        return below(kind, args, named)

    with calling(layer) as below:
        run_formula("aten::div.Tensor", [np.ones(2), np.ones(2)])[1](np.ones(2))
    assert " ".join(seen).replace("aten::", "") == "div div sum_to_size neg div mul sum_to_size"


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(AttributeError, match="no method 'frobnicate'"):
        Tensor(np.ones(1)).frobnicate()
    with pytest.raises(irtool.UnsupportedError, match="aten::mm on"):
        Tensor(np.ones((1, 1))).mm("x")


def test_a_formula_that_uses_its_own_operator_is_not_taken_apart() -> None:
    """Without end, that would be. Under whichever name it was compiled first: so in a process of its own."""
    program = """
from irtool.ops.formula import formula_of
from irtool.autodiff.formula_graphs import compiled
assert not compiled(formula_of("aten::feature_alpha_dropout"), "by another name").is_composed()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("name", ["trapezoid", "cumulative_trapezoid"])
@pytest.mark.parametrize(("values", "positions", "dim"), [
    ((3,), (3, 2), -1), ((2, 3), (2, 2, 3), 0), ((3, 2), (3,), -2), ((2, 3), (3,), 1)])
def test_integrals_have_gradients_wherever_positions_extend(
        name: str, values: tuple[int, ...], positions: tuple[int, ...], dim: int) -> None:
    rng = np.random.default_rng(1)
    module = irtool.from_script(f"def f(y: Tensor, x: Tensor):\n    return torch.{name}(y, x, dim={dim})\n", "f")
    assert irtool.gradcheck(module, [rng.standard_normal(values), rng.standard_normal(positions)], order=1).is_right
