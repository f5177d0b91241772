"""Gradients of putting tensors of different sizes into one: padded, packed, flattened, cut into chunks."""
from __future__ import annotations

from irtool.ops.kernels import joining, recurrent
from irtool.ops.tensor import Tensor, number, torch

table = joining.table


@table.gradient("pad_sequence")
def pad_sequence_gradient(sequences: list[Tensor], batch_first: bool, padding_value: float, padding_side: str):
    lengths = [sequence.size(0) for sequence in sequences]

    def backward(grad: Tensor):
        rows = grad if batch_first else grad.transpose(0, 1)
        longest = rows.size(1)
        for_sequences: list[Tensor] = []
        for place in range(len(lengths)):
            for_sequences.append(rows.select(0, place).narrow(0, longest - lengths[place] if padding_side == "left" else 0, lengths[place]))
        return for_sequences, None, None, None

    return torch.pad_sequence(sequences, batch_first, padding_value, padding_side), backward


@table.gradient("flatten_dense_tensors")
def flatten_dense_tensors_gradient(tensors: list[Tensor]):
    shapes = [tensor.size() for tensor in tensors]
    counts = [tensor.numel() for tensor in tensors]

    def backward(grad: Tensor):
        parts = torch.split_with_sizes(grad, counts, 0)
        return [parts[place].reshape(shapes[place]) for place in range(len(shapes))]

    return torch.flatten_dense_tensors(tensors), backward


@table.derivative("unflatten_dense_tensors")
def unflatten_dense_tensors_gradient(grad, flat_size):
    used = torch.flatten_dense_tensors(grad)
    return torch.constant_pad_nd(used, [0, flat_size[0] - used.size(0)]), None


@table.derivative("_chunk_cat")
def chunk_cat_gradient(grad, dim, num_chunks, tensors_size):
    at = dim if dim >= 0 else dim + len(tensors_size[0])
    for_tensors: list[Tensor] = []
    start = 0
    for shape in tensors_size:
        padded = [size for size in shape]
        padded[at] = (shape[at] + num_chunks - 1) // num_chunks * num_chunks
        width = padded[at] // num_chunks
        for size in shape[at + 1:]:
            width = width * size
        for_tensors.append(grad.narrow(at + 1, start, width).reshape(padded).narrow(at, 0, shape[at]))
        start = start + width
    return for_tensors


@table.gradient("combinations")
def combinations_gradient(self: Tensor, r: int, with_replacement: bool):
    count = self.size(0)

    def backward(grad: Tensor):
        places = torch.combinations(torch.arange(count, device=grad.device), r, with_replacement).reshape([-1])
        return grad.new_zeros([count]).index_add(0, places, grad.reshape([-1])), None, None

    return torch.combinations(self, r, with_replacement), backward


@table.derivative("tensor_split.tensor_indices_or_sections")
def tensor_split_by_gradient(grad, self, tensor_indices_or_sections, dim, self_size):
    # places may run backwards or overlap: each part goes where it came from
    places = torch.arange(self_size[dim], device=self.device)
    parts = torch.tensor_split(places, tensor_indices_or_sections, 0)
    return self.new_zeros(self_size).index_add(dim, torch.cat(parts), torch.cat(grad, dim)), None


# ---- packed sequences: rows of all sequences, time by time

@recurrent.table.gradient("_pack_padded_sequence")
def pack_padded_sequence_gradient(input: Tensor, lengths: Tensor, batch_first: bool):
    size = input.size()
    data, batch_sizes = torch._pack_padded_sequence(input, lengths, batch_first)

    def backward(grad: Tensor):
        places = torch._pack_padded_sequence(torch.arange(size[0] * size[1]).reshape([size[0], size[1]]), lengths, batch_first)[0]
        return grad.new_zeros([size[0] * size[1]] + size[2:]).index_add(0, places, grad).reshape(size), None, None

    return data, batch_sizes, backward


@recurrent.table.gradient("_pad_packed_sequence")
def pad_packed_sequence_gradient(data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: number, total_length: int):
    size = data.size()
    padded, lengths = torch._pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total_length)

    def backward(grad: Tensor):
        places = torch._pad_packed_sequence(torch.arange(size[0]), batch_sizes, batch_first, -1, total_length)[0].reshape([-1])
        taken = torch.nonzero(places >= 0).reshape([-1])
        rows = grad.flatten(0, 1).index_select(0, taken)
        return grad.new_zeros(size).index_add(0, places.index_select(0, taken), rows), None, None, None, None

    return padded, lengths, backward
