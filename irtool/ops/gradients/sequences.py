"""Gradients of putting tensors of different sizes into one: padded, packed, flattened, cut into chunks."""
from __future__ import annotations

from irtool.ops.kernels import joining, recurrent
from irtool.ops.tensor import Tensor, torch

table = joining.table


@table.derivative("pad_sequence")
def pad_sequence_gradient(grad, batch_first, padding_side, sequences_size):
    rows = grad if batch_first else grad.transpose(0, 1)
    longest = rows.size(1)
    for_sequences: list[Tensor] = []
    for place, size in enumerate(sequences_size):
        part = rows.select(0, place).narrow(0, longest - size[0] if padding_side == "left" else 0, size[0])
        for_sequences.append(part.sum_to_size(size))
    return for_sequences


@table.derivative("flatten_dense_tensors")
def flatten_dense_tensors_gradient(grad, tensors_size, tensors_numel):
    parts = torch.split_with_sizes(grad, tensors_numel, 0)
    return [parts[place].reshape(tensors_size[place]) for place in range(len(tensors_size))]


@table.derivative("unflatten_dense_tensors")
def unflatten_dense_tensors_gradient(grad, flat_size, flat_numel):
    used = torch.flatten_dense_tensors(grad)
    return torch.constant_pad_nd(used, [0, flat_numel - used.size(0)]).reshape(flat_size), None


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


@table.derivative("combinations")
def combinations_gradient(grad, r, with_replacement, self_size):
    places = torch.combinations(torch.arange(self_size[0], device=grad.device), r, with_replacement).reshape([-1])
    return grad.new_zeros(self_size).index_add(0, places, grad.reshape([-1]))


@table.derivative("tensor_split.tensor_indices_or_sections")
def tensor_split_by_gradient(grad, self, tensor_indices_or_sections, dim, self_size):
    # positions may decrease or overlap: each part is added where it came from
    places = torch.arange(self_size[dim], device=self.device)
    parts = torch.tensor_split(places, tensor_indices_or_sections, 0)
    return self.new_zeros(self_size).index_add(dim, torch.cat(parts), torch.cat(grad, dim)), None


# ---- packed sequences: rows of all sequences, time by time

@recurrent.table.derivative("_pack_padded_sequence")
def pack_padded_sequence_gradient(grad, lengths, batch_first, input_size):
    size = [input_size[0] * input_size[1]] + input_size[2:]
    places = torch._pack_padded_sequence(torch.arange(size[0]).reshape(input_size[:2]), lengths, batch_first)[0]
    return grad.new_zeros(size).index_add(0, places, grad).reshape(input_size), None


@recurrent.table.derivative("_pad_packed_sequence")
def pad_packed_sequence_gradient(grad, batch_sizes, batch_first, total_length, data_size):
    places = torch._pad_packed_sequence(torch.arange(data_size[0]), batch_sizes, batch_first, -1, total_length)[0].reshape([-1])
    taken = torch.nonzero(places >= 0).reshape([-1])
    rows = grad.flatten(0, 1).index_select(0, taken)
    return grad.new_zeros(data_size).index_add(0, places.index_select(0, taken), rows), None
