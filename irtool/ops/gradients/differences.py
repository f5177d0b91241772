"""Gradients of numerical gradients (aten::gradient): second-order differences along dimensions.

With h the steps between samples, s = diff(x) / h their slopes and w = (x[2:] - x[:-2]) / (h[1:] + h[:-1]), the slopes over two steps:
the result is s[:-1] + s[1:] - w within, and at the ends s[0] and s[-1], or to second order s[0] + w[0] - s[1] and s[-1] + w[-1] - s[-2].
"""
from __future__ import annotations

from irtool.ops.kernels.scan import table
from irtool.ops.tensor import Tensor, torch


def placed(part: Tensor, dim: int, start: int, extent: int) -> Tensor:
    """Zeros of `extent` places along `dim`, with `part` from place `start` on."""
    size = part.size()
    before, behind = [length for length in size], [length for length in size]
    before[dim] = start
    behind[dim] = extent - start - size[dim]
    return torch.cat([part.new_zeros(before), part, part.new_zeros(behind)], dim)


def ends(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """All places but the last one, and all but the first."""
    extent = x.size(dim)
    return x.narrow(dim, 0, extent - 1), x.narrow(dim, 1, extent - 1)


def both(grad: Tensor, dim: int) -> Tensor:
    """The sum that each position gets when neighbours are added."""
    extent = grad.size(dim) + 1
    return placed(grad, dim, 0, extent) + placed(grad, dim, 1, extent)


def step_back(grad: Tensor, dim: int) -> Tensor:
    """Gradient of x[1:] - x[:-1]."""
    extent = grad.size(dim) + 1
    return placed(grad, dim, 1, extent) - placed(grad, dim, 0, extent)


def slopes_back(grad: Tensor, dim: int, edge_order: int) -> tuple[Tensor, Tensor]:
    """Gradients of the slopes s and w."""
    extent = grad.size(dim)
    within = grad.narrow(dim, 1, extent - 2)
    first, last = grad.narrow(dim, 0, 1), grad.narrow(dim, extent - 1, 1)
    for_s = both(within, dim) + placed(first, dim, 0, extent - 1) + placed(last, dim, extent - 2, extent - 1)
    for_w = -within
    if edge_order == 2:
        for_s = for_s - placed(first, dim, 1, extent - 1) - placed(last, dim, extent - 3, extent - 1)
        for_w = for_w + placed(first, dim, 0, extent - 2) + placed(last, dim, extent - 3, extent - 2)
    return for_s, for_w


def along(x: Tensor, grad: Tensor, h: Tensor, dim: int, edge_order: int) -> tuple[Tensor, Tensor]:
    """Gradients along one dimension, for x and for the steps `h`, which have as many dimensions as x."""
    for_s, for_w = slopes_back(grad, dim, edge_order)
    left, right = ends(h, dim)
    wide = left + right
    begin, end = ends(x, dim)
    rise = end - begin
    lower, upper = ends(rise, dim)
    for_rise = for_s / h + both(for_w / wide, dim)
    for_h = -(for_s * rise / (h * h)) - both(for_w * (lower + upper) / (wide * wide), dim)
    return step_back(for_rise, dim), for_h.sum_to_size(h.size())


def chosen(dim: list[int] | None, rank: int) -> list[int]:
    """The dimensions meant, from 0; all without any."""
    if dim is None:
        return list(range(rank))
    return [each if each >= 0 else each + rank for each in dim]


def one(dim: int | None) -> list[int] | None:
    """A dimension as a list."""
    dims = [dim] if dim is not None else None
    return dims


def equal_steps(self: Tensor, grads: list[Tensor], spacing: list[float], dims: list[int], edge_order: int) -> Tensor:
    """Gradient for samples at equal distances, one for all dimensions or one each."""
    for_self = torch.zeros_like(self)
    for place in range(len(dims)):
        shape = [1 for size in self.size()]
        shape[dims[place]] = self.size(dims[place]) - 1
        step = spacing[0] if len(spacing) == 1 else spacing[place]
        steps = torch.full(shape, step, dtype=self.dtype, device=self.device)
        for_self = for_self + along(self, grads[place], steps, dims[place], edge_order)[0]
    return for_self


def coordinates_back(self: Tensor, grads: list[Tensor], spacing: list[Tensor], dims: list[int], edge_order: int) -> tuple[
        Tensor, list[Tensor]]:
    """Gradients for samples at coordinates, and for these; a coordinate tensor without dimensions is a distance."""
    total = torch.zeros_like(self)
    for_spacing: list[Tensor] = []
    for place in range(len(dims)):
        at = spacing[0] if len(spacing) == 1 else spacing[place]
        extent = self.size(dims[place])
        shape = [1 for size in self.size()]
        shape[dims[place]] = extent - 1
        if at.dim() == 0:
            steps = at.expand(shape)
        else:
            begin, end = ends(at, 0)
            steps = (end - begin).reshape(shape)
        for_self, for_steps = along(self, grads[place], steps, dims[place], edge_order)
        total = total + for_self
        flat = for_steps.reshape([-1])
        for_at = flat.sum() if at.dim() == 0 else step_back(flat, 0)
        for_spacing = [for_spacing[0] + for_at] if len(spacing) == 1 and place > 0 else for_spacing + [for_at]
    return total, for_spacing


@table.derivative("gradient.scalarint")
def gradient_by_step(grad, self, spacing, dim, edge_order):
    step = float(spacing) if spacing is not None else 1.0
    return equal_steps(self, grad, [step], chosen(one(dim), self.dim()), edge_order)


@table.derivative("gradient.scalararray")
def gradient_by_step_along(grad, self, spacing, dim, edge_order):
    return equal_steps(self, grad, [float(spacing)], chosen(dim, self.dim()), edge_order)


table.derivative("gradient.array", lambda grad, self, dim, edge_order: equal_steps(self, grad, [1.0], chosen(dim, self.dim()), edge_order))


@table.derivative("gradient.scalarrayint")
def gradient_by_steps(grad, self, spacing, dim, edge_order):
    steps = [float(step) for step in spacing]
    return equal_steps(self, grad, steps, chosen(one(dim), self.dim()), edge_order)


@table.derivative("gradient.scalarrayarray")
def gradient_by_steps_along(grad, self, spacing, dim, edge_order):
    steps = [float(step) for step in spacing]
    return equal_steps(self, grad, steps, chosen(dim, self.dim()), edge_order)


@table.derivative("gradient.tensorarrayint")
def gradient_by_coordinates(grad, self, spacing, dim, edge_order):
    return coordinates_back(self, grad, spacing, chosen(one(dim), self.dim()), edge_order)


table.derivative("gradient.tensorarray",
                 lambda grad, self, spacing, dim, edge_order: coordinates_back(self, grad, spacing, chosen(dim, self.dim()), edge_order))
