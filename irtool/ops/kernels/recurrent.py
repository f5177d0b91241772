"""LSTM, GRU and plain recurrent nets: cells, layered nets over padded or packed sequences, and packing.

Parameters come flat: per layer and direction w_ih, w_hh, then b_ih, b_hh if there are biases, then w_hr if the LSTM projects.
The input's products with w_ih are done for all times at once.
"""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import memory_order, title, to_number
from irtool.ops.checks import in_memory_order, same_dtype
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


# ---- one layer in one direction, with gates one behind the other (gates, batch, width) and results that overwrite operands

def _sigmoid_here(xp, x):
    xp.negative(x, out=x)
    xp.exp(x, out=x)
    x += 1
    xp.divide(1, x, out=x)


def _lstm_over(xp, from_input, gates, state, out):
    """Gates in the order i, f, o, g."""
    gates += from_input
    _sigmoid_here(xp, gates[:3])
    i, f, o, g = gates
    xp.tanh(g, out=g)
    cell = state[1]
    cell *= f
    i *= g
    cell += i
    xp.tanh(cell, out=f)
    xp.multiply(o, f, out=out)


def _gru_over(xp, from_input, gates, state, out):
    reset_update, new = gates[:2], gates[2]
    reset_update += from_input[:2]
    _sigmoid_here(xp, reset_update)
    new *= reset_update[0]
    new += from_input[2]
    xp.tanh(new, out=new)
    xp.subtract(state[0], new, out=out)
    out *= reset_update[1]
    out += new


def _tanh_over(xp, from_input, gates, state, out):
    gates += from_input
    xp.tanh(gates[0], out=out)


def _relu_over(xp, from_input, gates, state, out):
    gates += from_input
    xp.maximum(gates[0], gates.dtype.type(0), out=out)


LAYERS = {"lstm": (_lstm_over, [0, 1, 3, 2]), "gru": (_gru_over, [0, 1, 2]), "rnn_tanh": (_tanh_over, [0]), "rnn_relu": (_relu_over, [0])}
"""A step of a layer, which stores the new state in `out`, and the order of its gates."""


def _layer(xp, kind, params, has_biases, x, state, backwards, sizes):
    """One layer over time: outputs for `x` and the last state.

    x is (rows, features), `sizes` holds the rows of each time, longest sequences first, and the last state of each sequence is that of its
    own last step. A gate is a product of its own: small ones are ten times as fast as a large one, for which BLAS copies the weight.
    """
    step, order = LAYERS[kind]
    w_ih, w_hh, *rest = params
    projection = rest.pop() if len(rest) % 2 else None
    width = w_hh.shape[0] // len(order)
    weights = w_hh.reshape(len(order), width, w_hh.shape[1])[order].swapaxes(1, 2)
    bias = rest[1].reshape(len(order), 1, width)[order] if has_biases else None
    from_input = _gates(xp, x, w_ih, rest[0] if has_biases else None).reshape(x.shape[0], len(order), width)[:, order].swapaxes(0, 1)
    last = [part.copy() for part in state]
    whole = xp.empty((len(order), max(sizes, default=0), width), x.dtype)
    outputs = xp.empty((x.shape[0], last[0].shape[-1]), x.dtype)
    stop = x.shape[0] if backwards else 0
    for size in reversed(sizes) if backwards else sizes:
        start, stop = (stop - size, stop - size) if backwards else (stop, stop + size)
        now = slice(start, start + size)
        gates, here, out = whole[:, :size], [part[:size] for part in last], outputs[now]
        xp.matmul(here[0], weights, out=gates)
        if bias is not None:
            gates += bias
        if projection is None:
            step(xp, from_input[:, now], gates, here, out)
        else:
            step(xp, from_input[:, now], gates, here, gates[2])
            xp.matmul(gates[2], projection.T, out=out)
        here[0][...] = out
    return outputs, tuple(last)


