"""The op table of the simple_functorch notebook: six primitives with their kernels, derivatives, batching rules and printed forms.

Only for tests of the layers: what they print and in which order is pinned with it.
"""
from __future__ import annotations

import numpy as np

from irtool.ops.tensor import Tensor


class Notebook:
    """Primitives mul, add, sum, expand, unsqueeze, squeeze, ones."""

    is_library = False
    constants_on_tape = True

    def choose(self, kind, args, named):
        return kind, [*args, *named.values()]

    def run(self, name, args):
        arrays = [each.array if isinstance(each, Tensor) else each for each in args]
        x = arrays[0]
        if name in ("mul", "add"):
            return Tensor(np.multiply(*arrays) if name == "mul" else np.add(*arrays))
        if name == "sum":
            return Tensor(x.sum(arrays[1]))
        if name == "expand":
            return Tensor(np.broadcast_to(x, arrays[1]))
        if name == "ones":
            return Tensor(np.ones(x))
        return Tensor(np.expand_dims(x, arrays[1]) if name == "unsqueeze" else np.squeeze(x, arrays[1]))

    def is_differentiable(self, name):
        return name != "ones"

    def forward(self, name, args, apply):
        return apply(name, args), None

    def backward(self, name, args, results, saved, grads, apply, needed, again=False):
        (g,) = grads
        if name == "mul":
            return [apply("mul", [g, args[1]]), apply("mul", [g, args[0]])]
        if name == "add":
            return [apply("mul", [g, 1.0]), apply("mul", [g, 1.0])]
        if name == "sum":
            for dim in args[1]:
                g = apply("unsqueeze", [g, dim])
            return [apply("expand", [g, tuple(args[0].shape)]), None]
        if name == "expand":
            dims = tuple(i for i, (a, b) in enumerate(zip(args[0].shape, args[1], strict=True)) if a != b)
            g = apply("sum", [g, dims])
            for dim in dims:
                g = apply("unsqueeze", [g, dim])
            return [g, None]
        return [apply("squeeze" if name == "unsqueeze" else "unsqueeze", [g, args[1]]), None]

    def add(self, a, b, apply):
        return apply("add", [a, b])

    def shortcut(self, name, args):
        return args[0] if name == "mul" and isinstance(args[1], float) and args[1] == 1.0 else None

    def is_view(self, name):
        return False

    def only_writes(self, name):
        return False

    def without_write(self, name):
        return None

    def batch(self, name):
        return getattr(self, f"batch_{name}")

    def expanded(self, value, length, apply):
        return apply("expand", [apply("unsqueeze", [value, 0]), (length, *value.shape)])

    def batch_mul(self, batch, a, b):
        return batch.box(batch.same(*[batch.whole(x) for x in (a, b)]))

    batch_add = batch_mul

    def batch_sum(self, batch, x, dims):
        return batch.box(batch.same(batch.whole(x), tuple(d + 1 for d in dims)))

    def batch_expand(self, batch, x, sizes):
        return batch.box(batch.same(batch.whole(x), (batch.length, *sizes)))

    def batch_unsqueeze(self, batch, x, dim):
        return batch.box(batch.same(batch.whole(x), dim + 1))

    batch_squeeze = batch_unsqueeze

    def is_logged(self, name):
        return True

    def spelled(self, name, args, label, is_tape=False):
        if name in ("mul", "add"):
            return f"{label(args[0])} {'*' if name == 'mul' else '+'} {label(args[1])}"
        if name == "ones":
            return f"ones({', '.join(map(str, args[0]))})"
        if name == "sum":
            return f"{label(args[0])}.sum(dim={args[1]})"
        dim = f"dim={args[1]}" if is_tape and name != "expand" else args[1]
        return f"{label(args[0])}.{name}({dim})"
