"""Calls of torch.func's transformations: how arguments, trees, extents and mistakes are taken.

`python tests/func_calls.py` (with torch) records what torch.func makes of them in tests/data/func_calls.json.
"""
from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).parent / "data" / "func_calls.json"
X, Y, N = np.arange(1, 7.0).reshape(2, 3), np.arange(3.0) + 0.5, np.arange(3)
PUBLIC = ("grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap")

NANS, TIES = np.array([[1.0, np.nan, -2.0], [np.inf, 3.0, 0.0]]), np.array([[1.0, 2.0, 2.0, 0.0], [3.0, 3.0, 3.0, 1.0]])
SLOPES: dict[str, Callable[..., Any]] = {
    "max": lambda torch, a: a.max(), "min": lambda torch, a: a.min(), "quantile": lambda torch, a: a.quantile(0.5),
    "quantiles of rows": lambda torch, a: a.quantile(torch.tensor([0.25, 0.5]).to(a.dtype), dim=1),
    "largest": lambda torch, a: torch.linalg.vector_norm(a, float("inf"), dim=1), "smallest": lambda torch, a: a.norm(-float("inf")),
    "smooth_l1_loss": lambda torch, a: torch.nn.functional.smooth_l1_loss(a, torch.ones_like(a)),
    "huber_loss": lambda torch, a: torch.nn.functional.huber_loss(a, torch.ones_like(a), delta=2.0),
    "elu": lambda torch, a: torch.nn.functional.elu(a), "selu": lambda torch, a: torch.nn.functional.selu(a - 2),
}


def equal_rows(found: Any) -> bool:
    """Are the first two rows the same?"""
    return bool((found[0] == found[1]).all())


