"""A pass, a backend or a subcommand that is not ours enters through the table that ours are in: a row is enough."""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from test_cli import irtool_

import irtool
from irtool.cli.command import command
from irtool.cli.commands import COMMANDS
from irtool.execute.backends import BACKENDS, Program
from irtool.interpret import run as interpret
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


class Reference:
    """A backend that interprets."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.groups: list[Any] = []
        self.loops: list[Any] = []
        self.beside: list[str] = []
        self.source = self.memory = "none"
        self.runs = 0

    def compile(self, inputs: Any) -> None: ...

    def programs(self, inputs: Any) -> list[tuple[str, str]]:
        return []

    def forget(self) -> None: ...

    def __call__(self, inputs: Any, *, seed: int | None = 0, accepted: bool = False) -> list[Any]:
        self.runs += 1
        return interpret(self.graph, inputs, seed=seed)


def test_a_backend_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    programs: list[Reference] = []

    class Interpreting:
        def compile(self, graph: Graph, *, native: bool | None = None, threads: int = 1) -> Program:
            programs.append(Reference(graph))
            return programs[-1]

        def describe(self) -> str:
            return "the interpreter"

    assert all(each.describe() for each in BACKENDS.values())
    monkeypatch.setitem(BACKENDS, "numpy", Interpreting())
    x = np.float32([1, -2])
    executor = irtool.compile(irtool.parse(TEXT))
    for _ in range(3):
        np.testing.assert_array_equal(executor(x)[0], -x)
    np.testing.assert_array_equal(executor.vjp([x], [x], [0])[0], -x)
    assert sum(each.runs for each in programs) >= 3


def test_a_command_is_a_row_and_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "greet", ("Find out", "say hello"))
    module = ModuleType("irtool.cli.commands.greet")
    vars(module)["greet"] = command("greet")(lambda arguments, console: 0)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    code, out, _ = irtool_("--help")
    assert code == 0 and "say hello" in out
    assert irtool_("greet")[0] == 0
