"""LSTM, GRU and plain recurrent nets: cells, layered nets over padded or packed sequences, and packing.

Parameters come flat: per layer and direction w_ih, w_hh, then b_ih, b_hh if there are biases, then w_hr if the LSTM projects.
The input's products with w_ih are done for all times at once.
"""
from irtool.ir.errors import RunError
from irtool.ops.arrays import to_number
from irtool.ops.checks import by_strides, in_memory_order
from irtool.ops.kernels.random import kept_by_dropout
from irtool.ops.op import OpTable

table = OpTable("recurrent")


def _sigmoid(xp, x):
    return 1 / (1 + xp.exp(-x))


# ---- one step: (input gates, hidden gates) -> new state

def _lstm_step(xp, from_input, from_hidden, state):
    cell = state[1]
    i, f, g, o = xp.split(from_input + from_hidden, 4, -1)
    cell = _sigmoid(xp, f) * cell + _sigmoid(xp, i) * xp.tanh(g)
    return _sigmoid(xp, o) * xp.tanh(cell), cell


def _gru_step(xp, from_input, from_hidden, state):
    hidden = state[0]
    reset_in, update_in, new_in = xp.split(from_input, 3, -1)
    reset_hidden, update_hidden, new_hidden = xp.split(from_hidden, 3, -1)
    update = _sigmoid(xp, update_in + update_hidden)
    new = xp.tanh(new_in + _sigmoid(xp, reset_in + reset_hidden) * new_hidden)
    return ((hidden - new) * update + new,)


def _tanh_step(xp, from_input, from_hidden, state):
    return (xp.tanh(from_input + from_hidden),)


def _relu_step(xp, from_input, from_hidden, state):
    total = from_input + from_hidden
    return (xp.maximum(total, total.dtype.type(0)),)


STEPS = {"lstm": _lstm_step, "gru": _gru_step, "rnn_tanh": _tanh_step, "rnn_relu": _relu_step}


def _gates(xp, x, weight, bias):
    result = xp.matmul(x, weight.T)
    return result if bias is None else result + bias


class Weights:
    """The parameters of one layer in one direction."""

    __slots__ = ("w_ih", "w_hh", "b_ih", "b_hh", "w_hr")

    def __init__(self, params, has_biases, projects):
        parts = list(params)
        self.w_ih, self.w_hh = parts[:2]
        self.b_ih, self.b_hh = parts[2:4] if has_biases else (None, None)
        self.w_hr = parts[-1] if projects else None


def _advance(xp, step, weights, from_input, state):
    """New state after one time step; the first of it is the output."""
    new = step(xp, from_input, _gates(xp, state[0], weights.w_hh, weights.b_hh), state)
    if weights.w_hr is not None:
        new = (xp.matmul(new[0], weights.w_hr.T), *new[1:])
    return new


def _layer(xp, step, weights, x, state, backwards, sizes):
    """One layer over time: outputs for `x` and the last state.

    Without `sizes`, x is (time, batch, features). With them, x is packed (rows, features), `sizes` holds the rows of each time,
    longest sequences first, and the last state of each sequence is that of its own last step.
    """
    from_input = _gates(xp, x, weights.w_ih, weights.b_ih)
    if sizes is None:
        outputs = [None] * x.shape[0]
        for time in range(x.shape[0])[::-1] if backwards else range(x.shape[0]):
            state = _advance(xp, step, weights, from_input[time], state)
            outputs[time] = state[0]
        return xp.stack(outputs), state
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    outputs = [None] * len(sizes)
    last = [part.copy() for part in state]
    for time in range(len(sizes))[::-1] if backwards else range(len(sizes)):
        size = sizes[time]
        now = _advance(xp, step, weights, from_input[starts[time]:starts[time + 1]], tuple(part[:size] for part in last))
        for part, new in zip(last, now, strict=True):
            part[:size] = new
        outputs[time] = now[0]
    return xp.concatenate(outputs), tuple(last)


