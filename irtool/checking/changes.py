"""Which of the changes that a pass made to a module are wrong: the fewest with which a test still fails.

A change is a line of the text that the pass removed, added or rewrote; lines of a node with blocks that comes or goes are one change. Some
of the changes are applied to the text from before the pass, together with those that they need: the nodes whose values they read. A
combination that is no valid module is left out.

Source: delta debugging, Zeller and Hildebrandt, IEEE TSE 28(2), 2002.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher

from irtool.ir.attribute import Attribute
from irtool.ir.errors import Error
from irtool.ir.module import Module
from irtool.passmanager import violations
from irtool.text.parser import parse

Piece = tuple[list[str], list[str]]
"""Lines before and after the pass."""
NAME = re.compile(r"%([\w.]+)")
DECLARED = re.compile(r"%([\w.]+) :")


class Snapshot:
    """The text of a module, and the constants in it, whose arrays the text may not show."""

    def __init__(self, module: Module) -> None:
        self.text = str(module)
        self.constants: dict[tuple[str, str, str], Attribute] = {}
        for name, graph in zip(module.names(), module.graphs, strict=True):
            for node in graph.walk():
                if node.kind.endswith("Constant") and "value" in node.attributes:
                    value = node.attributes["value"]
                    self.constants[name, node.output.name, value.text] = value


class Changes:
    """The changes from one module to another. is_wrong: a test of a valid module with some of them."""

    def __init__(self, before: Snapshot, after: Snapshot, is_wrong: Callable[[Module], bool]) -> None:
        self.pieces = list(pieces(before.text.split("\n"), after.text.split("\n")))
        self.constants = {**before.constants, **after.constants}
        self.is_wrong = is_wrong
        self.all = [place for place, (old, new) in enumerate(self.pieces) if old != new]
        self.names = [(Names(old), Names(new)) for old, new in self.pieces]

    def smallest(self) -> list[int]:
        """The fewest changes found with which the module is wrong: without any one of them it is right or invalid. All of them if even
        these are not enough, so that the fault is not in the text."""
        chosen = self.all
        if not self.shows_fault(chosen):
            return chosen
        size = max(len(chosen) // 2, 1)
        while True:
            before = len(chosen)
            start = 0
            while start < len(chosen):
                rest = self.closed(chosen[:start] + chosen[start + size:])
                if rest and self.shows_fault(rest):
                    chosen = rest
                else:
                    start += size
            if size == 1 and len(chosen) == before:
                return chosen
            size = max(size // 2, 1)

    def closed(self, chosen: list[int]) -> list[int]:
        """Those of the changes that can be made without the others: every value that is read is defined."""
        left = set(chosen)
        while True:
            sides = [each[place in left] for place, each in enumerate(self.names)]
            defined = set().union(*[side.defined for side in sides])
            out = set()
            for place, side in enumerate(sides):
                missing = side.read - defined
                if missing and place in left:
                    out.add(place)
                elif missing:
                    out |= {each for each in left if not missing.isdisjoint(self.names[each][0].defined)}
            if not out:
                return sorted(left)
            left -= out

    def shows_fault(self, chosen: list[int]) -> bool:
        """Is the module with these changes valid, and wrong?"""
        try:
            module = self.module(chosen)
            return not violations(module) and self.is_wrong(module)
        except Error:
            return False

    def module(self, chosen: list[int]) -> Module:
        """The module with these changes alone. Raises Error if it is invalid."""
        wanted = set(chosen)
        lines = [line for place, (old, new) in enumerate(self.pieces) for line in (new if place in wanted else old)]
        module = parse("\n".join(lines))
        for name, graph in zip(module.names(), module.graphs, strict=True):
            for node in graph.walk():
                if node.kind.endswith("Constant") and "value" in node.attributes:
                    known = self.constants.get((name, node.output.name, node.attributes["value"].text))
                    if known is not None:
                        node.set_attribute("value", known)
        return module


class Names:
    """The names of the values that some lines define and read."""

    def __init__(self, lines: list[str]) -> None:
        self.defined: set[str] = set()
        read: set[str] = set()
        for line in lines:
            left, equals, _ = line.partition(" = ")
            self.defined.update(NAME.findall(left) if equals else DECLARED.findall(line))
            read.update(NAME.findall(line))
        self.read = read - self.defined


def pieces(before: list[str], after: list[str]) -> Iterator[Piece]:
    """Two texts cut into equal parts and changes, in order; lines that define the same values are one change."""
    for what, i, end, j, other_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        old, new = before[i:end], after[j:other_end]
        if what == "equal":
            yield old, new
            continue
        inner = SequenceMatcher(None, list(map(defined, old)), list(map(defined, new)), autojunk=False)
        for same, a, b, c, d in inner.get_opcodes():
            if same == "equal":
                yield from (([one], [other]) for one, other in zip(old[a:b], new[c:d], strict=True))
            else:
                yield from ((lines, []) for lines in nodes_in(old[a:b]))
                yield from (([], lines) for lines in nodes_in(new[c:d]))


def nodes_in(lines: list[str]) -> list[list[str]]:
    """Lines by nodes: a line that is indented more than the first of a node is in one of its blocks."""
    nodes: list[list[str]] = []
    for line in lines:
        if nodes and indent(line) > indent(nodes[-1][0]):
            nodes[-1].append(line)
        else:
            nodes.append([line])
    return nodes


def indent(line: str) -> int:
    """How many blanks a line begins with."""
    return len(line) - len(line.lstrip())


def defined(line: str) -> str:
    """The names of the values that a line defines, without their types; the whole line if there are none but `return` and the like."""
    left, equals, _ = line.partition(" = ")
    if equals:
        return ",".join(NAME.findall(left))
    return line.partition("(")[0]
