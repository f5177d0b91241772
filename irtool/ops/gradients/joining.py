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


@table.gradient("stack")
def stack_gradient(tensors: list[Tensor], dim: int):
    def backward(grad: Tensor):
        return list(torch.unbind(grad, dim)), None

    return torch.stack(tensors, dim), backward


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


@table.gradient("vstack row_stack")
def vstack_gradient(tensors: list[Tensor]):
    shapes = [tensor.size() for tensor in tensors]

    def backward(grad: Tensor):
        lengths: list[int] = []
        for shape in shapes:
            lengths.append(shape[0] if len(shape) > 1 else 1)
        parts = pieces(grad, lengths, 0)
        return [parts[place].reshape(shapes[place]) for place in range(len(shapes))]

    return torch.vstack(tensors), backward


@table.gradient("dstack")
def dstack_gradient(tensors: list[Tensor]):
    shapes = [tensor.size() for tensor in tensors]

    def backward(grad: Tensor):
        lengths: list[int] = []
        for shape in shapes:
            lengths.append(shape[2] if len(shape) > 2 else 1)
        parts = pieces(grad, lengths, 2)
        return [parts[place].reshape(shapes[place]) for place in range(len(shapes))]

    return torch.dstack(tensors), backward


@table.gradient("column_stack")
def column_stack_gradient(tensors: list[Tensor]):
    shapes = [tensor.size() for tensor in tensors]

    def backward(grad: Tensor):
        lengths: list[int] = []
        for shape in shapes:
            lengths.append(shape[1] if len(shape) > 1 else 1)
        parts = pieces(grad, lengths, 1)
        return [parts[place].reshape(shapes[place]) for place in range(len(shapes))]

    return torch.column_stack(tensors), backward


@table.gradient("block_diag")
def block_diag_gradient(tensors: list[Tensor]):
    shapes = [tensor.size() for tensor in tensors]

    def backward(grad: Tensor):
        row, column = 0, 0
        parts: list[Tensor] = []
        for shape in shapes:
            height, width = 1, 1
            if len(shape) == 1:
                width = shape[0]
            if len(shape) == 2:
                height, width = shape[0], shape[1]
            parts.append(grad.narrow(0, row, height).narrow(1, column, width).reshape(shape))
            row, column = row + height, column + width
        return parts

    return torch.block_diag(tensors), backward


@table.gradient("atleast_1d")
def atleast_1d_gradient(self: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size)

    return torch.atleast_1d(self), backward


@table.gradient("atleast_2d")
def atleast_2d_gradient(self: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size)

    return torch.atleast_2d(self), backward


@table.gradient("atleast_3d")
def atleast_3d_gradient(self: Tensor):
    size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(size)

    return torch.atleast_3d(self), backward


def reshaped(grads: list[Tensor], shapes: list[list[int]]) -> list[Tensor]:
    """Each gradient in its own shape."""
    return [grads[place].reshape(shapes[place]) for place in range(len(shapes))]


@table.gradient("atleast_1d.Sequence")
def atleast_1d_list_gradient(tensors: list[Tensor]):
    shapes = [tensor.size() for tensor in tensors]

    def backward(grad: list[Tensor]):
        return reshaped(grad, shapes)

    return torch.atleast_1d(tensors), backward


@table.gradient("atleast_2d.Sequence")
def atleast_2d_list_gradient(tensors: list[Tensor]):
    shapes = [tensor.size() for tensor in tensors]

    def backward(grad: list[Tensor]):
        return reshaped(grad, shapes)

    return torch.atleast_2d(tensors), backward


@table.gradient("atleast_3d.Sequence")
def atleast_3d_list_gradient(tensors: list[Tensor]):
    shapes = [tensor.size() for tensor in tensors]

    def backward(grad: list[Tensor]):
        return reshaped(grad, shapes)

    return torch.atleast_3d(tensors), backward


@table.gradient("broadcast_tensors")
def broadcast_tensors_gradient(tensors: list[Tensor]):
    shapes = [tensor.size() for tensor in tensors]

    def backward(grad: list[Tensor]):
        return [grad[place].sum_to_size(shapes[place]) for place in range(len(shapes))]

    return torch.broadcast_tensors(tensors), backward


