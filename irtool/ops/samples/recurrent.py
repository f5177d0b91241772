"""Samples of recurrent cells."""
from __future__ import annotations

from irtool.ops.kernels.recurrent import table
from irtool.ops.samples.draw import Call, Draw, call, ints, real

h, b3, b4 = real(2, 4), real(12), real(16)

table.sample("lstm_cell", call(real(2, 3), [h, h], real(16, 3), real(16, 4), b4, b4), call(real(2, 3), [h, h], real(16, 3), real(16, 4)))
table.sample("_thnn_fused_lstm_cell", call(real(2, 12), real(2, 12), real(2, 3), b3), call(real(2, 12), real(2, 12), real(2, 3), b3, b3))
table.sample("gru_cell", call(real(2, 3), h, real(12, 3), real(12, 4), b3, b3), call(real(2, 3), h, real(12, 3), real(12, 4)))
table.sample("rnn_tanh_cell rnn_relu_cell", call(real(2, 3), h, real(4, 3), real(4, 4)),
             call(real(1, 3), real(1, 4), real(4, 3), real(4, 4), real(4), real(4)))
table.sample("_pack_padded_sequence", call(real(3, 2, 2), ints(3, 2), False), call(real(2, 3, 2), ints(3, 1), True))
table.sample("_pad_packed_sequence", call(real(5, 2), ints(2, 2, 1), False, 0.5, 4))


def weights(gates: int, layers: int = 1, directions: int = 1, has_biases: bool = True) -> list[Draw]:
    """The weights of each layer and direction, for three input features and a state of two."""
    drawn: list[Draw] = []
    for layer in range(layers):
        for _ in range(directions):
            drawn += [real(2 * gates, 2 * directions if layer else 3), real(2 * gates, 2)]
            drawn += [real(2 * gates), real(2 * gates)] if has_biases else []
    return drawn


def nets(gates: int, states: int) -> tuple[list[Call], list[Call]]:
    """Calls on steps, and on packed steps."""
    def state(count: int) -> Draw | list[Draw]:
        return real(count, 2, 2) if states == 1 else [real(count, 2, 2) for _ in range(states)]

    steps = [call(real(2, 2, 3), state(1), weights(gates), True, 1, 0.0, False, False, False),
             call(real(2, 2, 3), state(2), weights(gates, 2, 1, False), False, 2, 0.0, False, False, True)]
    return steps, [call(real(3, 3), ints(2, 1), state(2), weights(gates, 1, 2), True, 1, 0.0, False, True)]


for kind, gates, states in (("lstm", 4, 2), ("gru", 3, 1), ("rnn_tanh", 1, 1), ("rnn_relu", 1, 1)):
    steps, packed = nets(gates, states)
    table.sample(f"{kind}.input", *steps)
    table.sample(f"{kind}.data", *packed)
