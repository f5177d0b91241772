"""Gradients of layered recurrent nets over time.

A layer's outputs are its states, so the gates of a GRU are recomputed for all times by one product. An LSTM runs as a loop that keeps its
cells and its gates, since cells could only be recomputed step by step. Then the gradient of the state is propagated back through time, and
the gradients of weights are computed for all times at once. A layer has gradients of its input, its first states and its parameters.

Tensors have the order in which a direction runs: (time, batch, ...). Packed sequences are padded, and `active` marks the rows that exist at
each time; where a sequence has ended (or not begun), the state does not change.
"""
from __future__ import annotations

from irtool.ops.derivative import renamed
from irtool.ops.gradients.recurrent import product_back
from irtool.ops.kernels.recurrent import table
from irtool.ops.tensor import Tensor, torch

# ---- one layer in one direction

def states_before(first: Tensor, after: Tensor, active: Tensor | None) -> Tensor:
    """For each time the state before it, from the state after each."""
    begin = first.unsqueeze(0)
    earlier = after.narrow(0, 0, after.size(0) - 1)
    if active is not None:
        earlier = torch.where(active.narrow(0, 0, after.size(0) - 1), earlier, begin)
    return torch.cat([begin, earlier])


def totals(for_out: Tensor, for_last: Tensor, slopes: Tensor, weight: Tensor, stays: Tensor | None) -> tuple[Tensor, Tensor]:
    """The gradient of the state at each time, including that from later times, and the gradient of the first state.

    One step back multiplies by slopes (as many times the state's width as there are gates) and then by the hidden weight; the part
    `stays` of the state's gradient is passed on unchanged.
    """
    gates = weight.size(0) // weight.size(1)
    state = for_last
    sums: list[Tensor] = []
    for back in range(for_out.size(0)):
        time = for_out.size(0) - 1 - back
        state = state + for_out.select(0, time)
        sums.append(state)
        step = (state.repeat([1, gates]) * slopes.select(0, time)) @ weight
        if stays is not None:
            step = step + state * stays.select(0, time)
        state = step
    return torch.stack(sums).flip([0]), state


def gates_of(x: Tensor, before: Tensor, params: list[Tensor], has_biases: bool) -> tuple[Tensor, Tensor]:
    """The sums of products of input and state that the gates take."""
    from_input, from_state = torch.matmul(x, params[0].t()), torch.matmul(before, params[1].t())
    if has_biases:
        from_input, from_state = from_input + params[2], from_state + params[3]
    return from_input, from_state


def params_back(for_input: Tensor, for_state: Tensor, x: Tensor, before: Tensor, params: list[Tensor], has_biases: bool) -> tuple[
        Tensor, list[Tensor]]:
    """Gradients of the input and the parameters from those of the gates."""
    for_x, for_w_ih, for_b_ih = product_back(for_input, x, params[0])
    _, for_w_hh, for_b_hh = product_back(for_state, before, params[1])
    for_params = [for_w_ih, for_w_hh]
    if has_biases:
        for_params = for_params + [for_b_ih, for_b_hh]
    return for_x, for_params


def plain_back(kind: str, for_out: Tensor, for_last: Tensor, x: Tensor, out: Tensor, first: Tensor, params: list[Tensor],
               has_biases: bool, active: Tensor | None) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """tanh or relu of the gates."""
    slopes = (out > 0).to(out.dtype) if kind == "rnn_relu" else 1 - out * out
    stays: Tensor | None = None
    if active is not None:
        slopes = slopes * active
        stays = active.logical_not().to(out.dtype)
    at, for_first = totals(for_out, for_last, slopes, params[1], stays)
    for_gates = at * slopes
    for_x, for_params = params_back(for_gates, for_gates, x, states_before(first, out, active), params, has_biases)
    return for_x, [for_first], for_params


