"""Gradients of joining, splitting and repeating. Parts that take no part in a gradient count as zeros."""
from __future__ import annotations

from irtool.ops.kernels.joining import table
from irtool.ops.tensor import Tensor, torch


def pieces(grad: Tensor, sizes: list[int], dim: int) -> list[Tensor]:
    """The parts of a joined gradient."""
    return list(torch.split_with_sizes(grad, sizes, dim))


def reshaped(grads: list[Tensor], shapes: list[list[int]]) -> list[Tensor]:
    """Each gradient in its own shape."""
    return [grads[place].reshape(shapes[place]) for place in range(len(shapes))]


@table.derivative("cat concat concatenate")
def cat_gradient(grad, dim, tensors_size):
    if (dim > 0 or dim < -1) and grad.dim() == 1:       # those of shape [0] are joined along any dimension
        parts = [grad for _ in tensors_size]
    else:
        parts = pieces(grad, [size[dim] if len(size) == grad.dim() else 0 for size in tensors_size], dim)
    return reshaped(parts, tensors_size)


table.derivative("stack", lambda grad, dim: list(torch.unbind(grad, dim)))


@table.derivative("hstack")
def hstack_gradient(grad, tensors_size):
    dim = 0 if len(tensors_size[0]) < 2 else 1
    rows = [size[dim] if len(size) == grad.dim() else 1 - len(size) for size in tensors_size]      # 0 of [0], as for cat
    return reshaped(pieces(grad, rows, dim), tensors_size)


@table.derivative("vstack row_stack")
def vstack_gradient(grad, tensors_size):
    return reshaped(pieces(grad, [size[0] if len(size) > 1 else 1 for size in tensors_size], 0), tensors_size)


@table.derivative("dstack")
def dstack_gradient(grad, tensors_size):
    return reshaped(pieces(grad, [size[2] if len(size) > 2 else 1 for size in tensors_size], 2), tensors_size)


@table.derivative("column_stack")
def column_stack_gradient(grad, tensors_size):
    return reshaped(pieces(grad, [size[1] if len(size) > 1 else 1 for size in tensors_size], 1), tensors_size)


@table.derivative("block_diag")
def block_diag_gradient(grad, tensors_size):
    row, column = 0, 0
    parts: list[Tensor] = []
    for shape in tensors_size:
        height, width = 1, 1
        if len(shape) == 1:
            width = shape[0]
        if len(shape) == 2:
            height, width = shape[0], shape[1]
        parts.append(grad.narrow(0, row, height).narrow(1, column, width).reshape(shape))
        row, column = row + height, column + width
    return parts


table.derivative("atleast_1d atleast_2d atleast_3d _reshape_copy", lambda grad, self_size: grad.reshape(self_size))
table.derivative("atleast_1d.Sequence atleast_2d.Sequence atleast_3d.Sequence", lambda grad, tensors_size: reshaped(grad, tensors_size))
table.derivative("broadcast_tensors",
                 lambda grad, tensors_size: [grad[place].sum_to_size(tensors_size[place]) for place in range(len(tensors_size))])


# ---- splitting

table.derivative("split.Tensor split_copy.Tensor unsafe_split.Tensor chunk unsafe_chunk", lambda grad, dim: torch.cat(grad, dim))


@table.gradient("split.sizes split split_with_sizes split_with_sizes_copy unsafe_split_with_sizes")
def split_sizes_gradient(self: Tensor, split_sizes: list[int], dim: int):
    def backward(grad: list[Tensor]):
        return torch.cat(grad, dim), None, None

    return torch.split_with_sizes(self, split_sizes, dim), backward


table.derivative("unbind.int unbind_copy.int",
                 lambda grad, dim, self_size: torch.zeros(self_size) if len(grad) == 0 else torch.stack(grad, dim))


def joined(parts: list[Tensor], size: list[int], dim: int) -> Tensor:
    """The parts together again, in the shape they came from."""
    return torch.cat(parts, dim).reshape(size)


table.derivative("tensor_split.sections", lambda grad, dim, self_size: joined(grad, self_size, dim))
table.derivative("hsplit.int", lambda grad, self_size: joined(grad, self_size, min(len(self_size) - 1, 1)))
table.derivative("vsplit.int", lambda grad, self_size: joined(grad, self_size, 0))
table.derivative("dsplit.int", lambda grad, self_size: joined(grad, self_size, 2))


