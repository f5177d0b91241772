"""Recurrent layers and embeddings with quantized weights, on tensors of floats."""
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.types import parse_type
from irtool.ops.array_library import np
from irtool.ops.kernels.quantized import quantized_of
from irtool.ops.kernels.quantized_packed import CLASSES, LINEAR, linear_dynamic_of, linear_half_of
from irtool.ops.kernels.quantized_pointwise import sigmoid
from irtool.ops.op import OpTable
from irtool.ops.quantized import Packed

table = OpTable("quantized_recurrent")
CELL = "__torch__.torch.classes.rnn.CellParamsBase"
EMBEDDING = f"{CLASSES}EmbeddingPackedParamsBase"
CELL_TYPE, EMBEDDING_TYPE = parse_type(CELL), parse_type(EMBEDDING)


def pack_cell(w_ih, w_hh, reduce_range=None):
    """The two linear layers of a cell; reduce_range: None if their weights are of float16."""
    return Packed(CELL_TYPE, w_ih=w_ih, w_hh=w_hh, reduce_range=reduce_range)


def linear(x, packed, reduce_range):
    """A linear layer of a cell."""
    return linear_half_of(x, packed) if reduce_range is None else linear_dynamic_of(x, packed, reduce_range)


def of_input(cell, x):
    """The result of the linear layer of the input: for a whole sequence at once, which then has one scale."""
    return linear(x, cell.parts["w_ih"], cell.parts["reduce_range"])


def of_state(cell, h):
    """The result of the linear layer of the state."""
    return linear(h, cell.parts["w_hh"], cell.parts["reduce_range"])


