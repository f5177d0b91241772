"""The place of the batch dimension on the layer below, and the rules of operators that need nothing else."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops import promotion
from irtool.ops.array_library import np
from irtool.ops.arrays import code_of, dtype_of, wrap_dim
from irtool.ops.batch import Batch
from irtool.ops.call import overload
from irtool.ops.overload import inside_dtype
from irtool.ops.promotion import float_of, result_type
from irtool.ops.tensor import Tensor

Rule = Callable[..., Any]
DOUBLE, FLOAT, LONG = 7, 6, 4


def wrapped_dim(dim: int, rank: int) -> int:
    """dim in -rank..rank-1 -> 0..rank-1. A rank of 0 counts as 1. Raises RunError with torch's text."""
    return wrap_dim(dim, rank)


def shifted(dim: Any, tensor: Any) -> Any:
    """dim, or a list of them, of a tensor (...) -> the same dimensions of (B, ...). None stays None."""
    if dim is None:
        return None
    rank = tensor.ndim
    if isinstance(dim, list | tuple):
        return [wrapped_dim(each, rank) + 1 for each in dim]
    return wrapped_dim(dim, rank) + 1


def aligned(batch: Batch, value: Any, rank: int, dtype: int | None = None) -> Any:
    """(*shape) -> (B, 1, ..., 1, *shape) of rank + 1 dimensions, in `dtype`; a tensor that is not batched broadcasts as it is."""
    if dtype is not None and value.dtype != dtype and dtype_of(value.dtype).kind != "b":
        value = batch.again("aten::to", value, dtype)
    if not batch.has(value):
        return value
    whole = batch.front(value)
    missing = rank - value.ndim
    if missing <= 0:
        return whole
    return batch.do("aten::reshape", whole, [batch.length, *[1] * missing, *value.shape])


def lined_up(batch: Batch, value: Any, missing: int) -> Any:
    """(*shape) -> (B, 1, ..., 1, *shape) with `missing` ones, expanded where not batched."""
    whole = batch.whole(value)
    return batch.do("aten::reshape", whole, [batch.length, *[1] * missing, *value.shape]) if missing else whole


def flat(batch: Batch, self: Any) -> Any:
    """(...) -> (B, n), on the layer below."""
    return batch.do("aten::reshape", batch.front(self), [batch.length, _size(self)])


def _size(self: Any) -> int:
    """The number of elements without the batch dimension."""
    return math.prod(self.shape)


def ravel(batch: Batch, self: Any) -> Any:
    """(...) -> (n)."""
    return batch.again("aten::reshape", self, [-1])


def behind(batch: Batch, x: Any) -> Any:
    """(...) -> (..., B), on the layer below."""
    return batch.do("aten::movedim", batch.whole(x), 0, -1)


def folded(batch: Batch, value: Any, rank: int) -> Any:
    """(N, ...) -> (B * N, ...), or, without N, (...) -> (B, ...). rank: the number of dimensions behind N. None stays None."""
    if not isinstance(value, Tensor):
        return value
    whole = batch.whole(value)
    if value.ndim <= rank:
        return whole
    return batch.do("aten::reshape", whole, [batch.length * value.shape[0], *value.shape[1:]])


def unfolded(batch: Batch, result: Any, operand: Any, rank: int) -> Any:
    """The inverse of `folded`, for results: (B * N, ...) -> (N, ...) if `operand` has N, else (B, ...) -> (...)."""
    if isinstance(result, list | tuple):
        return type(result)([unfolded(batch, each, operand, rank) for each in result])
    if not isinstance(result, Tensor):
        return result
    if operand.ndim <= rank:
        return batch.box(result)
    return batch.box(batch.do("aten::reshape", result, [batch.length, operand.shape[0], *result.shape[1:]]))


def into_channels(batch: Batch, value: Any) -> Any:
    """(N, C, ...) -> (N, B * C, ...), on the layer below."""
    batch.refuse_none()
    whole = batch.whole(value)
    moved = batch.do("aten::movedim", whole, 0, 1)
    return batch.do("aten::reshape", moved, [value.shape[0], batch.length * value.shape[1], *value.shape[2:]])


def out_of_channels(batch: Batch, result: Any) -> Any:
    """The way back: (N, B * C, ...) -> (N, C, ...)."""
    shape = result.shape
    split = batch.do("aten::reshape", result, [shape[0], batch.length, batch.share(shape[1]), *shape[2:]])
    return batch.box(split, 1)


def into_rows(batch: Batch, value: Any) -> Any:
    """(O, ...) -> (B * O, ...), on the layer below. None stays None."""
    if value is None:
        return None
    return batch.do("aten::reshape", batch.whole(value), [batch.length * value.shape[0], *value.shape[1:]])


