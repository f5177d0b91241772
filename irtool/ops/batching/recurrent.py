"""Batching rules of recurrent layers. B is folded into the rows; if weights are batched, layers run step by step."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irtool.ir.errors import UnsupportedError
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import behind, refuse_batched, rows_apart, time_and_rows
from irtool.ops.kernels.recurrent import table


def gates(batch: Batch, x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Any, Any]:
    """x @ w_ih.T + b_ih and h @ w_hh.T + b_hh."""
    return batch.again("aten::linear", x, w_ih, b_ih), batch.again("aten::linear", h, w_hh, b_hh)


@table.batch("lstm_cell")
def lstm_cell(batch: Batch, x: Any, hx: Any, *weights: Any) -> Any:
    """(h, c) of the four gates i, f, g, o."""
    a, b = gates(batch, x, hx[0], *weights)
    i, f, g, o = batch.again("aten::chunk", batch.again("aten::add", a, b), 4, -1)
    remembered = batch.again("aten::mul", batch.again("aten::sigmoid", f), hx[1])
    state = batch.again("aten::add", remembered, batch.again("aten::mul", batch.again("aten::sigmoid", i), batch.again("aten::tanh", g)))
    return batch.again("aten::mul", batch.again("aten::sigmoid", o), batch.again("aten::tanh", state)), state


@table.batch("gru_cell")
def gru_cell(batch: Batch, x: Any, hx: Any, *weights: Any) -> Any:
    """h of the gates r, z, n."""
    a, b = (batch.again("aten::chunk", each, 3, -1) for each in gates(batch, x, hx, *weights))
    reset, update = (batch.again("aten::sigmoid", batch.again("aten::add", a[k], b[k])) for k in (0, 1))
    new = batch.again("aten::tanh", batch.again("aten::add", a[2], batch.again("aten::mul", reset, b[2])))
    return batch.again("aten::add", new, batch.again("aten::mul", update, batch.again("aten::sub", hx, new)))


@table.batch("rnn_tanh_cell rnn_relu_cell")
def rnn_cell(batch: Batch, x: Any, hx: Any, *weights: Any) -> Any:
    """tanh or relu of both sums."""
    a, b = gates(batch, x, hx, *weights)
    return batch.again("aten::tanh" if "tanh" in batch.kind else "aten::relu", batch.again("aten::add", a, b))


@table.batch("_thnn_fused_lstm_cell")
def fused_lstm_cell(batch: Batch, a: Any, b: Any, cx: Any, input_bias: Any, hidden_bias: Any) -> Any:
    """Sums (N, 4h) and state (N, h) -> (B * N, ...). Batched biases are added first."""
    if batch.has([input_bias, hidden_bias]):
        for bias in (input_bias, hidden_bias):
            a = a if bias is None else batch.again("aten::add", a, bias)
        input_bias = hidden_bias = None
    operands = [batch.do("aten::flatten", batch.whole(each), 0, 1) for each in (a, b, cx)]
    results = batch.same(*operands, input_bias, hidden_bias)
    return tuple([batch.box(batch.do("aten::unflatten", each, 0, [batch.length, -1])) for each in results])


@table.batch("_pack_padded_sequence")
def pack(batch: Batch, x: Any, lengths: Any, batch_first: bool) -> Any:
    """x (T, N, ...) -> (T, N, ..., B)."""
    refuse_batched(batch, lengths, "lengths")
    data, sizes = batch.same(behind(batch, x), lengths, batch_first)
    return batch.box(data, data.ndim - 1), sizes


@table.batch("_pad_packed_sequence")
def pad(batch: Batch, data: Any, sizes: Any, *rest: Any) -> Any:
    """data (rows, ...) -> (rows, ..., B)."""
    refuse_batched(batch, sizes, "batch sizes")
    rows, lengths = batch.same(behind(batch, data), sizes, *rest)
    return batch.box(rows, rows.ndim - 1), lengths


def for_each_state(function: Callable[[Any], Any], hx: Any) -> Any:
    """`function` on the state, or on each of an LSTM's list (h, c)."""
    return [function(each) for each in hx] if isinstance(hx, list | tuple) else function(hx)


