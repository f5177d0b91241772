"""Layers that operations go through: a backend at the bottom, which runs them; above it tapes, batches, tracers and loggers.

    with Autograd(Backend()) as tape: ...       # layers by hand
    irtool.grad(f), irtool.vmap(f)              # layers by transformation, which nest

Layers
    stack               the stack, the class of layers and that of their tensors
    backend             the bottom; autograd: tapes, for `grad`; batched: for `vmap`; tracer: graphs; follower: graphs for `irtool.jit`
    backward_pass       the walk back over a tape, with hooks
    hooks, logger       calls before and after each operation; a line for each
What users call
    transforms          grad, vjp, vmap; tangents: jvp, linearize; jacobians: Jacobians and Hessians
    torch               `irtool.torch`
    custom_functions    functions with gradients of their own
    graph_functions     graphs as functions, and transformations by name; given_inputs: their traces, with the inputs of the graph
    callables, trees    what transformations take: functions or graphs, and nested arguments
Facts and rules
    operator_rules      what layers ask about an operator
    recipes             its gradient; batch_rules: its rule under `vmap`; first_place: what it refuses alone
    memory_orders       how tensors of layers lie in memory
    layer_writes        writes: values never change, names get new values; write_guard: functions that must not write
    lent_arguments      what a transformed function writes into its arguments, and returns of them
    overwriting         tangents of what is written by index
    gradients_off       `no_grad`: which layers record
    graph_batching      loops and branches of graphs under `vmap`
    control_flow        loops and branches whose conditions are not decided; loop_tapes: gradients of such loops
    closure_conversion  functions that read tensors of functions around them; lasting_functions: those that a tape calls again
Traces of `irtool.jit`
    decisions           questions about elements, and their answers
    traced_numbers      numbers in a trace; followed: user's code in which `int(x)` stays in the trace

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
from irtool.dispatch.tangents import jvp, linearize
from irtool.dispatch.transforms import grad, grad_and_value, value_and_grad, vjp, vmap

__all__ = ["Autograd", "Backend", "Batched", "Boxed", "DispatchError", "Hooks", "Layer", "Logger", "current", "grad", "grad_and_value",
           "hessian", "jacfwd", "jacrev", "jvp", "linearize", "value_and_grad", "vjp", "vmap"]
