"""The texts of the expect tests with operands that are constants written as attributes, as in 2018, or left out where the schema has a
default: passes and the printer of source ask the schema for arguments, not positions, so that none ends in an error of Python's."""
from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

import irtool
from irtool.cli.main import main
from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.constants import NOT_CONSTANT, constant
from irtool.ir.graph import Node
from irtool.ir.schema import schema_of
from irtool.passmanager import PassManager, violations

PIPELINE = re.compile(r"# RUN: opt [^\n]*--passes=(\S+)")


def is_text(text: str) -> bool:
    try:
        return bool(irtool.parse(text).graphs)
    except irtool.Error:
        return False


def cases() -> list[tuple[str, str]]:
    """A pipeline and a text of each case of a file that runs one."""
    found = []
    for path in sorted(Path(__file__).parent.glob("expect/**/*.ir")):
        whole = path.read_text(encoding="utf-8")
        pipelines = PIPELINE.findall(whole)
        for text in re.split(r"(?m)^# (?:-----?.*|====.*)$", whole) if pipelines else ():
            if "graph(" in text and len(text) < 1500 and is_text(text):
                found.append((pipelines[0] if not (own := PIPELINE.search(text)) else own[1], text))
    return found


CASES = cases()
BLOCKS = 8


def movable(node: Node) -> list[int]:
    """The places of the operands of an operator that are constants, of which text can say all."""
    schema = schema_of(node) if node.kind.startswith("aten::") and not node.attributes else None
    if schema is None or schema.is_vararg or len(node.inputs) > len(schema.arguments):
        return []
    return [place for place, value in enumerate(node.inputs)
            if (said := constant(value)) is not NOT_CONSTANT and not isinstance(said, TensorLiteral)]


def write_as_attributes(node: Node, places: list[int]) -> None:
    schema = schema_of(node)
    assert schema is not None
    node.attributes = {schema.arguments[place].name: Attribute.of(constant(node.inputs[place])) for place in places}
    node.set_inputs([value for place, value in enumerate(node.inputs) if place not in places])


def changed(text: str) -> list[str]:
    """The text with the constants of one node as attributes, for each node that has some, and without the last one."""
    texts = []
    for graph_at, graph in enumerate(irtool.parse(text).graphs):
        for at, places in enumerate([movable(node) for node in graph.walk()]):
            for form in ("attributes", "left out") if places else ():
                module = irtool.parse(text)
                node = list(module.graphs[graph_at].walk())[at]
                schema = schema_of(node)
                if form == "attributes":
                    write_as_attributes(node, places)
                elif schema is not None and schema.arguments[len(node.inputs) - 1].has_default:
                    node.set_inputs(node.inputs[:-1])
                texts.append(str(module))
    return texts


@pytest.mark.parametrize("block", range(BLOCKS))
def test_constants_as_attributes(block: int) -> None:
    tried = 0
    for pipeline, text in CASES[block::BLOCKS]:
        for number, each in enumerate(changed(text)):
            if violations(irtool.parse(each)):
                continue
            tried += 1
            for passes in (pipeline, ("propagate-shapes", "create-autodiff-subgraphs", "O2")[number % 3]):
                try:
                    PassManager(passes).run(irtool.parse(each))
                except irtool.Error:
                    pass
                except Exception as error:
                    raise AssertionError(f"{passes} of\n{each}") from error
            err = io.StringIO()
            if number % 2:
                continue
            assert main(["decompile"], io.BytesIO(each.encode()), io.StringIO(), err) in (0, 1, 2), f"{each}\n{err.getvalue()}"
    assert tried > 10
