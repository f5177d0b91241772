"""Gradients of embeddings."""
from __future__ import annotations

from irtool.ops.embedding import table
from irtool.ops.tensor import Tensor, torch


@table.gradient("embedding")
def embedding_gradient(weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool, sparse: bool):
    rows = weight.size(0)

    def backward(grad: Tensor):
        return torch.embedding_dense_backward(grad, indices, rows, padding_idx, scale_grad_by_freq), None, None, None, None

    return torch.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse), backward


def counted_out(grad: Tensor, indices: Tensor, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    """The rows that indices name, padding left out, divided by how often an index comes up where that is asked for."""
    found = torch.embedding(grad, indices)
    if padding_idx >= 0:
        found = torch.where((indices == padding_idx).unsqueeze(-1), torch.zeros_like(found), found)
    if scale_grad_by_freq:
        flat = indices.reshape([-1])
        counts = torch.zeros([rows], dtype=grad.dtype, device=grad.device).index_add(0, flat, torch.ones(flat.size(), dtype=grad.dtype))
        found = found / counts.index_select(0, flat).reshape(indices.size()).unsqueeze(-1)
    return found


@table.gradient("embedding_dense_backward")
def embedding_dense_backward_gradient(grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool):
    def backward(grad: Tensor):
        return counted_out(grad, indices, num_weights, padding_idx, scale_grad_by_freq), None, None, None, None

    return torch.embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq), backward


@table.gradient("embedding_backward")
def embedding_backward_gradient(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool, sparse: bool):
    def backward(again: Tensor):
        return counted_out(again, indices, num_weights, padding_idx, scale_grad_by_freq), None, None, None, None, None

    return torch.embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq), backward


def bag_slopes(grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, best: Tensor, scale_grad_by_freq: bool, mode: int,
               per_sample_weights: Tensor | None, padding_idx: int) -> tuple[Tensor, Tensor]:
    """Gradients of an embedding bag for the table and the weights of samples."""
    rows = weight.size(0)
    flat = indices.reshape([-1])
    places = torch.arange(flat.numel(), device=grad.device)
    if indices.dim() == 2:
        bag = torch.floor_divide(places, max(indices.size(1), 1))
    else:
        bag = torch.searchsorted(offsets, places, right=True) - 1
        bag = torch.clamp_max(bag, grad.size(0) - 1)
    nothing = torch.zeros_like(weight)
    if mode == 2:
        used = torch.zeros([grad.size(0)], dtype=grad.dtype, device=grad.device).index_add(
            0, bag, (flat != padding_idx).to(grad.dtype)).unsqueeze(-1) > 0
        return nothing.scatter_add(0, best, torch.where(used, grad, torch.zeros_like(grad))), torch.zeros_like(grad)
    each = grad.index_select(0, bag)
    kept = (flat != padding_idx).to(grad.dtype)
    if mode == 1:
        sizes = torch.zeros([grad.size(0)], dtype=grad.dtype, device=grad.device).index_add(0, bag, kept)
        each = each / torch.clamp_min(sizes, 1).index_select(0, bag).unsqueeze(-1)
    each = each * kept.unsqueeze(-1)
    sample_grad = (each * weight.index_select(0, flat)).sum([1])
    if per_sample_weights is not None:
        each = each * per_sample_weights.reshape([-1]).unsqueeze(-1)
    if scale_grad_by_freq:
        counts = torch.zeros([rows], dtype=grad.dtype, device=grad.device).index_add(0, flat, torch.ones_like(kept))
        each = each / counts.index_select(0, flat).unsqueeze(-1)
    return nothing.index_add(0, flat, each), sample_grad


@table.gradient("embedding_bag")
def embedding_bag_gradient(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int, sparse: bool,
                           per_sample_weights: Tensor | None, include_last_offset: bool):
    result, bags, sizes, best = torch.embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                                                    include_last_offset)

    def backward(grad: Tensor):
        weight_grad, each = bag_slopes(grad, weight, indices, offsets, best, scale_grad_by_freq, mode, per_sample_weights, -1)
        sample_grad: Tensor | None = None
        if per_sample_weights is not None:
            sample_grad = each.reshape(per_sample_weights.size())
        return weight_grad, None, None, None, None, None, sample_grad, None

    return result, bags, sizes, best, backward


@table.gradient("embedding_bag.padding_idx")
def embedding_bag_padding_gradient(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int, sparse: bool,
                                   per_sample_weights: Tensor | None, include_last_offset: bool, padding_idx: int | None):
    result, bags, sizes, best = torch.embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                                                    include_last_offset, padding_idx)

    def backward(grad: Tensor):
        padding = -1
        if padding_idx is not None:
            padding = padding_idx
            if padding < 0:
                padding = padding + weight.size(0)
        weight_grad, each = bag_slopes(grad, weight, indices, offsets, best, scale_grad_by_freq, mode, per_sample_weights, padding)
        sample_grad: Tensor | None = None
        if per_sample_weights is not None:
            sample_grad = each.reshape(per_sample_weights.size())
        return weight_grad, None, None, None, None, None, sample_grad, None, None

    return result, bags, sizes, best, backward


@table.gradient("_embedding_bag _embedding_bag_forward_only")
def plain_embedding_bag_gradient(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int, sparse: bool,
                                 per_sample_weights: Tensor | None, include_last_offset: bool, padding_idx: int):
    result, bags, sizes, best = torch._embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                                                     include_last_offset, padding_idx)

    def backward(grad: Tensor):
        weight_grad, each = bag_slopes(grad, weight, indices, offsets, best, scale_grad_by_freq, mode, per_sample_weights, padding_idx)
        sample_grad: Tensor | None = None
        if per_sample_weights is not None:
            sample_grad = each.reshape(per_sample_weights.size())
        return weight_grad, None, None, None, None, None, sample_grad, None, None

    return result, bags, sizes, best, backward


table.no_gradient("whole numbers", "one_hot")
table.no_gradient("it rescales a table outside of differentiation", "embedding_renorm")
