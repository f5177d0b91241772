"""Layers that operations go through: a backend at the bottom, and on top of it what logs, differentiates, batches or traces them.

    with Autograd(Backend()) as tape: ...       # layers by hand
    irtool.grad(f), irtool.vmap(f)              # layers by transformation, which nest

A layer sees operations on tensors and has one method that matters, `apply(name, args)`; what it does below goes to `inner.apply`. What it
knows of an operator it takes from a table (`irtool.dispatch.operator_rules`): for the library, from the stanzas.
"""
from irtool.dispatch.autograd import Autograd
from irtool.dispatch.backend import Backend
from irtool.dispatch.batched import Batched
from irtool.dispatch.hooks import Hooks
from irtool.dispatch.jacobians import hessian, jacfwd, jacrev
from irtool.dispatch.logger import Logger
from irtool.dispatch.stack import Boxed, DispatchError, Layer, current
from irtool.dispatch.transforms import grad, grad_and_value, jvp, linearize, value_and_grad, vjp, vmap

__all__ = ["Autograd", "Backend", "Batched", "Boxed", "DispatchError", "Hooks", "Layer", "Logger", "current", "grad", "grad_and_value",
           "hessian", "jacfwd", "jacrev", "jvp", "linearize", "value_and_grad", "vjp", "vmap"]