# ---- one step
def lstm_step(cell, row, h, c):
    """One step of an LSTM, with `row` from `of_input`: the new state."""
    i, f, g, o = np.split(row + of_state(cell, h), 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(cell, row, h):
    """One step of a GRU: the new state."""
    first, second = np.split(row, 3, axis=-1), np.split(of_state(cell, h), 3, axis=-1)
    reset, update = sigmoid(first[0] + second[0]), sigmoid(first[1] + second[1])
    new = np.tanh(first[2] + reset * second[2])
    return (h - new) * update + new


def plain_step(cell, row, h, function):
    """One step of a plain recurrent network: the new state."""
    return function(row + of_state(cell, h))


def _one(step, input, hx, w_ih, w_hh, *more):
    """One step, of parameters that are not packed as a cell."""
    cell = pack_cell(w_ih, w_hh, True)
    return step(cell, of_input(cell, input), *hx, *more)


@table.op(f"quantized::quantized_lstm_cell_dynamic(Tensor input, Tensor[] hx, {LINEAR} w_ih, {LINEAR} w_hh, Tensor bias_ih, Tensor "
          "bias_hh) -> (Tensor, Tensor)")
def lstm_cell(xp, input, hx, w_ih, w_hh, bias_ih, bias_hh):
    """One step of an LSTM. The biases are those that were packed."""
    if len(hx) != 2:
        raise RunError("LSTM cell expects two hidden states")
    return _one(lstm_step, input, hx, w_ih, w_hh)


_CELL = f"(Tensor input, Tensor hx, {LINEAR} w_ih, {LINEAR} w_hh, Tensor b_ih, Tensor b_hh) -> Tensor"
table.define(f"quantized::quantized_gru_cell_dynamic{_CELL}",
             lambda xp, input, hx, w_ih, w_hh, b_ih, b_hh: _one(gru_step, input, (hx,), w_ih, w_hh), doc="One step of a GRU.")
table.define(f"quantized::quantized_rnn_tanh_cell_dynamic{_CELL}",
             lambda xp, input, hx, w_ih, w_hh, b_ih, b_hh: _one(plain_step, input, (hx,), w_ih, w_hh, np.tanh),
             doc="One step of a recurrent network with tanh.")
table.define(f"quantized::quantized_rnn_relu_cell_dynamic{_CELL}",
             lambda xp, input, hx, w_ih, w_hh, b_ih, b_hh: _one(plain_step, input, (hx,), w_ih, w_hh,
                                                                lambda x: np.maximum(x, np.float32(0))),
             doc="One step of a recurrent network with relu.")
table.define(f"quantized::make_quantized_cell_params_dynamic({LINEAR} w_ih, {LINEAR} w_hh, Tensor bias_ih, Tensor bias_hh, bool "
             f"reduce_range=False) -> {CELL}", lambda xp, w_ih, w_hh, bias_ih, bias_hh, reduce_range: pack_cell(w_ih, w_hh, reduce_range),
             doc="The parameters of a cell with weights of qint8.")
table.define(f"quantized::make_quantized_cell_params_fp16({LINEAR} w_ih, {LINEAR} w_hh) -> {CELL}",
             lambda xp, w_ih, w_hh: pack_cell(w_ih, w_hh), doc="The parameters of a cell with weights of float16.")


# ---- sequences
def layered(x, states, cells, step, num_layers, bidirectional):
    """Runs cells over x (steps, batch, features), layer by layer; `step(cell, x, state)` returns a tuple, its first element the output.

    states: per cell a tuple. Returns the outputs and the last states, per cell.
    """
    directions = 2 if bidirectional else 1
    if len(cells) != num_layers * directions:
        raise RunError(f"expected {num_layers * directions} cells, got {len(cells)}")
    last = []
    for layer in range(num_layers):
        columns = []
        for direction in range(directions):
            number = layer * directions + direction
            state, outputs = states[number], []
            rows = of_input(cells[number], x)
            for row in rows[::-1] if direction else rows:
                state = step(cells[number], row, state)
                outputs.append(state[0])
            columns.append(np.stack(outputs[::-1] if direction else outputs))
            last.append(state)
        x = np.concatenate(columns, -1)
    return x, last


def refuse_training(dropout, train):
    """Refuses to draw which elements dropout leaves out."""
    if dropout and train:
        raise UnsupportedError("dropout in quantized recurrent layers is not supported")


@table.op(f"aten::quantized_lstm.input(Tensor input, Tensor[] hx, {CELL}[] params, bool has_biases, int num_layers, float dropout, bool "
          "train, bool bidirectional, bool batch_first, *, ScalarType? dtype=None, bool use_dynamic=False) -> (Tensor, Tensor, Tensor)")
def quantized_lstm(xp, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, dtype, use_dynamic):
    """LSTM layers over a sequence."""
    refuse_training(dropout, train)
    if len(hx) != 2:
        raise RunError("lstm expects two hidden states")
    x = input.swapaxes(0, 1) if batch_first else input
    outputs, last = layered(x, list(zip(*hx, strict=True)), params, lambda cell, row, state: lstm_step(cell, row, *state), num_layers,
                            bidirectional)
    return outputs.swapaxes(0, 1) if batch_first else outputs, np.stack([h for h, _ in last]), np.stack([c for _, c in last])


@table.op(f"aten::quantized_gru.input(Tensor input, Tensor hx, {CELL}[] params, bool has_biases, int num_layers, float dropout, bool "
          "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)")
def quantized_gru(xp, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    """GRU layers over a sequence."""
    refuse_training(dropout, train)
    x = input.swapaxes(0, 1) if batch_first else input
    outputs, last = layered(x, [(h,) for h in hx], params, lambda cell, row, state: (gru_step(cell, row, *state),), num_layers,
                            bidirectional)
    return outputs.swapaxes(0, 1) if batch_first else outputs, np.stack([h for h, in last])


# ---- embeddings
def pack_embedding(weight):
    """A quantized weight (rows, features), with a scale for each row."""
    weight = quantized_of(weight).sliced("embedding_bag_prepack")
    if weight.name != "quint8" or weight.ndim != 2:
        raise UnsupportedError("quantized embeddings are supported for quint8 alone", code="E0409")
    return Packed(EMBEDDING_TYPE, weight=weight)


def rows_of(packed, indices):
    """The numbers of rows. Raises RunError for a row that does not exist."""
    weight = packed.parts["weight"]
    if indices.size and not 0 <= indices.min() <= indices.max() < weight.shape[0]:
        raise RunError("Expect idx >= 0 && idx < num_embeddings")
    scales, zeros = np.asarray(weight.scale, np.float32), np.asarray(weight.zero_point, np.float32)
    shape = (*indices.shape, 1)
    scale = scales[indices].reshape(shape)
    return weight.ints[indices].astype(np.float32) * scale - (zeros * scales)[indices].reshape(shape)


table.define(f"quantized::embedding_bag_prepack(Tensor weight) -> {EMBEDDING} W_prepack", lambda xp, weight: pack_embedding(weight),
             doc="A quantized weight, for embeddings.")
table.define(f"quantized::embedding_bag_unpack({EMBEDDING} W_prepack) -> Tensor W_origin", lambda xp, packed: packed.parts["weight"],
             doc="The weight that was packed.")


@table.op(f"quantized::embedding_byte({EMBEDDING} weight, Tensor indices, bool pruned_weights=False) -> Tensor")
def embedding_byte(xp, weight, indices, pruned_weights):
    """Rows of the weight, as floats."""
    return rows_of(weight, indices)


@table.op(f"quantized::embedding_bag_byte({EMBEDDING} weight, Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int "
          "mode=0, bool pruned_weights=False, Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool "
          "include_last_offset=False) -> Tensor")
def embedding_bag_byte(xp, weight, indices, offsets, scale_grad_by_freq, mode, pruned_weights, per_sample_weights,
                       compressed_indices_mapping, include_last_offset):
    """Sums of rows of the weight, a bag of them per offset."""
    if mode or pruned_weights or compressed_indices_mapping is not None:
        raise UnsupportedError("quantized embedding bags are supported as sums, without pruning")
    if indices.ndim == 2:
        offsets, indices = np.arange(indices.shape[0]) * indices.shape[1], indices.reshape(-1)
    if offsets is None:
        raise RunError("embedding_bag_byte expects offsets to be set for 1D indices.")
    rows = rows_of(weight, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    ends = list(offsets[1:]) if include_last_offset else [*offsets[1:], indices.shape[0]]
    return np.stack([rows[start:end].sum(0) for start, end in zip(offsets, ends, strict=False)]).astype(np.float32)

table.none_batched("scales are of whole tensors, a batch dimension included")
