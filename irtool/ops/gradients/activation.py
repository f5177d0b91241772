"""Gradients of activations and, for second order, of their own gradient operators. At a kink they are torch's."""
from __future__ import annotations

from irtool.ops.kernels.activation import table
from irtool.ops.tensor import Generator, Tensor, number, torch

table.backward("hardtanh threshold hardshrink softshrink hardsigmoid hardswish gelu silu mish softplus glu")
table.linear("leaky_relu_backward hardtanh_backward threshold_backward hardshrink_backward softshrink_backward hardsigmoid_backward")
table.derivative("relu", lambda grad, result: torch.threshold_backward(grad, result, 0))
table.derivative("relu6", lambda grad, self: torch.hardtanh_backward(grad, self, 0, 6))
table.derivative("leaky_relu", lambda grad, self, negative_slope: torch.leaky_relu_backward(grad, self, negative_slope, False))


def beside(self: Tensor, weight: Tensor) -> Tensor:
    """A weight per channel, in a shape that broadcasts along dimension 1."""
    if weight.dim() == self.dim():
        return weight
    shape = [1 for size in self.size()]
    if weight.dim() > 0 and self.dim() > 0:
        at = 1 if self.dim() > 1 else 0
        shape[at] = weight.size(0)
    return weight.reshape(shape)


@table.derivative("prelu")
def prelu_gradient(grad, self, weight, weight_size):
    slope = beside(self, weight)
    nothing = torch.zeros_like(grad)
    self_grad = torch.where(self > 0, grad, grad * slope)
    weight_grad = torch.where(self > 0, nothing, grad * self).sum_to_size(slope.size())
    return self_grad, weight_grad.reshape(weight_size)


@table.pointwise("_prelu_kernel")
def prelu_kernel_gradient(grad, self, weight):
    self_grad = torch.where(self > 0, grad, grad * weight)
    return self_grad, torch.where(self > 0, torch.zeros_like(grad), grad * self)


@table.pointwise("hardswish_backward")
def hardswish_backward_gradient(grad, grad_output, self):
    bent = (self > -3) & (self < 3)
    return torch.hardswish_backward(grad, self), torch.where(bent, grad * grad_output / 3, torch.zeros_like(grad))


table.derivative("elu", lambda grad, self, alpha, scale, input_scale: torch.elu_backward(grad, alpha, scale, input_scale, False, self))


@table.pointwise("elu_backward")
def elu_backward_gradient(grad, grad_output, alpha, scale, input_scale, is_result, self_or_result):
    once = torch.elu_backward(grad, alpha, scale, input_scale, is_result, self_or_result)
    if is_result:
        bend = grad * grad_output * input_scale
    else:
        bend = grad * grad_output * (self_or_result * input_scale).exp() * (alpha * scale * input_scale * input_scale)
    bend = torch.where(self_or_result < 0, bend, torch.zeros_like(bend))
    return once, bend


table.derivative("celu", lambda grad, self, alpha: torch.elu_backward(grad, alpha, 1, 1.0 / alpha, False, self))
table.derivative("selu", lambda grad, self: torch.elu_backward(grad, 1.6732632423543772, 1.0507009873554805, 1, False, self))


@table.pointwise("gelu_backward")
def gelu_backward_gradient(grad, grad_output, self, approximate):
    if approximate == "none":
        density = (self * self * -0.5).exp() * 0.3989422804014327
        bend = density * (2 - self * self)
    else:
        square = self * self
        inner = (self + self * square * 0.044715) * 0.7978845608028654
        slope = (square * 0.134145 + 1) * 0.7978845608028654
        bent = self * (0.26829 * 0.7978845608028654)
        level = inner.tanh()
        rest = 1 - level * level
        bend = rest * slope + self * 0.5 * (rest * bent - level * rest * slope * slope * 2)
    once = torch.gelu_backward(grad, self, approximate=approximate)
    return once, grad * grad_output * bend


@table.pointwise("silu_backward")
def silu_backward_gradient(grad, grad_output, self):
    level = self.sigmoid()
    slope = level * (1 - level)
    bend = slope * 2 + self * slope * (1 - level * 2)
    return torch.silu_backward(grad, self), grad * grad_output * bend


@table.pointwise("mish_backward")
def mish_backward_gradient(grad, grad_output, self):
    level = self.sigmoid()
    bound = torch.softplus(self).tanh()
    rest = 1 - bound * bound
    slope = rest * level
    bend = slope * 2 + self * (level * (1 - level) * rest - level * slope * bound * 2)
    return torch.mish_backward(grad, self), grad * grad_output * bend


