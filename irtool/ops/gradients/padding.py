"""Gradients of borders: gradients of copies are added."""
from __future__ import annotations

from irtool.ops.kernels.padding import table
from irtool.ops.tensor import Tensor, torch

table.derivative("constant_pad_nd", lambda grad, pad: torch.constant_pad_nd(grad, [-extent for extent in pad], 0))


def circular_back(grad: Tensor, pad: list[int], sizes: list[int]) -> Tensor:
    """The gradient of a circular border, a dimension after the other."""
    for place in range(len(pad) // 2):
        dim = len(sizes) - 1 - place
        whole = grad.size()
        left, right = pad[2 * place], pad[2 * place + 1]
        first = -left if left < 0 else 0        # a negative border removes elements, and the remaining ones are repeated
        last = -right if right < 0 else 0
        sources = (torch.arange(whole[dim]) - (left if left > 0 else 0)).remainder(sizes[dim] - first - last) + first
        whole[dim] = sizes[dim]
        grad = grad.new_zeros(whole).index_add(dim, sources, grad)
    return grad


def pad_back(grad: Tensor, self: Tensor, pad: list[int], mode: str) -> Tensor:
    """The gradient of any border."""
    if mode == "constant":
        return torch.constant_pad_nd(grad, [-extent for extent in pad], 0)
    if mode == "circular":
        return circular_back(grad, pad, self.size())
    if mode == "reflect":
        if len(pad) == 2:
            return torch.reflection_pad1d_backward(grad, self, pad)
        if len(pad) == 4:
            return torch.reflection_pad2d_backward(grad, self, pad)
        return torch.reflection_pad3d_backward(grad, self, pad)
    if len(pad) == 2:
        return torch.replication_pad1d_backward(grad, self, pad)
    if len(pad) == 4:
        return torch.replication_pad2d_backward(grad, self, pad)
    return torch.replication_pad3d_backward(grad, self, pad)


table.derivative("aten::pad", lambda grad, self, pad, mode: pad_back(grad, self, pad, mode))
table.derivative("_pad_enum",
                 lambda grad, self, pad, mode: pad_back(grad, self, pad, ["reflect", "replicate", "circular", "constant"][mode]))
table.derivative("_pad_circular", lambda grad, pad, self_size: circular_back(grad, pad, self_size))
table.transposed("reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d")
