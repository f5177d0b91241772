"""A pass or a subcommand that is not ours enters through the table that ours are in: a row is enough."""
from __future__ import annotations

import sys
from types import ModuleType

import pytest
from test_cli import irtool_

from irtool.cli.command import command
from irtool.cli.commands import COMMANDS
from irtool.ir.graph import Graph
from irtool.passes import BY_NAME, Pass

TEXT = "graph(%x : Float(2)):\n  %1 : Float(2) = aten::neg(%x)\n  return (%1)\n"


def neg_to_relu(graph: Graph) -> bool:
    """Every `aten::neg` becomes `aten::relu`."""
    nodes = [node for node in graph.walk() if node.kind == "aten::neg"]
    for node in nodes:
        node.kind = "aten::relu"
    return bool(nodes)


def test_a_pass_of_a_user_runs_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_NAME, "neg-to-relu", Pass("neg-to-relu", neg_to_relu))
    code, out, _ = irtool_("opt", "--passes=neg-to-relu", text=TEXT)
    assert code == 0 and "aten::relu(%x)" in out


def test_a_command_is_a_row_and_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "greet", ("Find out", "say hello"))
    module = ModuleType("irtool.cli.commands.greet")
    vars(module)["greet"] = command("greet")(lambda arguments, console: 0)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    code, out, _ = irtool_("--help")
    assert code == 0 and "say hello" in out
    assert irtool_("greet")[0] == 0