@table.pointwise("softplus_backward")
def softplus_backward_gradient(grad, grad_output, self, beta, threshold):
    level = (self * beta).sigmoid()
    bend = grad * grad_output * (level * (1 - level) * beta)
    bend = torch.where(self * beta >= threshold, torch.zeros_like(bend), bend)
    return torch.softplus_backward(grad, self, beta, threshold), bend


table.slope("log_sigmoid log_sigmoid_forward", lambda self: (-self).sigmoid())


@table.pointwise("log_sigmoid_backward")
def log_sigmoid_backward_gradient(grad, grad_output, self):
    level = self.sigmoid()
    return grad * (1 - level), -grad * grad_output * (level * (1 - level)), None


@table.derivative("glu_backward")
def glu_backward_gradient(grad, grad_output, self, dim):
    half = self.size(dim) // 2
    first, gate = self.narrow(dim, 0, half), self.narrow(dim, half, half).sigmoid()
    first_grad, gate_grad = grad.narrow(dim, 0, half), grad.narrow(dim, half, half)
    slope = gate * (1 - gate)
    output_grad = first_grad * gate + gate_grad * first * slope
    bend = first_grad * slope + gate_grad * first * slope * (1 - gate * 2)
    return output_grad, torch.cat([gate_grad * grad_output * slope, grad_output * bend], dim)


table.pointwise("sigmoid_backward",
                lambda grad, grad_output, output: (torch.sigmoid_backward(grad, output), (grad * grad_output).conj() * (1 - output * 2)))
table.pointwise("tanh_backward",
                lambda grad, grad_output, output: (torch.tanh_backward(grad, output), (grad * grad_output).conj() * (output * -2)))


@table.pointwise("logit_backward")
def logit_backward_gradient(grad, grad_output, self, eps):
    once = torch.logit_backward(grad, self, eps)
    spread = self * (1 - self)
    bend = once * grad_output * ((self * 2 - 1) / spread)
    bend = torch.where(once == 0, torch.zeros_like(bend), bend)
    return once, bend


@table.slope("rrelu")
def rrelu_slope(self, lower, upper, training, result):
    """Slopes below 0 are drawn in training: the division is not differentiated, which would give nan at 0."""
    x = self.detach()
    slope = torch.ones_like(x) * ((lower + upper) / 2)
    if training:
        slope = torch.where(x == 0, slope, torch.where(x < 0, result.detach() / x, torch.ones_like(x)))
    return torch.where(x > 0, torch.ones_like(x), slope)


@table.gradient("rrelu_with_noise")
def rrelu_with_noise_gradient(self: Tensor, noise: Tensor, lower: number, upper: number, training: bool, generator: Generator | None):
    result = torch.rrelu_with_noise(self, noise, lower, upper, training, generator)
    slopes = noise.clone()      # the values at this time, whatever is written there later

    def backward(grad: Tensor):
        return torch.rrelu_with_noise_backward(grad, self, slopes, lower, upper, training, False), None, None, None, None, None

    return result, backward


@table.pointwise("rrelu_with_noise_backward")
def rrelu_with_noise_backward_gradient(grad, self, noise, lower, upper, training, self_is_result):
    once = torch.rrelu_with_noise_backward(grad, self, noise, lower, upper, training, self_is_result)
    return once, None, None


@table.pointwise("_prelu_kernel_backward")
def prelu_kernel_backward_gradient(self_grad, weight_grad, grad_output, self, weight):
    nothing = torch.zeros_like(grad_output)
    output_grad = nothing
    to_self = torch.zeros_like(self)
    to_weight = torch.zeros_like(weight)
    if self_grad is not None:
        output_grad = output_grad + torch.where(self > 0, self_grad, self_grad * weight)
        to_weight = torch.where(self > 0, nothing, self_grad * grad_output)
    if weight_grad is not None:
        output_grad = output_grad + torch.where(self > 0, nothing, weight_grad * self)
        to_self = torch.where(self > 0, nothing, weight_grad * grad_output)
    return output_grad, to_self, to_weight


table.no_gradient_for("noise", "torch has none either", "rrelu_with_noise rrelu_with_noise_backward")
table.no_gradient_for("buffer", "torch has none either", "log_sigmoid_backward")
