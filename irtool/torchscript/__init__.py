"""TorchScript source -> IR, by Python's `ast` alone: nothing of the source is executed.

    module = compile_source(text, name=None, filename="model.py")                # -> Module, a graph per function
    graph = compile_function_source(text, filename, first_line)                  # -> Graph of the one function in `text`

Reading
    front               whole files, and single functions; source_text: files -> definitions of functions
    repair              source in archives that torch reads and Python does not
    library             the files of an archive, each read when one of its names is used; archive_code: functions that only archives call
    upgraders           operators of older versions, with their old meaning
One function
    emitter             the function being compiled: its graph, and where nodes go
    environment         meanings of names, and how control leaves a block
    syntax              what is refused wherever it stands
    statements          statements, with branches, assignment, loop_statements, exceptions, nested_functions, forks
    expressions         expressions, with subscripts, conditions, comprehensions, containers
    calls               calls; resolve: the overload that a call means
Names and types
    meanings            meanings that are no values: modules, functions, bound methods
    python_names        names of Python and torch; torch_calls, nn_functional: functions that are no operators;
                        library_calls: functions that graphs call by name
    annotations         types
    classes, class_definitions, instances   classes of the source, with enumerations; built_in_classes: classes of torch
Other modules
    printing            graphs -> source
    rewrite_rules       rules for the pass `rewrite`, as functions; standard_rules: irtool's own

A nested `def` is a closure, which may be returned and not called. Its value is the pair `(prim::Closure, context)`. The context is the
tuple of captured values, in order of first use; the closure's graph takes `(context, parameters...)` (PyTorch's PR 15411).
"""
from irtool.torchscript.front import compile_function_source, compile_source

from_script = compile_source
"""The name of `compile_source` in `irtool`."""

__all__ = ["compile_function_source", "compile_source", "from_script"]