CALLS: dict[str, Callable[..., Any]] = {        # of the transformations, torch's operators, and what makes a tensor of an array
    "vmap kwargs": lambda t, torch, T: t.vmap(lambda a, *, k: a * k)(T(X), k=3.0),
    "vmap float None": lambda t, torch, T: t.vmap(lambda a, k: torch.add(a, a, alpha=k), in_dims=(0, None))(T(X), 2.0),
    "vmap float 0": lambda t, torch, T: t.vmap(lambda a, k: a * k)(T(X), 2.0),
    "vmap without arguments": lambda t, torch, T: t.vmap(lambda: 1)(),
    "vmap of other extents": lambda t, torch, T: t.vmap(lambda a, b: a * b)(T(X), T(Y)),
    "vmap over nothing": lambda t, torch, T: t.vmap(lambda a: a, in_dims=None)(T(X)),
    "vmap over nothing in a tuple": lambda t, torch, T: t.vmap(lambda a: a, in_dims=(None,))(T(X)),
    "vmap of too many dims": lambda t, torch, T: t.vmap(lambda a: a, in_dims=(0, 0))(T(X)),
    "vmap over a text": lambda t, torch, T: t.vmap(lambda a: a, in_dims="a")(T(X)),
    "vmap over 0.0": lambda t, torch, T: t.vmap(lambda a: a, in_dims=0.0)(T(X)),
    "vmap over True": lambda t, torch, T: t.vmap(lambda a: a, in_dims=True)(T(X)),
    "vmap nested":
        lambda t, torch, T: t.vmap(lambda d, p: d["a"] * p[0] + p[1], in_dims=({"a": 0}, [1, None]))({"a": T(X)}, [T(X.T), T(Y)]),
    "vmap nested int": lambda t, torch, T: t.vmap(lambda d, p: d["a"] * p[0], in_dims=({"a": 0}, 1))({"a": T(X)}, [T(X.T)]),
    "vmap nested wrong": lambda t, torch, T: t.vmap(lambda d: d["a"], in_dims=({"b": 0},))({"a": T(X)}),
    "vmap neg": lambda t, torch, T: t.vmap(lambda a: a.sum(), in_dims=-1)(T(X)),
    "vmap neg out": lambda t, torch, T: t.vmap(lambda a: a, out_dims=-1)(T(X)),
    "vmap out None batched": lambda t, torch, T: t.vmap(lambda a: a, out_dims=None)(T(X)),
    "vmap out None": lambda t, torch, T: t.vmap(lambda a: T(Y), out_dims=None)(T(X)),
    "vmap out tuple": lambda t, torch, T: t.vmap(lambda a: (a, a.sum()), out_dims=(1, 0))(T(X)),
    "vmap out tuple None": lambda t, torch, T: t.vmap(lambda a: (a, T(Y)), out_dims=(1, None))(T(X)),
    "vmap out tuple int": lambda t, torch, T: t.vmap(lambda a: (a, a), out_dims=1)(T(X)),
    "vmap out mism": lambda t, torch, T: t.vmap(lambda a: (a, a), out_dims=(0,))(T(X)),
    "vmap out single tuple": lambda t, torch, T: t.vmap(lambda a: a, out_dims=(1,))(T(X)),
    "vmap out range": lambda t, torch, T: t.vmap(lambda a: a, out_dims=2)(T(X)),
    "vmap out dict": lambda t, torch, T: t.vmap(lambda a: {"p": a, "q": a.sum()}, out_dims={"p": 1, "q": 0})(T(X)),
    "vmap returns int": lambda t, torch, T: t.vmap(lambda a: 3)(T(X)),
    "vmap returns None": lambda t, torch, T: t.vmap(lambda a: None)(T(X)),
    "vmap returns int None": lambda t, torch, T: t.vmap(lambda a: (a, 3), out_dims=(0, None))(T(X)),
    "vmap returns None None": lambda t, torch, T: t.vmap(lambda a: {"p": a, "q": None}, out_dims={"p": 0, "q": None})(T(X)),
    "vmap returns only None": lambda t, torch, T: t.vmap(lambda a: None, out_dims=None)(T(X)),
    "vmap returns list": lambda t, torch, T: t.vmap(lambda a: [a, (a,)])(T(X)),
    "vmap 0d": lambda t, torch, T: t.vmap(lambda a: a)(T(np.array(1.0))),
    "vmap chunk": lambda t, torch, T: t.vmap(lambda a: a.sum(), chunk_size=1)(T(X)),
    "vmap chunk2": lambda t, torch, T: t.vmap(lambda a, b: (a * b, a.sum()), in_dims=(1, 0), out_dims=(1, 0), chunk_size=2)(T(X), T(Y)),
    "vmap chunk0": lambda t, torch, T: t.vmap(lambda a: a, chunk_size=0)(T(X)),
    "vmap chunk dict": lambda t, torch, T: t.vmap(lambda a: {"p": a}, chunk_size=1)(T(X)),
    "vmap randomness bad": lambda t, torch, T: t.vmap(lambda a: a, randomness="X")(T(X)),
    "vmap empty": lambda t, torch, T: t.vmap(lambda a: a * 2)(T(np.zeros((0, 3)))),
    "grad": lambda t, torch, T: t.grad(lambda a: (a * a).sum())(T(X)),
    "grad neg": lambda t, torch, T: t.grad(lambda a, b: (a * b).sum(), argnums=-1)(T(X), T(Y)),
    "grad tuple": lambda t, torch, T: t.grad(lambda a, b: (a * b).sum(), argnums=(1, 0))(T(X), T(Y)),
    "grad tuple1": lambda t, torch, T: t.grad(lambda a, b: (a * b).sum(), argnums=(1,))(T(X), T(Y)),
    "grad empty tuple": lambda t, torch, T: t.grad(lambda a, b: (a * b).sum(), argnums=())(T(X), T(Y)),
    "grad dup": lambda t, torch, T: t.grad(lambda a, b: (a * b).sum(), argnums=(0, 0))(T(X), T(Y)),
    "grad dup neg": lambda t, torch, T: t.grad(lambda a, b: (a * b).sum(), argnums=(1, -1))(T(X), T(Y)),
    "grad range": lambda t, torch, T: t.grad(lambda a, b: (a * b).sum(), argnums=2)(T(X), T(Y)),
    "grad list argnums": lambda t, torch, T: t.grad(lambda a, b: (a * b).sum(), argnums=[0])(T(X), T(Y)),
    "grad kwargs": lambda t, torch, T: t.grad(lambda a, k: (a * k).sum())(T(X), k=T(Y)),
    "grad aux wrong": lambda t, torch, T: t.grad(lambda a: (a * a).sum(), has_aux=True)(T(Y)),
    "grad aux 3": lambda t, torch, T: t.grad(lambda a: (a.sum(), a, a), has_aux=True)(T(Y)),
    "grad vec": lambda t, torch, T: t.grad(lambda a: a * a)(T(Y)),
    "grad 1elem": lambda t, torch, T: t.grad(lambda a: (a * a).sum().reshape(1))(T(Y)),
    "grad tuple out": lambda t, torch, T: t.grad(lambda a: (a.sum(),))(T(Y)),
    "grad int": lambda t, torch, T: t.grad(lambda a: (a * 2.0).sum())(T(N)),
    "grad const": lambda t, torch, T: t.grad(lambda a: T(np.array(3.0)))(T(Y)),
    "grad list": lambda t, torch, T: t.grad(lambda p: (p[0] * p[1]["b"]).sum())([T(X), {"b": T(Y)}]),
    "gav": lambda t, torch, T: t.grad_and_value(lambda a: (a * a).sum())(T(Y)),
    "gav aux": lambda t, torch, T: t.grad_and_value(lambda a: ((a * a).sum(), a), has_aux=True)(T(Y)),
    "vjp": lambda t, torch, T: (lambda r: (r[0], r[1](T(Y))))(t.vjp(lambda a: a * a, T(Y))),
    "vjp two": lambda t, torch, T: (lambda r: (r[0], r[1]((T(Y), T(Y)))))(t.vjp(lambda a, b: (a * b, a + b), T(Y), T(Y))),
    "vjp dict": lambda t, torch, T: (lambda r: (r[0], r[1]({"p": T(Y)})))(t.vjp(lambda d: {"p": d["q"]*2}, {"q": T(Y)})),
    "vjp aux": lambda t, torch, T: (lambda r: (r[0], r[1](T(Y)), r[2]))(t.vjp(lambda a: (a * a, a + 1), T(Y), has_aux=True)),
    "vjp wrong shape": lambda t, torch, T: (lambda r: (r[0], r[1](T(X))))(t.vjp(lambda a: a * a, T(Y))),
    "vjp wrong struct": lambda t, torch, T: (lambda r: (r[0], r[1]((T(Y),))))(t.vjp(lambda a: a * a, T(Y))),
    "vjp noprim": lambda t, torch, T: t.vjp(lambda: 3),
    "jvp": lambda t, torch, T: t.jvp(lambda a: a * a, (T(Y),), (T(Y),)),
    "jvp nontuple": lambda t, torch, T: t.jvp(lambda a: a * a, T(Y), T(Y)),
    "jvp tree": lambda t, torch, T: t.jvp(lambda d, b: {"o": d["q"]*b}, ({"q": T(Y)}, T(Y)), ({"q": T(Y)}, T(Y))),
    "jvp aux": lambda t, torch, T: t.jvp(lambda a: (a * a, {"k": a}), (T(Y),), (T(Y),), has_aux=True),
    "jvp strict": lambda t, torch, T: t.jvp(lambda a: T(X), (T(Y),), (T(Y),), strict=True),
    "jvp const": lambda t, torch, T: t.jvp(lambda a: T(X), (T(Y),), (T(Y),)),
    "jvp shape": lambda t, torch, T: t.jvp(lambda a: a, (T(Y),), (T(X),)),
    "jvp len": lambda t, torch, T: t.jvp(lambda a: a, (T(Y),), (T(Y), T(Y))),
    "jacrev": lambda t, torch, T: t.jacrev(lambda a, b: a * b, argnums=(0, 1))(T(Y), T(Y)),
    "jacrev aux": lambda t, torch, T: t.jacrev(lambda a: (a * a, {"k": a}), has_aux=True)(T(Y)),
    "jacrev chunk": lambda t, torch, T: t.jacrev(lambda a: (a * a, a.sum()), chunk_size=2)(T(Y)),
    "jacrev chunk1": lambda t, torch, T: t.jacrev(lambda a: (a * a, a.sum()), chunk_size=1)(T(Y)),
    "jacrev chunk0": lambda t, torch, T: t.jacrev(lambda a: a * a, chunk_size=0)(T(Y)),
    "jacrev dict": lambda t, torch, T: t.jacrev(lambda d: {"o": d["q"]*2})({"q": T(Y)}),
    "jacrev tree args": lambda t, torch, T: t.jacrev(lambda d: d[0] * d[1])((T(Y), T(Y))),
    "jacrev dup": lambda t, torch, T: t.jacrev(lambda a, b: a * b, argnums=(0, 0))(T(Y), T(Y)),
    "jacrev nontensor": lambda t, torch, T: t.jacrev(lambda a: 3)(T(Y)),
    "jacrev const": lambda t, torch, T: t.jacrev(lambda a: T(Y))(T(Y)),
    "jacfwd": lambda t, torch, T: t.jacfwd(lambda a, b: a * b, argnums=(0, 1))(T(Y), T(Y)),
    "jacfwd t1": lambda t, torch, T: t.jacfwd(lambda a, b: a * b, argnums=(0,))(T(Y), T(Y)),
    "jacfwd aux": lambda t, torch, T: t.jacfwd(lambda a: (a * a, {"k": a}), has_aux=True)(T(Y)),
    "jacfwd dict": lambda t, torch, T: t.jacfwd(lambda d: {"o": d["q"]*2})({"q": T(Y)}),
    "jacfwd const": lambda t, torch, T: t.jacfwd(lambda a: T(Y))(T(Y)),
    "jacfwd rand": lambda t, torch, T: t.jacfwd(lambda a: a * torch.rand([3]).shape[0], randomness="same")(T(Y)),
    "hessian": lambda t, torch, T: t.hessian(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(T(Y), T(Y)),
    "hessian vec": lambda t, torch, T: t.hessian(lambda a: a * a * a)(T(Y)),
    "hessian dict": lambda t, torch, T: t.hessian(lambda d: (d["q"]**3).sum())({"q": T(Y)}),
    "linearize": lambda t, torch, T: (lambda r: (r[0], r[1](T(Y)), r[1](T(2 * Y))))(t.linearize(lambda a: a.sin(), T(Y))),
    "linearize2": lambda t, torch, T: (lambda r: (r[0], r[1](T(Y), T(Y))))(t.linearize(lambda a, b: {"o": a.sin() * b}, T(Y), T(Y))),
    "linearize vmap": lambda t, torch, T: (lambda r: t.vmap(r[1])(T(np.eye(3))))(t.linearize(lambda a: a.sin(), T(Y))),
    "rand same":
        lambda t, torch, T: equal_rows(t.vmap(lambda a: a * 0+torch.rand([3]), randomness="same")(T(X))),
    "rand diff":
        lambda t, torch, T: equal_rows(t.vmap(lambda a: a * 0+torch.rand([3]), randomness="different")(T(X))),
    "rand err": lambda t, torch, T: t.vmap(lambda a: a * 0+torch.rand([3]))(T(X)),
    "rand like err": lambda t, torch, T: t.vmap(lambda a: torch.rand_like(a))(T(X)),
    "rand like same":
        lambda t, torch, T: equal_rows(t.vmap(lambda a: torch.rand_like(a), randomness="same")(T(X))),
    "rand like diff":
        lambda t, torch, T: equal_rows(t.vmap(lambda a: torch.rand_like(a), randomness="different")(T(X))),
    "bern same":
        lambda t, torch, T: equal_rows(t.vmap(lambda a: torch.bernoulli(a), randomness="same")(T(np.full((2, 300), 0.5)))),
    "bern diff":
        lambda t, torch, T: equal_rows(t.vmap(lambda a: torch.bernoulli(a), randomness="different")(T(np.full((2, 300), 0.5)))),
    "dropout same":
        lambda t, torch, T: equal_rows(t.vmap(lambda a: torch.dropout(a, 0.5, True), randomness="same")(T(np.full((2, 300), 0.5)))),
    "dropout err": lambda t, torch, T: t.vmap(lambda a: torch.dropout(a, 0.5, True))(T(np.full((2, 300), 0.5))),
    "dropout eval": lambda t, torch, T: t.vmap(lambda a: torch.dropout(a, 0.5, False))(T(X)),
    "inplace uniform same":
        lambda t, torch, T: equal_rows(t.vmap(lambda a: a.clone().uniform_(), randomness="same")(T(X))),
    "rand chunk same":
        lambda t, torch, T: equal_rows(t.vmap(lambda a: a * 0+torch.rand([3]), randomness="same", chunk_size=1)(T(X))),
    "jacrev of complex": lambda t, torch, T: t.jacrev(lambda z: z * z)(torch.complex(T(Y), T(Y))),
    "jacrev to complex": lambda t, torch, T: t.jacrev(lambda a: torch.complex(a, a * a))(T(Y)),
    "jacfwd of complex": lambda t, torch, T: t.jacfwd(lambda z: z.real)(torch.complex(T(Y), T(Y))),
    "jacfwd to complex": lambda t, torch, T: t.jacfwd(lambda a: torch.complex(a, a * a))(T(Y)),
    "hessian of complex": lambda t, torch, T: t.hessian(lambda z: z.abs().sum())(torch.complex(T(Y), T(Y))),
    "jacobians through complex":
        lambda t, torch, T: [make(lambda a: torch.complex(a, a * a).abs())(T(Y)) for make in (t.jacrev, t.jacfwd)],
    "tensor of a tensor": lambda t, torch, T: t.grad(lambda a: (torch.tensor(a) * a).sum())(T(Y)),
    "tensor of a tensor in another dtype": lambda t, torch, T: t.grad(lambda a: (torch.tensor(a, dtype=torch.float32) * a).sum())(T(Y)),
    "tangent of the tensor of a tensor": lambda t, torch, T: t.jvp(lambda a: torch.tensor(a) * a, (T(Y),), (T(Y),)),
    "tensor of tensors among numbers": lambda t, torch, T: [torch.tensor(each) for each in (
        [T(Y)[0], 2.0], [[T(Y)[0], 1], [T(X)[0, :1], True]], (T(N)[0], 2.0), [T(N)[0], True], [T(Y).float()[0], 1], [[1.5], [T(Y).sum()]])],
    "tensor of tensors of more elements": lambda t, torch, T: torch.tensor([T(Y), T(Y)]),
    "tensor of tensors and a text": lambda t, torch, T: torch.tensor([T(Y)[0], "a"]),
    "gradient past a tensor of tensors": lambda t, torch, T: t.grad(lambda a: (torch.tensor([a[0], 2.0]) * a[1:]).sum())(T(Y)),
    "as_tensor": lambda t, torch, T: t.grad(lambda a: (torch.as_tensor(a) * torch.as_tensor([a[0], 1.0, 2])).sum())(T(Y)),
    "new_tensor of tensors": lambda t, torch, T: t.grad(lambda a: (a.new_tensor(a) * a.new_tensor([a[0], 1, 2]) * a).sum())(T(Y)),
    "new_tensor of a tensor of another dtype": lambda t, torch, T: T(N).new_tensor(T(Y)),
    "asarray with a copy": lambda t, torch, T: t.grad(lambda a: (torch.asarray(a, copy=True) * a).sum())(T(Y)),
    "where as a method":
        lambda t, torch, T: t.vmap(lambda a: (a.where(a > 2, a * 10), a.where(a > 2, 7.0), (a > 1).where(a > 2, a < 4)))(T(X)),
    "gradient of where as a method": lambda t, torch, T: t.grad(lambda a: a.where(condition=a > 2, other=a * a).sum())(T(X)),
    "polygamma as a method": lambda t, torch, T: t.grad(lambda a: a.polygamma(1).sum())(T(X)),
    "hessian of a loss of a target that varies": lambda t, torch, T: t.vmap(t.hessian(
        lambda a: torch.nn.functional.binary_cross_entropy(a.sigmoid(), a.sigmoid()).cos()))(T(X)),
    "comparisons with what has no elements":
        lambda t, torch, T: t.vmap(lambda a: a * (a == None) + (a != "a") + (a in [None, "a"]) + (a == [1.0]))(T(X)),     # noqa: E711
    "shifts of numbers": lambda t, torch, T: t.vmap(lambda n: (2 << n, 64 >> n))(T(N)),
    "vmap of a number in a list": lambda t, torch, T: t.vmap(lambda a: torch.cat([a, 3]))(T(X)),
    "vmap of a number for a tensor": lambda t, torch, T: t.vmap(lambda a: a.expand_as(3))(T(X)),
    "vmaps of a number for a tensor": lambda t, torch, T: t.vmap(t.vmap(lambda a: torch.cat([a.reshape(1), 3])))(T(X)),
    "vmap over nothing of a number for a tensor": lambda t, torch, T: t.vmap(lambda a: torch.cat([a, 3]))(T(X[:0])),
    **{f"slopes at nan and ties of {name}": lambda t, torch, T, f=f: [torch.nan_to_num(each, 7.0) for each in (
        t.grad(lambda a: f(torch, a).sum())(T(NANS)), t.vmap(t.grad(lambda a: f(torch, a[None]).sum()))(T(TIES)),
        t.jacrev(t.jacrev(lambda a: f(torch, a).sum()))(T(TIES)))] for name, f in SLOPES.items()},
    "sizes of tensors": lambda t, torch, T: [torch.zeros(T(N).max(), 2), T(X).repeat(2, T(N)[1]), T(X).reshape(T(N).max() + 1, -1),
                                             T(X).permute(T(N)[1], 0), t.grad(lambda a: a.expand(T(N)[2], 2, 3).sum())(T(X))],
    "sizes of tensors of fractions": lambda t, torch, T: torch.zeros(T(Y).sum(), 2),
    "sizes of batched tensors": lambda t, torch, T: t.vmap(lambda n: torch.zeros(n, 2))(T(N)),
    "split by the names of torch": lambda t, torch, T: t.vmap(lambda a: [torch.split(tensor=a, split_size_or_sections=2), torch.split(
        a, split_size_or_sections=[1, 2], dim=0), torch.split(a, 2, -1), torch.split(a, [1, 2]), a.split(split_size=1)])(T(X)),
    "inplace": lambda t, torch, T: t.vmap(lambda a: T(Y).add_(a))(T(X)),
}


def shown(value: Any) -> Any:
    """A result as JSON keeps it."""
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(shown, value)]
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items()}
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    array = np.asarray(value)
    return {"dtype": str(array.dtype), "shape": list(array.shape), "values": np.round(array.astype(float), 6).ravel().tolist()}


def outcome(call: Callable[..., Any], *given: Any) -> Any:
    """What a call gives, or that it is refused."""
    try:
        return shown(call(*given))
    except Exception:
        return "refused"


def signature(function: Callable[..., Any]) -> list[Any]:
    """Names, kinds and defaults of what a function takes."""
    parameters = inspect.signature(function).parameters.values()
    return [[p.name, p.kind.name, None if p.default is p.empty else repr(p.default)] for p in parameters if not p.name.startswith("_")]


if __name__ == "__main__":
    import torch
    import torch.func
    found = {"calls": {name: outcome(call, torch.func, torch, torch.tensor) for name, call in CALLS.items()},
             "signatures": {name: signature(getattr(torch.func, name)) for name in PUBLIC}}
    RECORDED.write_text(json.dumps(found, separators=(",", ":")).replace('],"', '],\n"').replace('},"', '},\n"') + "\n")
