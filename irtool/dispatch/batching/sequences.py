"""Sequences of different lengths: their rows are folded together, or the hidden dimension goes behind all others."""
from __future__ import annotations

from typing import Any

from irtool.dispatch.batched import Batch
from irtool.dispatch.batching import rule, wrapped_dim
from irtool.dispatch.batching.losses import MEAN, NONE, SUM
from irtool.dispatch.batching.others import rows_apart, time_and_rows
from irtool.dispatch.stack import look_at
from irtool.ir.errors import UnsupportedError
from irtool.ops.tensor import Tensor


def refuse_batched(batch: Batch, values: Any, what: str) -> None:
    """Raise UnsupportedError where lengths and the like differ from place to place."""
    if batch.has(values):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported where {what} are batched")


# ---- connectionist temporal classification

def folded_lengths(batch: Batch, lengths: Any) -> Any:
    """Lengths of the rows of all places."""
    if isinstance(lengths, Tensor):
        return time_and_rows(batch, batch.again("aten::reshape", lengths, [-1]), 0)
    return list(lengths) * batch.length


def folded_samples(batch: Batch, log_probs: Any, targets: Any, lengths: Any) -> tuple[Any, Any]:
    """(time, rows of all places, classes) and their targets."""
    if targets.ndim == 1 and batch.has(lengths):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported where lengths are batched and targets stand in one row")
    return time_and_rows(batch, log_probs, 1), time_and_rows(batch, targets, 0)


@rule("ctc_loss.IntList ctc_loss.Tensor")
def ctc_loss(batch: Batch, log_probs: Any, targets: Any, inputs: Any, outputs: Any, blank: int, reduction: int, infinite: bool) -> Any:
    """More rows, one loss each; then the mean or sum of those of a place."""
    is_single = log_probs.ndim == 2
    if is_single:
        log_probs = batch.again("aten::unsqueeze", log_probs, 1)
    logs, labels = folded_samples(batch, log_probs, targets, outputs)
    found = batch.same(logs, labels, folded_lengths(batch, inputs), folded_lengths(batch, outputs), blank, NONE, infinite)
    losses = rows_apart(batch, found, 0)
    if reduction == MEAN:
        counts = outputs if isinstance(outputs, Tensor) else batch.do("aten::tensor", list(outputs))
        losses = batch.again("aten::div", losses, batch.again("aten::to", batch.again("aten::clamp_min", counts, 1), losses.dtype))
        return batch.again("aten::mean", losses)
    if reduction == SUM:
        return batch.again("aten::sum", losses)
    return batch.again("aten::reshape", losses, []) if is_single else losses


@rule("_ctc_loss _ctc_loss.Tensor")
def ctc_with_alpha(batch: Batch, log_probs: Any, targets: Any, inputs: Any, outputs: Any, *rest: Any) -> Any:
    """More rows."""
    logs, labels = folded_samples(batch, log_probs, targets, outputs)
    found = batch.same(logs, labels, folded_lengths(batch, inputs), folded_lengths(batch, outputs), *rest)
    return tuple([rows_apart(batch, each, 0) for each in found])


@rule("_ctc_loss_backward _ctc_loss_backward.Tensor")
def ctc_backward(batch: Batch, grad: Any, log_probs: Any, targets: Any, inputs: Any, outputs: Any, loss: Any, alpha: Any,
                 *rest: Any) -> Any:
    """More rows."""
    logs, labels = folded_samples(batch, log_probs, targets, outputs)
    grads, losses, alphas = (time_and_rows(batch, each, 0) for each in (grad, loss, alpha))
    found = batch.same(grads, logs, labels, folded_lengths(batch, inputs), folded_lengths(batch, outputs), losses, alphas, *rest)
    return rows_apart(batch, found, 1)


# ---- packed and padded

def behind(batch: Batch, x: Any) -> Any:
    """A tensor of the layer below, with the hidden dimension after all others."""
    return batch.do("aten::movedim", batch.whole(x), 0, -1)


@rule("_pack_padded_sequence")
def pack(batch: Batch, x: Any, lengths: Any, batch_first: bool) -> Any:
    """What stands behind time and rows goes along."""
    refuse_batched(batch, lengths, "lengths")
    data, sizes = batch.same(behind(batch, x), lengths, batch_first)
    return batch.box(data, data.ndim - 1), sizes


