"""Meanings of names in nested environments, and how control leaves a block.

An environment belongs to a block of the graph. If a branch of an `if` leaves (returns, breaks, continues), the statements after the `if`
are compiled into the other branch. Their environment *continues* the one around the `if`: they are in that frame, as in torch, also for the
rules about assigning a value of another type.
"""
from __future__ import annotations

import ast
from collections.abc import Iterator

from irtool.ir.graph import Block, Value
from irtool.torchscript.meanings import Sugared

Meaning = Value | Sugared
"""The meaning of a name or an expression: a value of the graph, or an object that only the compiler knows."""


class Environment:
    """Names of one frame."""

    __slots__ = ("names", "parent", "frame_parent", "errors")

    def __init__(self, parent: Environment | None = None, continues: Environment | None = None) -> None:
        self.names: dict[str, Meaning] = {}
        self.errors: dict[str, tuple[str, ast.AST]] = {}
        """Names without a value after an `if`: the reason, and the `if`."""
        self.parent = parent
        self.frame_parent: Environment | None = continues.frame_parent if continues is not None else parent
        """The surrounding frame in the program, against which assignments are checked."""

    def frames(self) -> Iterator[Environment]:
        """From this environment outwards."""
        frame: Environment | None = self
        while frame is not None:
            yield frame
            frame = frame.parent

    def find(self, name: str) -> Meaning | None:
        """The meaning of the name here; None if it has none."""
        for frame in self.frames():
            meaning = frame.names.get(name)
            if meaning is not None:
                return meaning
            if name in frame.errors:
                return None
        return None

    def find_outside(self, name: str) -> Meaning | None:
        """The meaning of the name in the surrounding frames."""
        return self.frame_parent.find(name) if self.frame_parent is not None else None

    def error_of(self, name: str) -> tuple[str, ast.AST] | None:
        """The reason why the name has no value, if an `if` is the reason."""
        for frame in self.frames():
            if name in frame.names:
                return None
            if name in frame.errors:
                return frame.errors[name]
        return None

    def all_names(self) -> set[str]:
        """All names that have a meaning here."""
        return {name for frame in self.frames() for name in frame.names if name[:1] != "$"}

    def delete(self, name: str) -> bool:
        """Take the name out of all frames, also where only one branch deletes it. As in torch, it has to be one of the outermost frame:
        returns whether it was."""
        outermost = self
        while outermost.frame_parent is not None:
            outermost = outermost.frame_parent
        known = any(name in frame.names for frame in outermost.frames())
        for frame in self.frames():
            frame.names.pop(name, None)
        return known

    def set(self, name: str, meaning: Meaning) -> None:
        """Give the name a meaning in this frame."""
        self.names[name] = meaning
        self.errors.pop(name, None)


class Flow:
    """How control leaves a piece of code. Each part is known (a bool), computed (a Value), or irrelevant (None).

    `skip`: does control leave before the end? `go`: in a loop, is there another round? `returned`: does control leave by `return`?
    """

    __slots__ = ("skip", "go", "returned")

    def __init__(self, skip: Value | bool | None, go: Value | bool | None, returned: Value | bool | None) -> None:
        self.skip = skip
        self.go = go
        self.returned = returned

    @property
    def falls(self) -> bool:
        """Does control always reach the end?"""
        return self.skip is False

    @property
    def exits(self) -> bool:
        """Does control never reach the end?"""
        return self.skip is True or self.skip is None

    @property
    def throws(self) -> bool:
        """Does the code always raise?"""
        return self.skip is None

    @property
    def jumps(self) -> bool:
        """Does the code leave before the end, and not always by returning or raising?"""
        return self.skip is True and self.returned is not True and self.returned is not None


FALLS = Flow(False, True, False)
RETURNS = Flow(True, False, True)
BREAKS = Flow(True, False, False)
CONTINUES = Flow(True, True, False)
THROWS = Flow(None, None, None)


class Branch:
    """A block being compiled: its place, its names, and how control leaves it."""

    __slots__ = ("block", "env", "outer", "flow")

    def __init__(self, block: Block, env: Environment, outer: Environment) -> None:
        self.block = block
        self.env = env
        self.outer = outer
        """The environment around the `if`."""
        self.flow = FALLS

    def assigned(self) -> list[str]:
        """The names assigned in the branch, in order."""
        names: dict[str, None] = {}
        for frame in reversed([frame for frame in self._own_frames()]):
            names.update(dict.fromkeys(frame.names))
        return list(names)

    def undefined(self) -> dict[str, tuple[str, ast.AST]]:
        """The names without a value, each with the reason."""
        reasons: dict[str, tuple[str, ast.AST]] = {}
        for frame in self._own_frames():
            for name, why in frame.errors.items():
                reasons.setdefault(name, why)
        return reasons

    def _own_frames(self) -> Iterator[Environment]:
        for frame in self.env.frames():
            if frame is self.outer:
                return
            yield frame
