"""TorchScript source -> IR, by Python's `ast` alone: nothing of the source is executed.

    module = compile_source(text, name=None, filename="model.py")                # -> Module, a graph per function
    graph = compile_function_source(text, filename, first_line)                  # -> Graph of the one function in `text`

Reading
    front               whole files, and single functions; source_text: files -> definitions of functions
    repair              what torch reads in archives and Python does not
    library             the files of an archive, each read when a name of its own is used; archive_code: what only archives say
    upgraders           operators of older versions, as they were
One function
    emitter             the function being compiled: its graph, and where nodes go
    environment         what names mean where, and how control leaves a block
    statements          statements, with assignment, loop_statements, exceptions, nested_functions, forks
    expressions         expressions, with subscripts, conditions, comprehensions, containers
    calls               calls; resolve: which overload is meant
Names and types
    meanings            what is no value: modules, functions, bound methods
    python_names        names of Python and torch; torch_calls, nn_functional: those that are no operators; library_calls: those of graphs
    annotations         types
    classes, class_definitions, instances   classes of the source; built_in_classes: those that torch has
And
    printing            graphs -> source
    rewrite_rules       rules for peephole as functions; standard_rules: ours

A nested `def` is a closure, which may be returned and not called: its value is the pair `(prim::Closure, context)`, where the context is
the tuple of what it names, in order of first use, and the closure's graph takes `(context, parameters...)` (PyTorch's PR 15411).
"""
from irtool.torchscript.front import compile_function_source, compile_source

from_script = compile_source
"""Its name in `irtool`."""

__all__ = ["compile_function_source", "compile_source", "from_script"]