@rule("_pad_packed_sequence")
def pad(batch: Batch, data: Any, sizes: Any, *rest: Any) -> Any:
    """The same, back."""
    refuse_batched(batch, sizes, "batch sizes")
    found, lengths = batch.same(behind(batch, data), sizes, *rest)
    return batch.box(found, found.ndim - 1), lengths


@rule("segment_reduce")
def segment_reduce(batch: Batch, data: Any, reduce: str, lengths: Any, indices: Any, offsets: Any, axis: int, *rest: Any) -> Any:
    """What stands behind the segments goes along."""
    refuse_batched(batch, [lengths, indices, offsets], "segments")
    found = batch.same(behind(batch, data), reduce, lengths, indices, offsets, wrapped_dim(axis, data.ndim), *rest)
    return batch.box(found, found.ndim - 1)


# ---- layers through time

@rule("lstm.input gru.input rnn_tanh.input rnn_relu.input")
def through_time(batch: Batch, x: Any, hx: Any, params: Any, *rest: Any) -> Any:
    """More rows for the same weights; step by step where weights are batched."""
    *options, batch_first = rest
    if x.ndim != 3:
        states = [batch.again("aten::unsqueeze", each, 1) for each in (hx if isinstance(hx, list | tuple) else [hx])]
        found = batch.again(batch.kind, batch.again("aten::unsqueeze", x, 1), states if isinstance(hx, list | tuple) else states[0],
                            list(params), *options, False)
        return tuple([batch.again("aten::squeeze", each, 1) for each in found])
    dim = 0 if batch_first else 1
    if batch.has(params):
        first = batch.again("aten::transpose", x, 0, 1) if batch_first else x
        rows = batch.again("aten::flatten", first, 0, 1)
        found = stepwise(batch, rows, [first.shape[1]] * first.shape[0], hx, params, *options)
        output = batch.again("aten::reshape", found[0], [*first.shape[:2], found[0].shape[-1]])
        return (batch.again("aten::transpose", output, 0, 1) if batch_first else output, *found[1:])
    states = [time_and_rows(batch, each, 1) for each in (hx if isinstance(hx, list | tuple) else [hx])]
    found = batch.same(time_and_rows(batch, x, dim), states if isinstance(hx, list | tuple) else states[0], params, *rest)
    return (rows_apart(batch, found[0], dim), *[rows_apart(batch, each, 1) for each in found[1:]])


@rule("lstm.data gru.data rnn_tanh.data rnn_relu.data")
def packed_layers(batch: Batch, data: Any, sizes: Any, hx: Any, params: Any, *rest: Any) -> Any:
    """Each row becomes as many rows as there are places; step by step where weights are batched."""
    refuse_batched(batch, sizes, "batch sizes")
    if batch.has(list(params)):
        return stepwise(batch, data, look_at(sizes).tolist(), hx, params, *rest)

    def beside(x: Any, dim: int) -> Any:
        moved = batch.do("aten::movedim", batch.whole(x), 0, dim + 1)
        return batch.do("aten::flatten", moved, dim, dim + 1)

    def apart(x: Any, dim: int) -> Any:
        return batch.box(batch.do("aten::unflatten", x, dim, [-1, batch.length]), dim + 1)

    is_list = isinstance(hx, list | tuple)
    states = [beside(each, 1) for each in (hx if is_list else [hx])]
    found = batch.same(beside(data, 0), batch.do("aten::mul", sizes, batch.length), states if is_list else states[0], params, *rest)
    return (apart(found[0], 0), *[apart(each, 1) for each in found[1:]])


def stepwise(batch: Batch, rows: Any, sizes: list[int], hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float,
             train: bool, bidirectional: bool) -> Any:
    """Layers of cells over rows of all times, `sizes[t]` of them at time t: (rows, last states...)."""
    directions = 2 if bidirectional else 1
    count = 4 if has_biases else 2
    if len(params) != count * num_layers * directions or dropout and train:
        raise UnsupportedError(f"{batch.kind} under vmap is not supported where weights are batched with projections or dropout")
    initial = list(hx) if isinstance(hx, list | tuple) else [hx]
    finals: list[list[Any]] = []
    for layer in range(num_layers):
        sides = []
        for direction in range(directions):
            place = layer * directions + direction
            weights = [*params[place * count:(place + 1) * count], *[None] * (4 - count)]
            states = [batch.again("aten::select", each, 0, place) for each in initial]
            run = forwards if direction == 0 else backwards
            outputs, last = run(batch, rows, sizes, states, weights)
            sides.append(batch.again("aten::cat", outputs, 0))
            finals.append(last)
        rows = sides[0] if directions == 1 else batch.again("aten::cat", sides, -1)
    return (rows, *[batch.again("aten::stack", list(each), 0) for each in zip(*finals, strict=True)])


