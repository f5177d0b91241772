"""Gradients of activations and, for second order, of their own gradient operators. At a kink they are torch's."""
from __future__ import annotations

from irtool.ops.kernels.activation import table
from irtool.ops.tensor import Generator, Tensor, number, torch


@table.gradient("relu")
def relu_gradient(self: Tensor):
    result = self.relu()

    def backward(grad: Tensor):
        return torch.threshold_backward(grad, result, 0)

    return result, backward


@table.gradient("relu6")
def relu6_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.hardtanh_backward(grad, self, 0, 6)

    return torch.relu6(self), backward


@table.gradient("hardtanh")
def hardtanh_gradient(self: Tensor, min_val: number, max_val: number):
    def backward(grad: Tensor):
        return torch.hardtanh_backward(grad, self, min_val, max_val), None, None

    return torch.hardtanh(self, min_val, max_val), backward


@table.gradient("hardtanh_backward")
def hardtanh_backward_gradient(grad_output: Tensor, self: Tensor, min_val: number, max_val: number):
    grad_size = grad_output.size()

    def backward(grad: Tensor):
        return torch.hardtanh_backward(grad, self, min_val, max_val).sum_to_size(grad_size), None, None, None

    return torch.hardtanh_backward(grad_output, self, min_val, max_val), backward


@table.gradient("threshold")
def threshold_gradient(self: Tensor, threshold: number, value: number):
    def backward(grad: Tensor):
        return torch.threshold_backward(grad, self, threshold), None, None

    return torch.threshold(self, threshold, value), backward


@table.gradient("threshold_backward")
def threshold_backward_gradient(grad_output: Tensor, self: Tensor, threshold: number):
    grad_size = grad_output.size()

    def backward(grad: Tensor):
        return torch.threshold_backward(grad, self, threshold).sum_to_size(grad_size), None, None

    return torch.threshold_backward(grad_output, self, threshold), backward


@table.gradient("leaky_relu")
def leaky_relu_gradient(self: Tensor, negative_slope: number):
    def backward(grad: Tensor):
        return torch.leaky_relu_backward(grad, self, negative_slope, False), None

    return torch.leaky_relu(self, negative_slope), backward


@table.gradient("leaky_relu_backward")
def leaky_relu_backward_gradient(grad_output: Tensor, self: Tensor, negative_slope: number, self_is_result: bool):
    grad_size = grad_output.size()

    def backward(grad: Tensor):
        return torch.leaky_relu_backward(grad, self, negative_slope, self_is_result).sum_to_size(grad_size), None, None, None

    return torch.leaky_relu_backward(grad_output, self, negative_slope, self_is_result), backward


def beside(self: Tensor, weight: Tensor) -> Tensor:
    """A weight per channel, in a shape that broadcasts along dimension 1."""
    if weight.dim() == self.dim():
        return weight
    shape = [1 for size in self.size()]
    if weight.dim() > 0 and self.dim() > 0:
        at = 1 if self.dim() > 1 else 0
        shape[at] = weight.size(0)
    return weight.reshape(shape)


@table.gradient("prelu")
def prelu_gradient(self: Tensor, weight: Tensor):
    weight_size = weight.size()

    def backward(grad: Tensor):
        slope = beside(self, weight)
        nothing = torch.zeros_like(grad)
        self_grad = torch.where(self > 0, grad, grad * slope)
        weight_grad = torch.where(self > 0, nothing, grad * self).sum_to_size(slope.size())
        return self_grad, weight_grad.reshape(weight_size)

    return torch.prelu(self, weight), backward


@table.gradient("_prelu_kernel")
def prelu_kernel_gradient(self: Tensor, weight: Tensor):
    self_size, weight_size = self.size(), weight.size()

    def backward(grad: Tensor):
        self_grad = torch.where(self > 0, grad, grad * weight)
        return self_grad.sum_to_size(self_size), torch.where(self > 0, torch.zeros_like(grad), grad * self).sum_to_size(weight_size)

    return torch._prelu_kernel(self, weight), backward


