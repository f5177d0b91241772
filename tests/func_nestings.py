"""Random nestings of transformations over random small programs, for torch.func and for irtool.

layer_norm and logcumsumexp are left out: their higher derivatives in torch 2.13 are not the slopes (here they are).

`python tests/func_nestings.py` (with torch) records what torch.func makes of the first seeds in tests/data/func_nestings.npz;
`python tests/func_nestings.py FIRST LAST` compares the two on seeds.
"""
from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).parent / "data" / "func_nestings.npz"
SEEDS = range(60)
LARGEST = 400
"""Results of more elements are summed before the next transformation."""

UNARY = tuple("sin cos tanh exp sigmoid relu abs square neg log1p(abs) sqrt(1+square) erf atan silu".split())
BINARY = tuple("add sub mul div maximum where atan2 lerp".split())
SHAPED = tuple("""
softmax log_softmax cumsum flip transpose reshape select narrow unsqueeze sum mean amax prod var logsumexp sort cat stack roll gather
index_select expand norm triu matmul outer apply linear diagonal index_add masked_fill clamp conv1d split tril cumprod pad bmm scatter
""".split())
TRANSFORMATIONS = ("grad", "value_and_grad", "jacrev", "jacfwd", "hessian", "jvp", "vjp", "vmap", "vmap", "vmap")


