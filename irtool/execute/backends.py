"""Backends: each compiles graphs to programs on one library of arrays. A new backend is a class with two methods, and a row in BACKENDS."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from irtool.execute.device.device_plan import DevicePlan
from irtool.execute.plan.compiled import compile_plan
from irtool.ir.graph import Graph, Node


class Program(Protocol):
    """A compiled graph; `irtool plan` shows its properties."""

    graph: Graph

    @property
    def groups(self) -> Sequence[tuple[Node, Any]]:
        """The fused groups, each with the object that runs it."""

    @property
    def loops(self) -> Sequence[tuple[Node, Any]]:
        """The loops, each with how it runs."""

    @property
    def beside(self) -> Sequence[str]:
        """Which nodes run at the same time, as text."""

    @property
    def memory(self) -> object:
        """A report on memory, as text."""

    @property
    def source(self) -> str:
        """The code made so far."""

    def compile(self, inputs: Sequence[Any]) -> None:
        """Make the code for such inputs."""

    def __call__(self, inputs: Sequence[Any], *, seed: int | None = 0, accepted: bool = False) -> list[Any]:
        """Run on inputs, as `irtool.interpret.run`. accepted: `irtool.accepted_values.accept` has converted them."""

    def programs(self, inputs: Sequence[Any]) -> Sequence[tuple[str, str]]:
        """(name of a pass on the program, the program after it as text), for such inputs."""

    def forget(self) -> None:
        """Free the code made so far, and its memory."""


class Backend(Protocol):
    """A library of arrays, and the compiler of graphs for it."""

    def compile(self, graph: Graph, *, native: bool | None = None, threads: int = 1) -> Program:
        """The program of a graph. native, threads: as for `irtool.compile`; a backend may ignore them. Raises RunError if the library is
        missing."""

    def describe(self) -> str:
        """What it runs on, in a line."""


class NumPyBackend:
    """Python functions of NumPy calls, and loops in C."""

    compile: Callable[..., Program] = staticmethod(compile_plan)

    def describe(self) -> str:
        """What it runs on, in a line."""
        return "NumPy on this machine's processor; loops in C where a compiler is at hand"


class CuPyBackend:
    """Nodes one by one on CuPy arrays, fused groups as kernels."""

    def compile(self, graph: Graph, *, native: bool | None = None, threads: int = 1) -> Program:
        """The graph as a program; the device has its own threads, and kernels are always made."""
        return DevicePlan(graph)

    def describe(self) -> str:
        """What it runs on, in a line."""
        return "CuPy on a GPU; groups of pointwise operators as kernels"


BACKENDS: dict[str, Backend] = {"numpy": NumPyBackend(), "cupy": CuPyBackend()}
"""Name, for `irtool.compile(backend=...)` and `--backend`, -> backend."""