@table.gradient("hardshrink")
def hardshrink_gradient(self: Tensor, lambd: number):
    def backward(grad: Tensor):
        return torch.hardshrink_backward(grad, self, lambd), None

    return torch.hardshrink(self, lambd), backward


@table.gradient("hardshrink_backward")
def hardshrink_backward_gradient(grad_out: Tensor, self: Tensor, lambd: number):
    grad_size = grad_out.size()

    def backward(grad: Tensor):
        return torch.hardshrink_backward(grad, self, lambd).sum_to_size(grad_size), None, None

    return torch.hardshrink_backward(grad_out, self, lambd), backward


@table.gradient("softshrink")
def softshrink_gradient(self: Tensor, lambd: number):
    def backward(grad: Tensor):
        return torch.softshrink_backward(grad, self, lambd), None

    return torch.softshrink(self, lambd), backward


@table.gradient("softshrink_backward")
def softshrink_backward_gradient(grad_output: Tensor, self: Tensor, lambd: number):
    grad_size = grad_output.size()

    def backward(grad: Tensor):
        return torch.softshrink_backward(grad, self, lambd).sum_to_size(grad_size), None, None

    return torch.softshrink_backward(grad_output, self, lambd), backward


@table.gradient("hardsigmoid")
def hardsigmoid_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.hardsigmoid_backward(grad, self)

    return torch.hardsigmoid(self), backward


@table.gradient("hardsigmoid_backward")
def hardsigmoid_backward_gradient(grad_output: Tensor, self: Tensor):
    grad_size = grad_output.size()

    def backward(grad: Tensor):
        return torch.hardsigmoid_backward(grad, self).sum_to_size(grad_size), None

    return torch.hardsigmoid_backward(grad_output, self), backward


@table.gradient("hardswish")
def hardswish_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.hardswish_backward(grad, self)

    return torch.hardswish(self), backward


@table.gradient("hardswish_backward")
def hardswish_backward_gradient(grad_output: Tensor, self: Tensor):
    grad_size, self_size = grad_output.size(), self.size()

    def backward(grad: Tensor):
        bent = (self > -3) & (self < 3)
        return (torch.hardswish_backward(grad, self).sum_to_size(grad_size),
                torch.where(bent, grad * grad_output / 3, torch.zeros_like(grad)).sum_to_size(self_size))

    return torch.hardswish_backward(grad_output, self), backward


@table.gradient("elu")
def elu_gradient(self: Tensor, alpha: number, scale: number, input_scale: number):
    def backward(grad: Tensor):
        return torch.elu_backward(grad, alpha, scale, input_scale, False, self), None, None, None

    return torch.elu(self, alpha, scale, input_scale), backward


@table.gradient("elu_backward")
def elu_backward_gradient(grad_output: Tensor, alpha: number, scale: number, input_scale: number, is_result: bool, self_or_result: Tensor):
    grad_size, self_size = grad_output.size(), self_or_result.size()

    def backward(grad: Tensor):
        once = torch.elu_backward(grad, alpha, scale, input_scale, is_result, self_or_result)
        if is_result:
            bend = grad * grad_output * input_scale
        else:
            bend = grad * grad_output * (self_or_result * input_scale).exp() * (alpha * scale * input_scale * input_scale)
        bend = torch.where(self_or_result > 0, torch.zeros_like(bend), bend)
        return once.sum_to_size(grad_size), None, None, None, None, bend.sum_to_size(self_size)

    return torch.elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result), backward


@table.gradient("celu")
def celu_gradient(self: Tensor, alpha: number):
    def backward(grad: Tensor):
        return torch.elu_backward(grad, alpha, 1, 1.0 / alpha, False, self), None

    return torch.celu(self, alpha), backward


@table.gradient("selu")
def selu_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.elu_backward(grad, 1.6732632423543772, 1.0507009873554805, 1, False, self)

    return torch.selu(self), backward


@table.gradient("gelu")
def gelu_gradient(self: Tensor, approximate: str):
    def backward(grad: Tensor):
        return torch.gelu_backward(grad, self, approximate=approximate), None

    return torch.gelu(self, approximate=approximate), backward


