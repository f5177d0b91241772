"""Batching rules of normalizations. Batch norm has B in the channels, group norm in N, layer norm in front."""
from __future__ import annotations

from typing import Any

from irtool.ir.errors import RunError
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import folded, into_channels, into_rows, out_of_channels, out_of_rows, unfolded
from irtool.ops.kernels.normalization import table
from irtool.ops.size_facts import STATISTICS_WRITERS
from irtool.ops.tensor import Tensor, call

VECTORS = frozenset(("weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd", "save_var", "save_var_transform"))
"""Arguments with one number per channel."""


@table.batch("batch_norm native_batch_norm _native_batch_norm_legit _native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training "
             "_native_batch_norm_legit_functional _batch_norm_with_update _batch_norm_with_update_functional _batch_norm_no_update "
             "_batch_norm_impl_index native_batch_norm_backward batch_norm_backward _batch_norm_impl_index_backward")
def batch_norm(batch: Batch, *args: Any) -> Any:
    """x (N, C, ...) -> (N, B * C, ...), vectors (C) -> (B * C). Running statistics that are written must be batched."""
    arguments = batch.schema.arguments
    values = dict(zip([argument.name for argument in arguments], args, strict=True))
    running = [values.get("running_mean"), values.get("running_var")]
    writes = batch.kind in STATISTICS_WRITERS and values.get("training", True) and running[0] is not None
    if writes and not all(map(batch.has, running)):
        raise RunError(f"{batch.kind}: Batch norm got a batched tensor as input while the running_mean or running_var, which will be "
                       "updated in place, were not batched.", code="E0504")
    operands = []
    for argument, value in zip(arguments, args, strict=True):
        if not isinstance(value, Tensor):
            operands.append(value)
        elif value.shape == [0]:        # nothing saved
            operands.append(batch.do("aten::select", batch.front(value), 0, 0) if batch.has(value) else value)
        elif argument.name in VECTORS:
            operands.append(batch.do("aten::contiguous", into_rows(batch, value)))
        else:
            operands.append(into_channels(batch, value))
    places = {argument.name: place for place, argument in enumerate(arguments)}
    if writes:      # into copies, from which the results are taken
        for name in ("running_mean", "running_var"):
            operands[places[name]] = batch.do("aten::clone", operands[places[name]])
    result = batch.same(*operands)
    if writes:
        for name, target in zip(("running_mean", "running_var"), running, strict=True):
            batch.layer.write_into(target, out_of_rows(batch, operands[places[name]]), batch.name)
    if not isinstance(result, tuple):
        return out_of_channels(batch, result)
    return tuple([each if not isinstance(each, Tensor) or each.shape == [0] else out_of_rows(batch, each) if each.ndim == 1 else
                  out_of_channels(batch, each) for each in result])


def affine(batch: Batch, x: Any, weight: Any, bias: Any, shape: list[int]) -> Any:
    """x * weight + bias, each reshaped to `shape`."""
    if weight is not None:
        x = batch.again("aten::mul", x, batch.again("aten::reshape", weight, shape))
    return x if bias is None else batch.again("aten::add", x, batch.again("aten::reshape", bias, shape))


@table.batch("layer_norm native_layer_norm rms_norm _fused_rms_norm")
def layer_norm(batch: Batch, x: Any, shape: Any, weight: Any, *rest: Any) -> Any:
    """x (B, ...); batched weight and bias are multiplied and added afterwards."""
    is_rms = "rms" in batch.kind
    bias, tail = (None, rest) if is_rms else (rest[0], rest[1:])
    if not batch.has([weight, bias]):
        return batch.box(batch.same(batch.front(x), shape, weight, *rest))
    bare = batch.layer.apply(batch.name, [x, shape, None, *([] if is_rms else [None]), *tail])
    first, others = (bare[0], bare[1:]) if isinstance(bare, tuple) else (bare, ())
    first = affine(batch, first, weight, bias, list(shape))
    return (first, *others) if isinstance(bare, tuple) else first


def standardized(batch: Batch, x: Any, mean: Any, rstd: Any, shape: list[int]) -> Any:
    """(x - mean) * rstd, with a derivative in which mean and rstd depend on x."""
    def forward(x: Any, mean: Any, rstd: Any) -> Any:
        return (x - mean) * rstd, (x, mean, rstd)

    def backward(grad: Any, saved: Any) -> Any:
        x, mean, rstd = saved
        operands = (grad, x, shape, mean, rstd, None, None, [True, False, False])
        return [call("aten::native_layer_norm_backward", operands, {})[0], None, None]

    return batch.layer.custom_vjp(forward, backward, [x, mean, rstd])[0]