def cell(batch: Batch, x: Any, states: list[Any], weights: list[Any]) -> list[Any]:
    """One step: the new states."""
    found = batch.again(f"{batch.kind}_cell", x, states if len(states) > 1 else states[0], *weights)
    return list(found) if isinstance(found, tuple) else [found]


def part(batch: Batch, x: Any, start: int, length: int) -> Any:
    """Some rows."""
    return batch.again("aten::narrow", x, 0, start, length)


def forwards(batch: Batch, rows: Any, sizes: list[int], states: list[Any], weights: list[Any]) -> tuple[list[Any], list[Any]]:
    """Outputs by time, and last states: rows that have ended wait for the others."""
    outputs: list[Any] = []
    ended: list[list[Any]] = [[] for _ in states]
    start = 0
    for size in sizes:
        for waiting, each in zip(ended, states, strict=True):
            if each.shape[0] > size:
                waiting.insert(0, part(batch, each, size, each.shape[0] - size))
        states = cell(batch, part(batch, rows, start, size), [part(batch, each, 0, size) for each in states], weights)
        outputs.append(states[0])
        start += size
    return outputs, [batch.again("aten::cat", [each, *waiting], 0) for each, waiting in zip(states, ended, strict=True)]


def backwards(batch: Batch, rows: Any, sizes: list[int], states: list[Any], weights: list[Any]) -> tuple[list[Any], list[Any]]:
    """The same from the end: rows join when they begin."""
    outputs: list[Any] = []
    start = sum(sizes)
    now = [part(batch, each, 0, 0) for each in states]
    for size in reversed(sizes):
        start -= size
        now = [batch.again("aten::cat", [each, part(batch, first, each.shape[0], size - each.shape[0])], 0)
               for each, first in zip(now, states, strict=True)]
        now = cell(batch, part(batch, rows, start, size), now, weights)
        outputs.insert(0, now[0])
    return outputs, now


# ---- joined and padded

def padded(batch: Batch, x: Any, dim: int, before: int, after: int, value: float = 0.0) -> Any:
    """A tensor with places more in front of and behind a dimension."""
    return batch.again("aten::constant_pad_nd", x, [0, 0] * (x.ndim - 1 - dim) + [before, after], value)


@rule("pad_sequence")
def pad_sequence(batch: Batch, sequences: Any, batch_first: bool, value: float, side: str) -> Any:
    """Each padded, then all together."""
    longest = max(each.shape[0] for each in sequences)
    rooms = [longest - each.shape[0] for each in sequences]
    rows = [padded(batch, each, 0, room if side == "left" else 0, 0 if side == "left" else room, value)
            for each, room in zip(sequences, rooms, strict=True)]
    return batch.again("aten::stack", rows, 0 if batch_first else 1)


@rule("_chunk_cat")
def chunk_cat(batch: Batch, tensors: Any, dim: int, num_chunks: int) -> Any:
    """Each padded and cut, then all together."""
    dim = wrapped_dim(dim, tensors[0].ndim)
    pieces = []
    for each in tensors:
        size = -(-each.shape[dim] // num_chunks)
        room = padded(batch, each, dim, 0, size * num_chunks - each.shape[dim])
        pieces.append(batch.again("aten::reshape", room, [*each.shape[:dim], num_chunks, -1]))
    return batch.again("aten::cat", pieces, dim + 1)


@rule("flatten_dense_tensors")
def flatten_dense_tensors(batch: Batch, tensors: Any) -> Any:
    """One behind the other."""
    return batch.again("aten::cat", [batch.again("aten::reshape", each, [-1]) for each in tensors], 0)


@rule("unflatten_dense_tensors")
def unflatten_dense_tensors(batch: Batch, flat: Any, tensors: Any) -> Any:
    """And apart."""
    found, start = [], 0
    for each in tensors:
        count = each.numel()
        found.append(batch.again("aten::reshape", batch.again("aten::narrow", flat, 0, start, count), list(each.shape)))
        start += count
    return found