def gru_back(for_out: Tensor, for_last: Tensor, x: Tensor, out: Tensor, first: Tensor, params: list[Tensor], has_biases: bool,
             active: Tensor | None) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Reset, update and new gate."""
    before = states_before(first, out, active)
    from_input, from_state = gates_of(x, before, params, has_biases)
    inputs, states = from_input.chunk(3, -1), from_state.chunk(3, -1)
    reset, update = (inputs[0] + states[0]).sigmoid(), (inputs[1] + states[1]).sigmoid()
    new = (inputs[2] + reset * states[2]).tanh()
    slope_new = (1 - update) * (1 - new * new)
    slope_update = (before - new) * update * (1 - update)
    stays = update
    if active is not None:
        slope_new, slope_update = slope_new * active, slope_update * active
        stays = torch.where(active, update, torch.ones_like(update))
    slope_reset = slope_new * states[2] * reset * (1 - reset)
    slopes = torch.cat([slope_reset, slope_update, slope_new * reset], -1)
    at, for_first = totals(for_out, for_last, slopes, params[1], stays)
    thrice = at.repeat([1, 1, 3])
    for_input = thrice * torch.cat([slope_reset, slope_update, slope_new], -1)
    for_x, for_params = params_back(for_input, thrice * slopes, x, before, params, has_biases)
    return for_x, [for_first], for_params


def lstm_steps(x: Tensor, first: list[Tensor], params: list[Tensor], has_biases: bool, active: Tensor | None) -> tuple[
        Tensor, Tensor, Tensor]:
    """The states and the cells of an LSTM after each time, and the activated gates, side by side."""
    from_input = torch.mm(x.flatten(0, 1), params[0].t()).view([x.size(0), x.size(1), params[0].size(0)])
    if has_biases:
        from_input = from_input + params[2]
    has_projection = len(params) % 2 == 1
    weight = params[1].t()
    state, cell = first[0], first[1]
    states: list[Tensor] = []
    cells: list[Tensor] = []
    gates: list[Tensor] = []
    for time in range(from_input.size(0)):       # not of x, whose type may say its size: a short loop would be unrolled
        from_state = torch.mm(state, weight)
        if has_biases:
            from_state = from_state + params[3]
        parts = (from_input.select(0, time) + from_state).chunk(4, -1)
        i, f, g, o = parts[0].sigmoid(), parts[1].sigmoid(), parts[2].tanh(), parts[3].sigmoid()
        new_cell = f * cell + i * g
        new_state = o * new_cell.tanh()
        if has_projection:
            new_state = torch.mm(new_state, params[len(params) - 1].t())
        if active is not None:
            new_state, new_cell = torch.where(active.select(0, time), new_state, state), torch.where(active.select(0, time), new_cell, cell)
        state, cell = new_state, new_cell
        states.append(state)
        cells.append(cell)
        gates.append(torch.cat([i, f, g, o], -1))
    return torch.stack(states), torch.stack(cells), torch.stack(gates)


def lstm_back(for_out: Tensor, for_last: list[Tensor], x: Tensor, out: Tensor, first: list[Tensor], params: list[Tensor],
              has_biases: bool, active: Tensor | None, cells: Tensor, saved: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Input, forget, cell and output gate, activated, in `saved`; with an odd number of parameters the last one projects the state."""
    before = states_before(first[0], out, active)
    parts = saved.chunk(4, -1)
    i, f, g, o = parts[0], parts[1], parts[2], parts[3]
    forget = f
    if active is not None:
        forget = torch.where(active, f, torch.ones_like(f))
    cells_before = states_before(first[1], cells, active)
    squashed = cells.tanh()
    into_cell = o * (1 - squashed * squashed)
    slopes = torch.cat([g * i * (1 - i), cells_before * f * (1 - f), i * (1 - g * g), squashed * o * (1 - o)], -1)
    if active is not None:
        into_cell, slopes = into_cell * active, slopes * active
    has_projection = len(params) % 2 == 1
    weight = params[1]
    state, cell = for_last[0], for_last[1]
    states: list[Tensor] = []
    gates: list[Tensor] = []
    for back in range(for_out.size(0)):
        time = for_out.size(0) - 1 - back
        state = state + for_out.select(0, time)
        states.append(state)
        shown = torch.matmul(state, params[len(params) - 1]) if has_projection else state
        cell = cell + shown * into_cell.select(0, time)
        for_gates = torch.cat([cell, cell, cell, shown], -1) * slopes.select(0, time)
        gates.append(for_gates)
        step = for_gates @ weight
        if active is not None:
            step = step + state * active.select(0, time).logical_not()
        state = step
        cell = cell * forget.select(0, time)
    every = torch.stack(gates).flip([0])
    for_x, for_params = params_back(every, every, x, before, params, has_biases)
    if has_projection:
        shown_there = torch.stack(states).flip([0])
        if active is not None:
            shown_there = shown_there * active
        for_params = for_params + [product_back(shown_there, o * squashed, params[len(params) - 1])[1]]
    return for_x, [state, cell], for_params


