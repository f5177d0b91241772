"""Gradients of rows of a table by index, and of bags of them. They are dense, even if torch's would be sparse."""
from __future__ import annotations

from irtool.ops.kernels.embedding import table
from irtool.ops.tensor import Tensor, torch


@table.derivative("embedding")
def embedding_gradient(grad, indices, padding_idx, scale_grad_by_freq, weight_size):
    return torch.embedding_backward(grad, indices, weight_size[0], padding_idx, scale_grad_by_freq, False), None


def rows_back(grad: Tensor, indices: Tensor, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    """Gradient of embedding_backward: the rows, none for padding, divided by how often an index occurs."""
    for_rows = grad.index_select(0, indices.reshape([-1]))
    if scale_grad_by_freq:
        counts = indices.reshape([-1]).bincount(None, rows)
        for_rows = for_rows / counts.index_select(0, indices.reshape([-1])).unsqueeze(1)
    for_rows = for_rows.masked_fill((indices.reshape([-1]) == padding_idx).unsqueeze(1), 0)
    return for_rows.reshape(indices.size() + [grad.size(1)])


@table.derivative("embedding_dense_backward")
def embedding_dense_backward_gradient(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    return rows_back(grad, indices, num_weights, padding_idx, scale_grad_by_freq), None


@table.derivative("embedding_backward")
def embedding_backward_gradient(along, indices, num_weights, padding_idx, scale_grad_by_freq):
    return rows_back(along, indices, num_weights, padding_idx, scale_grad_by_freq), None


def bag_backward(grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, sizes: Tensor, largest: Tensor,
                 scale_grad_by_freq: bool, mode: int, per_sample_weights: Tensor | None, padding_idx: int) -> tuple[Tensor, Tensor | None]:
    """Gradients of embedding_bag for the table and the weights of samples. Modes: 0 sum, 1 mean, 2 maximum."""
    empty = torch.zeros_like(weight)
    for_samples: Tensor | None = None
    if mode == 2:
        return empty.scatter_add(0, largest, grad.masked_fill((sizes == 0).unsqueeze(1), 0)), for_samples
    bags = torch.searchsorted(offsets, torch.arange(indices.size(0), dtype=offsets.dtype), right=True) - 1
    counted = (indices != padding_idx).to(grad.dtype)
    if mode == 1:
        counts = torch.zeros([grad.size(0)], dtype=grad.dtype).index_add(0, bags, counted)
        grad = grad / counts.clamp_min(1).unsqueeze(1)
    each = grad.index_select(0, bags) * counted.unsqueeze(1)
    if per_sample_weights is not None:
        for_samples = (each * weight.index_select(0, indices)).sum([1])
        each = each * per_sample_weights.unsqueeze(1)
    if scale_grad_by_freq:
        each = each / indices.bincount(None, weight.size(0)).index_select(0, indices).unsqueeze(1)
    return empty.index_add(0, indices, each), for_samples


@table.derivative("embedding_bag.padding_idx")
def embedding_bag_padding_gradient(grad, weight, indices, offsets, scale_grad_by_freq, mode, per_sample_weights, padding_idx, result2,
                                   result3):
    padding = -1
    if padding_idx is not None:
        padding = padding_idx if padding_idx >= 0 else padding_idx + weight.size(0)
    for_weight, for_samples = bag_backward(grad, weight, indices, offsets, result2, result3, scale_grad_by_freq, mode,
                                           per_sample_weights, padding)
    return for_weight, None, None, for_samples


@table.derivative("aten::embedding_bag")
def embedding_bag_gradient(grad, weight, indices, offsets, scale_grad_by_freq, mode, per_sample_weights, result2, result3):
    for_weight, for_samples = bag_backward(grad, weight, indices, offsets, result2, result3, scale_grad_by_freq, mode,
                                           per_sample_weights, -1)
    return for_weight, None, None, for_samples


@table.derivative("_embedding_bag _embedding_bag_forward_only")
def plain_embedding_bag_gradient(grad, weight, indices, offsets, scale_grad_by_freq, mode, per_sample_weights, padding_idx, result2,
                                 result3):
    for_weight, for_samples = bag_backward(grad, weight, indices, offsets, result2, result3, scale_grad_by_freq, mode,
                                           per_sample_weights, padding_idx)
    return for_weight, None, None, for_samples


table.no_gradient("a zero or a one does not move with its index", "one_hot")
table.no_gradient("it rescales a table outside of differentiation", "embedding_renorm")