def _net(xp, kind, x, states, params, has_biases, num_layers, dropout, train, bidirectional, sizes=None):
    """Layers on layers: outputs of the top one, and the last states of all, stacked."""
    step, directions = STEPS[kind], 2 if bidirectional else 1
    projects = kind == "lstm" and states[0].shape[-1] != states[1].shape[-1]
    each = 2 + 2 * bool(has_biases) + projects
    if len(params) != each * num_layers * directions:
        raise RunError(f"got an incorrect number of RNN parameters: {len(params)}")
    batch, gates = x.shape[1] if sizes is None else sizes[0] if sizes else 0, {"lstm": 4, "gru": 3}.get(kind, 1)
    for name, state, width in zip(("hidden", "cell"), states, (params[1].shape[1], params[1].shape[0] // gates), strict=False):
        if state.shape != (num_layers * directions, batch, width):
            raise RunError(f"Expected {name} size ({num_layers * directions}, {batch}, {width}), got {list(state.shape)}")
    finals = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            weights = Weights(params[place * each:(place + 1) * each], has_biases, projects)
            output, state = _layer(xp, step, weights, x, tuple(part[place] for part in states), direction == 1, sizes)
            outputs.append(output)
            finals.append(state)
        x = outputs[0] if directions == 1 else xp.concatenate(outputs, -1)
        if dropout and train and layer < num_layers - 1:
            x = x * kept_by_dropout(xp, x.shape, dropout) / x.dtype.type(1 - dropout)
    return x, tuple(xp.stack(part) for part in zip(*finals, strict=True))


def _check_input(x, hidden):
    if x.ndim != 3:
        raise RunError(f"input must have 3 dimensions, got {x.ndim}")
    if x.dtype != hidden.dtype:
        raise RunError(f"Input and hidden tensors are not the same dtype, found input tensor with {x.dtype} and hidden tensor with "
                       f"{hidden.dtype}", code="E0409")


def _over_time(kind):
    def kernel(xp, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        states = tuple(hx) if isinstance(hx, list | tuple) else (hx,)
        _check_input(input, states[0])
        x = input.swapaxes(0, 1) if batch_first else input
        output, finals = _net(xp, kind, x, states, params, has_biases, num_layers, dropout, train, bidirectional)
        return (output.swapaxes(0, 1) if batch_first else output, *finals)
    return kernel


def _over_packed(kind):
    def kernel(xp, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
        states = tuple(hx) if isinstance(hx, list | tuple) else (hx,)
        sizes = [int(size) for size in batch_sizes]
        output, finals = _net(xp, kind, data, states, params, has_biases, num_layers, dropout, train, bidirectional, sizes)
        return (output, *finals)
    return kernel


_TAIL = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
for _kind in STEPS:
    _hx, _results = ("Tensor[] hx", "(Tensor, Tensor, Tensor)") if _kind == "lstm" else ("Tensor hx", "(Tensor, Tensor)")
    table.define(f"aten::{_kind}.input(Tensor input, {_hx}, {_TAIL}, bool batch_first) -> {_results}", _over_time(_kind),
                 doc="A layered net over (time, batch, features): outputs and last states.")
    table.define(f"aten::{_kind}.data(Tensor data, Tensor batch_sizes, {_hx}, {_TAIL}) -> {_results}", _over_packed(_kind),
                 doc="The same over packed sequences.")


# ---- cells

def _cell(kind):
    def kernel(xp, input, hx, w_ih, w_hh, b_ih, b_hh):
        states = tuple(hx) if isinstance(hx, list | tuple) else (hx,)
        if input.shape[-1] != w_ih.shape[1]:
            raise RunError(f"input has inconsistent input_size: got {input.shape[-1]} expected {w_ih.shape[1]}")
        if states[0].shape[-1] != w_hh.shape[1]:
            raise RunError(f"hidden{'0' * (kind == 'lstm')} has inconsistent hidden_size: got {states[0].shape[-1]}, expected "
                           f"{w_hh.shape[1]}")
        new = STEPS[kind](xp, _gates(xp, input, w_ih, b_ih), _gates(xp, states[0], w_hh, b_hh), states)
        if kind == "gru" and hx.ndim == 2:
            return in_memory_order(xp, new[0], by_strides(hx, (0, 1)))
        return new if kind == "lstm" else new[0]
    return kernel


for _kind in STEPS:
    _hx, _results = ("Tensor[] hx", "(Tensor, Tensor)") if _kind == "lstm" else ("Tensor hx", "Tensor")
    table.define(f"aten::{_kind}_cell(Tensor input, {_hx}, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> {_results}",
                 _cell(_kind), doc="One step for a batch.")


@table.op("aten::_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? input_bias=None, Tensor? "
          "hidden_bias=None) -> (Tensor, Tensor, Tensor)")
def fused_lstm_cell(xp, input_gates, hidden_gates, cx, input_bias, hidden_bias):
    """One LSTM step from finished products: hidden state, cell state, and the activated gates."""
    total = input_gates + hidden_gates
    for bias in (input_bias, hidden_bias):
        total = total if bias is None else total + bias
    i, f, g, o = xp.split(total, 4, -1)
    i, f, g, o = _sigmoid(xp, i), _sigmoid(xp, f), xp.tanh(g), _sigmoid(xp, o)
    cell = f * cx + i * g
    return o * xp.tanh(cell), cell, xp.concatenate([i, f, g, o], -1)


# ---- packed sequences

@table.op("aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)")
def pack_padded_sequence(xp, input, lengths, batch_first):
    """(rows of all sequences, time by time, longest first; number of rows of each time)."""
    x = input.swapaxes(0, 1) if batch_first else input
    counts = [int(n) for n in lengths]
    if len(counts) != x.shape[1]:
        raise RunError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={x.shape[1]})")
    if any(a < b for a, b in zip(counts, counts[1:], strict=False)):
        raise RunError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
                       "`enforce_sorted=False` "
                       "to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX exportability.")
    if counts and counts[-1] <= 0:
        raise RunError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    sizes = [sum(n > time for n in counts) for time in range(max(counts, default=0))]
    return xp.concatenate([x[time, :size] for time, size in enumerate(sizes)]), xp.array(sizes, xp.int64)


@table.op("aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) -> "
          "(Tensor, Tensor)")
def pad_packed_sequence(xp, data, batch_sizes, batch_first, padding_value, total_length):
    """(padded sequences, their lengths), the opposite of packing."""
    sizes = [int(n) for n in batch_sizes]
    longest = len(sizes)
    if total_length > 0:
        if total_length < longest:
            raise RunError("Expected total_length to be at least the length of the longest sequence in input, but got "
                           f"total_length={total_length} and max sequence length being {longest}")
        longest = total_length
    result = xp.full((longest, sizes[0], *data.shape[1:]), to_number(padding_value), data.dtype)
    start = 0
    for time, size in enumerate(sizes):
        result[time, :size] = data[start:start + size]
        start += size
    lengths = xp.array([sum(size > place for size in sizes) for place in range(sizes[0])], xp.int64)
    return (result.swapaxes(0, 1) if batch_first else result), lengths


# ---- dtypes that torch serves

table.takes("hfc", "lstm.input lstm.data gru.input gru.data rnn_tanh.input rnn_tanh.data")
table.takes("hfc=", "lstm_cell gru_cell")
table.takes("uilhf", "rnn_relu.input rnn_relu.data")
table.takes("uilhf=", "rnn_relu_cell")
table.takes("uilhfc=", "rnn_tanh_cell")
table.laid_out("C-", "_pack_padded_sequence")