def direction_back(kind: str, for_out: Tensor, for_last: list[Tensor], x: Tensor, out: Tensor, first: list[Tensor], params: list[Tensor],
                   has_biases: bool, active: Tensor | None, is_backwards: bool, saved: list[Tensor]) -> tuple[
                       Tensor, list[Tensor], list[Tensor]]:
    """One layer in one direction; a direction that runs backwards is laid out backwards first."""
    running = active
    if is_backwards:
        for_out, x, out = for_out.flip([0]), x.flip([0]), out.flip([0])
        if active is not None:
            running = active.flip([0])
    if kind == "lstm":
        for_x, for_first, for_params = lstm_back(for_out, for_last, x, out, first, params, has_biases, running, saved[0], saved[1])
    elif kind == "gru":
        for_x, for_first, for_params = gru_back(for_out, for_last[0], x, out, first[0], params, has_biases, running)
    else:
        for_x, for_first, for_params = plain_back(kind, for_out, for_last[0], x, out, first[0], params, has_biases, running)
    return for_x.flip([0]) if is_backwards else for_x, for_first, for_params


# ---- layers on layers

def padded(x: Tensor, batch_sizes: Tensor | None) -> Tensor:
    """Rows of packed sequences as (time, batch, ...)."""
    if batch_sizes is None:
        return x
    return torch._pad_packed_sequence(x, batch_sizes, False, 0.0, -1)[0]


def active_rows(x: Tensor, batch_sizes: Tensor | None) -> Tensor | None:
    """Which rows of packed sequences exist at each time: (time, batch, 1)."""
    if batch_sizes is None:
        return None
    places = torch._pad_packed_sequence(torch.arange(x.size(0), device=x.device), batch_sizes, False, -1, -1)[0]
    return (places >= 0).unsqueeze(-1)


def packed(x: Tensor, active: Tensor | None) -> Tensor:
    """The rows of (time, batch, ...) that exist."""
    if active is None:
        return x
    return x.flatten(0, 1).index_select(0, torch.nonzero(active.reshape([-1])).reshape([-1]))


def lstm_layer(x: Tensor, first: list[Tensor], params: list[Tensor], has_biases: bool, bidirectional: bool, batch_sizes: Tensor | None
               ) -> tuple[list[Tensor], list[Tensor]]:
    """One layer of an LSTM: outputs and last states; cells and gates of each direction, in the order in which it runs."""
    active = active_rows(x, batch_sizes)
    into = padded(x, batch_sizes)
    directions = 2 if bidirectional else 1
    each = len(params) // directions
    outputs: list[Tensor] = []
    last: list[Tensor] = []
    last_cells: list[Tensor] = []
    saved: list[Tensor] = []
    for direction in range(directions):
        running = active
        turned_input = into
        if direction == 1:
            turned_input = into.flip([0])
            if active is not None:
                running = active.flip([0])
        out, cells, gates = lstm_steps(turned_input, [state.select(0, direction) for state in first],
                                       params[direction * each:direction * each + each], has_biases, running)
        saved = saved + [cells, gates]
        last, last_cells = last + [out.select(0, -1)], last_cells + [cells.select(0, -1)]
        outputs = outputs + [out.flip([0]) if direction == 1 else out]
    return [packed(torch.cat(outputs, -1), active), torch.stack(last), torch.stack(last_cells)], saved


def layer_of(kind: str, x: Tensor, first: list[Tensor], params: list[Tensor], has_biases: bool, bidirectional: bool,
             batch_sizes: Tensor | None) -> tuple[list[Tensor], list[Tensor]]:
    """One layer, all its directions: outputs and last states; what an LSTM keeps."""
    saved: list[Tensor] = []
    if kind == "lstm":
        return lstm_layer(x, first, params, has_biases, bidirectional, batch_sizes)
    if batch_sizes is None:
        if kind == "gru":
            out, last = torch.gru(x, first[0], params, has_biases, 1, 0.0, False, bidirectional, False)
        elif kind == "rnn_tanh":
            out, last = torch.rnn_tanh(x, first[0], params, has_biases, 1, 0.0, False, bidirectional, False)
        else:
            out, last = torch.rnn_relu(x, first[0], params, has_biases, 1, 0.0, False, bidirectional, False)
        return [out, last], saved
    if kind == "gru":
        out, last = torch.gru(x, batch_sizes, first[0], params, has_biases, 1, 0.0, False, bidirectional)
    elif kind == "rnn_tanh":
        out, last = torch.rnn_tanh(x, batch_sizes, first[0], params, has_biases, 1, 0.0, False, bidirectional)
    else:
        out, last = torch.rnn_relu(x, batch_sizes, first[0], params, has_biases, 1, 0.0, False, bidirectional)
    return [out, last], saved


