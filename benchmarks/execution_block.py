"""C5: one transformer block, norms first."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from execution_cases import F32, Case, backward, forward, gradients, graph_of, jax_gradients, jitted, normal, tensors, without_gradients

ROWS, LENGTH, WIDTH, HEADS = 2, 64, 256, 4


def block(x, wqkv, bqkv, wo, bo, w1, c1, w2, c2, g1, e1, g2, e2):       # type: ignore[no-untyped-def]
    h = F.layer_norm(x, [256], g1, e1)
    qkv = (torch.matmul(h, wqkv) + bqkv).view(2, 64, 3, 4, 64).permute(2, 0, 3, 1, 4)
    q, k, v = qkv[0], qkv[1], qkv[2]
    att = torch.softmax(torch.matmul(q, k.transpose(2, 3)) * 0.125, -1)
    y = torch.matmul(att, v).transpose(1, 2).reshape(2, 64, 256)
    x = x + torch.matmul(y, wo) + bo
    h = F.layer_norm(x, [256], g2, e2)
    u = torch.matmul(h, w1) + c1
    u = 0.5 * u * (1.0 + torch.tanh(0.7978845608 * (u + 0.044715 * u * u * u)))
    return x + torch.matmul(u, w2) + c2


def loss(x, wqkv, bqkv, wo, bo, w1, c1, w2, c2, g1, e1, g2, e2):        # type: ignore[no-untyped-def]
    return torch.pow(block(x, wqkv, bqkv, wo, bo, w1, c1, w2, c2, g1, e1, g2, e2), 2).sum()


def by_hand(x: Any, wqkv: Any, bqkv: Any, wo: Any, bo: Any, w1: Any, c1: Any, w2: Any, c2: Any, g1: Any, e1: Any, g2: Any, e2: Any,
            xp: Any = np) -> Any:
    """Straight NumPy, or jax."""
    def norm(x: Any, g: Any, e: Any) -> Any:
        d = x - xp.mean(x, axis=-1, keepdims=True)
        return d / xp.sqrt(xp.mean(d * d, axis=-1, keepdims=True) + F32(1e-5)) * g + e

    size = WIDTH // HEADS
    qkv = xp.transpose(xp.reshape(xp.matmul(norm(x, g1, e1), wqkv) + bqkv, (ROWS, LENGTH, 3, HEADS, size)), (2, 0, 3, 1, 4))
    s = xp.matmul(qkv[0], xp.swapaxes(qkv[1], 2, 3)) * F32(.125)
    s = xp.exp(s - xp.max(s, axis=-1, keepdims=True))
    y = xp.matmul(s / xp.sum(s, axis=-1, keepdims=True), qkv[2])
    x = x + xp.matmul(xp.reshape(xp.swapaxes(y, 1, 2), (ROWS, LENGTH, WIDTH)), wo) + bo
    u = xp.matmul(norm(x, g2, e2), w1) + c1
    u = F32(.5) * u * (F32(1) + xp.tanh(F32(0.7978845608) * (u + F32(0.044715) * u * u * u)))
    return x + xp.matmul(u, w2) + c2


def jax_block(*given: Any) -> Any:
    """The same on jax."""
    import jax.numpy as jnp

    return by_hand(*given, xp=jnp)


def cases() -> Iterator[Case]:
    """Forwards, and forwards and backwards."""
    d, f = WIDTH, 4 * WIDTH
    x = normal(ROWS, LENGTH, d)
    weights = [normal(d, 3 * d, scale=d ** -.5), normal(3 * d, scale=.1), normal(d, d, scale=d ** -.5), normal(d, scale=.1),
               normal(d, f, scale=d ** -.5), normal(f, scale=.1), normal(f, d, scale=f ** -.5), normal(d, scale=.1, seed=1),
               np.ones(d, F32), np.zeros(d, F32), np.ones(d, F32), np.zeros(d, F32)]
    given = [x, *weights]
    t = tensors(given)
    yield Case("transformer block, 2 x 64, d=256, forward (C5)", "torch eager", {
        "torch eager": lambda: without_gradients(block, *t),
        "torch.jit": lambda: without_gradients(torch.jit.script(block), *t),
        "numpy by hand": lambda: lambda: by_hand(*given),
        "jax.jit": jitted(jax_block, given),
        "irtool": forward(lambda: graph_of(block), given),
        "irtool, native": forward(lambda: graph_of(block), given, native=True),
    }, [("irtool", "torch eager", 0.9)])
    yield Case("transformer block, 2 x 64, d=256, forward and backward (C5)", "torch eager", {
        "torch eager": lambda: backward(block, t[:1], t[1:]),
        "torch.jit": lambda: backward(torch.jit.script(block), t[:1], t[1:]),
        "jax.jit": lambda: jax_gradients(lambda w, x: (jax_block(x, *w) ** 2).sum(), weights, x),
        "irtool": gradients(lambda: graph_of(loss), given, range(1, 13)),
        "irtool, native": gradients(lambda: graph_of(loss), given, range(1, 13), native=True),
    }, [("irtool", "torch eager", 0.97)])
