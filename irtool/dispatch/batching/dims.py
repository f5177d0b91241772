"""Operators along dimensions: reductions, softmax, scans, sorts. Their dimensions move up by one; all of them means all visible ones."""
from __future__ import annotations

import math
from typing import Any

from irtool.dispatch.batched import Batch
from irtool.dispatch.batching import rule, shifted
from irtool.ops.tensor import Tensor

DIMENSIONS = frozenset(("dim", "dims", "axis"))


def tensors_of(batch: Batch, args: Any) -> tuple[list[Any], bool]:
    """The arguments with tensors as the layer below sees them, all with the hidden dimension; whether they showed none and now show one."""
    given = [each for each in args if isinstance(each, Tensor)]
    is_scalar = all(not each.ndim for each in given)
    alone = len(given) == 1
    found = []
    for each in args:
        if isinstance(each, Tensor):
            each = batch.front(each) if alone else batch.whole(each)
            each = batch.do("aten::unsqueeze", each, -1) if is_scalar else each
        found.append(each)
    return found, is_scalar


def boxed(batch: Batch, result: Any, is_scalar: bool) -> Any:
    """Results in boxes; those of tensors that showed no dimension show none."""
    if not is_scalar:
        return batch.box(result)
    if isinstance(result, list | tuple):
        return type(result)([boxed(batch, each, True) for each in result])
    return batch.box(batch.do("aten::squeeze", result, -1) if result.ndim == 2 else result)


@rule("""sum.dim_IntList mean.dim nansum nanmean amax amin logsumexp special_logsumexp all.dims any.dims all.dim any.dim prod.dim_int
         max.dim min.dim _aminmax.dim softmax.int special_softmax _softmax log_softmax.int special_log_softmax _log_softmax _safe_softmax
         _softmax_backward_data _log_softmax_backward_data cumsum cumprod cummax cummin logcumsumexp _logcumsumexp sort sort.stable argsort
         argsort.stable topk kthvalue median.dim nanmedian.dim mode std.dim var.dim std.correction var.correction std_mean.dim var_mean.dim
         std_mean.correction var_mean.correction linalg_vector_norm norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype
         native_norm.ScalarOpt_dim_dtype frobenius_norm.dim count_nonzero.dim_IntList hash_tensor glu glu_backward flip
         trapezoid.dx trapz.dx cumulative_trapezoid.dx gradient.scalararray gradient.array gradient.scalarrayarray unbind.int
         unbind_copy.int
         nuclear_norm.dim""")
def along(batch: Batch, *args: Any) -> Any:
    """The same, its dimensions moved up; no dimensions (None, an empty list) are all that show."""
    given = next(each for each in args if isinstance(each, Tensor))
    found, is_scalar = tensors_of(batch, args)
    for place, argument in enumerate(batch.schema.arguments):
        if argument.name in DIMENSIONS and place < len(found):
            dims = found[place]
            every = dims is None or isinstance(dims, list | tuple) and not dims and batch.kind != "aten::flip"
            found[place] = [1] if is_scalar else list(range(1, given.ndim + 1)) if every else shifted(dims, given)
            if is_scalar and not isinstance(dims, list | tuple | None):
                shifted(dims, given)    # must be 0 or -1
                found[place] = 1
    return boxed(batch, batch.same(*found), is_scalar)


def flat(batch: Batch, self: Any) -> Any:
    """All that shows in one dimension."""
    return batch.do("aten::reshape", batch.front(self), [batch.length, _size(self)])


def _size(self: Any) -> int:
    return math.prod(self.shape)


@rule("sum mean prod")
def of_all(batch: Batch, self: Any, dtype: Any) -> Any:
    """Of all elements that show."""
    return batch.box(batch.do(batch.kind, flat(batch, self), 1 if batch.kind == "aten::prod" else [1], False, dtype=dtype))


@rule("all any")
def truth_of_all(batch: Batch, self: Any) -> Any:
    """Of all elements that show."""
    return batch.box(batch.do(batch.kind, flat(batch, self), 1, False))


@rule("max min median nanmedian")
def extreme_of_all(batch: Batch, self: Any) -> Any:
    """Of all elements that show, without the index."""
    return batch.box(batch.do(batch.kind, flat(batch, self), 1, False)[0])


@rule("argmax argmin")
def place_of_extreme(batch: Batch, self: Any, dim: Any, keepdim: bool) -> Any:
    """Along a dimension, or among all elements that show."""
    if dim is not None:
        return along(batch, self, dim, keepdim)
    found = batch.do(batch.kind, flat(batch, self), 1, False)
    return batch.box(batch.do("aten::reshape", found, [batch.length, *[1] * self.ndim]) if keepdim else found)


@rule("aminmax")
def both_extremes(batch: Batch, self: Any, dim: Any, keepdim: bool) -> Any:
    """Along a dimension, or of all elements that show."""
    if dim is not None:
        return along(batch, self, dim, keepdim)
    found = batch.do("aten::aminmax", flat(batch, self), dim=1)
    if keepdim:
        found = tuple(batch.do("aten::reshape", each, [batch.length, *[1] * self.ndim]) for each in found)
    return batch.box(found)


@rule("_aminmax")
def extremes_of_all(batch: Batch, self: Any) -> Any:
    """Of all elements that show."""
    return batch.box(batch.do("aten::aminmax", flat(batch, self), dim=1))


