"""`irtool.jit` is eager: random small functions with branches, loops, numbers of elements, writes; on sequences of inputs, in any order.

What a function gives, what it leaves in its arguments and what it raises are the same, and it is traced no more often than there are ways
through it.
"""
from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import Tensor, torch

TENSORS = ("x * 2", "x + y", "x - n", "y * r", "x * t.item()", "-x", "x.abs()", "x[1:]", "x[x > 0]", "x[:int(t) % 3]", "x * float(t)",
           "x.clamp(-r, r)", "x[int(x.argmax())] + y", "torch.where(x > 0, x, y)", "x[x.shape[0] // 2:]", "x * len(x)", "x * x.shape[0]",
           "torch.full([3], r, dtype=x.dtype)", "x ** 2", "x / (n + 7)", "x.flip(0)", "torch.tensor([1., 2., 3.]) * n", "x.clone()",
           "torch.tensor(r) * x", "x * math.sqrt(abs(r))", "x * (int(t) // 2)", "x * (t.item() > n)")
CONDITIONS = ("t > 0", "x.sum() > y.sum()", "n > 1", "t.item() > r", "int(t) % 2", "bool((x > 0).any())", "len(x) > 2",
              "t.item() in (1.0, 2.0)",
              "float(t) < n", "n % 2 == 0", "not x.any()", "torch.equal(x, y)", "r > 0.5 and t > 0", "x.numel() and x.max() > 2")
NUMBERS = ("n + 1", "n * 2 - 1", "-n", "n // 2", "int(t)", "int(r)", "len(x)", "n if n > 0 else 2", "max(n, 1)", "int(t) % 4", "abs(n)")
WRITES = ("x.add_(1)", "y.mul_(0.5)", "y[0] = n", "x[:1] = t", "y += r", "y[1:].sub_(1)", "b[n % 3] = t", "b += t.item()",
          "y.copy_(y.flip(0))")


def function_of(seed: int) -> str:
    """The source of a function f(x, y, n, r)."""
    draw = random.Random(seed)
    lines = ["def f(x, y, n, r):", "    b = torch.zeros(3, dtype=torch.float64)", "    t = x.sum() if len(x) else y.sum()"]

    def block(indent: str, depth: int, count: int) -> None:
        for _ in range(count):
            kind = draw.random()
            if kind < 0.4:
                name = draw.choice(("x", "t"))
                value = draw.choice(TENSORS)
                if name == "t":
                    lines.append(f"{indent}t = ({value}).sum()")
                else:
                    lines.append(f"{indent}x = fit({value})")
            elif kind < 0.52:
                lines.append(f"{indent}n = {draw.choice(NUMBERS)}")
            elif kind < 0.67:
                lines.append(f"{indent}{draw.choice(WRITES)}")
            elif depth < 2 and kind < 0.87:
                lines.append(f"{indent}if {draw.choice(CONDITIONS)}:")
                block(indent + "    ", depth + 1, draw.randint(1, 2))
                if draw.random() < 0.6:
                    lines.append(f"{indent}else:")
                    block(indent + "    ", depth + 1, draw.randint(1, 2))
            elif depth < 2 and kind < 0.95:
                lines.append(f"{indent}for i in range({draw.choice(('2', 'n % 3', 'int(t) % 3'))}):")
                block(indent + "    ", depth + 1, 1)
            else:
                lines.append(f"{indent}while t.abs() > 4:")
                lines.append(f"{indent}    t = t / 4")
    block("    ", 0, draw.randint(2, 6))
    lines.append(f"    return {draw.choice(('x', 'x, t', 'x * n, b', 't.item() * x, y', 'x, n', 'y, b.sum(), t.item()'))}")
    return "\n".join(lines)


def fit(x: Any) -> Any:
    """Three elements of it at least: so that what follows has a meaning."""
    return x if x.dim() == 1 and x.shape[0] == 3 else torch.zeros(3, dtype=x.dtype) + x.sum()


def compiled(source: str, traced: list[int]) -> Callable[..., Any]:
    space = {"torch": torch, "math": __import__("math"), "fit": fit, "traced": traced}
    exec(source.replace("):\n", "):\n    traced.append(1)\n", 1), space)
    return space["f"]      # type: ignore[return-value]


def outcome(function: Callable[..., Any], args: list[Any]) -> Any:
    """What a call gives and leaves behind, to be compared."""
    try:
        found = function(*args)
        found = found if isinstance(found, tuple) else (found,)
    except Exception as error:
        found = (type(error).__name__,)
    return [plain(each) for each in (*found, *args)]


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.array
        return value.dtype.name, value.shape, [each.hex() if isinstance(each, float) and each == each else str(each)
                                               for each in (value + 0.0 if value.dtype.kind == "f" else value).reshape(-1).tolist()]
    return type(value).__name__, repr(value)


def calls(seed: int) -> list[tuple[Any, ...]]:
    draw = np.random.default_rng(seed)
    found: list[tuple[Any, ...]] = []
    for _ in range(6):
        x, y = draw.integers(-4, 5, 3) / 2, draw.integers(-4, 5, 3) * 1.0
        found.append((x, y, int(draw.integers(-2, 5)), float(draw.integers(-2, 5)) / 2))
    return [found[place] for place in (0, 1, 0, 2, 3, 1, 4, 5, 2, 0)]


@pytest.mark.parametrize("start", range(0, 240, 20))
def test_jitted_functions_do_what_they_do_eagerly(start: int) -> None:
    for seed in range(start, start + 20):
        source = function_of(seed)
        traced: list[int] = []
        eager, jitted = compiled(source, []), irtool.jit(compiled(source, traced))
        failed = 0      # which are traced each time: nothing runs them
        for x, y, n, r in calls(seed):
            first, second = [[Tensor(x.copy()), Tensor(y.copy()), n, r] for _ in range(2)]
            wanted, found = outcome(eager, first), outcome(jitted, second)
            failed += isinstance(wanted[0], tuple) and wanted[0][0] == "str"
            assert found == wanted, f"seed {seed}, x={x.tolist()}, y={y.tolist()}, n={n}, r={r}\n{source}\n{jitted.variants}"
        assert len(traced) <= 6 + failed, f"seed {seed}: {len(traced)} traces for 6 different calls\n{source}\n{jitted.variants}"


@pytest.mark.parametrize(("name", "args"), [("cumprod", (-1,)), ("prod", ()), ("prod", (0,)), ("prod", (-1,)), ("det", ())])
def test_gradients_of_tensors_without_elements_are_traced(name: str, args: tuple[int, ...]) -> None:
    """A trace runs both branches of a formula, the one for zeros among the elements too."""
    for shape in [(0, 0), (0, 2, 2), (2, 0, 0)]:
        gradient = irtool.grad(lambda x: getattr(irtool.torch, name)(x, *args).sum())
        assert np.asarray(irtool.jit(gradient)(np.zeros(shape))).shape == shape == np.asarray(gradient(np.zeros(shape))).shape
