"""Gradients of joining, splitting and repeating. Parts that take no part in a gradient count as zeros."""
from __future__ import annotations

from irtool.ops.kernels.joining import table
from irtool.ops.tensor import Tensor, torch


def pieces(grad: Tensor, sizes: list[int], dim: int) -> list[Tensor]:
    """The parts of a joined gradient."""
    return list(torch.split_with_sizes(grad, sizes, dim))


@table.gradient("cat concat concatenate")
def cat_gradient(tensors: list[Tensor], dim: int):
    shapes = [tensor.size() for tensor in tensors]
    result = torch.cat(tensors, dim)
    rank = result.dim()

    def backward(grad: Tensor):
        lengths: list[int] = []
        for shape in shapes:
            lengths.append(shape[dim] if len(shape) == rank else 0)
        parts = pieces(grad, lengths, dim)
        return [parts[place].reshape(shapes[place]) for place in range(len(shapes))], None

    return result, backward


table.derivative("stack", lambda grad, dim: list(torch.unbind(grad, dim)))


@table.gradient("hstack")
def hstack_gradient(tensors: list[Tensor]):
    shapes = [tensor.size() for tensor in tensors]
    flat = tensors[0].dim() < 2

    def backward(grad: Tensor):
        dim = 1
        if flat:
            dim = 0
        lengths: list[int] = []
        for shape in shapes:
            lengths.append(shape[dim] if len(shape) > 0 else 1)
        parts = pieces(grad, lengths, dim)
        return [parts[place].reshape(shapes[place]) for place in range(len(shapes))]

    return torch.hstack(tensors), backward


@table.derivative("vstack row_stack")
def vstack_gradient(grad, tensors_size):
    lengths: list[int] = []
    for shape in tensors_size:
        lengths.append(shape[0] if len(shape) > 1 else 1)
    parts = pieces(grad, lengths, 0)
    return [parts[place].reshape(tensors_size[place]) for place in range(len(tensors_size))]


@table.derivative("dstack")
def dstack_gradient(grad, tensors_size):
    lengths: list[int] = []
    for shape in tensors_size:
        lengths.append(shape[2] if len(shape) > 2 else 1)
    parts = pieces(grad, lengths, 2)
    return [parts[place].reshape(tensors_size[place]) for place in range(len(tensors_size))]


@table.derivative("column_stack")
def column_stack_gradient(grad, tensors_size):
    lengths: list[int] = []
    for shape in tensors_size:
        lengths.append(shape[1] if len(shape) > 1 else 1)
    parts = pieces(grad, lengths, 1)
    return [parts[place].reshape(tensors_size[place]) for place in range(len(tensors_size))]


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


def reshaped(grads: list[Tensor], shapes: list[list[int]]) -> list[Tensor]:
    """Each gradient in its own shape."""
    return [grads[place].reshape(shapes[place]) for place in range(len(shapes))]


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


@table.derivative("unbind.int unbind_copy.int")
def unbind_gradient(grad, dim, self_size):
    if len(grad) == 0:
        for_self = torch.zeros(self_size)
    else:
        for_self = torch.stack(grad, dim)
    return for_self


def joined(parts: list[Tensor], size: list[int], dim: int) -> Tensor:
    """The parts together again, in the shape they came from."""
    return torch.cat(parts, dim).reshape(size)


table.derivative("tensor_split.sections", lambda grad, dim, self_size: joined(grad, self_size, dim))
table.derivative("hsplit.int hsplit.array", lambda grad, self_size: joined(grad, self_size, min(len(self_size) - 1, 1)))
table.derivative("vsplit.int vsplit.array", lambda grad, self_size: joined(grad, self_size, 0))
table.derivative("dsplit.int dsplit.array", lambda grad, self_size: joined(grad, self_size, 2))


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
    for_self = grad
    if len(dims) > 0:
        for_self = grad.reshape(shape).sum(dims)
    return for_self.reshape(self_size)


@table.derivative("tile")
def tile_gradient(grad, dims, self_size):
    rank = grad.dim()
    shape: list[int] = []
    places: list[int] = []
    for place in range(rank):
        length = 1
        if place >= rank - len(self_size):
            length = self_size[place - (rank - len(self_size))]
        places.append(len(shape))
        times = 1
        if place >= rank - len(dims):
            times = dims[place - (rank - len(dims))]
        shape.append(times)
        shape.append(length)
    for_self = grad
    if len(places) > 0:
        for_self = grad.reshape(shape).sum(places)
    return for_self.reshape(self_size)


@table.derivative("repeat_interleave.self_int")
def repeat_interleave_gradient(grad, repeats, dim, self_size):
    flat = grad.reshape([-1, repeats]).sum(1) if dim is None else grad.reshape([-1])
    if dim is not None:
        at = dim if dim >= 0 else dim + len(self_size)
        shape = [length for length in self_size]
        shape.insert(at + 1, repeats)
        flat = grad.reshape(shape).sum(at + 1)
    return flat.reshape(self_size)


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


@table.gradient("meshgrid")
def meshgrid_gradient(tensors: list[Tensor]):
    shapes = [tensor.size() for tensor in tensors]
    count = len(tensors)

    def backward(grad: list[Tensor]):
        for_tensors: list[Tensor] = []
        for place in range(count):
            kept_only = [1 for other in shapes]
            kept_only[place] = -1
            sizes = grad[place].size()
            kept_only[place] = sizes[place]
            for_tensors.append(grad[place].sum_to_size(kept_only).reshape(shapes[place]))
        return for_tensors

    return torch.meshgrid(tensors), backward


@table.gradient("meshgrid.indexing")
def meshgrid_indexing_gradient(tensors: list[Tensor], indexing: str):
    shapes = [tensor.size() for tensor in tensors]
    count = len(tensors)

    def backward(grad: list[Tensor]):
        for_tensors: list[Tensor] = []
        for place in range(count):
            at = place
            if indexing == "xy" and count > 1 and place < 2:
                at = 1 - place
            kept_only = [1 for other in shapes]
            kept_only[at] = grad[place].size(at)
            for_tensors.append(grad[place].sum_to_size(kept_only).reshape(shapes[place]))
        return for_tensors, None

    return torch.meshgrid(tensors, indexing=indexing), backward


@table.gradient("cartesian_prod")
def cartesian_prod_gradient(tensors: list[Tensor]):
    lengths = [tensor.size(0) for tensor in tensors]

    def backward(grad: Tensor):
        for_tensors: list[Tensor] = []
        for place in range(len(lengths)):
            kept_only = [1 for length in lengths]
            kept_only[place] = lengths[place]
            column = grad if len(lengths) == 1 else grad.select(1, place)
            for_tensors.append(column.reshape(lengths).sum_to_size(kept_only).reshape([lengths[place]]))
        return for_tensors

    return torch.cartesian_prod(tensors), backward


table.derivative("unfold_backward", lambda grad, dim, size, step: grad.unfold(dim, size, step))


table.no_gradient("shapes and places", "broadcast_shapes repeat_interleave.Tensor")


@table.derivative("tensor_split.indices")
def tensor_split_at_gradient(grad, indices, dim, self_size):
    whole = self_size[dim]
    for_self = grad[0].new_zeros(self_size)
    for place in range(len(grad)):      # parts may overlap, when the indices go down
        begin = 0
        if place > 0:
            begin = indices[place - 1]
        if begin < 0:
            begin = max(begin + whole, 0)
        length = grad[place].size(dim)
        if length > 0:
            for_self = for_self + torch.slice_backward(grad[place], self_size, dim, begin, begin + length, 1)
    return for_self