@table.gradient("gelu_backward")
def gelu_backward_gradient(grad_output: Tensor, self: Tensor, approximate: str):
    grad_size, self_size = grad_output.size(), self.size()

    def backward(grad: Tensor):
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
        return once.sum_to_size(grad_size), (grad * grad_output * bend).sum_to_size(self_size), None

    return torch.gelu_backward(grad_output, self, approximate=approximate), backward


@table.gradient("silu")
def silu_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.silu_backward(grad, self)

    return torch.silu(self), backward


@table.gradient("silu_backward")
def silu_backward_gradient(grad_output: Tensor, self: Tensor):
    grad_size, self_size = grad_output.size(), self.size()

    def backward(grad: Tensor):
        level = self.sigmoid()
        slope = level * (1 - level)
        bend = slope * 2 + self * slope * (1 - level * 2)
        return torch.silu_backward(grad, self).sum_to_size(grad_size), (grad * grad_output * bend).sum_to_size(self_size)

    return torch.silu_backward(grad_output, self), backward


@table.gradient("mish")
def mish_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.mish_backward(grad, self)

    return torch.mish(self), backward


@table.gradient("mish_backward")
def mish_backward_gradient(grad_output: Tensor, self: Tensor):
    grad_size, self_size = grad_output.size(), self.size()

    def backward(grad: Tensor):
        level = self.sigmoid()
        bound = torch.softplus(self).tanh()
        rest = 1 - bound * bound
        slope = rest * level
        bend = slope * 2 + self * (level * (1 - level) * rest - level * slope * bound * 2)
        return torch.mish_backward(grad, self).sum_to_size(grad_size), (grad * grad_output * bend).sum_to_size(self_size)

    return torch.mish_backward(grad_output, self), backward


@table.gradient("softplus")
def softplus_gradient(self: Tensor, beta: number, threshold: number):
    def backward(grad: Tensor):
        return torch.softplus_backward(grad, self, beta, threshold), None, None

    return torch.softplus(self, beta, threshold), backward


@table.gradient("softplus_backward")
def softplus_backward_gradient(grad_output: Tensor, self: Tensor, beta: number, threshold: number):
    grad_size, self_size = grad_output.size(), self.size()

    def backward(grad: Tensor):
        level = (self * beta).sigmoid()
        bend = grad * grad_output * (level * (1 - level) * beta)
        bend = torch.where(self * beta > threshold, torch.zeros_like(bend), bend)
        return torch.softplus_backward(grad, self, beta, threshold).sum_to_size(grad_size), bend.sum_to_size(self_size), None, None

    return torch.softplus_backward(grad_output, self, beta, threshold), backward


@table.gradient("log_sigmoid")
def log_sigmoid_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * (-self).sigmoid()

    return torch.log_sigmoid(self), backward


@table.gradient("log_sigmoid_forward")
def log_sigmoid_forward_gradient(self: Tensor):
    output, buffer = torch.log_sigmoid_forward(self)

    def backward(grad: Tensor):
        return grad * (-self).sigmoid()

    return output, buffer, backward


@table.gradient("log_sigmoid_backward")
def log_sigmoid_backward_gradient(grad_output: Tensor, self: Tensor, buffer: Tensor):
    grad_size, self_size = grad_output.size(), self.size()

    def backward(grad: Tensor):
        level = self.sigmoid()
        return (grad * (1 - level)).sum_to_size(grad_size), (-grad * grad_output * (level * (1 - level))).sum_to_size(self_size), None

    return torch.log_sigmoid_backward(grad_output, self, buffer), backward


@table.gradient("glu")
def glu_gradient(self: Tensor, dim: int):
    def backward(grad: Tensor):
        return torch.glu_backward(grad, self, dim), None

    return torch.glu(self, dim), backward


