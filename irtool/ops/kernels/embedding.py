"""Rows of a table by index, bags of them reduced, one-hot vectors; and the gradients."""
import math

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.arrays import add_at, title
from irtool.ops.checks import only, same_dtype
from irtool.ops.op import OpTable

table = OpTable("embedding")

SUM, MEAN, MAX = 0, 1, 2


def _rows(xp, weight, indices):
    if indices.dtype.kind not in "iu" or indices.dtype.itemsize < 4:
        raise RunError("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
                       f"{indices.dtype} instead (while checking arguments for embedding)", code="E0409")
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= weight.shape[0]):
        raise RunError("index out of range in self", code="E0408")
    return xp.take(weight, indices, 0)


@table.op("aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> "
          "Tensor")
def embedding(xp, weight, indices, padding_idx, scale_grad_by_freq, sparse):
    """weight[indices]."""
    if weight.ndim != 2:
        raise RunError("'weight' must be 2-D")
    return _rows(xp, weight, indices)


def _dense_backward(xp, grad_output, indices, num_weights, padding_idx, scale_grad_by_freq, sparse=False):
    if sparse:
        raise NotImplementedError("sparse gradients are not supported yet")
    flat, grad = indices.reshape(-1), grad_output.reshape(math.prod(grad_output.shape[:-1]), grad_output.shape[-1])
    result = xp.zeros((num_weights, grad.shape[1]), grad.dtype)
    if scale_grad_by_freq:
        counts = xp.bincount(flat, minlength=num_weights)
        grad = grad / counts[flat][:, None].astype(grad.dtype)
    counted = flat != padding_idx
    add_at(result, flat[counted], grad[counted])
    return result


table.define("aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool "
             "scale_grad_by_freq) -> Tensor", _dense_backward, doc="Gradient of embedding.")
table.define("aten::embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq, bool "
             "sparse) -> Tensor", _dense_backward, doc="Gradient of embedding.")


@table.op("aten::embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor")
def embedding_renorm(xp, self, indices, max_norm, norm_type):
    """A table whose rows named by `indices` are scaled down to a norm of at most max_norm."""
    only("norm", "fc", self)
    only("embedding_renorm", "i", indices)
    result = self.copy()
    rows = xp.unique(indices)
    norms = (xp.abs(self[rows]) ** norm_type).sum(1) ** (1 / norm_type)
    scale = xp.where(norms > max_norm, max_norm / (norms + 1e-7), 1).astype(self.dtype)
    result[rows] = self[rows] * scale[:, None]
    return result


def _bag_bounds(xp, indices, offsets, include_last_offset):
    """(flat indices, the start of each bag, its end)."""
    for each in (indices, offsets):
        if each.dtype not in ("int32", "int64"):
            raise RunError("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
                           f"torch.{title(each.dtype)}Tensor instead (while checking arguments for embedding_bag)", code="E0409")
    if indices.ndim not in (1, 2):
        raise RunError(f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {indices.ndim}")
    flat = indices.reshape(-1)
    if offsets.ndim != 1:
        raise RunError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets.ndim}")
    if indices.ndim == 2:       # torch reads other offsets as places in the flat indices in some modes, and out of bounds in others
        starts = xp.arange(indices.shape[0]) * indices.shape[1]
        if not xp.array_equal(offsets, xp.append(starts, flat.size) if include_last_offset else starts):
            raise UnsupportedError("aten::embedding_bag of indices with two dimensions is supported with the starts of their rows as "
                                   f"offsets, got {offsets.tolist()[:8]}")
        return flat, starts, starts + indices.shape[1]
    if offsets.size and int(offsets[0]) != 0:
        raise RunError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got "
                       f"{int(offsets[0])}")
    if offsets.size and int(offsets[-1]) > flat.size:
        raise RunError("offsets[-1] can not be greater than input's length: input's length is "
                       f"{flat.size} but got offsets[-1] of {int(offsets[-1])}")
    starts = offsets.astype(xp.int64)
    if include_last_offset and starts.size and int(starts[-1]) != flat.size:
        raise UnsupportedError("aten::embedding_bag whose last offset is not the number of indices is not supported")
    if include_last_offset:
        return flat, starts[:-1], starts[1:]
    return flat, starts, xp.concatenate([starts[1:], xp.full(1, flat.size, xp.int64)])


