"""Writes the `.npz` files, always the same bytes; what is expected is computed in float64, without irtool.ops.

    python examples/make_inputs.py
"""
from __future__ import annotations

from pathlib import Path

import numpy as np

from irtool.interop.npz import Archive, encode

HERE = Path(__file__).parent
SHAPES = {"x": (4, 8), "w1": (8, 16), "b1": (16,), "w2": (16, 3), "b2": (3,)}


def main() -> None:
    random = np.random.Generator(np.random.PCG64(2026))
    inputs = {name: (random.integers(-64, 65, shape) / 64).astype(np.float32) for name, shape in SHAPES.items()}
    (HERE / "mlp_inputs.npz").write_bytes(encode(Archive(inputs)))
    x, w1, b1, w2, b2 = (array.astype(np.float64) for array in inputs.values())
    scores = np.exp(np.maximum(x @ w1 + b1, 0) @ w2 + b2)
    expected = {"output0": (scores / scores.sum(1, keepdims=True)).astype(np.float32)}
    (HERE / "mlp_expected.npz").write_bytes(encode(Archive(expected)))
    pictures = (random.integers(-64, 65, (2, 1, 8, 8)) / 64).astype(np.float32)
    pictures[0, 0, 3] += 2
    pictures[1, 0, :, 5] += 2
    (HERE / "model_inputs.npz").write_bytes(encode(Archive({"x": pictures})))


if __name__ == "__main__":
    main()