# ---- splitting

@table.gradient("split.Tensor split_copy.Tensor unsafe_split.Tensor")
def split_gradient(self: Tensor, split_size: int, dim: int):
    def backward(grad: list[Tensor]):
        return torch.cat(grad, dim), None, None

    return torch.split(self, split_size, dim), backward


@table.gradient("split.sizes split split_with_sizes split_with_sizes_copy unsafe_split_with_sizes")
def split_sizes_gradient(self: Tensor, split_sizes: list[int], dim: int):
    def backward(grad: list[Tensor]):
        return torch.cat(grad, dim), None, None

    return torch.split_with_sizes(self, split_sizes, dim), backward


@table.gradient("chunk unsafe_chunk")
def chunk_gradient(self: Tensor, chunks: int, dim: int):
    def backward(grad: list[Tensor]):
        return torch.cat(grad, dim), None, None

    return torch.chunk(self, chunks, dim), backward


@table.gradient("unbind.int unbind_copy.int")
def unbind_gradient(self: Tensor, dim: int):
    size = self.size()

    def backward(grad: list[Tensor]):
        if len(grad) == 0:
            for_self = torch.zeros(size)
        else:
            for_self = torch.stack(grad, dim)
        return for_self, None

    return torch.unbind(self, dim), backward


def joined(parts: list[Tensor], size: list[int], dim: int) -> Tensor:
    """The parts together again, in the shape they came from."""
    return torch.cat(parts, dim).reshape(size)


@table.gradient("tensor_split.sections")
def tensor_split_gradient(self: Tensor, sections: int, dim: int):
    size = self.size()

    def backward(grad: list[Tensor]):
        return joined(grad, size, dim), None, None

    return torch.tensor_split(self, sections, dim), backward


@table.gradient("hsplit.int")
def hsplit_gradient(self: Tensor, sections: int):
    size = self.size()

    def backward(grad: list[Tensor]):
        return joined(grad, size, min(len(size) - 1, 1)), None

    return torch.hsplit(self, sections), backward


@table.gradient("hsplit.array")
def hsplit_at_gradient(self: Tensor, indices: list[int]):
    size = self.size()

    def backward(grad: list[Tensor]):
        return joined(grad, size, min(len(size) - 1, 1)), None

    return torch.hsplit(self, indices), backward


@table.gradient("vsplit.int")
def vsplit_gradient(self: Tensor, sections: int):
    size = self.size()

    def backward(grad: list[Tensor]):
        return joined(grad, size, 0), None

    return torch.vsplit(self, sections), backward


@table.gradient("vsplit.array")
def vsplit_at_gradient(self: Tensor, indices: list[int]):
    size = self.size()

    def backward(grad: list[Tensor]):
        return joined(grad, size, 0), None

    return torch.vsplit(self, indices), backward


@table.gradient("dsplit.int")
def dsplit_gradient(self: Tensor, sections: int):
    size = self.size()

    def backward(grad: list[Tensor]):
        return joined(grad, size, 2), None

    return torch.dsplit(self, sections), backward


@table.gradient("dsplit.array")
def dsplit_at_gradient(self: Tensor, indices: list[int]):
    size = self.size()

    def backward(grad: list[Tensor]):
        return joined(grad, size, 2), None

    return torch.dsplit(self, indices), backward


# ---- repeating, turning

@table.gradient("repeat")
def repeat_gradient(self: Tensor, repeats: list[int]):
    size = self.size()

    def backward(grad: Tensor):
        lead = len(repeats) - len(size)
        shape: list[int] = []
        dims: list[int] = []
        for place in range(len(repeats)):
            dims.append(len(shape))
            shape.append(repeats[place])
            shape.append(size[place - lead] if place >= lead else 1)
        for_self = grad
        if len(dims) > 0:
            for_self = grad.reshape(shape).sum(dims)
        return for_self.reshape(size), None

    return self.repeat(repeats), backward