def thinned(x: Tensor, masks: list[Tensor], layer: int, dropout: float) -> Tensor:
    """A layer's outputs, or their gradient, after dropout."""
    if layer < len(masks):
        return torch.native_dropout_backward(x, masks[layer], 1 / (1 - dropout) if dropout < 1 else 0.0)
    return x


def is_lstm(count: int, has_biases: bool, places: int) -> bool:
    """Is this the number of parameters of an LSTM, with projections or without? places: its layers, times directions."""
    each = 4 if has_biases else 2
    return count == each * places or count == (each + 1) * places


def layer_by_layer(kind: str, x: Tensor, first: list[Tensor], params: list[Tensor], has_biases: bool, num_layers: int, dropout: float,
                   bidirectional: bool, batch_sizes: Tensor | None) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
    """The net with dropout between layers: outputs and last states; the outputs of each layer but the last; the mask of each dropout; for
    each direction of each layer what an LSTM keeps."""
    directions = 2 if bidirectional else 1
    each = len(params) // num_layers
    outputs: list[Tensor] = []
    masks: list[Tensor] = []
    last: list[Tensor] = []
    cells: list[Tensor] = []
    saved: list[Tensor] = []
    if kind == "lstm" and not is_lstm(len(params), has_biases, num_layers * directions):
        raise ValueError("got an incorrect number of RNN parameters")
    by_layer = [state.split([directions] * num_layers) for state in first]
    for layer in range(num_layers):
        begins = [states[layer] for states in by_layer]
        layer_results, layer_saved = layer_of(kind, x, begins, params[layer * each:layer * each + each], has_biases, bidirectional,
                                             batch_sizes)
        saved = saved + layer_saved
        x = layer_results[0]
        last = last + [layer_results[1]]
        if kind == "lstm":
            cells = cells + [layer_results[2]]
        if layer < num_layers - 1:
            outputs = outputs + [x]
            if dropout > 0:
                x, mask = torch.native_dropout(x, dropout, True)
                masks = masks + [mask]
    results = [x, torch.cat(last)]
    if kind == "lstm":
        results = results + [torch.cat(cells)]
    return results, outputs, masks, saved


