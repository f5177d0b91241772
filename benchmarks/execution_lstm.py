"""C4: an LSTM cell written out, in a loop over the time steps."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from execution_cases import F32, Case, backward, forward, gradients, graph_of, jax_gradients, jitted, normal, tensors, without_gradients


def cell_loop(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, wi: torch.Tensor, wh: torch.Tensor, b: torch.Tensor):     # type: ignore
    for t in range(x.size(0)):
        g = torch.mm(x[t], wi) + torch.mm(h, wh) + b
        i, f, u, o = g.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h


def loss(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, wi: torch.Tensor, wh: torch.Tensor, b: torch.Tensor):      # type: ignore
    return torch.pow(cell_loop(x, h, c, wi, wh, b), 2).sum()


def sigmoid(v: Any) -> Any:
    """As NumPy has it."""
    return F32(1) / (F32(1) + np.exp(-v))


def by_hand(x: Any, h: Any, c: Any, wi: Any, wh: Any, b: Any) -> Any:
    """Straight NumPy."""
    for t in range(x.shape[0]):
        i, f, u, o = np.split(x[t] @ wi + h @ wh + b, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(u)
        h = sigmoid(o) * np.tanh(c)
    return h


def jax_loop(x: Any, h: Any, c: Any, wi: Any, wh: Any, b: Any) -> Any:
    """jax.lax.scan."""
    import jax

    def step(state: Any, xt: Any) -> Any:
        h, c = state
        i, f, u, o = jax.numpy.split(xt @ wi + h @ wh + b, 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jax.numpy.tanh(u)
        return (jax.nn.sigmoid(o) * jax.numpy.tanh(c), c), None
    return jax.lax.scan(step, (h, c), x)[0][0]


def jax_loss(weights: Any, *data: Any) -> Any:
    """Its loss."""
    return (jax_loop(*data, *weights) ** 2).sum()


def optimised(x: Any, h0: Any, c0: Any, wi: Any, wh: Any, b: Any) -> Callable[[], Any]:
    """NumPy as a patient person writes it: input product before the loop, gates contiguous, everything into buffers."""
    steps, rows, width = x.shape
    size = h0.shape[1]
    order = np.r_[0:2 * size, 3 * size:4 * size, 2 * size:3 * size]
    half = np.full(4 * size, .5, F32)
    half[3 * size:] = 1
    wi_t, wh_t = [np.ascontiguousarray((w[:, order] * half).T) for w in (wi, wh)]
    b_t, p5 = (b[order] * half)[:, None], F32(.5)
    given, before, g = np.empty((steps, width, rows), F32), np.empty((steps, 4 * size, rows), F32), np.empty((4 * size, rows), F32)
    i, f, o, u = (g[k * size:(k + 1) * size] for k in range(4))
    gates = g[:3 * size]
    h, c, product = [np.empty((size, rows), F32) for _ in range(3)]
    multiply, add, tanh, matmul = np.multiply, np.add, np.tanh, np.matmul

    def run() -> Any:
        np.copyto(given, x.transpose(0, 2, 1))
        matmul(wi_t, given, out=before)
        add(before, b_t, before)
        np.copyto(h, h0.T)
        np.copyto(c, c0.T)
        for each in before:
            matmul(wh_t, h, out=g)
            add(g, each, g)
            tanh(g, g)
            multiply(gates, p5, gates)
            add(gates, p5, gates)
            multiply(f, c, c)
            multiply(i, u, product)
            add(c, product, c)
            tanh(c, product)
            multiply(o, product, h)
        return h.T
    return run


def cases(quick: bool) -> Iterator[Case]:
    """Small (calls matter) and medium (products matter)."""
    for name, rows, size in (("small", 8, 64), ("medium", 32, 256)):
        steps = 10 if quick else 100
        data = [normal(steps, rows, size), normal(rows, size, scale=.1), normal(rows, size, scale=.1, seed=1)]
        weights = [normal(size, 4 * size, scale=size ** -.5), normal(size, 4 * size, scale=size ** -.5, seed=1), normal(4 * size, scale=.1)]
        given = [*data, *weights]
        t = tensors(given)
        module = torch.nn.LSTM(size, size)
        with torch.no_grad():
            for place, value in zip((module.weight_ih_l0, module.weight_hh_l0, module.bias_ih_l0), (t[3].T, t[4].T, t[5]), strict=True):
                place.copy_(value)
            module.bias_hh_l0.zero_()
        yield Case(f"LSTM loop, {name}: B={rows} H={size}, {steps} steps, forward (C4)", "torch.jit", {
            "torch.jit": lambda t=t: without_gradients(torch.jit.script(cell_loop), *t),
            "torch eager": lambda t=t: without_gradients(cell_loop, *t),
            "torch.nn.LSTM": lambda t=t, m=module: without_gradients(lambda: m(t[0], (t[1][None], t[2][None]))[1][0][0]),
            "numpy by hand": lambda given=given: lambda: by_hand(*given),
            "numpy by hand, optimised": lambda given=given: optimised(*given),
            "jax.jit(scan)": jitted(jax_loop, given),
            "irtool": forward(lambda: graph_of(cell_loop), given, native=False),
            "irtool, native": forward(lambda: graph_of(cell_loop), given, native=True),
        }, [("irtool", "torch.jit", 0.7), ("irtool, native", "torch.jit", 0.4)] * (name == "small"))
        if name == "small":
            yield Case(f"LSTM loop, {name}: B={rows} H={size}, {steps} steps, forward and backward (C4)", "torch eager", {
                "torch eager": lambda t=t: backward(cell_loop, t[:3], t[3:]),
                "torch.jit": lambda t=t: backward(torch.jit.script(cell_loop), t[:3], t[3:]),
                "jax.jit(scan)": lambda d=data, w=weights: jax_gradients(jax_loss, w, *d),
                "irtool": gradients(lambda: graph_of(loss), given, range(3, 6), native=False),
                "irtool, native": gradients(lambda: graph_of(loss), given, range(3, 6), native=True),
            }, [("irtool", "torch.jit", 0.7), ("irtool, native", "torch.jit", 0.25)])