@table.gradient("glu_backward")
def glu_backward_gradient(grad_output: Tensor, self: Tensor, dim: int):
    def backward(grad: Tensor):
        half = self.size(dim) // 2
        first, gate = self.narrow(dim, 0, half), self.narrow(dim, half, half).sigmoid()
        first_grad, gate_grad = grad.narrow(dim, 0, half), grad.narrow(dim, half, half)
        slope = gate * (1 - gate)
        output_grad = first_grad * gate + gate_grad * first * slope
        bend = first_grad * slope + gate_grad * first * slope * (1 - gate * 2)
        return output_grad, torch.cat([gate_grad * grad_output * slope, grad_output * bend], dim), None

    return torch.glu_backward(grad_output, self, dim), backward


@table.gradient("sigmoid_backward")
def sigmoid_backward_gradient(grad_output: Tensor, output: Tensor):
    grad_size, output_size = grad_output.size(), output.size()

    def backward(grad: Tensor):
        bend = (grad * grad_output).conj() * (1 - output * 2)
        return torch.sigmoid_backward(grad, output).sum_to_size(grad_size), bend.sum_to_size(output_size)

    return torch.sigmoid_backward(grad_output, output), backward


@table.gradient("tanh_backward")
def tanh_backward_gradient(grad_output: Tensor, output: Tensor):
    grad_size, output_size = grad_output.size(), output.size()

    def backward(grad: Tensor):
        bend = (grad * grad_output).conj() * (output * -2)
        return torch.tanh_backward(grad, output).sum_to_size(grad_size), bend.sum_to_size(output_size)

    return torch.tanh_backward(grad_output, output), backward


@table.gradient("logit_backward")
def logit_backward_gradient(grad_output: Tensor, self: Tensor, eps: float | None):
    grad_size, self_size = grad_output.size(), self.size()

    def backward(grad: Tensor):
        once = torch.logit_backward(grad, self, eps)
        spread = self * (1 - self)
        bend = once * grad_output * ((self * 2 - 1) / spread)
        bend = torch.where(once == 0, torch.zeros_like(bend), bend)
        return once.sum_to_size(grad_size), bend.sum_to_size(self_size), None

    return torch.logit_backward(grad_output, self, eps), backward


@table.gradient("rrelu")
def rrelu_gradient(self: Tensor, lower: number, upper: number, training: bool, generator: Generator | None):
    result = torch.rrelu(self, lower, upper, training, generator)

    def backward(grad: Tensor):
        slope = torch.where(self > 0, torch.ones_like(self), result / self)
        return grad * torch.where(self == 0, torch.ones_like(self) * ((lower + upper) / 2), slope), None, None, None, None

    return result, backward


@table.gradient("rrelu_with_noise")
def rrelu_with_noise_gradient(self: Tensor, noise: Tensor, lower: number, upper: number, training: bool, generator: Generator | None):
    result = torch.rrelu_with_noise(self, noise, lower, upper, training, generator)
    slopes = noise.clone()      # as they were drawn, whatever is written there next

    def backward(grad: Tensor):
        return torch.rrelu_with_noise_backward(grad, self, slopes, lower, upper, training, False), None, None, None, None, None

    return result, backward


@table.gradient("rrelu_with_noise_backward")
def rrelu_with_noise_backward_gradient(grad_output: Tensor, self: Tensor, noise: Tensor, lower: number, upper: number, training: bool,
                                       self_is_result: bool):
    grad_size = grad_output.size()

    def backward(grad: Tensor):
        once = torch.rrelu_with_noise_backward(grad, self, noise, lower, upper, training, self_is_result)
        return once.sum_to_size(grad_size), None, None, None, None, None, None

    return torch.rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result), backward


@table.gradient("_prelu_kernel_backward")
def prelu_kernel_backward_gradient(grad_output: Tensor, self: Tensor, weight: Tensor):
    grad_size, self_size, weight_size = grad_output.size(), self.size(), weight.size()
    self_result, weight_result = torch._prelu_kernel_backward(grad_output, self, weight)

    def backward(self_grad: Tensor | None, weight_grad: Tensor | None):
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
        return output_grad.sum_to_size(grad_size), to_self.sum_to_size(self_size), to_weight.sum_to_size(weight_size)

    return self_result, weight_result, backward