def out_of_rows(batch: Batch, result: Any) -> Any:
    """The way back: (B * O, ...) -> (O, ...). None stays None."""
    if result is None:
        return None
    return batch.box(batch.do("aten::reshape", result, [batch.length, batch.share(result.shape[0]), *result.shape[1:]]))


def time_and_rows(batch: Batch, x: Any, dim: int) -> Any:
    """(..., N, ...) -> (..., B * N, ...) in dimension `dim`, on the layer below."""
    whole = batch.whole(x)
    moved = batch.do("aten::movedim", whole, 0, dim)
    shape = list(x.shape)
    shape[dim] *= batch.length
    return batch.do("aten::reshape", moved, shape)


def rows_apart(batch: Batch, x: Any, dim: int) -> Any:
    """The way back: (..., B * N, ...) -> (..., N, ...)."""
    shape = list(x.shape)
    split = batch.do("aten::reshape", x, [*shape[:dim], batch.length, batch.share(shape[dim]), *shape[dim + 1:]])
    return batch.box(split, dim)


def zeros_where(batch: Batch, condition: Any, value: Any) -> Any:
    """value where condition is true, else 0."""
    do = batch.again
    return do("aten::where", condition, value, do("aten::zeros_like", value))


def flat_places(size: Any, stride: Any, offset: Any) -> Any:
    """Places in the flat memory of the elements of a strided view, in its shape."""
    places = np.asarray(offset or 0, np.int64)
    for extent, step in zip(size, stride, strict=True):
        places = places[..., None] + np.arange(extent) * step
    return Tensor(places)


def refuse_batched(batch: Batch, values: Any, what: str) -> None:
    """Raises UnsupportedError if tensors that determine the extents of others (lengths, segments) are batched."""
    if batch.has(values):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported where {what} are batched", code="E0504")


def numbers_of(batch: Batch, value: Any) -> Any:
    """Numbers on which sizes depend. Raises UnsupportedError if they are batched."""
    if batch.has(value):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported where sizes are batched", code="E0504")
    return batch.numbers(value)


def pointwise(batch: Batch, *args: Any) -> Any:
    """Batched operands (*shape) -> (B, 1, ..., 1, *shape), all of the largest rank + 1, so that they broadcast as without B."""
    operands = [each for each in args if isinstance(each, Tensor)]
    rank = max(each.ndim for each in operands)
    inside, dtype = common_dtypes(batch, args)
    result = batch.same(*[aligned(batch, each, rank, inside) if isinstance(each, Tensor) else each for each in args])
    if isinstance(result, tuple):
        return tuple([_boxed(batch, each, rank) for each in result])
    return _boxed(batch, result if inside == dtype else batch.do("aten::to", result, dtype), rank)


def _boxed(batch: Batch, result: Any, rank: int) -> Any:
    """A result (B, ...) -> (...); one without B depends on no batched operand (an unused buffer) and stays as it is."""
    return batch.box(result) if result.ndim > rank else result


def common_dtypes(batch: Batch, args: tuple[Any, ...]) -> tuple[int | None, int | None]:
    """The dtypes to convert to first, and last: a 0-d tensor counts less in promotion, and as (B) it no longer would."""
    found = overload(batch.name)
    values = [args[place] for place in found.promoted if args[place] is not None]
    tensors = [each for each in values if isinstance(each, Tensor)]
    if not any(batch.has(each) and not each.ndim for each in tensors) or len({each.dtype for each in tensors}) < 2:
        return None, None
    dtype, rule = dtype_of(promoted_dtype(values)), found.promote
    if rule is not None and not isinstance(rule, promotion.Rule):
        rule = rule(list(args))
    if rule is not None and rule.compute == "float":
        dtype = float_of(dtype)     # -1 beside a byte is converted to a float, never to a byte
    inside = dtype if rule is None else inside_dtype(rule, dtype, stand_ins(args))      # a number beside float16 is not rounded to it
    return code_of(inside), code_of(dtype)


def promoted_dtype(values: Sequence[Any]) -> int:
    """The common dtype of tensors and numbers, by their dimensions without the batch dimension."""
    return code_of(result_type(stand_ins(values)))


def stand_ins(values: Sequence[Any]) -> list[Any]:
    """Arrays without elements for tensors, of their dtypes and ranks, without the batch dimension."""
    return [np.empty((0,) * each.ndim, dtype_of(each.dtype)) if isinstance(each, Tensor) else each for each in values]


def element_by_element(batch: Batch, *args: Any) -> Any:
    """`pointwise`, of overloads that no fact declares pointwise, since their kernels look at shapes."""
    return pointwise(batch, *args)


