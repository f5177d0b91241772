"""Convolutions, their gradients, pools and norms as calls of loops in C, where all sizes are known."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from irtool.execute.fusion import GroupOptions
from irtool.execute.native.building import compiler
from irtool.execute.native.convolution_calls import WORTH_IT, Convolution, Geometry, convolution
from irtool.execute.native.convolution_source import MOST_TAPS
from irtool.execute.native.row_norms import WORTH_IT as NORM_WORTH_IT
from irtool.execute.native.row_norms import RowNorm, Rows
from irtool.execute.native.stages import NotNative
from irtool.execute.plan import costs
from irtool.execute.plan.memory import every, overwrites
from irtool.execute.plan.program import Call, Group, Item, Known, Program, Variable, meta_of_item, numbers_of
from irtool.ir.errors import RunError
from irtool.ir.graph import Node
from irtool.ops.array_library import np
from irtool.ops.kernels.pooling import Geometry as Pool
from irtool.ops.symbols.array_layout import Meta, dummy, fresh_meta, meta_of

BACKWARD = "aten::convolution_backward"
NORMS = ("aten::layer_norm", "aten::group_norm")
POOLS = ("aten::max_pool", "aten::avg_pool")
Calls = tuple[list[Call], list[Item]]


def is_convolution(kind: str) -> bool:
    """May a node of a kind become calls of loops in C?"""
    return kind in ("aten::convolution", "aten::_convolution", BACKWARD, *NORMS) \
        or kind[:-2] in ("aten::conv", "aten::conv_transpose", *POOLS)


def convolution_calls(node: Node, items: Sequence[Item], program: Program, options: GroupOptions) -> Calls:
    """The calls for a convolution node, or for its gradient, and its results; none where the node remains a call of the operator: sizes are
    unknown or wrong, it is small, there is no C compiler, or C is off."""
    lower = backward if node.kind == BACKWARD else pool if node.kind[:-2] in POOLS else norm if node.kind in NORMS else forward
    if options.native is False or compiler() is None or len(items) < (7 if lower in (backward, forward) else 6):
        return [], []
    try:
        return lower(node, items, program, options) or ([], [])
    except (NotNative, ValueError, RunError):       # ValueError: another form than the operator's; RunError: which reports it
        return [], []


def forward(node: Node, items: Sequence[Item], program: Program, options: GroupOptions) -> Calls | None:
    """A convolution, plain or transposed."""
    if "convolution" in node.kind:
        stride, padding, dilation, transposed, more, groups = items[3:9]
    elif "transpose" in node.kind:
        (stride, padding, more, groups, dilation), transposed = items[3:8], Known(True)
    else:
        (stride, padding, dilation, groups), transposed, more = items[3:7], Known(False), Known([0])
    x, weight, bias = [meta_of_item(item) for item in items[:3]]
    has_bias = not (isinstance(items[2], Known) and items[2].value is None)
    sizes = form(x, weight, (stride, padding, dilation, more), transposed, groups, options)
    if sizes is None or x is None or weight is None:
        return None
    at, use = sizes
    outs = at.groups * (at.channels if use == "transposed" else at.outs)
    if has_bias and (bias is None or bias.dtype != x.dtype or bias.shape != (outs,)):
        return None
    rank = len(weight.shape) - 2
    shape = (*x.shape[:-rank - 1], outs, *(at.extents if use == "transposed" else at.counts)[-rank:])
    out = program.variable(fresh_meta(x.dtype, shape))
    function = convolution(use, at, shape, x.dtype, has_bias, crew(options))
    return [Call(function, tuple(items[:2 + has_bias]), {}, out, "out", node)], [out]


def pool(node: Node, items: Sequence[Item], program: Program, options: GroupOptions) -> Calls | None:
    """The largest elements of windows, or their means as a depthwise convolution."""
    x, rank, is_mean = meta_of_item(items[0]), int(node.kind[-2]), node.kind.startswith(POOLS[1])
    if x is None or x.dtype.char not in "fd" or 0 in x.shape or not x.is_contiguous:
        return None
    size, stride, padding = [numbers_of(each) for each in items[1:4]]
    dilation, (ceil, *rest) = ([1], items[4:]) if is_mean else (numbers_of(items[4]), items[5:])
    at: Any = Pool("", dummy(x), size, stride, padding, dilation, value_of(ceil), rank)     # type: ignore[no-untyped-call]
    override = value_of(rest[1]) if len(rest) > 1 else None
    if is_mean and override is None and (value_of(ceil) or any(at.padding) and not value_of(rest[0])):
        return None     # windows of several sizes
    ones = [1] * (3 - rank)
    extents, counts, kernel, strides, dilations = [(*ones, *each) for each in (at.extents, at.counts, at.kernel, at.stride, at.dilation)]
    channels, shape = x.shape[-rank - 1], (*x.shape[:-rank], *at.counts)
    geometry = Geometry(x.shape[0] if len(x.shape) > rank + 1 else 1, channels, 1, 1, extents, counts, kernel, strides, dilations,
                        (*[0] * (3 - rank), *at.padding))
    if geometry.products < WORTH_IT and not options.native or math.prod(kernel) > MOST_TAPS or is_mean and channels == 1:
        return None
    weight = items[0]
    if is_mean:
        mean = np.full((channels, 1, *kernel), 1 / (override or math.prod(kernel)), x.dtype)
        weight = program.variable(meta_of(mean), None, mean)
    out = program.variable(fresh_meta(x.dtype, shape))
    function = Convolution("forward" if is_mean else "maximum", geometry, shape, x.dtype, False, crew(options))
    return [Call(function, (items[0], weight), {}, out, "out", node)], [out]


def norm(node: Node, items: Sequence[Item], program: Program, options: GroupOptions) -> Calls | None:
    """Layer norm or group norm."""
    x, given = meta_of_item(items[0]), [each for each in items[2:4] if not (isinstance(each, Known) and each.value is None)]
    if x is None or x.dtype.char not in "fd" or 0 in x.shape or not (x.is_contiguous or node.kind == NORMS[0]):
        return None
    if node.kind == NORMS[0]:
        parts = tuple(numbers_of(items[1]))
        at = Rows(math.prod(x.shape) // math.prod(parts), 1, math.prod(parts), 1)
        if not parts or x.shape[-len(parts):] != parts:
            return None
    else:
        groups = value_of(items[1])
        if len(x.shape) < 2 or groups < 1 or x.shape[1] % groups:
            return None
        parts, at = x.shape[1:2], Rows(x.shape[0] * groups, groups, x.shape[1] // groups, math.prod(x.shape[2:]))
    metas = [meta_of_item(each) for each in given]
    if any(each is None or each.dtype != x.dtype or each.shape != parts for each in metas) \
            or math.prod(x.shape) < NORM_WORTH_IT and not options.native:
        return None
    has = [not (isinstance(each, Known) and each.value is None) for each in items[2:4]]
    out = program.variable(fresh_meta(x.dtype, x.shape))
    function = RowNorm(at, x.shape, x.dtype, has[0], has[1], float(value_of(items[4])), crew(options))
    return [Call(function, (items[0], *given), {}, out, "out", node)], [out]


def value_of(item: Item) -> Any:
    """The value of a known item. Raises NotNative for another."""
    if not isinstance(item, Known):
        raise NotNative("an argument is not known")
    return item.value


def backward(node: Node, items: Sequence[Item], program: Program, options: GroupOptions) -> Calls | None:
    """The gradients of a convolution for its input, its weight and its bias, as far as they are asked for and read."""
    grad, x, weight, _, stride, padding, dilation, transposed, more, groups, mask = items
    metas = [meta_of_item(item) for item in (grad, x, weight)]
    asked = mask.value if isinstance(mask, Known) else [each.value for each in mask.items if isinstance(each, Known)] \
        if isinstance(mask, Group) else []
    sizes = form(metas[1], metas[2], (stride, padding, dilation, more), transposed, groups, options)
    if sizes is None or len(asked) != 3 or len(node.outputs) != 3 or metas[0] is None or metas[1] is None or metas[2] is None:
        return None
    at, use = sizes
    rank = len(metas[2].shape) - 2
    outs, counts = (at.channels, at.extents) if use == "transposed" else (at.outs, at.counts)
    if metas[0].dtype != metas[1].dtype or metas[0].shape != (*metas[1].shape[:-rank - 1], at.groups * outs, *counts[-rank:]):
        return None
    asked = [each and bool(out.uses) for each, out in zip(asked, node.outputs, strict=True)]
    results: list[Item] = [Known(None)] * 3
    calls: list[Call] = []
    if asked[0]:
        results[0] = out = program.variable(fresh_meta(metas[1].dtype, metas[1].shape))
        function = convolution("forward" if use == "transposed" else "transposed", at, metas[1].shape, metas[1].dtype, False, crew(options))
        calls.append(Call(function, (grad, weight), {}, out, "out", node))
    if asked[1]:
        results[1] = out = program.variable(fresh_meta(metas[2].dtype, metas[2].shape))
        function = convolution("weight", at, metas[2].shape, metas[2].dtype, False, crew(options))
        calls.append(Call(function, (grad, x) if use == "transposed" else (x, grad), {}, out, "out", node))
    if asked[2]:
        results[2] = out = program.variable(fresh_meta(metas[0].dtype, (at.groups * outs,)))
        axes = tuple([axis for axis in range(len(metas[0].shape)) if axis != len(metas[0].shape) - rank - 1])
        calls.append(Call(np.ndarray.sum, (grad,), {"axis": axes}, out, "fresh", node))
    return calls, results


def prepare_weights(program: Program) -> None:
    """Bring constant weights of convolutions into the form in which they are multiplied."""
    if overwrites(program):
        return
    for call in every(program.body):
        if isinstance(call, Call) and isinstance(call.function, Convolution):
            weight = call.args[1]
            if isinstance(weight, Variable) and weight.constant is not None:
                call.function, prepared = call.function.frozen(weight.constant)
                call.args = (call.args[0], program.variable(meta_of(prepared), None, prepared), *call.args[2:])


def crew(options: GroupOptions) -> int:
    """How many threads may share a convolution: as many as a product of BLAS, which it would be otherwise."""
    return max(options.threads, costs.blas_threads())


def form(x: Meta | None, weight: Meta | None, lists: Sequence[Item], transposed: Item, groups: Item,
         options: GroupOptions) -> tuple[Geometry, str] | None:
    """The sizes and the use of a convolution: "forward", or "transposed" with the sizes of the convolution that it reverses. None if they
    are not known, or do not fit, or the convolution is small. lists: stride, padding, dilation, output padding."""
    if x is None or weight is None or x.dtype != weight.dtype or x.dtype.char not in "fd" or 0 in (*x.shape, *weight.shape):
        return None
    rank = len(weight.shape) - 2
    if not isinstance(transposed, Known) or not isinstance(groups, Known) or not 1 <= rank <= 3 or len(x.shape) not in (rank + 1, rank + 2):
        return None
    numbers = [numbers_of(each) for each in lists]
    stride, padding, dilation, more = [each * rank if len(each) == 1 else each for each in numbers]
    count, is_transposed = groups.value, bool(transposed.value)
    if any(len(each) != rank for each in (stride, padding, dilation)) or is_transposed and len(more) != rank or count < 1 \
            or min(*stride, *dilation) < 1 or min(padding) < 0 or weight.shape[0] % count:
        return None
    if x.shape[-rank - 1] != (weight.shape[0] if is_transposed else weight.shape[1] * count):
        return None
    extents, counts = [], []
    for place, size in enumerate(x.shape[-rank:]):
        s, p, d, k = stride[place], padding[place], dilation[place], weight.shape[2 + place]
        if is_transposed:
            if not 0 <= more[place] < max(s, d):
                return None
            counts.append(size)
            extents.append((size - 1) * s - 2 * p + d * (k - 1) + 1 + more[place])
        else:
            extents.append(size)
            counts.append((size + 2 * p - d * (k - 1) - 1) // s + 1)
    if min(*extents, *counts) < 1:
        return None
    sizes, nothing = [(*[1] * (3 - rank), *each) for each in (extents, counts, weight.shape[2:], stride, dilation)], [0] * (3 - rank)
    at = Geometry(x.shape[0] if len(x.shape) > rank + 1 else 1, count, weight.shape[1], weight.shape[0] // count, sizes[0], sizes[1],
                  sizes[2], sizes[3], sizes[4], (*nothing, *padding))
    return (at, "transposed" if is_transposed else "forward") if options.native or at.products >= WORTH_IT else None


__all__ = ["convolution_calls", "is_convolution", "prepare_weights"]
