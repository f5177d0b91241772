"""Gradients of pooling to a given size."""
from irtool.ops.gradients.pooling import at_places
from irtool.ops.kernels.adaptive_pooling import table
from irtool.ops.tensor import torch

table.derivative("adaptive_avg_pool1d",
                 lambda grad, self: torch._adaptive_avg_pool2d_backward(grad.unsqueeze(-2), self.unsqueeze(-2)).squeeze(-2))
table.derivative("adaptive_avg_pool2d _adaptive_avg_pool2d", lambda grad, self: torch._adaptive_avg_pool2d_backward(grad, self))
table.derivative("adaptive_avg_pool3d _adaptive_avg_pool3d", lambda grad, self: torch._adaptive_avg_pool3d_backward(grad, self))
table.derivative("_adaptive_avg_pool2d_backward",
                 lambda grad, grad_output_size: (torch._adaptive_avg_pool2d(grad, grad_output_size[-2:]), None))
table.derivative("_adaptive_avg_pool3d_backward",
                 lambda grad, grad_output_size: (torch._adaptive_avg_pool3d(grad, grad_output_size[-3:]), None))
table.derivative("adaptive_max_pool1d", lambda grad, result1, self_size: grad.new_zeros(self_size).scatter_add(-1, result1, grad))
table.derivative("adaptive_max_pool2d", lambda grad, self, result1: torch.adaptive_max_pool2d_backward(grad, self, result1))
table.derivative("adaptive_max_pool3d", lambda grad, self, result1: torch.adaptive_max_pool3d_backward(grad, self, result1))
table.derivative("adaptive_max_pool2d_backward", lambda grad, indices: (at_places(grad, indices, 2), None, None))
table.derivative("adaptive_max_pool3d_backward", lambda grad, indices: (at_places(grad, indices, 3), None, None))
