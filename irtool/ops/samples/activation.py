"""Samples of activation functions: points away from their bends."""
from irtool.ops.array_library import np
from irtool.ops.kernels.activation import table
from irtool.ops.samples.draw import apart, call, chance, complexes, exactly, fixed, positive, real

x, grad, points = apart(9), real(9), np.linspace(-2, 2.2, 9)

table.sample("relu relu6 hardsigmoid hardswish selu silu mish log_sigmoid log_sigmoid_forward", call(real(2, 3)),
             call(apart(5, low=-4, high=8)))
table.sample("silu", call(complexes(3)))
table.sample("hardtanh", call(x, -1.1, 0.6))
table.sample("threshold", call(x, 0.2, 5.0))
table.sample("leaky_relu", call(x, 0.1))
table.sample("prelu", call(real(2, 3, 2), positive(3)), call(real(4), positive(1)))
table.sample("_prelu_kernel", call(real(2, 3), positive(2, 3)))
table.sample("hardshrink softshrink", call(x, 0.6))
table.sample("elu", call(x, 1.5, 1.1, 0.9), call(x))
table.sample("celu", call(x, 1.5))
table.sample("gelu", call(x), call(x, approximate="tanh"))
table.sample("softplus", call(x, 2.0, 1.6))
table.sample("glu", call(real(2, 4)), call(real(4, 3), 0))
table.sample("rrelu", call(x), call(x, training=True))
table.sample("rrelu_with_noise", call(x, fixed(positive(9))), call(x, fixed(positive(9)), training=True))
table.sample("hardtanh_backward", call(grad, x, -1.1, 0.6))
table.sample("threshold_backward hardshrink_backward softshrink_backward", call(grad, x, 0.6))
table.sample("leaky_relu_backward", call(grad, x, 0.1, False))
table.sample("_prelu_kernel_backward", call(real(2, 3), real(2, 3), real(2, 3)))
table.sample("hardsigmoid_backward hardswish_backward silu_backward mish_backward", call(grad, x))
table.sample("elu_backward", call(grad, 1.5, 1.1, 0.9, False, x), call(grad, 1.5, 1.1, 0.9, True, x))
table.sample("gelu_backward", call(grad, x), call(grad, x, approximate="tanh"))
table.sample("softplus_backward", call(grad, x, 2.0, 1.6))
table.sample("log_sigmoid_backward", call(grad, exactly(points), np.exp(-np.abs(points))))
table.sample("glu_backward", call(real(2, 2), real(2, 4), -1))
table.sample("sigmoid_backward tanh_backward", call(grad, x), call(complexes(3), complexes(3)))
table.sample("logit_backward", call(real(3), chance(3)), call(real(3), chance(3), 0.3))
table.sample("rrelu_with_noise_backward", call(grad, x, fixed(positive(9)), 0.1, 0.3, True, False),
             call(grad, x, fixed(positive(9)), 0.1, 0.3, False, False))
