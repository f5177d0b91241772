"""Normalizations. Of batches: the hidden dimension goes into the channels. Of layers and groups: it is one more in front."""
from __future__ import annotations

from typing import Any

from irtool.dispatch.batched import Batch
from irtool.dispatch.batching import rule
from irtool.dispatch.batching.images import folded, into_channels, into_rows, out_of_channels, unfolded
from irtool.ir.errors import RunError
from irtool.ops.size_facts import STATISTICS_WRITERS
from irtool.ops.tensor import Tensor, call

VECTORS = frozenset(("weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd", "save_var", "save_var_transform"))
"""Arguments with one number per channel."""


@rule("""batch_norm native_batch_norm _native_batch_norm_legit _native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training
         _native_batch_norm_legit_functional _batch_norm_with_update _batch_norm_with_update_functional _batch_norm_no_update
         _batch_norm_impl_index native_batch_norm_backward batch_norm_backward _batch_norm_impl_index_backward""")
def batch_norm(batch: Batch, *args: Any) -> Any:
    """As of more channels. Running statistics that are written must be batched too."""
    arguments = batch.schema.arguments
    values = dict(zip([argument.name for argument in arguments], args, strict=True))
    running = [values.get("running_mean"), values.get("running_var")]
    writes = batch.kind in STATISTICS_WRITERS and values.get("training", True) and running[0] is not None
    if writes and not all(map(batch.has, running)):
        raise RunError(f"{batch.kind}: Batch norm got a batched tensor as input while the running_mean or running_var, which will be "
                       "updated in place, were not batched.")
    given = []
    for argument, value in zip(arguments, args, strict=True):
        if not isinstance(value, Tensor):
            given.append(value)
        elif value.shape == [0]:        # nothing saved
            given.append(batch.do("aten::select", batch.front(value), 0, 0) if batch.has(value) else value)
        elif argument.name in VECTORS:
            given.append(batch.do("aten::contiguous", into_rows(batch, value)))
        else:
            given.append(into_channels(batch, value))
    places = {argument.name: place for place, argument in enumerate(arguments)}
    if writes:      # into copies, from where they are taken
        for name in ("running_mean", "running_var"):
            given[places[name]] = batch.do("aten::clone", given[places[name]])
    result = batch.same(*given)
    if writes:
        for name, target in zip(("running_mean", "running_var"), running, strict=True):
            batch.layer.write_into(target, rows_out(batch, given[places[name]]), batch.name)
    if not isinstance(result, tuple):
        return out_of_channels(batch, result)
    return tuple([each if not isinstance(each, Tensor) or each.shape == [0] else rows_out(batch, each) if each.ndim == 1 else
                  out_of_channels(batch, each) for each in result])


def rows_out(batch: Batch, value: Any) -> Any:
    """(B * C) with B hidden."""
    return batch.box(batch.do("aten::reshape", value, [batch.length, batch.share(value.shape[0])]))


def affine(batch: Batch, x: Any, weight: Any, bias: Any, shape: list[int]) -> Any:
    """x times a weight plus a bias, each in a shape that broadcasts."""
    if weight is not None:
        x = batch.again("aten::mul", x, batch.again("aten::reshape", weight, shape))
    return x if bias is None else batch.again("aten::add", x, batch.again("aten::reshape", bias, shape))


@rule("layer_norm native_layer_norm rms_norm _fused_rms_norm")
def layer_norm(batch: Batch, x: Any, shape: Any, weight: Any, *rest: Any) -> Any:
    """Without weight and bias where those are batched; then with them."""
    is_rms = "rms" in batch.kind
    bias, tail = (None, rest) if is_rms else (rest[0], rest[1:])
    if not batch.has([weight, bias]):
        return batch.box(batch.same(batch.front(x), shape, weight, *rest))
    bare = batch.layer.apply(batch.name, [x, shape, None, *([] if is_rms else [None]), *tail])
    first, others = (bare[0], bare[1:]) if isinstance(bare, tuple) else (bare, ())
    first = affine(batch, first, weight, bias, list(shape))
    return (first, *others) if isinstance(bare, tuple) else first


def standardized(batch: Batch, x: Any, mean: Any, rstd: Any, shape: list[int]) -> Any:
    """x without its mean, over its spread. Its derivative knows that both of them depend on x."""
    def forward(x: Any, mean: Any, rstd: Any) -> Any:
        return (x - mean) * rstd, (x, mean, rstd)

    def backward(grad: Any, saved: Any) -> Any:
        x, mean, rstd = saved
        given = (grad, x, shape, mean, rstd, None, None, [True, False, False])
        return [call("aten::native_layer_norm_backward", given, {})[0], None, None]

    return batch.layer.custom_vjp(forward, backward, [x, mean, rstd])[0]