def untouched(batch: Batch, *args: Any) -> Any:
    """(B, ...): the rule of operators that accept further dimensions in front."""
    return batch.box(batch.same(*[_front(batch, each) for each in args]))


def _front(batch: Batch, value: Any) -> Any:
    """A tensor as (B, ...); any other value is unchanged."""
    return batch.front(value) if isinstance(value, Tensor) else value


def of_ranks(least: int, most: int = 64) -> Callable[[Rule], Rule]:
    """A rule for a first operand of so many dimensions. Any other is refused, as alone: the operator would take the batch dimension for one
    of its own."""
    def decorated(rule: Rule) -> Rule:
        def checked(batch: Batch, self: Any, *args: Any) -> Any:
            if not least <= self.ndim <= most:
                raise RunError(f"{batch.kind}: expected a tensor of {least if least == most else f'at least {least}'} dimensions, got "
                               f"{self.ndim}", code="E0407")
            return rule(batch, self, *args)
        return checked
    return decorated


def leading(batch: Batch, self: Any, *args: Any) -> Any:
    """self (B, ...): the operator takes any dimensions in front."""
    return batch.box(batch.same(batch.front(self), *args))


def matrices(batch: Batch, *args: Any) -> Any:
    """(..., n, m) -> (B, ..., n, m) of all operands: the operator takes any dimensions in front."""
    # contiguous: LAPACK's factors depend on the strides
    operands = [batch.do("aten::contiguous", batch.whole(each)) if isinstance(each, Tensor) else each for each in args]
    result = batch.same(*operands)
    if isinstance(result, tuple):       # linalg_qr without Q returns an empty one
        return tuple([each if each.shape == [0] else batch.box(each) for each in result])
    return batch.box(result)


DIMENSIONS = frozenset(("dim", "dims", "axis"))


def along(batch: Batch, *args: Any) -> Any:
    """(B, ...), dims + 1; None or no dims are all but the first. 0-d tensors are (B, 1) meanwhile."""
    x = next(each for each in args if isinstance(each, Tensor))
    operands, is_scalar = tensors_of(batch, args)
    for place, argument in enumerate(batch.schema.arguments):
        if argument.name in DIMENSIONS and place < len(operands):
            dims = operands[place]
            every = dims is None or isinstance(dims, list | tuple) and not dims and batch.kind != "aten::flip"
            operands[place] = [1] if is_scalar else list(range(1, x.ndim + 1)) if every else shifted(dims, x)
            if is_scalar and not isinstance(dims, list | tuple | None):
                shifted(dims, x)    # must be 0 or -1
                operands[place] = 1
    return boxed(batch, batch.same(*operands), is_scalar)


def tensors_of(batch: Batch, args: Any) -> tuple[list[Any], bool]:
    """(arguments, is_scalar): tensors (...) -> (B, ...), or, where all are 0-d (is_scalar), (B, 1)."""
    tensors = [each for each in args if isinstance(each, Tensor)]
    is_scalar = all(not each.ndim for each in tensors)
    alone = len(tensors) == 1
    operands = []
    for each in args:
        if isinstance(each, Tensor):
            each = batch.front(each) if alone else batch.whole(each)
            each = batch.do("aten::unsqueeze", each, -1) if is_scalar else each
        operands.append(each)
    return operands, is_scalar


def boxed(batch: Batch, result: Any, is_scalar: bool) -> Any:
    """Results (B, ...) -> (...); where is_scalar, (B, 1) -> ()."""
    if not is_scalar:
        return batch.box(result)
    if isinstance(result, list | tuple):
        return type(result)([boxed(batch, each, True) for each in result])
    return batch.box(batch.do("aten::squeeze", result, -1) if result.ndim == 2 else result)


def spatial(name: str) -> int:
    """The number of dimensions behind the channels, by the kind's name: 2 for `aten::max_pool2d`."""
    return next(int(each) for each, after in zip(name, name[1:] + " ", strict=True) if each in "123" and after in "d_ .")


def image(batch: Batch, *args: Any) -> Any:
    """(N, C, ...) -> (B * N, C, ...), or (C, ...) -> (B, C, ...)."""
    rank = spatial(batch.kind) + 1
    x = next(each for each in args if isinstance(each, Tensor))
    samples = [folded(batch, each, 2) if argument.name == "random_samples" else folded(batch, each, rank)
               for each, argument in zip(args, batch.schema.arguments, strict=True)]
    return unfolded(batch, batch.same(*samples), x, rank)


def with_batch(batch: Batch, *args: Any) -> Any:
    """(N, ...) -> (B * N, ...)."""
    x = next(each for each in args if isinstance(each, Tensor))
    return unfolded(batch, batch.same(*[folded(batch, each, 0) for each in args]), x, 0)