def net_back(kind: str, for_out: Tensor, for_last: list[Tensor], x: Tensor, out: Tensor, first: list[Tensor], params: list[Tensor],
             has_biases: bool, num_layers: int, bidirectional: bool, batch_sizes: Tensor | None, lower: list[Tensor], masks: list[Tensor],
             dropout: float, saved: list[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Gradients of all layers, from the last one back; `out` is the output of the last one, `lower` has the outputs of those before it,
    `saved` what `layer_by_layer` keeps."""
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    active = active_rows(x, batch_sizes)
    inputs = [x]
    for layer in range(num_layers - 1):
        inputs = inputs + [thinned(lower[layer], masks, layer, dropout)]
    outputs = lower + [out]
    for_first: list[Tensor] = []
    for_cell: list[Tensor] = []
    for_params: list[Tensor] = []
    for back in range(num_layers):
        layer = num_layers - 1 - back
        grads, outs = padded(for_out, batch_sizes).chunk(directions, -1), padded(outputs[layer], batch_sizes).chunk(directions, -1)
        into = padded(inputs[layer], batch_sizes)
        for_x = torch.zeros_like(into)
        states: list[Tensor] = []
        cells: list[Tensor] = []
        weights: list[Tensor] = []
        for direction in range(directions):
            place = layer * directions + direction
            part, begin, own_params = direction_back(
                kind, grads[direction], [last.select(0, place) for last in for_last], into, outs[direction],
                [state.select(0, place) for state in first], params[place * each:place * each + each], has_biases, active, direction == 1,
                saved[2 * place:2 * place + 2])
            for_x = for_x + part
            states = states + [begin[0]]
            if kind == "lstm":
                cells = cells + [begin[1]]
            weights = weights + own_params
        for_first, for_cell, for_params = states + for_first, cells + for_cell, weights + for_params
        for_out = packed(for_x, active)
        if layer > 0:
            for_out = thinned(for_out, masks, layer - 1, dropout)
    found_first = [torch.stack(for_first)]
    if kind == "lstm":
        found_first = found_first + [torch.stack(for_cell)]
    return for_out, found_first, for_params


def or_zeros(grad: Tensor | None, like: Tensor) -> Tensor:
    """Zeros for a result that takes no part."""
    return torch.zeros_like(like) if grad is None else grad


def turned(x: Tensor, batch_first: bool) -> Tensor:
    """Time first, or as it was."""
    return x.transpose(0, 1) if batch_first else x


# ---- the operators

@table.gradient("lstm.input")
def lstm_gradient(input: Tensor, hx: list[Tensor], params: list[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
                  bidirectional: bool, batch_first: bool):
    rate = dropout if train else 0.0
    results, lower, masks, saved = layer_by_layer("lstm", turned(input, batch_first), hx, params, has_biases, num_layers, rate,
                                                 bidirectional, None)
    out, last, cell = turned(results[0], batch_first), results[1], results[2]

    def backward(grad: Tensor | None, grad_last: Tensor | None, grad_cell: Tensor | None):
        for_x, for_hx, for_params = net_back(
            "lstm", turned(or_zeros(grad, out), batch_first), [or_zeros(grad_last, last), or_zeros(grad_cell, cell)],
            turned(input, batch_first), turned(out, batch_first), hx, params, has_biases, num_layers, bidirectional, None, lower, masks,
            dropout, saved)
        return turned(for_x, batch_first), for_hx, for_params, None, None, None, None, None, None

    return out, last, cell, backward


@table.gradient("lstm.data")
def packed_lstm_gradient(data: Tensor, batch_sizes: Tensor, hx: list[Tensor], params: list[Tensor], has_biases: bool, num_layers: int,
                         dropout: float, train: bool, bidirectional: bool):
    rate = dropout if train else 0.0
    results, lower, masks, saved = layer_by_layer("lstm", data, hx, params, has_biases, num_layers, rate, bidirectional, batch_sizes)
    out, last, cell = results[0], results[1], results[2]

    def backward(grad: Tensor | None, grad_last: Tensor | None, grad_cell: Tensor | None):
        for_x, for_hx, for_params = net_back(
            "lstm", or_zeros(grad, out), [or_zeros(grad_last, last), or_zeros(grad_cell, cell)], data, out, hx, params, has_biases,
            num_layers, bidirectional, batch_sizes, lower, masks, dropout, saved)
        return for_x, None, for_hx, for_params, None, None, None, None, None

    return out, last, cell, backward


@table.gradient("gru.input")
def gru_gradient(input: Tensor, hx: Tensor, params: list[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
                 bidirectional: bool, batch_first: bool):
    lower: list[Tensor] = []
    masks: list[Tensor] = []
    saved: list[Tensor] = []
    rate = dropout if train else 0.0
    if num_layers > 1:
        results, lower, masks, saved = layer_by_layer("gru", turned(input, batch_first), [hx], params, has_biases, num_layers, rate,
                                               bidirectional, None)
        out, last = turned(results[0], batch_first), results[1]
    else:
        out, last = torch.gru(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)

    def backward(grad: Tensor | None, grad_last: Tensor | None):
        for_x, for_hx, for_params = net_back(
            "gru", turned(or_zeros(grad, out), batch_first), [or_zeros(grad_last, last)], turned(input, batch_first),
            turned(out, batch_first), [hx], params, has_biases, num_layers, bidirectional, None, lower, masks, dropout, saved)
        return turned(for_x, batch_first), for_hx[0], for_params, None, None, None, None, None, None

    return out, last, backward


@table.gradient("gru.data")
def packed_gru_gradient(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: list[Tensor], has_biases: bool, num_layers: int,
                        dropout: float, train: bool, bidirectional: bool):
    lower: list[Tensor] = []
    masks: list[Tensor] = []
    saved: list[Tensor] = []
    rate = dropout if train else 0.0
    if num_layers > 1:
        results, lower, masks, saved = layer_by_layer("gru", data, [hx], params, has_biases, num_layers, rate, bidirectional,
                                               batch_sizes)
        out, last = results[0], results[1]
    else:
        out, last = torch.gru(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)

    def backward(grad: Tensor | None, grad_last: Tensor | None):
        for_x, for_hx, for_params = net_back("gru", or_zeros(grad, out), [or_zeros(grad_last, last)], data, out, [hx], params,
                                             has_biases, num_layers, bidirectional, batch_sizes, lower, masks, dropout, saved)
        return for_x, None, for_hx[0], for_params, None, None, None, None, None

    return out, last, backward


for kind in ("rnn_tanh", "rnn_relu"):
    table.gradient(f"{kind}.input")(renamed(gru_gradient, "gru", kind))
    table.gradient(f"{kind}.data")(renamed(packed_gru_gradient, "gru", kind))
