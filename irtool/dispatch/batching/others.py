"""Embeddings, layers that go through time, random numbers, and what is left."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from irtool.dispatch.batched import Batch
from irtool.dispatch.batching import rule
from irtool.ir.errors import UnsupportedError
from irtool.ops.arrays import xp
from irtool.ops.call import overload
from irtool.ops.tensor import Tensor

# ---- embeddings


def offsets(batch: Batch, indices: Any, count: int) -> Any:
    """Indices into the tables of all places, one behind the other."""
    step = batch.do("aten::reshape", Tensor(np.arange(batch.length) * count), [batch.length, *[1] * indices.ndim])
    return batch.do("aten::add", batch.whole(indices), step)


@rule("embedding")
def embedding(batch: Batch, weight: Any, indices: Any, padding_idx: int, scale: bool, sparse: bool) -> Any:
    """Of one table for all, or of a table per place."""
    if not batch.has(weight):
        return batch.box(batch.same(weight, batch.front(indices), padding_idx, scale, sparse))
    table = batch.do("aten::reshape", batch.whole(weight), [-1, weight.shape[1]])
    found = batch.box(batch.do("aten::embedding", table, offsets(batch, indices, weight.shape[0]), -1, scale))
    if padding_idx < 0:
        return found
    is_padding = batch.again("aten::unsqueeze", batch.again("aten::eq", indices, padding_idx), -1)
    return batch.again("aten::where", is_padding, batch.again("aten::detach", found), found)     # padding has no gradient


@rule("embedding_dense_backward embedding_backward")
def embedding_backward(batch: Batch, grad: Any, indices: Any, count: int, padding_idx: int, scale: bool, *sparse: bool) -> Any:
    """Into a table per place; nothing goes to the row of the padding."""
    if padding_idx >= 0:
        there = batch.again("aten::unsqueeze", batch.again("aten::ne", indices, padding_idx), -1)
        grad = batch.again("aten::mul", grad, batch.again("aten::to", there, grad.dtype))
    found = batch.do("aten::embedding_dense_backward", batch.whole(grad), offsets(batch, indices, count), batch.length * count, -1, scale)
    return batch.box(batch.do("aten::reshape", found, [batch.length, count, found.shape[1]]))


@rule("one_hot")
def one_hot(batch: Batch, self: Any, num_classes: int) -> Any:
    """How many classes there are must be said."""
    if num_classes < 0:
        raise UnsupportedError("aten::one_hot under vmap is not supported without num_classes: how many there are depends on the values")
    return batch.box(batch.same(batch.front(self), num_classes))


@rule("__getitem__.Dict_Tensor _set_item.Tensor __contains__.Tensor Delete.Dict_Tensor pop.Dict_Tensor pop.Dict_default_Tensor "
      "popitem.Tensor get.Tensor get.default_Tensor setdefault.Tensor update.Tensor clear.Tensor copy.Dict_Tensor dict.Dict_Tensor "
      "dict.Tensor len.Dict_Tensor keys.Tensor values.Tensor items.Tensor prim::Guard")
def handed_on(batch: Batch, *args: Any) -> Any:
    """Tensors are keys by identity, batched or not; nobody looks at their elements."""
    return overload(batch.name).op.kernel(xp, *args)


@rule("as_tensor")
def as_tensor(batch: Batch, data: Any, dtype: Any, device: Any) -> Any:
    """The tensor itself, or converted."""
    return data if dtype is None else batch.again("aten::to", data, dtype)


@rule("_linalg_check_errors")
def check_errors(batch: Batch, info: Any, *rest: Any) -> Any:
    """A failure in one place is one of the whole."""
    return batch.same(batch.whole(info), *rest)


# ---- layers through time

def time_and_rows(batch: Batch, x: Any, dim: int) -> Any:
    """The hidden dimension put into that of the rows."""
    whole = batch.whole(x)
    moved = batch.do("aten::movedim", whole, 0, dim)
    shape = list(x.shape)
    shape[dim] *= batch.length
    return batch.do("aten::reshape", moved, shape)


def rows_apart(batch: Batch, x: Any, dim: int) -> Any:
    """And taken out again."""
    shape = list(x.shape)
    split = batch.do("aten::reshape", x, [*shape[:dim], batch.length, batch.share(shape[dim]), *shape[dim + 1:]])
    return batch.box(split, dim)


def gates(batch: Batch, x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Any, Any]:
    """What comes from the input, and from the state."""
    return batch.again("aten::linear", x, w_ih, b_ih), batch.again("aten::linear", h, w_hh, b_hh)


@rule("lstm_cell")
def lstm_cell(batch: Batch, x: Any, hx: Any, *weights: Any) -> Any:
    """By its parts."""
    a, b = gates(batch, x, hx[0], *weights)
    i, f, g, o = batch.again("aten::chunk", batch.again("aten::add", a, b), 4, -1)
    kept = batch.again("aten::mul", batch.again("aten::sigmoid", f), hx[1])
    cell = batch.again("aten::add", kept, batch.again("aten::mul", batch.again("aten::sigmoid", i), batch.again("aten::tanh", g)))
    return batch.again("aten::mul", batch.again("aten::sigmoid", o), batch.again("aten::tanh", cell)), cell


@rule("gru_cell")
def gru_cell(batch: Batch, x: Any, hx: Any, *weights: Any) -> Any:
    """By its parts."""
    a, b = (batch.again("aten::chunk", each, 3, -1) for each in gates(batch, x, hx, *weights))
    reset, update = (batch.again("aten::sigmoid", batch.again("aten::add", a[k], b[k])) for k in (0, 1))
    new = batch.again("aten::tanh", batch.again("aten::add", a[2], batch.again("aten::mul", reset, b[2])))
    return batch.again("aten::add", new, batch.again("aten::mul", update, batch.again("aten::sub", hx, new)))


@rule("rnn_tanh_cell rnn_relu_cell")
def rnn_cell(batch: Batch, x: Any, hx: Any, *weights: Any) -> Any:
    """By its parts."""
    a, b = gates(batch, x, hx, *weights)
    return batch.again("aten::tanh" if "tanh" in batch.kind else "aten::relu", batch.again("aten::add", a, b))


@rule("_thnn_fused_lstm_cell")
def fused_lstm_cell(batch: Batch, a: Any, b: Any, cx: Any, input_bias: Any, hidden_bias: Any) -> Any:
    """More rows, where there is one dimension of them. Biases that are batched are added before."""
    if batch.has([input_bias, hidden_bias]):
        for bias in (input_bias, hidden_bias):
            a = a if bias is None else batch.again("aten::add", a, bias)
        input_bias = hidden_bias = None
    given = [batch.do("aten::flatten", batch.whole(each), 0, 1) for each in (a, b, cx)]
    found = batch.same(*given, input_bias, hidden_bias)
    return tuple([batch.box(batch.do("aten::unflatten", each, 0, [batch.length, -1])) for each in found])


# ---- random numbers

LIKE = "rand_like rand_like.generator randn_like randn_like.generator randint_like randint_like.low_dtype randint_like.generator " \
       "randint_like.low_generator_dtype uniform normal_functional log_normal exponential cauchy geometric random random.to random.from " \
       "bernoulli.p"


@rule(LIKE)
def random_like(batch: Batch, self: Any, *args: Any) -> Any:
    """Of the shape of the whole batch, or of one place where all get the same."""
    if batch.layer.randomness == "different":
        return batch.box(batch.same(batch.whole(self), *args))
    return batch.same(batch.do("aten::select", batch.front(self), 0, 0), *args)


@rule("bernoulli bernoulli.Tensor poisson binomial _standard_gamma _sample_dirichlet normal.Tensor_Tensor normal.Tensor_float "
      "normal.float_Tensor native_dropout dropout feature_dropout alpha_dropout feature_alpha_dropout multinomial rrelu "
      "randint_like.Tensor randint_like.Tensor_generator")
def random_of(batch: Batch, *args: Any) -> Any:
    """Drawn for each place. Drawn once for all, where chances are the same for all or there are none to draw."""
    if batch.layer.randomness == "same" and batch.has(list(args)):
        if batch.kind in ("aten::dropout", "aten::feature_dropout"):
            x, p, train = args
            if not train or p == 0:
                return x
            if p == 1:
                return batch.again("aten::mul", x, 0.0)
            ones = batch.do("aten::ones_like", batch.do("aten::select", batch.front(x), 0, 0))
            if batch.kind == "aten::feature_dropout" and ones.ndim > 2:     # a channel is kept whole
                ones = batch.do("aten::amax", ones, list(range(2, ones.ndim)), True)
            kept = batch.do("aten::bernoulli", ones, 1 - p)
            return batch.again("aten::div", batch.again("aten::mul", x, kept), 1 - p)
        raise UnsupportedError(f"{batch.kind} under vmap is not supported with randomness='same' where its operands are batched")
    if batch.kind in ("aten::feature_dropout", "aten::feature_alpha_dropout") and batch.has(list(args)) and args[0].ndim > 1:
        whole = batch.front(args[0])        # what is dropped are channels of samples: their first two dimensions
        dropped = batch.same(batch.do("aten::flatten", whole, 0, 1), *args[1:])
        return batch.box(batch.do("aten::reshape", dropped, list(whole.shape)))
    return batch.box(batch.same(*[batch.whole(each) if isinstance(each, Tensor) else each for each in args]))


@rule("rand rand.generator randn randn.generator")
def random_of_size(batch: Batch, size: Any, *args: Any) -> Any:
    """Drawn for each place."""
    return batch.box(batch.same([batch.length, *size], *args))


@rule("randperm randperm.generator")
def permutation(batch: Batch, n: int, *args: Any) -> Any:
    """The order of random numbers, drawn for each place."""
    order = batch.do("aten::argsort", batch.do("aten::rand", [batch.length, n]), 1)
    dtype = args[-4]
    return batch.box(order if dtype is None else batch.do("aten::to", order, dtype))


@rule("randint randint.generator randint.low randint.low_generator normal.float_float")
def random_ints(batch: Batch, *args: Any) -> Any:
    """Drawn for each place."""
    place = batch.schema.positions["size"]
    return batch.box(batch.same(*args[:place], [batch.length, *args[place]], *args[place + 1:]))


@rule("normal_ _no_grad_normal_ _no_grad_uniform_ bernoulli_.float bernoulli_.Tensor")
def draw_into(batch: Batch, self: Any, *args: Any) -> Any:
    """Drawn for each place, or once for all, into a tensor that is batched."""
    if batch.layer.randomness == "different":
        given = [batch.whole(batch.again("aten::expand", each, list(self.shape))) if isinstance(each, Tensor) else each for each in args]
        made = batch.same(batch.do("aten::zeros_like", batch.whole(self)), *given)
    elif batch.has(list(args)):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported with randomness='same' where its operands are batched")
    else:
        made = batch.layer.whole(batch.same(batch.do("aten::zeros_like", batch.do("aten::select", batch.front(self), 0, 0)), *args))
    return batch.layer.write_into(self, batch.box(made), batch.name)


@rule("rrelu_with_noise")
def rrelu_with_noise(batch: Batch, self: Any, noise: Any, lower: Any, upper: Any, training: bool, generator: Any) -> Any:
    """Drawn for each place, and written where it is batched."""
    if batch.layer.randomness == "same" and training:
        raise UnsupportedError(f"{batch.kind} under vmap is not supported with randomness='same'")
    slopes = batch.do("aten::clone", batch.whole(noise))
    found = batch.box(batch.same(batch.whole(self), slopes, lower, upper, training, generator))
    if training:
        batch.layer.write_into(noise, batch.box(slopes), batch.name)
    return found


# ---- what is left

@rule("prelu")
def prelu(batch: Batch, self: Any, weight: Any) -> Any:
    """A weight for all, or one per channel."""
    if weight.ndim == 1 and self.ndim > 1:
        weight = batch.again("aten::reshape", weight, [-1, *[1] * (self.ndim - 2)])
    elif weight.ndim == 1 and not self.ndim:
        weight = batch.again("aten::reshape", weight, [])
    return batch.again("aten::_prelu_kernel", self, weight)


@rule("copy_.Tensor copy_.int copy_.float _no_grad_fill_ _no_grad_zero_")
def overwrite(batch: Batch, self: Any, value: Any = 0, *rest: Any) -> Any:
    """The tensor has a new value from now on."""
    made = value if isinstance(value, Tensor) else batch.do("aten::full_like", batch.front(self), value)
    found = batch.again("aten::expand", batch.again("aten::to", made, self.dtype), list(self.shape)) if isinstance(value, Tensor) else None
    whole = batch.box(batch.layer.whole(found)) if found is not None else batch.box(made)
    return batch.layer.write_into(self, whole, batch.name)


@rule("copy fill.Scalar fill.Tensor zero")
def filled(batch: Batch, self: Any, value: Any = 0, *rest: Any) -> Any:
    """A new tensor of the same shape."""
    if not isinstance(value, Tensor):
        return batch.box(batch.do("aten::full_like", batch.front(self), value))
    return batch.again("aten::clone", batch.again("aten::expand", batch.again("aten::to", value, self.dtype), list(self.shape)))


@rule("isin.Tensor_Tensor")
def isin(batch: Batch, elements: Any, test: Any, assume_unique: bool, invert: bool) -> Any:
    """Is any test element equal?"""
    found = batch.again("aten::any", batch.again("aten::eq", batch.again("aten::unsqueeze", elements, -1),
                                                 batch.again("aten::reshape", test, [-1])), -1)
    return batch.again("aten::logical_not", found) if invert else found


@rule("isin.Tensor_Scalar")
def isin_number(batch: Batch, elements: Any, test: Any, assume_unique: bool, invert: bool) -> Any:
    """Equal to a number?"""
    return batch.again("aten::ne" if invert else "aten::eq", elements, test)


@rule("isin.Scalar_Tensor")
def number_isin(batch: Batch, element: Any, test: Any, assume_unique: bool, invert: bool) -> Any:
    """Is any equal to a number?"""
    found = batch.again("aten::any", batch.again("aten::eq", test, element))
    return batch.again("aten::logical_not", found) if invert else found


@rule("linspace.Tensor_Tensor linspace.Tensor_Scalar linspace.Scalar_Tensor")
def linspace(batch: Batch, start: Any, end: Any, steps: int, dtype: Any, *rest: Any) -> Any:
    """From start to end in equal steps."""
    places = Tensor(np.linspace(0, 1, steps))
    low, high = (batch.again("aten::to", batch.again("aten::unsqueeze", each, -1), 7) if isinstance(each, Tensor) else float(each)
                 for each in (start, end))
    difference = batch.again("aten::add", batch.again("aten::neg", low), high) \
        if isinstance(low, Tensor) else batch.again("aten::sub", high, low)
    found = batch.again("aten::add", batch.again("aten::mul", difference, places), low)
    return batch.again("aten::to", found, 6 if dtype is None else dtype)


@rule("logspace.Tensor_Tensor logspace.Tensor_Scalar logspace.Scalar_Tensor")
def logspace(batch: Batch, start: Any, end: Any, steps: int, base: float, dtype: Any, *rest: Any) -> Any:
    """Powers of such."""
    return batch.again("aten::to", batch.again("aten::pow", base, linspace(batch, start, end, steps, 7)), 6 if dtype is None else dtype)


@rule("searchsorted.Tensor")
def searchsorted(batch: Batch, sequence: Any, self: Any, out_int32: bool, right: bool, side: Any, sorter: Any) -> Any:
    """How many of a sorted sequence stand before."""
    if sorter is not None:
        sequence = batch.again("aten::gather", sequence, -1, sorter)
    if sequence.ndim == 1 and self.ndim != 1:
        flat = searchsorted(batch, sequence, batch.again("aten::reshape", self, [-1]), out_int32, right, side, None)
        return batch.again("aten::reshape", flat, list(self.shape))
    before = "aten::le" if right or side == "right" else "aten::lt"
    counted = batch.again(before, batch.again("aten::unsqueeze", sequence, -2), batch.again("aten::unsqueeze", self, -1))
    return batch.again("aten::sum", counted, [-1], dtype=3 if out_int32 else 4)


@rule("searchsorted.Scalar")
def searchsorted_number(batch: Batch, sequence: Any, self: Any, out_int32: bool, right: bool, side: Any, sorter: Any) -> Any:
    """Of a number."""
    value = Tensor(np.asarray(self))
    return searchsorted(batch, sequence, batch.again("aten::to", value, sequence.dtype), out_int32, right, side, sorter)


@rule("bucketize.Tensor")
def bucketize(batch: Batch, self: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    """The same, the other way round."""
    return searchsorted(batch, boundaries, self, out_int32, right, None, None)


@rule("bucketize.Scalar")
def bucketize_number(batch: Batch, self: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    """Of a number."""
    return searchsorted_number(batch, boundaries, self, out_int32, right, None, None)


@rule("block_diag")
def block_diag(batch: Batch, tensors: Any) -> Any:
    """Each padded to its place, and their sum."""
    blocks = [batch.again("aten::reshape", each, [1] * (2 - each.ndim) + list(each.shape)) if each.ndim < 2 else each for each in tensors]
    rows, columns = sum(each.shape[0] for each in blocks), sum(each.shape[1] for each in blocks)
    found, row, column = None, 0, 0
    for each in blocks:
        height, width = each.shape
        padded = batch.again("aten::constant_pad_nd", each, [column, columns - column - width, row, rows - row - height], 0)
        found = padded if found is None else batch.again("aten::add", found, padded)
        row, column = row + height, column + width
    return found


@rule("cartesian_prod")
def cartesian_prod(batch: Batch, tensors: Any) -> Any:
    """A grid of them, row by row."""
    if len(tensors) == 1:
        return tensors[0]
    grids = batch.again("aten::meshgrid", tensors)
    return batch.again("aten::stack", [batch.again("aten::reshape", each, [-1]) for each in grids], 1)


@rule("combinations")
def combinations(batch: Batch, self: Any, r: int, with_replacement: bool) -> Any:
    """Rows by index."""
    import itertools

    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(choose(range(self.shape[0]), r)), np.int64).reshape(-1, r)
    return batch.again("aten::take", self, Tensor(places))


@rule("matmul_backward")
def matmul_backward(batch: Batch, grad: Any, self: Any, other: Any, mask: Any) -> Any:
    """By its parts, of matrices or stacks of them."""
    if self.ndim < 2 or other.ndim < 2:
        raise UnsupportedError("aten::matmul_backward under vmap is not supported for vectors")
    first = batch.again("aten::sum_to_size", batch.again("aten::matmul", grad, batch.again("aten::mT", other)), list(self.shape))
    second = batch.again("aten::sum_to_size", batch.again("aten::matmul", batch.again("aten::mT", self), grad), list(other.shape))
    return first if mask[0] else None, second if mask[1] else None


@rule("put")
def put(batch: Batch, self: Any, index: Any, source: Any, accumulate: bool) -> Any:
    """Into all that shows in one dimension."""
    flat, place, given = (batch.again("aten::reshape", each, [-1]) for each in (self, index, source))
    found = batch.again("aten::scatter_add" if accumulate else "aten::scatter", flat, 0, place, given)
    return batch.again("aten::reshape", found, list(self.shape))


@rule("unfold_copy")
def unfold(batch: Batch, self: Any, dimension: int, size: int, step: int) -> Any:
    """The view, copied."""
    return batch.again("aten::clone", batch.again("aten::unfold", self, dimension, size, step))


@rule("result_type.Tensor result_type.Scalar result_type.Scalar_Tensor")
def result_type(batch: Batch, first: Any, second: Any) -> Any:
    """Of dtypes and visible ranks alone."""
    from irtool.ops.arrays import code_of, dtype_of
    from irtool.ops.promotion import result_type as promoted

    given = [np.empty((0,) * each.ndim, dtype_of(each.dtype)) if isinstance(each, Tensor) else each for each in (first, second)]
    return code_of(promoted(given))


@rule("polygamma_")
def polygamma(batch: Batch, self: Any, n: int) -> Any:
    """The tensor has a new value from now on."""
    return batch.layer.write_into(self, batch.again("aten::polygamma", n, self), batch.name)


@rule("prim::nbytes")
def nbytes(batch: Batch, self: Any) -> int:
    """Of what shows."""
    from irtool.ops.arrays import dtype_of

    return int(math.prod(self.shape) * dtype_of(self.dtype).itemsize)


@rule("_is_all_true")
def is_all_true(batch: Batch, self: Any) -> Any:
    """Of what shows."""
    return batch.again("aten::all", self)


@rule("_is_any_true")
def is_any_true(batch: Batch, self: Any) -> Any:
    """Of what shows."""
    return batch.again("aten::any", self)
