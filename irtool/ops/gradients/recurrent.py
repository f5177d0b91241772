"""Gradients of cells of recurrent networks."""
from __future__ import annotations

from irtool.ops.kernels.recurrent import table
from irtool.ops.tensor import Tensor, torch


def product_back(grad: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x @ weight.T + bias for x, weight and bias; x is a batch, or one vector."""
    rows = grad.reshape([-1, grad.size(-1)])
    return grad @ weight, rows.t() @ x.reshape([-1, x.size(-1)]), rows.sum([0])


@table.derivative("lstm_cell")
def lstm_cell_gradient(grad_hidden, grad_cell, input, hx, w_ih, w_hh, b_ih, b_hh):
    total = torch.linear(input, w_ih, b_ih) + torch.linear(hx[0], w_hh, b_hh)
    parts = total.chunk(4, -1)
    i, f, g, o = parts[0].sigmoid(), parts[1].sigmoid(), parts[2].tanh(), parts[3].sigmoid()
    new_cell = f * hx[1] + i * g
    squashed = new_cell.tanh()
    for_cell = torch.zeros_like(new_cell) if grad_cell is None else grad_cell
    for_hidden = torch.zeros_like(new_cell) if grad_hidden is None else grad_hidden
    for_cell = for_cell + for_hidden * o * (1 - squashed * squashed)
    for_gates = torch.cat([for_cell * g * i * (1 - i), for_cell * hx[1] * f * (1 - f), for_cell * i * (1 - g * g),
                           for_hidden * squashed * o * (1 - o)], -1)
    for_input, for_w_ih, for_bias = product_back(for_gates, input, w_ih)
    for_h, for_w_hh, _ = product_back(for_gates, hx[0], w_hh)
    return for_input, [for_h, for_cell * f], for_w_ih, for_w_hh, for_bias, for_bias


@table.derivative("_thnn_fused_lstm_cell")
def fused_lstm_cell_gradient(grad_hidden, grad_cell, input_gates, hidden_gates, cx, input_bias, hidden_bias):
    total = input_gates + hidden_gates
    if input_bias is not None:
        total = total + input_bias
    if hidden_bias is not None:
        total = total + hidden_bias
    parts = total.chunk(4, -1)
    i, f, g, o = parts[0].sigmoid(), parts[1].sigmoid(), parts[2].tanh(), parts[3].sigmoid()
    squashed = (f * cx + i * g).tanh()
    for_cell = torch.zeros_like(cx) if grad_cell is None else grad_cell
    for_hidden = torch.zeros_like(cx) if grad_hidden is None else grad_hidden
    for_cell = for_cell + for_hidden * o * (1 - squashed * squashed)
    for_gates = torch.cat([for_cell * g * i * (1 - i), for_cell * cx * f * (1 - f), for_cell * i * (1 - g * g),
                           for_hidden * squashed * o * (1 - o)], -1)
    for_bias = for_gates.reshape([-1, for_gates.size(-1)]).sum([0])
    return for_gates, for_gates, for_cell * f, for_bias, for_bias


@table.derivative("gru_cell")
def gru_cell_gradient(grad, input, hx, w_ih, w_hh, b_ih, b_hh):
    from_input = torch.linear(input, w_ih, b_ih).chunk(3, -1)
    from_hidden = torch.linear(hx, w_hh, b_hh).chunk(3, -1)
    reset = (from_input[0] + from_hidden[0]).sigmoid()
    update = (from_input[1] + from_hidden[1]).sigmoid()
    new = (from_input[2] + reset * from_hidden[2]).tanh()
    for_new = grad * (1 - update) * (1 - new * new)
    for_update = grad * (hx - new) * update * (1 - update)
    for_reset = for_new * from_hidden[2] * reset * (1 - reset)
    for_input, for_w_ih, for_b_ih = product_back(torch.cat([for_reset, for_update, for_new], -1), input, w_ih)
    for_h, for_w_hh, for_b_hh = product_back(torch.cat([for_reset, for_update, for_new * reset], -1), hx, w_hh)
    return for_input, for_h + grad * update, for_w_ih, for_w_hh, for_b_ih, for_b_hh


@table.derivative("rnn_tanh_cell")
def rnn_tanh_cell_gradient(grad, input, hx, w_ih, w_hh, result):
    slope = grad * (1 - result * result)
    for_input, for_w_ih, for_bias = product_back(slope, input, w_ih)
    for_h, for_w_hh, _ = product_back(slope, hx, w_hh)
    return for_input, for_h, for_w_ih, for_w_hh, for_bias, for_bias


@table.derivative("rnn_relu_cell")
def rnn_relu_cell_gradient(grad, input, hx, w_ih, w_hh, result):
    slope = grad * (result > 0)
    for_input, for_w_ih, for_bias = product_back(slope, input, w_ih)
    for_h, for_w_hh, _ = product_back(slope, hx, w_hh)
    return for_input, for_h, for_w_ih, for_w_hh, for_bias, for_bias
