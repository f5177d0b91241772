"""Programs transformed by torch.func and by irtool: each is written once, in operators that both have under `torch.`.

`python tests/func_programs.py` (with torch) records what torch.func makes of them in tests/data/func_programs.npz.
"""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).parent / "data" / "func_programs.npz"
RANDOM = np.random.default_rng(7)


def drawn(*shape: int) -> Any:
    """Numbers with few digits, so that the record of results is all there is to keep."""
    return np.round(RANDOM.standard_normal(shape) * 0.7, 3)


# -- models: functions of (torch, parameters..., inputs)
def mlp(torch: Any, w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
    """Mean square error of two layers."""
    hidden = torch.tanh(torch.matmul(x, w1) + b1)
    return ((torch.matmul(hidden, w2) + b2 - y) ** 2).mean()


def lstm_cell(torch: Any, w: Any, u: Any, b: Any, x: Any, h: Any, c: Any) -> Any:
    """One step of an LSTM."""
    i, f, g, o = (torch.matmul(x, w) + torch.matmul(h, u) + b).chunk(4, -1)
    new = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(new), new


def lstm_loss(torch: Any, *args: Any) -> Any:
    """A number of both of its results."""
    h, c = lstm_cell(torch, *args)
    return (h * h).sum() + (c ** 3).sum()


def attention(torch: Any, wq: Any, wk: Any, wv: Any, wo: Any, x: Any) -> Any:
    """A block of two heads with a layer norm and a residual connection."""
    length, width = x.shape
    normed = torch.layer_norm(x, [width])
    q, k, v = (torch.matmul(normed, w).reshape([length, 2, width // 2]).transpose(0, 1) for w in (wq, wk, wv))
    scores = torch.matmul(q, k.transpose(-2, -1)) / (width // 2) ** 0.5
    mixed = torch.matmul(torch.softmax(scores, -1), v).transpose(0, 1).reshape([length, width])
    return x + torch.matmul(mixed, wo)


def attention_loss(torch: Any, *args: Any) -> Any:
    """A number of its results."""
    return torch.gelu(attention(torch, *args)).sum() if hasattr(torch, "gelu") else \
        torch.nn.functional.gelu(attention(torch, *args)).sum()


MLP = [drawn(4, 5), drawn(5), drawn(5, 3), drawn(3)]
MLP_BATCH = [drawn(6, 4), drawn(6, 3)]
LSTM = [drawn(3, 8), drawn(2, 8), drawn(8)]
LSTM_BATCH = [drawn(4, 3), drawn(4, 2), drawn(4, 2)]
ATTENTION = [drawn(4, 4) for _ in range(4)]
ATTENTION_BATCH = [drawn(3, 5, 4)]

Make = Callable[[Any, Callable[..., Any]], Callable[..., Any]]
PROGRAMS: dict[str, tuple[Callable[..., Any], Make, list[Any]]] = {}
"""By name: the model, what is made of it with the transformations `t` (grad, vmap, jacrev, hessian), and the arguments."""


def programs(name: str, model: Callable[..., Any], loss: Callable[..., Any], weights: list[Any], batch: list[Any], of: int) -> None:
    """The transformations of one model: of one sample, of a batch, and nested."""
    first = [each[0] for each in batch]
    places = tuple(range(len(weights)))
    dims = (*[None] * len(weights), *[0] * len(batch))
    PROGRAMS[f"{name}: vmap"] = model, lambda t, f: t.vmap(f, dims), [*weights, *batch]
    PROGRAMS[f"{name}: vmap of the loss"] = loss, lambda t, f: t.vmap(f, dims), [*weights, *batch]
    PROGRAMS[f"{name}: grad"] = loss, lambda t, f: t.grad(f, places), [*weights, *first]
    PROGRAMS[f"{name}: jacrev"] = model, lambda t, f: t.jacrev(f, of), [*weights, *first]
    PROGRAMS[f"{name}: jacfwd"] = model, lambda t, f: t.jacfwd(f, len(weights)), [*weights, *first]
    PROGRAMS[f"{name}: hessian"] = loss, lambda t, f: t.hessian(f, of), [*weights, *first]
    PROGRAMS[f"{name}: jacobians of two"] = model, lambda t, f: t.jacrev(f, (of, len(weights))), [*weights, *first]
    PROGRAMS[f"{name}: hessians of two"] = loss, lambda t, f: t.hessian(f, (len(weights), of)), [*weights, *first]
    PROGRAMS[f"{name}: per-sample gradients"] = loss, lambda t, f: t.vmap(t.grad(f, places), dims), [*weights, *batch]
    PROGRAMS[f"{name}: per-sample hessians of the input"] = \
        loss, lambda t, f: t.vmap(t.hessian(f, len(weights)), dims), [*weights, *batch]
    PROGRAMS[f"{name}: grad of grad"] = \
        loss, lambda t, f: t.grad(lambda *args: (t.grad(f, of)(*args) ** 2).sum(), len(weights)), [*weights, *first]
    PROGRAMS[f"{name}: grad of vmap of grad"] = \
        loss, lambda t, f: t.grad(lambda *args: (t.vmap(t.grad(f, of), dims)(*args) ** 3).sum(), of), [*weights, *batch]


programs("mlp", mlp, mlp, MLP, MLP_BATCH, 0)
programs("lstm cell", lstm_cell, lstm_loss, LSTM, LSTM_BATCH, 1)
programs("attention", attention, attention_loss, ATTENTION, ATTENTION_BATCH, 0)


def leaves(value: Any) -> list[Any]:
    """Arrays in a result, in order."""
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in leaves(each)]
    return [np.asarray(value)]


if __name__ == "__main__":
    import torch
    import torch.func
    found = {}
    for name, (model, make, args) in PROGRAMS.items():
        function = make(torch.func, lambda *given, model=model: model(torch, *given))
        for place, leaf in enumerate(leaves(function(*[torch.tensor(each) for each in args]))):
            found[f"{name} {place}"] = leaf
    np.savez_compressed(RECORDED, **found)