@rule("native_layer_norm_backward")
def layer_norm_backward(batch: Batch, grad: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, mask: Any) -> Any:
    """The gradient of x without a weight, of a gradient that has it in; those of weight and bias are sums."""
    lead = list(range(x.ndim - len(shape)))
    inner = grad if weight is None else batch.again("aten::mul", grad, weight)
    of_x = of_weight = of_bias = None
    if mask[0]:
        given = [batch.whole(inner), batch.whole(x), shape, batch.whole(mean), batch.whole(rstd), None, None, [True, False, False]]
        of_x = batch.box(batch.same(*given)[0])
    if mask[1]:
        scaled = batch.again("aten::mul", grad, standardized(batch, x, mean, rstd, list(shape)))
        of_weight = batch.again("aten::sum", scaled, lead) if lead else scaled
    if mask[2]:
        of_bias = batch.again("aten::sum", grad, lead) if lead else grad
    return of_x, of_weight, of_bias


def per_channel(x: Any) -> list[int]:
    """A shape in which one number per channel broadcasts."""
    return [-1, *[1] * (x.ndim - 2)]


@rule("group_norm")
def group_norm(batch: Batch, x: Any, groups: int, weight: Any, bias: Any, eps: float, cudnn_enabled: bool) -> Any:
    """N takes the hidden dimension; then weight and bias."""
    bare = unfolded(batch, batch.same(folded(batch, x, 0), groups, None, None, eps, cudnn_enabled), x, 0)
    return affine(batch, bare, weight, bias, per_channel(x))


@rule("native_group_norm")
def native_group_norm(batch: Batch, x: Any, weight: Any, bias: Any, n: int, c: int, hxw: int, groups: int, eps: float) -> Any:
    """The same, and the statistics."""
    bare = unfolded(batch, batch.same(folded(batch, x, 0), None, None, batch.length * n, c, hxw, groups, eps), x, 0)
    return (affine(batch, bare[0], weight, bias, per_channel(x)), *bare[1:])


@rule("native_group_norm_backward")
def group_norm_backward(batch: Batch, grad: Any, x: Any, mean: Any, rstd: Any, weight: Any, n: int, c: int, hxw: int, groups: int,
                        mask: Any) -> Any:
    """The gradient of x without a weight, of a gradient that has it in; those of weight and bias are sums."""
    inner = grad if weight is None else batch.again("aten::mul", grad, batch.again("aten::reshape", weight, per_channel(x)))
    of_x = of_weight = of_bias = None
    kept = [0, *range(2, x.ndim)]
    if mask[0]:
        given = [folded(batch, each, 0) for each in (inner, x, mean, rstd)]
        result = batch.same(*given, None, batch.length * n, c, hxw, groups, [True, False, False])
        of_x = unfolded(batch, result[0], x, 0)
    if mask[1]:
        grouped, centre, scale = (batch.again("aten::reshape", each, [n, groups, -1]) for each in (x, mean, rstd))
        scaled = standardized(batch, grouped, centre, scale, grouped.shape[2:])
        of_weight = batch.again("aten::sum", batch.again("aten::mul", grad, batch.again("aten::reshape", scaled, list(x.shape))), kept)
    if mask[2]:
        of_bias = batch.again("aten::sum", grad, kept)
    return of_x, of_weight, of_bias


@rule("instance_norm")
def instance_norm(batch: Batch, x: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, *rest: Any) -> Any:
    """N takes the hidden dimension, where statistics are of the input; then weight and bias."""
    if running_mean is None and rest[0]:
        bare = unfolded(batch, batch.same(folded(batch, x, 0), None, None, None, None, *rest), x, 0)
        return affine(batch, bare, weight, bias, per_channel(x))
    if not rest[0]:
        _, momentum, eps, cudnn = rest
        return batch.again("aten::batch_norm", x, weight, bias, running_mean, running_var, False, momentum, eps, cudnn)
    raise RunError(f"{batch.kind} under vmap writes no running statistics: give none")


# ---- weight normalization

@rule("norm_except_dim")
def norm_except_dim(batch: Batch, v: Any, pow: int, dim: int) -> Any:
    """The norm of what shows, but for one dimension."""
    dims = [place for place in range(v.ndim) if dim == -1 or place != dim]
    found = batch.again("aten::linalg_vector_norm", v, pow, dims, True)
    return batch.again("aten::reshape", found, []) if dim == -1 else found


@rule("_weight_norm _weight_norm_interface")
def weight_norm(batch: Batch, v: Any, g: Any, dim: int) -> Any:
    """v times g over the norm of v."""
    norm = batch.again("aten::norm_except_dim", v, 2, dim)
    found = batch.again("aten::mul", v, batch.again("aten::div", g, norm))
    return found if batch.kind == "aten::_weight_norm" else (found, norm)
