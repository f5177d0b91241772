"""Layers: per-sample gradients of an MLP, traced and compiled, against torch.func and jax.jit; the cost of one operation in Python.

    python benchmarks/dispatch.py [--quick] [--only torch]

The MLP (matmul, tanh, matmul, squared error, float64) is given by batch and widths; all candidates give the same gradients, which is
checked. `irtool` is `irtool.jit(irtool.vmap(irtool.grad(...)))`, `irtool, eager` without jit, `torch` is torch.func, `jax` jax.jit.
An operation is `x + y` or `x.tanh()` on 8 numbers: on arrays, on tensors through a layer, in torch. Microseconds of CPU time, one thread.
"""
from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import harness
import numpy as np

MODELS = {"8x4-8-2": (8, 4, 8, 2), "32x16-32-4": (32, 16, 32, 4), "32x64-128-10": (32, 64, 128, 10)}
"""Batch, inputs, hidden, outputs."""
CANDIDATES = ("irtool", "irtool, eager", "torch", "jax")
OPERATIONS = ("numpy", "irtool, backend", "irtool, tape", "irtool, batch", "torch eager")


def arrays(model: str) -> list[Any]:
    """Weights, inputs, targets."""
    batch, width, hidden, out = MODELS[model]
    random = np.random.default_rng(0)
    return [random.standard_normal(shape) for shape in ((width, hidden), (hidden, out), (batch, width), (batch, out))]


def gradients(name: str, given: list[Any]) -> Callable[[], Any]:
    """What computes the gradients of both weights for each sample."""
    dims = (None, None, 0, 0)
    if name == "torch":
        import torch

        torch.set_num_threads(1)

        def loss(w: Any, v: Any, x: Any, y: Any) -> Any:
            return ((torch.tanh(x @ w) @ v - y) ** 2).sum()
        function = torch.func.vmap(torch.func.grad(loss, (0, 1)), dims)
        values = [torch.tensor(each) for each in given]
        return lambda: function(*values)
    if name == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)

        def loss(w: Any, v: Any, x: Any, y: Any) -> Any:
            return ((jax.numpy.tanh(x @ w) @ v - y) ** 2).sum()
        compiled = jax.jit(jax.vmap(jax.grad(loss, (0, 1)), dims))
        values = [jax.numpy.asarray(each) for each in given]
        return lambda: jax.block_until_ready(compiled(*values))
    import irtool

    def loss(w: Any, v: Any, x: Any, y: Any) -> Any:
        return ((irtool.torch.tanh(x @ w) @ v - y) ** 2).sum()
    made = irtool.vmap(irtool.grad(loss, (0, 1)), dims)
    fast = made if "eager" in name else irtool.jit(made)
    return lambda: fast(*given)


def seconds(action: Callable[[], Any], room: float = 0.5) -> float:
    """The least CPU seconds of one call, of as many as fit into `room`. The clock may tick in milliseconds: a sample takes several."""
    count, start = 5, time.process_time()
    while time.process_time() - start < 0.02:
        for _ in range(count):
            action()
        count *= 2
    best, end = float("inf"), time.process_time() + room
    while time.process_time() < end:
        start = time.process_time()
        for _ in range(count):
            action()
        best = min(best, (time.process_time() - start) / count)
    return best


def checked(name: str, model: str) -> float:
    """Seconds of one candidate, once its gradients were found right."""
    w, v, x, y = given = arrays(model)
    action = gradients(name, given)
    found = [np.asarray(each) for each in action()]
    hidden = np.tanh(x @ w)
    slope = 2 * (hidden @ v - y)
    np.testing.assert_allclose(found[1], hidden[:, :, None] * slope[:, None], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[0], x[:, :, None] * ((slope @ v.T) * (1 - hidden ** 2))[:, None], rtol=1e-9, atol=1e-9)
    return seconds(action)


def operation(name: str) -> dict[str, float]:
    """Seconds of one operation, by what it is."""
    a, b = np.ones(8), np.full(8, 2.0)
    if name == "torch eager":
        import torch

        x, y = torch.tensor(a), torch.tensor(b)
        return {"add": seconds(lambda: x + y), "tanh": seconds(lambda: x.tanh())}
    if name == "numpy":
        return {"add": seconds(lambda: a + b), "tanh": seconds(lambda: np.tanh(a))}
    from irtool.dispatch import Autograd, Backend, Batched, Layer
    from irtool.ops.tensor import Tensor

    layer: Layer = Backend()
    first, second = Tensor(a), Tensor(b)
    if name == "irtool, tape":
        layer = tape = Autograd(layer)
        first, second = tape.variable(first), tape.variable(second)
    if name == "irtool, batch":
        layer = batch = Batched(layer, 2)
        first, second = (batch.box(Tensor(np.stack([each, each]))) for each in (a, b))
    with layer:
        return {"add": seconds(lambda: first + second, 0.2), "tanh": seconds(lambda: first.tanh(), 0.2)}


def worker(what: str, name: str, model: str = "") -> None:
    """One measurement."""
    harness.pin()
    print(json.dumps(operation(name) if what == "operation" else {"call": checked(name, model)}))


def main() -> None:
    flags = harness.parser(__doc__)
    arguments = flags.parse_args()
    if arguments.worker:
        worker(*arguments.worker)
        return
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    records = []
    groups = [("per-sample gradients", model, CANDIDATES, ("call",), ["gradients"]) for model in MODELS]
    groups.append(("one operation", "", OPERATIONS, ("add", "tanh"), ["operation"]))
    for title, model, candidates, fields, words in groups:
        print(f"{title} {model}", flush=True)
        found: dict[str, list[harness.Row]] = {}
        failed: set[str] = set()
        for turn in range(arguments.rounds or (3 if arguments.quick else 7)):
            for name in candidates[turn % len(candidates):] + candidates[:turn % len(candidates)]:
                if name in failed or arguments.only not in f"{title} {model} {name}":
                    continue
                try:
                    found.setdefault(name, []).append(harness.work([words[0], name, *([model] if model else [])]))
                except RuntimeError as error:
                    print(f"  {name}: {error}", file=sys.stderr)
                    failed.add(name)
                    found.pop(name, None)
        reference = "torch" if "torch" in candidates else "torch eager"
        for field in fields:
            for name in [each for each in candidates if each in found]:
                median, spread = harness.middle([row[field] * 1e6 for row in found[name]])
                text = f"  {field:5} {name:16}{median:9.2f} us ±{spread:4.0%}"
                record: dict[str, Any] = {"what": title, "model": model, "candidate": name, "field": field, "us": round(median, 2)}
                for other in {reference, "jax"} - {name}:
                    if other in found:
                        record[f"ratio to {other}"] = ratio = harness.middle(
                            [row[field] / rival[field] for row, rival in zip(found[name], found[other])])[0]
                        text += f"   {ratio:6.3f} x {other}"
                print(text, flush=True)
                records.append(record)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"schema": 1, "python": sys.version.split()[0], "records": records}, file, indent=1)


if __name__ == "__main__":
    main()