def bags(xp, weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx):
    """(reduced rows per bag, bag of each index, size of each bag, row of each maximum)."""
    flat, starts, ends = _bag_bounds(xp, indices, offsets, include_last_offset)
    if per_sample_weights is not None and mode != SUM:
        raise RunError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='"
                       f"{'mean' if mode == MEAN else 'max'}'). Please open a feature request on GitHub.")
    if per_sample_weights is not None:
        same_dtype("embedding_bag", weight, per_sample_weights)
        if indices.ndim == 1 and per_sample_weights.ndim != 1:
            raise RunError("Expected per_sample_weights.value().dim() == 1 to be true, but got false.")
    count, width = len(starts), weight.shape[1]
    counted = flat != padding_idx if padding_idx >= 0 else xp.ones(flat.shape, bool)
    bag_of = xp.repeat(xp.arange(count), ends - starts)
    rows = _rows(xp, weight, flat)[:len(bag_of)]
    counted = counted[:len(bag_of)]
    sizes = xp.bincount(bag_of[counted], minlength=count).astype(xp.int64) if count else xp.zeros(0, xp.int64)
    result = xp.zeros((count, width), weight.dtype)
    best = xp.zeros((count, width), xp.int64)
    if mode == MAX:
        for bag in range(count):
            places = (bag_of == bag).nonzero()[0]
            places = places[counted[places]]
            if len(places):
                which = rows[places].argmax(0)
                best[bag] = flat[places][which]
                result[bag] = xp.take_along_axis(rows[places], which[None], 0)[0]
        return result, bag_of, sizes, best
    wide = xp.float32 if weight.dtype == xp.float16 else weight.dtype
    total = xp.zeros((count, width), wide)
    values = rows if per_sample_weights is None else rows * per_sample_weights.reshape(-1)[:len(bag_of), None]
    add_at(total, bag_of[counted], values[counted].astype(wide, copy=False))
    if mode == MEAN:
        total = total / xp.maximum(sizes, 1).astype(wide)[:, None]
    return total.astype(weight.dtype, copy=False), bag_of, sizes, best


def _embedding_bag(xp, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
                   padding_idx=None):
    count, padding = weight.shape[0], -1
    if padding_idx is not None:
        if not -count <= padding_idx < count:
            raise RunError(f"padding_idx must be within the number of embeddings, -{count} through {count - 1}, but got {padding_idx}")
        padding = padding_idx % count
    if mode not in (SUM, MEAN, MAX):
        raise RunError("`mode` must be sum, mean, or max.")
    result, bag_of, sizes, best = bags(xp, weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding)
    # torch leaves results empty that a mode does not need, or not
    fast = mode == SUM and padding < 0 and weight.dtype in ("float32", "float16")
    whole = xp.promote_types(indices.dtype, offsets.dtype)
    offset2bag = xp.empty(0, whole) if fast else bag_of.astype(whole)
    sizes = xp.zeros(offsets.shape if indices.ndim == 1 else sizes.shape, whole) if mode == SUM else sizes.astype(whole)
    return result, offset2bag, sizes, best.astype(whole, copy=False) if mode == MAX else sizes.copy()


_BAG = ("Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? "
        "per_sample_weights=None, bool include_last_offset=False")
_FOUR = " -> (Tensor, Tensor, Tensor, Tensor)"
table.define((f"aten::embedding_bag({_BAG}){_FOUR}",
              "aten::embedding_bag.padding_idx(" + _BAG.replace("=False", "").replace("=0", "").replace("=None", "")
              + f", int? padding_idx){_FOUR}",), _embedding_bag,
             doc="Rows of each bag of indices summed, averaged or their maximum; and the bag of each index, bag sizes, rows of maxima.")


def _embedding_bag_plain(xp, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
                         padding_idx):
    return _embedding_bag(xp, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
                          padding_idx if padding_idx >= 0 else None)


table.define([f"aten::{name}({_BAG}, int padding_idx=-1){_FOUR}" for name in ("_embedding_bag", "_embedding_bag_forward_only")],
             _embedding_bag_plain, doc="embedding_bag with -1 for no padding index.")


@table.op("aten::one_hot(Tensor self, int num_classes=-1) -> Tensor")
def one_hot(xp, self, num_classes):
    """int64 vectors with a 1 at the class; by default as many classes as the largest needs."""
    if self.dtype != xp.int64:
        raise RunError("one_hot is only applicable to index tensor of type LongTensor.")
    if not self.size:
        if num_classes <= 0:
            raise RunError("Can not infer total number of classes from empty tensor.")
        return xp.empty((*self.shape, num_classes), xp.int64)
    if int(self.min()) < 0:
        raise RunError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(self.max()) + 1
    elif num_classes < 1:
        raise RunError("num_classes should be positive")
    elif num_classes <= int(self.max()):
        raise RunError("Class values must be smaller than num_classes.")
    return (self[..., None] == xp.arange(num_classes)).astype(xp.int64)


# ---- dtypes that torch serves

table.takes("hf", "embedding_bag _embedding_bag _embedding_bag_forward_only")
table.laid_out("C", "one_hot")