@table.batch("lstm.input gru.input rnn_tanh.input rnn_relu.input")
def through_time(batch: Batch, x: Any, hx: Any, params: Any, *rest: Any) -> Any:
    """x (T, N, d) -> (T, B * N, d), states (layers, N, h) -> (layers, B * N, h); batched weights: step by step."""
    *options, batch_first = rest
    if x.ndim != 3:
        states = for_each_state(lambda each: batch.again("aten::unsqueeze", each, 1), hx)
        results = batch.again(batch.kind, batch.again("aten::unsqueeze", x, 1), states, list(params), *options, False)
        return tuple([batch.again("aten::squeeze", each, 1) for each in results])
    dim = 0 if batch_first else 1
    if batch.has(params):
        first = batch.again("aten::transpose", x, 0, 1) if batch_first else x
        rows = batch.again("aten::flatten", first, 0, 1)
        results = stepwise(batch, rows, [first.shape[1]] * first.shape[0], hx, params, *options)
        output = batch.again("aten::reshape", results[0], [*first.shape[:2], results[0].shape[-1]])
        return (batch.again("aten::transpose", output, 0, 1) if batch_first else output, *results[1:])
    states = for_each_state(lambda each: time_and_rows(batch, each, 1), hx)
    results = batch.same(time_and_rows(batch, x, dim), states, params, *rest)
    return (rows_apart(batch, results[0], dim), *[rows_apart(batch, each, 1) for each in results[1:]])


@table.batch("lstm.data gru.data rnn_tanh.data rnn_relu.data")
def packed_layers(batch: Batch, data: Any, sizes: Any, hx: Any, params: Any, *rest: Any) -> Any:
    """data (rows, d) -> (rows * B, d), sizes * B; batched weights: step by step."""
    refuse_batched(batch, sizes, "batch sizes")
    if data.ndim > 2:
        data = batch.again("aten::reshape", data, [-1, data.shape[-1]])     # as the operator
    if batch.has(list(params)):
        return stepwise(batch, data, batch.numbers(sizes), hx, params, *rest)

    def beside(x: Any, dim: int) -> Any:
        moved = batch.do("aten::movedim", batch.whole(x), 0, dim + 1)
        return batch.do("aten::flatten", moved, dim, dim + 1)

    def apart(x: Any, dim: int) -> Any:
        return batch.box(batch.do("aten::unflatten", x, dim, [-1, batch.length]), dim + 1)

    states = for_each_state(lambda each: beside(each, 1), hx)
    results = batch.same(beside(data, 0), batch.do("aten::mul", sizes, batch.length), states, params, *rest)
    return (apart(results[0], 0), *[apart(each, 1) for each in results[1:]])


def stepwise(batch: Batch, rows: Any, sizes: list[int], hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float,
             train: bool, bidirectional: bool) -> Any:
    """Layers of cells over rows of all times, sizes[t] of them at time t. Returns (rows, last states...)."""
    directions = 2 if bidirectional else 1
    count = 4 if has_biases else 2
    if len(params) != count * num_layers * directions or dropout and train:
        raise UnsupportedError(f"{batch.kind} under vmap is not supported where weights are batched with projections or dropout",
                               code="E0504")
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
    """The states after one step of the kind's cell."""
    result = batch.again(f"{batch.kind}_cell", x, states if len(states) > 1 else states[0], *weights)
    return list(result) if isinstance(result, tuple) else [result]


def part(batch: Batch, x: Any, start: int, length: int) -> Any:
    """`length` rows from `start` on."""
    return batch.again("aten::narrow", x, 0, start, length)


def forwards(batch: Batch, rows: Any, sizes: list[int], states: list[Any], weights: list[Any]) -> tuple[list[Any], list[Any]]:
    """(outputs by time, last states). Rows are sorted by length; the last states of rows that have ended are put aside."""
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
    """The same from the last time to the first: rows join at their own last time."""
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
