"""The subcommands: one module per subcommand, with a function of the same name. A module is imported when its subcommand is called."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.command import Command

GRAPHS, PYTHON, LISTS = "Work on a graph", "To and from Python", "Find out"

COMMANDS = {    # name: (heading in help, summary)
    "opt": (GRAPHS, "run passes on IR text"),
    "show": (GRAPHS, "look at a graph: a page, a picture, a tree"),
    "run": (GRAPHS, "run a graph on arrays"),
    "plan": (GRAPHS, "show the plan by which a graph runs"),
    "grad": (GRAPHS, "compute gradients of a graph's inputs"),
    "vmap": (GRAPHS, "batch a graph over a dimension of its inputs"),
    "transform": (GRAPHS, "transform a graph, by vmap(grad(0)) for example"),
    "gradcheck": (GRAPHS, "compare gradients with finite differences"),
    "diff": (GRAPHS, "compare two graphs, apart from the names of values"),
    "compare": (GRAPHS, "run two graphs, and name the first value that differs"),
    "bisect": (GRAPHS, "name the wrong pass of a pipeline"),
    "reduce": (GRAPHS, "make a graph that shows a fault as small as possible"),
    "fmt": (GRAPHS, "print IR text canonically, or in another dialect"),
    "convert": (GRAPHS, "convert between archives, text and weights"),
    "decompile": (GRAPHS, "print a graph as TorchScript source"),
    "compile": (PYTHON, "compile TorchScript source to IR, without executing it"),
    "trace": (PYTHON, "trace a Python function over tensors to a graph"),
    "check-operator": (PYTHON, "check operators that you define on their samples"),
    "passes": (LISTS, "list the passes and their options"),
    "ops": (LISTS, "list the operators: kernels, gradients, batching rules"),
    "stats": (LISTS, "count nodes, blocks and types"),
    "inspect": (LISTS, "show what is in a TorchScript archive, or in weights"),
    "explain": (LISTS, "explain the code of an error, and the remedy"),
    "completion": (LISTS, "print a completion script for a shell"),
}


def load(name: str) -> Command:
    """The subcommand of a name; imports its module."""
    from importlib import import_module

    word = name.replace("-", "_")
    command: Command = getattr(import_module(f"irtool.cli.commands.{word}"), word)
    return command