@table.gradient("tile")
def tile_gradient(self: Tensor, dims: list[int]):
    size = self.size()

    def backward(grad: Tensor):
        rank = grad.dim()
        shape: list[int] = []
        places: list[int] = []
        for place in range(rank):
            length = 1
            if place >= rank - len(size):
                length = size[place - (rank - len(size))]
            places.append(len(shape))
            times = 1
            if place >= rank - len(dims):
                times = dims[place - (rank - len(dims))]
            shape.append(times)
            shape.append(length)
        for_self = grad
        if len(places) > 0:
            for_self = grad.reshape(shape).sum(places)
        return for_self.reshape(size), None

    return torch.tile(self, dims), backward


@table.gradient("repeat_interleave.self_int")
def repeat_interleave_gradient(self: Tensor, repeats: int, dim: int | None, output_size: int | None):
    size = self.size()

    def backward(grad: Tensor):
        flat = grad.reshape([-1, repeats]).sum(1) if dim is None else grad.reshape([-1])
        if dim is not None:
            at = dim if dim >= 0 else dim + len(size)
            shape = [length for length in size]
            shape.insert(at + 1, repeats)
            flat = grad.reshape(shape).sum(at + 1)
        return flat.reshape(size), None, None, None

    return torch.repeat_interleave(self, repeats, dim, output_size=output_size), backward


@table.gradient("repeat_interleave.self_Tensor")
def repeat_interleave_each_gradient(self: Tensor, repeats: Tensor, dim: int | None, output_size: int | None):
    size = self.size()

    def backward(grad: Tensor):
        at = 0
        shape = size
        if dim is None:
            shape = [self.numel()]
        else:
            at = dim
        times = repeats.expand([shape[at]])
        places = torch.repeat_interleave(times)
        return grad.new_zeros(shape).index_add(at, places, grad).reshape(size), None, None, None

    return torch.repeat_interleave(self, repeats, dim, output_size=output_size), backward


@table.gradient("flip")
def flip_gradient(self: Tensor, dims: list[int]):
    def backward(grad: Tensor):
        return grad.flip(dims), None

    return self.flip(dims), backward


@table.gradient("fliplr")
def fliplr_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad.fliplr()

    return self.fliplr(), backward


@table.gradient("flipud")
def flipud_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad.flipud()

    return self.flipud(), backward


@table.gradient("roll")
def roll_gradient(self: Tensor, shifts: list[int], dims: list[int]):
    def backward(grad: Tensor):
        return grad.roll([-shift for shift in shifts], dims), None, None

    return self.roll(shifts, dims), backward


@table.gradient("rot90")
def rot90_gradient(self: Tensor, k: int, dims: list[int]):
    def backward(grad: Tensor):
        return grad.rot90(-k, dims), None, None

    return self.rot90(k, dims), backward


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


@table.gradient("_reshape_copy")
def reshape_copy_gradient(self: Tensor, size: list[int]):
    own_size = self.size()

    def backward(grad: Tensor):
        return grad.reshape(own_size), None

    return self.reshape(size), backward


@table.gradient("unfold_backward")
def unfold_backward_gradient(grad_in: Tensor, input_sizes: list[int], dim: int, size: int, step: int):
    def backward(grad: Tensor):
        return grad.unfold(dim, size, step), None, None, None, None

    return torch.unfold_backward(grad_in, input_sizes, dim, size, step), backward


table.no_gradient("shapes and places", "broadcast_shapes repeat_interleave.Tensor")


@table.gradient("tensor_split.indices")
def tensor_split_at_gradient(self: Tensor, indices: list[int], dim: int):
    size = self.size()

    def backward(grad: list[Tensor]):
        whole = size[dim]
        for_self = grad[0].new_zeros(size)
        for place in range(len(grad)):      # parts may overlap, when the indices go down
            begin = 0
            if place > 0:
                begin = indices[place - 1]
            if begin < 0:
                begin = max(begin + whole, 0)
            length = grad[place].size(dim)
            if length > 0:
                for_self = for_self + torch.slice_backward(grad[place], size, dim, begin, begin + length, 1)
        return for_self, None, None

    return torch.tensor_split(self, indices, dim), backward
