"""Batching rules of random numbers: B times as many with randomness='different', one draw for all with 'same'."""
from __future__ import annotations

from typing import Any

from irtool.ir.effects import OPERAND_ITSELF
from irtool.ir.errors import UnsupportedError
from irtool.ops.batch import Batch
from irtool.ops.kernels.random import table
from irtool.ops.tensor import Tensor


@table.batch("rand_like rand_like.generator randn_like randn_like.generator randint_like randint_like.low_dtype randint_like.generator "
             "randint_like.low_generator_dtype uniform normal_functional log_normal exponential cauchy geometric random random.to "
             "random.from bernoulli.p")
def random_like(batch: Batch, self: Any, *args: Any) -> Any:
    """randomness='different': numbers (B, ...). 'same': (...), which are not batched."""
    if batch.layer.randomness == "different":
        return batch.box(batch.same(batch.whole(self), *args))
    return batch.same(batch.do("aten::select", batch.front(self), 0, 0), *args)


@table.batch("randint_like.Tensor randint_like.Tensor_generator bernoulli bernoulli.Tensor poisson binomial _standard_gamma "
             "_sample_dirichlet normal.Tensor_Tensor normal.Tensor_float normal.float_Tensor native_dropout dropout feature_dropout "
             "alpha_dropout feature_alpha_dropout multinomial")
def random_of(batch: Batch, *args: Any) -> Any:
    """Operands (B, ...). With 'same' only dropout takes batched operands: one mask for all."""
    if batch.kind in OPERAND_ITSELF and (not args[2] or args[1] == 0):      # nothing is dropped
        return args[0]
    if batch.layer.randomness == "same" and batch.has(list(args)):
        if batch.kind in ("aten::dropout", "aten::feature_dropout"):
            x, p, _ = args
            if p == 1:
                return batch.again("aten::mul", x, 0.0)
            ones = batch.do("aten::ones_like", batch.do("aten::select", batch.front(x), 0, 0))
            if batch.kind == "aten::feature_dropout" and ones.ndim > 2:     # a channel is kept whole
                ones = batch.do("aten::amax", ones, list(range(2, ones.ndim)), True)
            mask = batch.do("aten::bernoulli", ones, 1 - p)
            return batch.again("aten::div", batch.again("aten::mul", x, mask), 1 - p)
        raise UnsupportedError(f"{batch.kind} under vmap is not supported with randomness='same' where its operands are batched",
                               code="E0504")
    if batch.kind in ("aten::feature_dropout", "aten::feature_alpha_dropout") and batch.has(list(args)) and args[0].ndim > 1:
        whole = batch.front(args[0])        # channels of samples, their first two dimensions, are dropped
        dropped = batch.same(batch.do("aten::flatten", whole, 0, 1), *args[1:])
        return batch.box(batch.do("aten::reshape", dropped, list(whole.shape)))
    return batch.box(batch.same(*[batch.whole(each) if isinstance(each, Tensor) else each for each in args]))


@table.batch("rand rand.generator randn randn.generator")
def random_of_size(batch: Batch, size: Any, *args: Any) -> Any:
    """size -> (B, *size)."""
    return batch.box(batch.same([batch.length, *size], *args))


@table.batch("randperm randperm.generator")
def permutation(batch: Batch, n: int, *args: Any) -> Any:
    """(B, n): argsort of random numbers."""
    order = batch.do("aten::argsort", batch.do("aten::rand", [batch.length, n]), 1)
    dtype = args[-4]
    return batch.box(order if dtype is None else batch.do("aten::to", order, dtype))


@table.batch("randint randint.generator randint.low randint.low_generator normal.float_float")
def random_ints(batch: Batch, *args: Any) -> Any:
    """size -> (B, *size)."""
    place = batch.schema.positions["size"]
    return batch.box(batch.same(*args[:place], [batch.length, *args[place]], *args[place + 1:]))


@table.batch("normal_ _no_grad_normal_ _no_grad_uniform_ bernoulli_")
def draw_into(batch: Batch, self: Any, *args: Any) -> Any:
    """New values (B, ...) for self, or with 'same' one draw (...) for all."""
    if batch.layer.randomness == "different":
        operands = [batch.whole(batch.again("aten::expand", each, list(self.shape))) if isinstance(each, Tensor) else each for each in args]
        numbers = batch.same(batch.do("aten::zeros_like", batch.whole(self)), *operands)
    elif batch.has(list(args)):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported with randomness='same' where its operands are batched",
                               code="E0504")
    else:
        numbers = batch.layer.whole(batch.same(batch.do("aten::zeros_like", batch.do("aten::select", batch.front(self), 0, 0)), *args))
    return batch.layer.write_into(self, batch.box(numbers), batch.name)