class Maker:
    """Programs and nestings drawn from one seed. `t`: the transformations; `torch`: the operators; `tensor`: an array as a tensor."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.steps = [(self.random.choice((UNARY, BINARY, SHAPED, SHAPED)), *[self.random.random() for _ in range(3)])
                      for _ in range(self.random.randint(2, 5))]
        self.nesting = [(self.random.choice(TRANSFORMATIONS), self.random.random(), self.random.random())
                        for _ in range(self.random.randint(1, 4))]
        numbers = np.random.default_rng(seed)
        self.args = [np.round(numbers.uniform(0.2, 1.4, shape), 3) for shape in ((3,), (2, 3))]
        if self.random.random() < 0.3:
            self.args[0] = np.round(numbers.uniform(0.2, 1.4, (2, 2)), 3)

    def __repr__(self) -> str:
        inner = " ".join(family[int(pick * len(family))] for family, pick, _, _ in self.steps)
        return f"{' of '.join(name for name, _, _ in reversed(self.nesting))} of [{inner}]"

    def program(self, torch: Any, tensor: Callable[[Any], Any], x: Any, w: Any) -> Any:
        """The function that is transformed."""
        for family, pick, other, more in self.steps:
            name = family[int(pick * len(family))]
            if family is UNARY:
                x = unary(torch, name, x)
            elif family is BINARY:
                flipped = w.mean() * x.flip(0) if x.ndim else w.sum()
                x = binary(torch, name, x, w.sum(0).mean() if other < 0.3 else flipped if other < 0.6 else x * 0.7)
            else:
                x = shaped(torch, tensor, name, x, w, other, more)
        return x

    def transformed(self, t: Any, torch: Any, tensor: Callable[[Any], Any]) -> Callable[..., Any]:
        """The whole, a function of the two arguments."""
        def function(x: Any, w: Any) -> Any:
            return self.program(torch, tensor, x, w)
        for name, pick, other in self.nesting:
            function = nest(t, torch, tensor, name, function, pick, other)
        return function


def unary(torch: Any, name: str, x: Any) -> Any:
    """One operand."""
    if name == "log1p(abs)":
        return torch.log1p(torch.abs(x))
    if name == "sqrt(1+square)":
        return torch.sqrt(1 + torch.square(x))
    if name in ("silu", "relu"):
        return x * torch.sigmoid(x) if name == "silu" else torch.relu(x - 0.3)
    if name == "exp":
        return torch.exp(torch.tanh(x))
    return getattr(torch, name)(x)


def binary(torch: Any, name: str, x: Any, y: Any) -> Any:
    """Two operands."""
    if name == "where":
        return torch.where(x > y, x * 2, y + x)
    if name == "div":
        return x / (1.5 + y * y)
    if name == "lerp":
        return torch.lerp(x, y * y, 0.3)
    if name == "atan2":
        return torch.atan2(x, 1.2 + y * y)
    return getattr(torch, name)(x, y)


def shaped(torch: Any, tensor: Callable[[Any], Any], name: str, x: Any, w: Any, other: float,    # noqa: C901 - a table
           more: float) -> Any:
    """Operators that look at dimensions."""
    if x.ndim == 0:
        return x * w.sum() + x
    dim = int(other * x.ndim)
    extent = x.shape[dim]
    place = int(more * extent)
    if name in ("softmax", "log_softmax", "cumsum", "cumprod"):
        return getattr(torch, name)(x, dim)
    if name == "flip":
        return torch.flip(x, [dim]) * x
    if name == "transpose":
        return torch.transpose(x, 0, -1)
    if name == "reshape":
        return torch.reshape(x, [-1])
    if name == "select":
        return torch.select(x, dim, place)
    if name == "narrow":
        return torch.narrow(x, dim, place, extent - place)
    if name == "unsqueeze":
        return torch.unsqueeze(x, dim) if x.ndim < 4 else x
    if name in ("sum", "mean", "amax", "logsumexp"):
        return getattr(torch, name)(x, [dim], more < 0.4)
    if name == "prod":
        return torch.prod(x, dim)
    if name == "var":
        return torch.var(x, [dim], correction=0)
    if name == "sort":
        return torch.sort(x, dim)[0]
    if name in ("cat", "stack"):
        return getattr(torch, name)([x, x * 0.5], dim) if x.ndim < 4 else x
    if name == "roll":
        return torch.roll(x, [1], [dim]) + x
    if name == "gather":
        return torch.gather(x, dim, tensor(np.full([place + 1 if i == dim else n for i, n in enumerate(x.shape)], place)))
    if name == "index_select":
        return torch.index_select(x, dim, tensor(np.array([place, 0])))
    if name == "expand":
        return torch.unsqueeze(x, 0).expand([2, *x.shape]) if x.ndim < 4 else x
    if name == "norm":
        return torch.sqrt(torch.sum(x * x, [dim]) + 0.1)
    if name in ("triu", "tril"):
        return getattr(torch, name)(x) if x.ndim > 1 else x
    if name == "matmul":
        if x.shape[-1] == 3:
            return torch.matmul(x, w.t())
        return torch.matmul(x, x.transpose(-1, -2)) if x.ndim > 1 else torch.matmul(x, x)
    if name == "outer":
        return x.reshape([-1]).unsqueeze(1) * w[0] if x.numel() < 12 else x
    if name == "apply":
        return torch.matmul(w, x.unsqueeze(-1)).squeeze(-1) if x.shape[-1] == 3 else x
    if name == "linear":
        linear = torch.nn.functional.linear if hasattr(torch, "nn") else torch.linear
        return linear(x, w) if x.shape[-1] == 3 else x
    if name == "diagonal":
        return torch.diagonal(x, 0, 0, -1) if x.ndim > 1 else x
    if name == "index_add":
        return torch.index_add(x, dim, tensor(np.array([place, 0])), torch.index_select(x, dim, tensor(np.array([0, place]))))
    if name == "masked_fill":
        return torch.masked_fill(x, x > 0.8, 0.5)
    if name == "clamp":
        return torch.clamp(x, 0.3, 1.1)
    if name == "conv1d":
        return torch.conv1d(x.reshape([1, 1, -1]), w[0].reshape([1, 1, 3]), None, 1, 1).reshape([-1])
    if name == "split":
        first, *rest = torch.split(x, 1, dim)
        return sum(rest, first * 2)
    if name == "pad":
        return torch.cat([torch.zeros_like(x), x], dim) if x.numel() < 20 else x
    if name == "bmm":
        rows = x.reshape([1, -1, 1])
        return torch.bmm(rows, rows.transpose(1, 2)).sum(1).reshape([-1])
    return torch.scatter(x, dim, tensor(np.full([1 if i == dim else n for i, n in enumerate(x.shape)], place)), 0.25)


def small(result: Any) -> Any:
    """A tensor of few elements."""
    return result if result.numel() <= LARGEST else result.reshape([-1]).sum()


def nest(t: Any, torch: Any, tensor: Callable[[Any], Any], name: str, function: Callable[..., Any], pick: float,    # noqa: C901 - a table
         other: float) -> Callable[..., Any]:
    """One transformation around a function of two tensors that gives one."""
    place = int(pick * 2)

    def scalar(x: Any, w: Any) -> Any:
        result = function(x, w)
        return (result * result * 0.3 + result).sum()
    if name == "grad":
        return t.grad(scalar, place)
    if name == "value_and_grad":
        def both(x: Any, w: Any) -> Any:
            found, value = t.grad_and_value(scalar, (0, 1))(x, w)
            return found[place] * torch.tanh(value)
        return both
    if name in ("jacrev", "jacfwd"):
        make = getattr(t, name)
        return lambda x, w: small(make(lambda x, w: small(function(x, w)), place)(x, w))
    if name == "hessian":
        return lambda x, w: small(t.hessian(scalar, place)(x, w))
    if name == "jvp":
        return lambda x, w: t.jvp(function, (x, w), (torch.sin(x), w * 0.5))[1]
    if name == "vjp":
        def pulled(x: Any, w: Any) -> Any:
            result, back = t.vjp(function, x, w)
            return back(torch.cos(result))[place]
        return pulled
    out = 0 if other < 0.5 else -1

    def over(x: Any, w: Any) -> Any:
        xs = torch.stack([x, x * 1.1 + 0.05, torch.sin(x)], 0 if pick < 0.5 else x.ndim)
        if other < 0.3:
            return t.vmap(function, (0 if pick < 0.5 else x.ndim, None), out)(xs, w)
        return t.vmap(function, (0 if pick < 0.5 else x.ndim, 1), out)(xs, torch.stack([w, w * 0.9, w + 0.1], 1))
    return over


def main() -> None:
    """Record, or compare."""
    import warnings

    import torch
    import torch.func

    import irtool
    from irtool import dispatch

    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    if len(sys.argv) == 1:
        found = {}
        for seed in SEEDS:
            maker = Maker(seed)
            found[str(seed)] = maker.transformed(torch.func, torch, torch.tensor)(*map(torch.tensor, maker.args)).detach().numpy()
        np.savez_compressed(RECORDED, **found)
        return
    counts: dict[str, int] = {}
    for seed in range(*map(int, sys.argv[1:])):
        maker = Maker(seed)
        try:
            wanted = maker.transformed(torch.func, torch, torch.tensor)(*map(torch.tensor, maker.args)).detach().numpy()
        except Exception as error:
            wanted = error
        try:
            made = np.asarray(maker.transformed(dispatch, irtool.torch, lambda array: irtool.Tensor(np.asarray(array)))(
                *map(irtool.Tensor, maker.args)))
        except Exception as error:
            made = error
        kind = "same"
        if isinstance(wanted, Exception) or isinstance(made, Exception):
            kind = "both refuse" if isinstance(wanted, Exception) and isinstance(made, Exception) else \
                "torch refuses" if isinstance(wanted, Exception) else "irtool refuses"
        elif made.shape != wanted.shape or not np.allclose(made, wanted, 1e-8, 1e-10, equal_nan=True):
            kind = "different"
        counts[kind] = counts.get(kind, 0) + 1
        if kind in ("different", "irtool refuses") or kind == "torch refuses" and "-v" in sys.argv:
            print(seed, kind, maker)
            print("   ", repr(wanted)[:300])
            print("   ", repr(made)[:300])
    print(counts)


if __name__ == "__main__":
    main()
