"""The subcommands: a file each, named like the subcommand, with a function of that name. It is imported when it is called."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.command import Command

GRAPHS, PYTHON, LISTS = "Work on a graph", "To and from Python", "Find out"

COMMANDS = {    # name: (group of the help text, one line)
    "opt": (GRAPHS, "run passes on IR text"),
    "run": (GRAPHS, "run a graph on arrays"),
    "plan": (GRAPHS, "show the plan that running a graph makes of it"),
    "grad": (GRAPHS, "gradients of a graph's inputs"),
    "vmap": (GRAPHS, "batch a graph over a dimension of its inputs"),
    "transform": (GRAPHS, "transform a graph: vmap(grad(0))"),
    "gradcheck": (GRAPHS, "compare gradients with differences of the outputs"),
    "fmt": (GRAPHS, "print IR text canonically, or in another dialect"),
    "convert": (GRAPHS, "turn archives, text and weights into one another"),
    "decompile": (GRAPHS, "print a graph as TorchScript source"),
    "compile": (PYTHON, "compile TorchScript source to IR, without executing it"),
    "trace": (PYTHON, "trace a Python function over tensors to a graph"),
    "check-operator": (PYTHON, "try operators of one's own on their samples"),
    "passes": (LISTS, "list the passes and their options"),
    "ops": (LISTS, "list the operators and what is known of each"),
    "inspect": (LISTS, "show what is in a TorchScript archive, or in weights"),
    "explain": (LISTS, "say what the code of an error means, and what to do"),
    "completion": (LISTS, "print a completion script for a shell"),
}


def load(name: str) -> Command:
    """A subcommand; its module is imported now."""
    from importlib import import_module

    word = name.replace("-", "_")
    command: Command = getattr(import_module(f"irtool.cli.commands.{word}"), word)
    return command
