"""irtool: read, rewrite and run PyTorch-JIT IR, in pure Python on NumPy.

    module = irtool.parse(text, filename=None)              # -> Module; raises ParseError with file:line:col of every problem
    text = str(module)                                      # the parsed text byte for byte, except for changes
    module = irtool.PassManager("dce,cse").run(module)      # -> Module; raises PipelineError for a wrong pipeline
    outputs = irtool.run(graph, inputs)                     # -> list, one Python value per graph output, tensors as arrays

Packages, each of which imports only those above it:

    ir              graphs, types, schemas, verifier: the data
    text            every dialect of IR text <-> graphs
    ops             what an operator is: kernels, gradients, batching rules, samples
    interpret       the reference: nodes in order; accepted_values: what goes in and comes out;
                    shared_inputs: memory that inputs share
    analysis        questions about graphs: which values share memory, which nodes are needed
    torchscript     source <-> graphs
    partial         partial evaluation
    autodiff        f -> f and df
    dispatch        layers: grad, vmap, jvp, trace, `irtool.torch`
    passes          what rewrites graphs (the folder beside irtool/); passmanager, pipelines: several in order
    interop         arrays in files and on the command line
    execute         executors and plans
    archives        `.pt` files
    testing, corpora, checking      gradients against differences; many files at once; wrong passes
    drawing         pictures and pages
    cli, expect     the command line; expect tests

Every error that irtool raises on purpose is an `irtool.Error`; `irtool.UnsupportedError` is raised for what irtool does not support. Names
load on first use (PEP 562), so that `import irtool` is fast and only running a graph imports NumPy.
"""
from __future__ import annotations

from os.path import isdir

if not isdir(f"{__path__[0]}/passes"):      # a checkout without symbolic links (Windows, a source distribution): passes/ is beside irtool/
    __path__.append(f"{__path__[0]}/..")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool import dispatch
    from irtool.archives import ScriptModule, load
    from irtool.archives.freezing import freeze
    from irtool.archives.saving import save
    from irtool.archives.script_module import functional_call
    from irtool.dispatch.autograd import register_hook
    from irtool.dispatch.jacobians import hessian, jacfwd, jacrev
    from irtool.dispatch.tangents import jvp, linearize
    from irtool.dispatch.torch.signatures import Tensor, torch
    from irtool.dispatch.tracer import trace
    from irtool.dispatch.transforms import custom_vjp, grad, grad_and_value, value_and_grad, vmap
    from irtool.execute.debug_state import debug_state
    from irtool.execute.executor import Executor, compile
    from irtool.execute.jit import jit
    from irtool.execute.phases import clear_custom_passes, custom_passes, register_custom_pass
    from irtool.execute.run import run, vjp
    from irtool.interpret import register_python_op
    from irtool.ir.builder import Builder
    from irtool.ir.errors import Error, ParseError, PassError, PipelineError, RunError, UnsupportedError, VerifyError
    from irtool.ir.graph import Block, Graph, Node, Use, Value
    from irtool.ir.module import Module
    from irtool.ir.verify import verify
    from irtool.ops import OPS
    from irtool.ops.own_operators import operator
    from irtool.passes import PASSES
    from irtool.passmanager import PassManager
    from irtool.testing.finite_differences import gradcheck
    from irtool.text.parser import parse
    from irtool.torchscript import from_script
    from irtool.torchscript.printing.to_python import to_script

__version__ = "0.1.0"

_HOMES = {
    "load": "irtool.archives", "ScriptModule": "irtool.archives", "freeze": "irtool.archives.freezing",
    "save": "irtool.archives.saving",
    "functional_call": "irtool.archives.script_module",
    "parse": "irtool.text.parser",
    "run": "irtool.execute.run", "vjp": "irtool.execute.run", "register_python_op": "irtool.interpret",
    "operator": "irtool.ops.own_operators",
    "compile": "irtool.execute.executor", "Executor": "irtool.execute.executor",
    "jit": "irtool.execute.jit", "debug_state": "irtool.execute.debug_state",
    "register_custom_pass": "irtool.execute.phases", "clear_custom_passes": "irtool.execute.phases",
    "custom_passes": "irtool.execute.phases",
    "gradcheck": "irtool.testing.finite_differences",
    "grad": "irtool.dispatch.transforms", "value_and_grad": "irtool.dispatch.transforms", "grad_and_value": "irtool.dispatch.transforms",
    "vmap": "irtool.dispatch.transforms", "jvp": "irtool.dispatch.tangents", "linearize": "irtool.dispatch.tangents",
    "custom_vjp": "irtool.dispatch.transforms", "jacrev": "irtool.dispatch.jacobians", "jacfwd": "irtool.dispatch.jacobians",
    "hessian": "irtool.dispatch.jacobians", "trace": "irtool.dispatch.tracer",
    "torch": "irtool.dispatch.torch.namespace", "register_hook": "irtool.dispatch.autograd",
    "to_script": "irtool.torchscript.printing.to_python",
    "from_script": "irtool.torchscript",
    "PassManager": "irtool.passmanager",
    "PASSES": "irtool.passes",
    "OPS": "irtool.ops",
    "Tensor": "irtool.ops.tensor",
    "Module": "irtool.ir.module",
    "Graph": "irtool.ir.graph", "Block": "irtool.ir.graph", "Node": "irtool.ir.graph", "Value": "irtool.ir.graph", "Use": "irtool.ir.graph",
    "Builder": "irtool.ir.builder",
    "verify": "irtool.ir.verify",
    "Error": "irtool.ir.errors", "ParseError": "irtool.ir.errors", "VerifyError": "irtool.ir.errors", "RunError": "irtool.ir.errors",
    "PassError": "irtool.ir.errors", "UnsupportedError": "irtool.ir.errors", "PipelineError": "irtool.ir.errors",
}

_PACKAGES = ("dispatch",)
"""Whole packages that are public."""

__all__ = [
    "OPS", "PASSES", "Block", "Builder", "Error", "Executor", "Graph", "Module", "Node", "ParseError", "PassError", "PassManager",
    "PipelineError", "RunError", "ScriptModule", "Tensor", "UnsupportedError", "Use", "Value", "VerifyError", "__version__",
    "clear_custom_passes", "compile", "custom_passes", "custom_vjp", "debug_state", "dispatch", "freeze",
    "from_script", "functional_call", "grad", "grad_and_value", "gradcheck", "hessian", "jacfwd", "jacrev", "jit", "jvp", "linearize",
    "load", "operator", "parse", "register_custom_pass", "register_hook", "register_python_op", "run", "save", "to_script", "torch",
    "trace", "value_and_grad", "verify", "vjp", "vmap",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _PACKAGES:
        return import_module(f"irtool.{name}")
    home = _HOMES.get(name)
    if home is None:
        from irtool.ir.errors import NameMissing

        raise NameMissing(f"module 'irtool' has no attribute '{name}'", name, lambda: __all__)

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
