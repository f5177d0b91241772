"""What names mean where: nested environments, and how control leaves a block.

An environment belongs to a block of the graph. Statements after an `if` one of whose branches leaves (returns, breaks, continues) are
compiled into the other branch; the environment they get *continues* the one around the `if`: for torch they stand in that frame, and
its rules about assigning another type apply as if they stood there.
"""
from __future__ import annotations

import ast
from collections.abc import Iterator

from irtool.ir.graph import Block, Value
from irtool.ir.types import Type
from irtool.torchscript.meanings import Sugared

Meaning = Value | Sugared
"""What a name or an expression means: a value of the graph, or something that only the compiler knows."""


class Environment:
    """Names of one frame."""

    __slots__ = ("names", "parent", "frame_parent", "errors", "declared")

    def __init__(self, parent: Environment | None = None, continues: Environment | None = None) -> None:
        self.names: dict[str, Meaning] = {}
        self.errors: dict[str, tuple[str, ast.AST]] = {}
        """Names that have no value after an `if`: why, and the `if`."""
        self.declared: dict[str, Type] = {}
        """Types given by annotations."""
        self.parent = parent
        self.frame_parent: Environment | None = continues.frame_parent if continues is not None else parent
        """The frame outside of this one in the program: assignments are checked against it."""

    def frames(self) -> Iterator[Environment]:
        """From this environment outwards."""
        frame: Environment | None = self
        while frame is not None:
            yield frame
            frame = frame.parent

    def find(self, name: str) -> Meaning | None:
        """What the name means here."""
        for frame in self.frames():
            meaning = frame.names.get(name)
            if meaning is not None:
                return meaning
            if name in frame.errors:
                return None
        return None

    def find_outside(self, name: str) -> Meaning | None:
        """What the name means in the frames outside of this one."""
        return self.frame_parent.find(name) if self.frame_parent is not None else None

    def error_of(self, name: str) -> tuple[str, ast.AST] | None:
        """Why the name has no value, where an `if` took it."""
        for frame in self.frames():
            if name in frame.names:
                return None
            if name in frame.errors:
                return frame.errors[name]
        return None

    def declared_type(self, name: str) -> Type | None:
        """The type an annotation gave the name."""
        for frame in self.frames():
            if name in frame.declared:
                return frame.declared[name]
        return None

    def all_names(self) -> set[str]:
        """Every name that means something here."""
        return {name for frame in self.frames() for name in frame.names if name[:1] != "$"}

    def set(self, name: str, meaning: Meaning) -> None:
        """Give the name a meaning in this frame."""
        self.names[name] = meaning
        self.errors.pop(name, None)


class Flow:
    """How control leaves a piece of code. Each part is known (a bool), computed (a Value), or of no importance (None).

    `skip`: does it leave before its end? `go`: if inside a loop, is there another round? `returned`: did it leave by `return`?
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
        """Does it always raise?"""
        return self.skip is None


FALLS = Flow(False, True, False)
RETURNS = Flow(True, False, True)
BREAKS = Flow(True, False, False)
CONTINUES = Flow(True, True, False)
THROWS = Flow(None, None, None)


class Branch:
    """A block being compiled: where, with which names, and how it is left."""

    __slots__ = ("block", "env", "outer", "flow")

    def __init__(self, block: Block, env: Environment, outer: Environment) -> None:
        self.block = block
        self.env = env
        self.outer = outer
        """The environment around the `if`."""
        self.flow = FALLS

    def assigned(self) -> list[str]:
        """Names given a value in the branch, in order."""
        names: dict[str, None] = {}
        for frame in reversed([frame for frame in self._own_frames()]):
            names.update(dict.fromkeys(frame.names))
        return list(names)

    def undefined(self) -> dict[str, tuple[str, ast.AST]]:
        """Names without a value, and why."""
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
