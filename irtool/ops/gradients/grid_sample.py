"""Gradients of sampling at places of a grid, and of affine grids.

Along each axis a place takes part in one, two or four elements (`taps`: nearest, linear, cubic), with weights that depend on the place.
"""
from __future__ import annotations

from irtool.ops.kernels.grid_sample import table
from irtool.ops.tensor import Tensor, torch


def within(place: Tensor, size: int, padding_mode: int, align_corners: bool) -> Tensor:
    """Places outside brought back: 1 to the border, 2 mirrored."""
    if padding_mode == 0:
        return place
    if padding_mode == 2:
        least = 0.0 if align_corners else -0.5
        span = float(size - 1) if align_corners else float(size)
        if span == 0:
            return place * 0
        far = (place - least).abs()
        turns = (far / span).floor()
        rest = far - turns * span
        place = torch.where(turns.remainder(2) == 0, rest + least, span - rest + least)
    # at the border itself the place does not move any more
    inside = (place > 0) & (place < size - 1)
    return torch.where(inside, place, place.detach().clamp(0, size - 1))


def cubic(distance: Tensor, near: bool) -> Tensor:
    """Weight of cubic interpolation (A = -0.75) for an element less than 1 away, or between 1 and 2."""
    if near:
        return ((distance * 1.25) - 2.25) * distance * distance + 1
    return ((distance * -0.75 + 3.75) * distance - 6) * distance + 3


def taps(place: Tensor, size: int, mode: int, padding_mode: int, align_corners: bool) -> tuple[list[Tensor], list[Tensor]]:
    """Positions of the elements that take part along one axis (as numbers, which may be outside), and their weights."""
    if mode == 2:
        first = place.detach().floor()
        part = place - first
        places = [within(first + offset, size, padding_mode, align_corners).detach() for offset in range(-1, 3)]
        return places, [cubic(part + 1, False), cubic(part, True), cubic(1 - part, True), cubic(2 - part, False)]
    place = within(place, size, padding_mode, align_corners)
    if mode == 1:
        nearest = place.detach().round()
        return [nearest], [torch.ones_like(nearest)]
    first = place.detach().floor()
    part = place - first
    return [first, first + 1], [1 - part, part]


def slopes(part: Tensor, mode: int) -> list[Tensor]:
    """Derivatives of the weights by the place."""
    one = torch.ones_like(part)
    if mode == 2:
        a, b, c, d = part + 1, part, 1 - part, 2 - part
        return [(a * -2.25 + 7.5) * a - 6, (b * 3.75 - 4.5) * b, -((c * 3.75 - 4.5) * c), -((d * -2.25 + 7.5) * d - 6)]
    if mode == 1:
        return [one * 0]
    return [-one, one]


def turning(place: Tensor, size: int, padding_mode: int, align_corners: bool) -> Tensor:
    """Derivative of `within`."""
    one = torch.ones_like(place)
    if padding_mode == 0:
        return one
    if padding_mode == 2:
        least = 0.0 if align_corners else -0.5
        span = float(size - 1) if align_corners else float(size)
        if span == 0:
            return one * 0
        turns = ((place - least).abs() / span).floor()
        one = torch.where(turns.remainder(2) == 0, one, -one) * torch.where(place < least, -one, one)
    back = within(place, size, padding_mode, align_corners)
    return one * ((back > 0) & (back < size - 1))


def grid_sampler_back(grad: Tensor, input: Tensor, grid: Tensor, mode: int, padding_mode: int,
                      align_corners: bool) -> tuple[Tensor, Tensor]:
    """Gradients for the input and the grid, in two or three dimensions."""
    rank = input.dim() - 2
    count, channels = input.size(0), input.size(1)
    flat = input.flatten(2)
    grads = grad.flatten(2)
    each = 4 if mode == 2 else 2 - mode
    places: list[Tensor] = []
    weights: list[Tensor] = []
    steps: list[Tensor] = []
    for axis in range(rank):
        size = input.size(2 + axis)
        scale = (size - 1) / 2 if align_corners else size / 2
        place = grid.select(-1, rank - 1 - axis).flatten(1) * scale + (size - 1) / 2
        own_places, own_weights = taps(place, size, mode, padding_mode, align_corners)
        places += own_places
        weights += own_weights
        if mode == 2:
            steps += [slope * scale for slope in slopes(place - place.detach().floor(), mode)]
        else:
            inner = within(place, size, padding_mode, align_corners)
            factor = turning(place, size, padding_mode, align_corners) * scale
            steps += [slope * factor for slope in slopes(inner - inner.detach().floor(), mode)]
    for_flat = torch.zeros_like(flat)
    for_axes = [torch.zeros_like(weights[0]) for axis in range(rank)]
    combinations = 1
    for _ in range(rank):
        combinations *= each
    for combination in range(combinations):
        rest = combination
        chosen: list[int] = []
        for axis in range(rank):
            chosen.append(axis * each + rest % each)
            rest = rest // each
        inside = torch.ones_like(places[0], dtype=torch.bool)
        index = torch.zeros_like(places[0], dtype=torch.int64)
        for axis in range(rank):
            size = input.size(2 + axis)
            at = places[chosen[axis]]
            is_within = (at >= 0) & (at <= size - 1)        # not if nan
            inside = inside & is_within
            index = index * size + at.masked_fill(~is_within, 0).to(torch.int64)
        index = index.unsqueeze(1).expand([count, channels, index.size(1)])
        shown = grads * inside.unsqueeze(1)
        along = (flat.gather(2, index) * shown).sum([1])
        weight = torch.ones_like(along)
        for axis in range(rank):
            weight = weight * weights[chosen[axis]]
            slope = steps[chosen[axis]]
            for other in range(rank):
                if other != axis:
                    slope = slope * weights[chosen[other]]
            if rank == 3 or mode == 2:      # elsewhere torch multiplies nan by the 0 outside, too
                slope = slope.masked_fill(~inside, 0)
            for_axes[axis] = for_axes[axis] + along * slope
        weight = weight.masked_fill(~inside, 0)
        for_flat = for_flat.scatter_add(2, index, shown * weight.unsqueeze(1))
    for_axes.reverse()
    return for_flat.reshape(input.size()), torch.stack(for_axes, -1).reshape(grid.size())


@table.derivative("grid_sampler grid_sampler_2d grid_sampler_3d _grid_sampler_2d_cpu_fallback")
def grid_sampler_gradient(grad, input, grid, interpolation_mode, padding_mode, align_corners):
    return grid_sampler_back(grad, input, grid, interpolation_mode, padding_mode, align_corners)


table.derivative("affine_grid_generator", lambda grad, size, align_corners: torch.affine_grid_generator_backward(grad, size, align_corners))
table.derivative("affine_grid_generator_backward",
                 lambda along, size, align_corners: torch.affine_grid_generator(along, size, align_corners))