@rule("count_nonzero")
def count_nonzero(batch: Batch, self: Any, dim: Any) -> Any:
    """Along a dimension, or of all elements that show."""
    return along(batch, self, dim) if dim is not None else batch.box(batch.do("aten::count_nonzero", flat(batch, self), [1]))


@rule("std var std_mean var_mean")
def spread_of_all(batch: Batch, self: Any, unbiased: bool) -> Any:
    """Of all elements that show."""
    return batch.box(batch.do(batch.kind, flat(batch, self), [1], unbiased, False))


@rule("norm.Scalar native_norm")
def norm_of_all(batch: Batch, self: Any, p: Any) -> Any:
    """Of all elements that show."""
    return batch.box(batch.do("aten::norm", flat(batch, self), p, [1], False))


@rule("norm.ScalarOpt_dtype")
def norm_in_dtype(batch: Batch, self: Any, p: Any, dtype: int) -> Any:
    """Of all elements that show, in a dtype."""
    return batch.box(batch.do("aten::norm", flat(batch, self), p, [1], False, dtype=dtype))


@rule("sum_to_size _grad_sum_to_size")
def sum_to_size(batch: Batch, self: Any, size: Any) -> Any:
    """The dimensions that were broadcast, among those that show."""
    if size is None:
        return self
    x, rank = batch.front(self), self.ndim
    lead = rank - len(size)
    kept = [1 + place for place in range(lead, rank) if size[place - lead] == 1 and self.shape[place] != 1]
    if kept:
        x = batch.do("aten::sum", x, kept, True)
    if lead:
        x = batch.do("aten::sum", x, list(range(1, 1 + lead)), False)
    return batch.box(x)


@rule("msort")
def msort(batch: Batch, self: Any) -> Any:
    """A sort along the first dimension that shows."""
    return batch.again("aten::sort", self, 0, False)[0]


@rule("renorm")
def renorm(batch: Batch, self: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """Slices along a dimension: hidden and visible places in one, so that the norms are of what shows."""
    x = batch.do("aten::movedim", batch.front(self), shifted(dim, self), 1)
    slices = batch.do("aten::flatten", x, 0, 1)
    found = batch.do("aten::reshape", batch.do("aten::renorm", slices, p, 0, maxnorm), list(x.shape))
    return batch.box(batch.do("aten::movedim", found, 1, shifted(dim, self)))


@rule("diff")
def diff(batch: Batch, self: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    """What is put in front and behind gets the hidden dimension too."""
    return batch.box(batch.same(batch.whole(self), n, shifted(dim, self), batch.whole(prepend), batch.whole(append)))


@rule("trapezoid.x trapz.x cumulative_trapezoid.x")
def trapezoid(batch: Batch, y: Any, x: Any, dim: int) -> Any:
    """The places x stand along the dimension, or have all dimensions of y."""
    if x.ndim == 1 and batch.has(x) and y.ndim > 1:
        shape = [1] * y.ndim
        shape[dim % y.ndim] = -1
        x = batch.again("aten::reshape", x, shape)
    return batch.box(batch.same(batch.whole(y), batch.whole(x) if batch.has(x) else x, shifted(dim, y)))


@rule("gradient.scalarint gradient.scalarrayint")
def numerical_gradient(batch: Batch, self: Any, spacing: Any, dim: Any, edge_order: int) -> Any:
    """Along a dimension, or along all that show."""
    dims = list(range(1, 1 + self.ndim)) if dim is None else [shifted(dim, self)]
    if spacing is None:
        return batch.box(batch.do("aten::gradient", batch.front(self), dim=dims, edge_order=edge_order))
    return batch.box(batch.do("aten::gradient", batch.front(self), spacing=spacing, dim=dims, edge_order=edge_order))


@rule("gradient.tensorarrayint")
def gradient_between(batch: Batch, self: Any, spacing: Any, dim: Any, edge_order: int) -> Any:
    """Between places that are the same for the whole batch."""
    dims = list(range(self.ndim)) if dim is None else [dim]
    return gradient_of_dims(batch, self, spacing, dims, edge_order)


@rule("gradient.tensorarray")
def gradient_of_dims(batch: Batch, self: Any, spacing: Any, dim: Any, edge_order: int) -> Any:
    """Between places that are the same for the whole batch."""
    if batch.has(spacing):
        from irtool.ir.errors import UnsupportedError

        raise UnsupportedError("aten::gradient under vmap is not supported where spacing is batched")
    return batch.box(batch.do("aten::gradient", batch.front(self), spacing=spacing, dim=shifted(dim, self), edge_order=edge_order))


@rule("_masked_softmax")
def masked_softmax(batch: Batch, self: Any, mask: Any, dim: Any, mask_type: Any) -> Any:
    """By its parts: what is masked does not count."""
    masked = batch.again("aten::masked_fill", self, mask, float("-inf"))
    return batch.again("aten::softmax", masked, self.ndim - 1 if dim is None else dim)


@rule("_masked_softmax_backward")
def masked_softmax_backward(batch: Batch, grad_output: Any, output: Any, mask: Any, dim: Any) -> Any:
    """By its parts: no gradient where it is masked."""
    found = batch.again("aten::_softmax_backward_data", grad_output, output, output.ndim - 1 if dim is None else dim, output.dtype)
    return batch.again("aten::masked_fill", found, mask, 0)


@rule("nuclear_norm")
def nuclear_norm(batch: Batch, self: Any, keepdim: bool) -> Any:
    """The sum of the singular values of the last two dimensions."""
    return batch.box(batch.do("aten::nuclear_norm", batch.front(self), [-2, -1], keepdim))
