"""Train the model of an archive without torch, and save it for torch: `python examples/train.py examples/model.pt trained.pt`.

SGD with momentum on the mean cross entropy, as torch.optim.SGD does it. Batch norm's statistics move with each step.
"""
from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

import irtool

Array = np.ndarray


class SGD:
    """Steps down the gradient of the parameters of a module, which it changes in place."""

    def __init__(self, module: irtool.ScriptModule, rate: float = 0.05, momentum: float = 0.9) -> None:
        self.parameters = dict(module.named_parameters())
        self.rate = rate
        self.momentum = momentum
        self.velocity: dict[str, Array] = {}

        def loss(parameters: dict[str, Array], x: Array, y: Array) -> irtool.Tensor:
            scores = irtool.functional_call(module, parameters, (x,))
            return irtool.torch.nn.functional.cross_entropy(scores, y)
        self.gradients = irtool.value_and_grad(loss)

    def step(self, x: Array, y: Array) -> float:
        """The loss of a batch, and a step down its gradient."""
        value, gradients = self.gradients(self.parameters, x, y)
        for name, parameter in self.parameters.items():
            gradient = np.asarray(gradients[name])
            self.velocity[name] = self.momentum * self.velocity[name] + gradient if name in self.velocity else gradient
            parameter -= self.rate * self.velocity[name]
        return float(value)


def batches(count: int, seed: int = 2026) -> Iterator[tuple[Array, Array]]:
    """Pictures of noise with a bright bar: 0 across, 1 down, 2 none."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        y = rng.integers(0, 3, 16)
        x = rng.standard_normal((16, 1, 8, 8)).astype(np.float32) / 2
        for picture, kind in zip(x, y, strict=True):
            bar = rng.integers(0, 8)
            if kind < 2:
                picture[0, bar if kind == 0 else slice(None), bar if kind == 1 else slice(None)] += 2
        yield x, y


def main(source: str = "examples/model.pt", target: str = "trained.pt") -> None:
    """Train, print the loss, and save."""
    module = irtool.load(source).train()
    optimizer = SGD(module)
    for number, (x, y) in enumerate(batches(60), 1):
        loss = optimizer.step(x, y)
        if number % 10 == 0:
            print(f"step {number}: loss {loss:.3f}")
    module.eval()
    x, y = next(batches(1, seed=1))
    print(f"right: {(module(x).argmax(1) == y).sum()} of {len(y)}")
    irtool.save(module, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
