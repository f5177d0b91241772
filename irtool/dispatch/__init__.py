"""Layers that operations go through: a backend at the bottom, which runs them; above it tapes, batches, tracers and loggers.

    with Autograd(Backend()) as tape: ...       # layers by hand
    irtool.grad(f), irtool.vmap(f)              # layers by transformation, which nest

The main method of a layer is `apply(name, args)`: it runs one operation, by operations on the layer below (`inner.apply`). Layers look up
facts about operators in a table (`irtool.dispatch.operator_rules`), which takes them from the stanzas.
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
