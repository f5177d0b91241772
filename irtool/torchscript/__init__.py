"""TorchScript source -> IR, by Python's `ast` alone: nothing of the source is executed.

    module = compile_source(text, name=None, filename="model.py")                # -> Module, a graph per function
    graph = compile_function_source(text, filename, first_line)                  # -> Graph of the one function in `text`

A nested `def` is a closure, which may be returned and not called: its value is the pair `(prim::Closure, context)`, where the context is
the tuple of what it names, in order of first use, and the closure's graph takes `(context, parameters...)` (PyTorch's PR 15411).
"""
from irtool.torchscript.front import compile_function_source, compile_source

from_script = compile_source
"""Its name in `irtool`."""

__all__ = ["compile_function_source", "compile_source", "from_script"]