def _net(xp, kind, x, states, params, has_biases, num_layers, dropout, train, bidirectional, sizes=None):
    """Layers on layers: outputs of the top one, and the last states of all, stacked. x: (time, batch, features); with `sizes`, the rows of
    each time, packed (rows, features)."""
    directions = 2 if bidirectional else 1
    projects = kind == "lstm" and states[0].shape[-1] != states[1].shape[-1]
    each = 2 + 2 * bool(has_biases) + projects
    if len(params) != each * num_layers * directions:
        raise RunError(f"got an incorrect number of RNN parameters: {len(params)}")
    if any(each.dtype != x.dtype for each in params):
        raise RunError(f"expected parameters of dtype {x.dtype}, got {next(each.dtype for each in params if each.dtype != x.dtype)}",
                       code="E0409")
    batch = x.shape[1] if sizes is None else max(sizes, default=0)
    widths = params[1].shape[1], params[1].shape[0] // len(LAYERS[kind][1])
    for name, state, width in zip(("hidden", "cell"), states, widths, strict=False):
        if state.shape != (num_layers * directions, batch, width):
            raise RunError(f"Expected {name} size ({num_layers * directions}, {batch}, {width}), got {list(state.shape)}")
    finals = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
            output, state = _layer(xp, kind, params[place * each:(place + 1) * each], has_biases, rows,
                                   [part[place] for part in states], direction == 1, [batch] * len(x) if sizes is None else sizes)
            outputs.append(output.reshape(*x.shape[:-1], -1))
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
        if batch_sizes.dtype != xp.int64:
            raise RunError(f"expected scalar type Long but found {title(batch_sizes.dtype)}", code="E0409")
        if batch_sizes.ndim != 1:
            raise RunError(f"expected batch sizes of one dimension, got {batch_sizes.ndim}")
        sizes = [int(size) for size in batch_sizes]
        if data.ndim < 2:
            raise RunError(f"packed sequences have 2 dimensions, got {data.ndim}")
        data = data.reshape(-1, data.shape[-1])     # as torch
        if min(sizes, default=0) < 0 or sum(sizes) != len(data):
            raise RunError(f"batch sizes {sizes[:8]} name {sum(sizes)} rows, the packed sequences have {len(data)}")
        same_dtype("Input and hidden tensors are not the same dtype", data, *states)
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

def _check_cell(kind, input, states, w_ih, w_hh):
    if kind == "lstm" and len(states) != 2:
        raise RunError(f"lstm_cell expects two hidden states, got {len(states)}")
    for name, each in (("input", input), *(("hidden state", state) for state in states), ("weight_ih", w_ih), ("weight_hh", w_hh)):
        if each.ndim != 2:
            raise RunError(f"{kind}_cell expects {name} with 2 dimensions, got {each.ndim}")
    if input.shape[1] != w_ih.shape[1]:
        raise RunError(f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}")
    for place, state in enumerate(states):
        if state.shape[0] != input.shape[0]:
            raise RunError(f"Input batch size {input.shape[0]} doesn't match hidden{place} batch size {state.shape[0]}")
        if state.shape[1] != w_hh.shape[1]:
            raise RunError(f"hidden{place if kind == 'lstm' else ''} has inconsistent hidden_size: got {state.shape[1]}, expected "
                           f"{w_hh.shape[1]}")
    gates = len(LAYERS[kind][1])
    for name, weight in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if weight.shape[0] != gates * w_hh.shape[1]:
            raise RunError(f"{name} first dim must be {gates} * hidden_size = {gates * w_hh.shape[1]}, but got {weight.shape[0]}")


def _cell(kind):
    def kernel(xp, input, hx, w_ih, w_hh, b_ih, b_hh):
        states = tuple(hx) if isinstance(hx, list | tuple) else (hx,)
        _check_cell(kind, input, states, w_ih, w_hh)
        for each in (b_ih, b_hh):
            if each is not None and each.shape not in (w_ih.shape[:1], (1,), ()):
                raise RunError(f"expected biases of size {w_ih.shape[0]}, got {list(each.shape)}")
        new = STEPS[kind](xp, _gates(xp, input, w_ih, b_ih), _gates(xp, states[0], w_hh, b_hh), states)
        if kind == "gru" and hx.ndim == 2:
            return in_memory_order(xp, new[0], memory_order(hx))
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
    if not input_gates.ndim == hidden_gates.ndim == cx.ndim == 2:
        raise RunError("_thnn_fused_lstm_cell takes gates (N, 4 * h) and a state (N, h), got operands of "
                       f"{input_gates.ndim}, {hidden_gates.ndim} and {cx.ndim} dimensions")
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