@table.batch("native_layer_norm_backward")
def layer_norm_backward(batch: Batch, grad: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, mask: Any) -> Any:
    """Of x: the operator without a weight, on grad * weight (B, ...). Of weight and bias: sums over the dimensions in front."""
    lead = list(range(x.ndim - len(shape)))
    inner = grad if weight is None else batch.again("aten::mul", grad, weight)
    of_x = of_weight = of_bias = None
    if mask[0]:
        operands = [batch.whole(inner), batch.whole(x), shape, batch.whole(mean), batch.whole(rstd), None, None, [True, False, False]]
        of_x = batch.box(batch.same(*operands)[0])
    if mask[1]:
        scaled = batch.again("aten::mul", grad, standardized(batch, x, mean, rstd, list(shape)))
        of_weight = batch.again("aten::sum", scaled, lead) if lead else scaled
    if mask[2]:
        of_bias = batch.again("aten::sum", grad, lead) if lead else grad
    return of_x, of_weight, of_bias


def per_channel(x: Any) -> list[int]:
    """(C) as a shape that broadcasts against x (N, C, ...)."""
    return [-1, *[1] * (x.ndim - 2)]


@table.batch("group_norm")
def group_norm(batch: Batch, x: Any, groups: int, weight: Any, bias: Any, eps: float, cudnn_enabled: bool) -> Any:
    """x (N, C, ...) -> (B * N, C, ...) without weight and bias; these afterwards."""
    bare = unfolded(batch, batch.same(folded(batch, x, 0), groups, None, None, eps, cudnn_enabled), x, 0)
    return affine(batch, bare, weight, bias, per_channel(x))


@table.batch("native_group_norm")
def native_group_norm(batch: Batch, x: Any, weight: Any, bias: Any, n: int, c: int, hxw: int, groups: int, eps: float) -> Any:
    """The same; mean and rstd (N, groups) come along."""
    bare = unfolded(batch, batch.same(folded(batch, x, 0), None, None, batch.length * n, c, hxw, groups, eps), x, 0)
    return (affine(batch, bare[0], weight, bias, per_channel(x)), *bare[1:])


@table.batch("native_group_norm_backward")
def group_norm_backward(batch: Batch, grad: Any, x: Any, mean: Any, rstd: Any, weight: Any, n: int, c: int, hxw: int, groups: int,
                        mask: Any) -> Any:
    """Of x: the operator without a weight, on grad * weight, N -> B * N. Of weight and bias: sums over all dimensions but C."""
    inner = grad if weight is None else batch.again("aten::mul", grad, batch.again("aten::reshape", weight, per_channel(x)))
    of_x = of_weight = of_bias = None
    summed = [0, *range(2, x.ndim)]
    if mask[0]:
        operands = [folded(batch, each, 0) for each in (inner, x, mean, rstd)]
        result = batch.same(*operands, None, batch.length * n, c, hxw, groups, [True, False, False])
        of_x = unfolded(batch, result[0], x, 0)
    if mask[1]:
        grouped, centre, scale = (batch.again("aten::reshape", each, [n, groups, -1]) for each in (x, mean, rstd))
        scaled = standardized(batch, grouped, centre, scale, grouped.shape[2:])
        of_weight = batch.again("aten::sum", batch.again("aten::mul", grad, batch.again("aten::reshape", scaled, list(x.shape))), summed)
    if mask[2]:
        of_bias = batch.again("aten::sum", grad, summed)
    return of_x, of_weight, of_bias


@table.batch("instance_norm")
def instance_norm(batch: Batch, x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, *rest: Any) -> Any:
    """x (N, C, ...) -> (B * N, C, ...) if statistics are those of x, else batch_norm. Raises RunError if they would be written."""
    if running_mean is None and rest[0]:
        bare = unfolded(batch, batch.same(folded(batch, x, 0), None, None, None, None, *rest), x, 0)
        return affine(batch, bare, weight, bias, per_channel(x))
    if not rest[0]:
        _, momentum, eps, cudnn = rest
        return batch.again("aten::batch_norm", x, weight, bias, running_mean, running_var, False, momentum, eps, cudnn)
    raise RunError(f"{batch.kind} under vmap writes no running statistics: give none", code="E0504")