def joined_at(parts: list[Tensor], indices: list[int], size: list[int], dim: int) -> Tensor:
    """The sum of parts at the positions with these begins; parts overlap where the begins decrease."""
    whole = size[dim]
    result = parts[0].new_zeros(size)
    for place in range(len(parts)):
        begin = indices[place - 1] if place > 0 else 0
        if begin < 0:
            begin = max(begin + whole, 0)
        length = parts[place].size(dim)
        if length > 0:
            result = result + torch.slice_backward(parts[place], size, dim, begin, begin + length, 1)
    return result


table.derivative("tensor_split.indices", lambda grad, indices, dim, self_size: joined_at(grad, indices, self_size, dim))
table.derivative("hsplit.array", lambda grad, indices, self_size: joined_at(grad, indices, self_size, min(len(self_size) - 1, 1)))
table.derivative("vsplit.array", lambda grad, indices, self_size: joined_at(grad, indices, self_size, 0))
table.derivative("dsplit.array", lambda grad, indices, self_size: joined_at(grad, indices, self_size, 2))


# ---- repeating, turning

@table.derivative("repeat")
def repeat_gradient(grad, repeats, self_size):
    lead = len(repeats) - len(self_size)
    shape: list[int] = []
    dims: list[int] = []
    for place in range(len(repeats)):
        dims.append(len(shape))
        shape.append(repeats[place])
        shape.append(self_size[place - lead] if place >= lead else 1)
    for_self = grad.reshape(shape).sum(dims) if len(dims) > 0 else grad
    return for_self.reshape(self_size)


@table.derivative("tile")
def tile_gradient(grad, dims, self_size):
    rank = grad.dim()
    shape: list[int] = []
    places: list[int] = []
    for place in range(rank):
        length = self_size[place - (rank - len(self_size))] if place >= rank - len(self_size) else 1
        places.append(len(shape))
        times = dims[place - (rank - len(dims))] if place >= rank - len(dims) else 1
        shape.append(times)
        shape.append(length)
    for_self = grad.reshape(shape).sum(places) if len(places) > 0 else grad
    return for_self.reshape(self_size)


@table.derivative("repeat_interleave.self_int")
def repeat_interleave_gradient(grad, repeats, dim, self_size):
    after = len(self_size)      # where the repeats are
    if dim is not None:
        after = dim + 1 if dim >= 0 else dim + len(self_size) + 1
    shape = [length for length in self_size]
    shape.insert(after, repeats)
    return grad.reshape(shape).sum(after).reshape(self_size)


@table.derivative("repeat_interleave.self_Tensor")
def repeat_interleave_each_gradient(grad, self, repeats, dim, self_size):
    at = 0
    shape = self_size
    if dim is None:
        shape = [self.numel()]
    else:
        at = dim
    times = repeats.expand([shape[at]])
    places = torch.repeat_interleave(times)
    return grad.new_zeros(shape).index_add(at, places, grad).reshape(self_size), None


table.derivative("flip", lambda grad, dims: grad.flip(dims))
table.derivative("fliplr", lambda grad: grad.fliplr())
table.derivative("flipud", lambda grad: grad.flipud())
table.derivative("roll", lambda grad, shifts, dims: grad.roll([-shift for shift in shifts], dims))
table.derivative("rot90", lambda grad, k, dims: grad.rot90(-k, dims))


def meshed_back(grad: Tensor, dim: int, size: list[int]) -> Tensor:
    """The gradient, summed over the repeats of all dimensions but `dim`."""
    shape = [1 for _ in range(grad.dim())]
    shape[dim] = grad.size(dim)
    return grad.sum_to_size(shape).reshape(size)


table.derivative("meshgrid", lambda grad, tensors_size: [meshed_back(grad[place], place, size) for place, size in enumerate(tensors_size)])


@table.derivative("meshgrid.indexing")
def meshgrid_indexing_gradient(grad, indexing, tensors_size):
    swaps = indexing == "xy" and len(tensors_size) > 1
    return [meshed_back(grad[place], 1 - place if swaps and place < 2 else place, size) for place, size in enumerate(tensors_size)]


@table.derivative("cartesian_prod")
def cartesian_prod_gradient(grad, tensors_size):
    lengths = [size[0] for size in tensors_size]
    for_tensors: list[Tensor] = []
    for place in range(len(lengths)):
        column = grad if len(lengths) == 1 else grad.select(1, place)
        for_tensors.append(meshed_back(column.reshape(lengths), place, tensors_size[place]))
    return for_tensors


table.derivative("unfold_backward", lambda grad, dim, size, step: grad.unfold(dim, size, step))


table.no_gradient("shapes and places", "broadcast_shapes repeat_interleave.Tensor")
