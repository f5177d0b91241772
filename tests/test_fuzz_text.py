"""Laws of the text front end over generated graphs and damaged files.

`IRTOOL_FUZZ=10000` sets how many damaged texts are tried (100 by default).
"""
from __future__ import annotations

import io
import itertools
import os
import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.mutations import mutated
from irtool.cli.main import main
from irtool.ir.errors import ParseError
from irtool.ir.verify_nodes import FORMS
from irtool.text.cursor import MAX_ERRORS
from irtool.text.parser import parse
from tests.corpus import CORPUS
from tests.laws import over, seeds, ten

SHORT = [path.read_bytes().decode("utf-8", "surrogateescape") for path in CORPUS if path.stat().st_size < 5000]
EXAMPLES = int(os.environ.get("IRTOOL_FUZZ", "100"))


@over("seed", seeds(EXAMPLES), ten)
def test_a_damaged_text_reads_or_is_diagnosed(seed: int) -> None:
    rng = random.Random(seed)
    text = mutated(rng, rng.choice(SHORT), SHORT)
    try:
        module = parse(text, "damaged.ir")
    except ParseError as error:
        assert 1 <= len(error.diagnostics) <= MAX_ERRORS
        lines = text.split("\n")
        for diagnostic in error.diagnostics:
            assert 1 <= diagnostic.line <= len(lines)
            assert 1 <= diagnostic.col <= len(lines[diagnostic.line - 1]) + 1
            assert diagnostic.message.isprintable()
        assert str(error)
    else:
        assert str(module) == text
        for graph in module.graphs:
            graph.build_uses()
            assert all(node.owner is not None for node in graph.walk())


NAMES = st.sampled_from(["{n}", "x{n}", "x.{n}", "a_b{n}.1", "_{n}", "{word}", "{word}.12", "onnx::A_{n}", "/a/b_{n}"])
"""Forms of names; a name's number among all of its graph makes it one of its own."""
TYPES = st.sampled_from(["Tensor", "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)", "int", "int[]", "Tensor?[]", "str", "bool?",
                         "(int, Tensor)", "Dict(str, int[])", "NoneType", "Long(requires_grad=0, device=cuda:0)", "__torch__.a.B",
                         "NamedTuple(a : int, b : Tensor)", "Future(Tensor)", "Float(*, 3)", "Union(int, str)"])
ATTRIBUTES = st.sampled_from(["", "", "[value=1]", "[value=0.10000000000000001]",
                              '[value="a, b=c]("]', '[value="\\"%x # )"]', "[value={1}]",
                              "[value=<Tensor>]", "[a=[1, 2], b=(1, 2), c=None]", "[value= 1  2 [ CPULongType{2} ]]",
                              "[types=[Tensor(requires_grad=0), Float(2)]]"])
TAILS = st.sampled_from(["", "", "", " # a.py:1:2", ", scope: Net/Linear[fc]", ", scope: __main__.M:: # b c.py:30:4", ", scope: f()"])


@st.composite
def graphs(draw: Callable[..., object]) -> str:
    """The text of a graph as today's printer writes it: ops with attributes and tails, several outputs, none, nested blocks."""
    numbers = itertools.count()
    lines: list[str] = []

    def fresh() -> str:
        number = next(numbers)
        return str(draw(NAMES)).format(n=number, word="w" * (number // 26) + chr(ord("a") + number % 26))

    def declared(count: int, scope: list[str]) -> str:
        names = [fresh() for _ in range(count)]
        scope += names
        return ", ".join(f"%{name} : {draw(TYPES)}" for name in names)

    def refs(scope: list[str], most: int = 6) -> str:
        count = int(str(draw(st.integers(0, most)))) if scope else 0
        return ", ".join(f"%{draw(st.sampled_from(scope))}" for _ in range(count))

    def nodes(scope: list[str], level: int) -> None:
        for _ in range(int(str(draw(st.integers(0, 4))))):
            operands = refs(scope)
            blocks = int(str(draw(st.sampled_from([0, 0, 0, 1, 2])))) if level < 7 else 0
            kind = draw(st.sampled_from(["aten::mul", "foo::bar_x", "^Name(1, (2, 3))", "prim::Constant", *["prim::If"] * (blocks > 0)]))
            inner: list[str] = []
            outputs = declared(int(str(draw(st.sampled_from([1, 1, 1, 1, 0, 2])))), inner)
            attributes = "" if str(kind).startswith("^") else draw(ATTRIBUTES)
            lines.append(f"{'  ' * level}{outputs} = {kind}{attributes}({operands}){draw(TAILS)}")
            for number in range(blocks):
                local = list(scope)
                lines.append(f"{'  ' * (level + 1)}block{number}({declared(int(str(draw(st.integers(0, 2)))), local)}):")
                nodes(local, level + 2)
                lines.append(f"{'  ' * (level + 2)}-> ({refs(local, 3)})")
            scope += inner

    top: list[str] = []
    inputs = declared(int(str(draw(st.integers(0, 3)))), top)
    for name in top[1:]:
        inputs = inputs.replace(f", %{name} : ", f",\n      %{name} : ", 1)
    nodes(top, 1)
    return f"graph({inputs}):\n" + "".join(f"{line}\n" for line in lines) + f"  return ({refs(top)})\n"


@settings(max_examples=max(50, EXAMPLES // 10), suppress_health_check=list(HealthCheck))
@given(st.lists(graphs(), min_size=1, max_size=3), st.sampled_from(["", "\n", "a title\n", "# graph f: of=g n=[1, 2]\n"]))
def test_generated_graphs_round_trip(texts: list[str], between: str) -> None:
    text = between.join(["", *texts])
    module = parse(text)
    assert str(module) == text
    assert len(module.graphs) == len(texts)
    again = parse("".join(str(graph) for graph in module.graphs))
    kinds, kinds_again = ([[node.kind for node in graph.walk()] for graph in one.graphs] for one in (module, again))
    assert kinds == kinds_again


@pytest.mark.parametrize("kind", FORMS)
def test_a_node_that_lacks_attributes_is_no_crash(kind: str) -> None:
    """Nodes of kinds that no schema declares, of all numbers of operands and results, without attributes: an answer or an error."""
    for type, taken, count in itertools.product(("Tensor", "int[]", "(int, Tensor)"), range(3), range(3)):
        operands, results = [", ".join([f"%{letter}{i}" for i in range(n)]) for letter, n in (("x", taken), ("r", count))]
        declared = ", ".join([f"%r{i} : {type}" for i in range(count)]) + " = " * (count > 0)
        text = f"graph(%x0 : {type}, %x1 : {type}):\n  {declared}{kind}({operands})\n  return ({results.partition(',')[0]})\n"
        for words in (["decompile"], ["opt", "--passes=O1"]):
            assert main(words, io.BytesIO(text.encode()), io.StringIO(), io.StringIO()) in (0, 1), text


@pytest.mark.parametrize("shape", ["0", "0,2", "2,0", "3", "1,1", "2,2,0", ""])
def test_a_tensor_of_another_shape_than_its_numbers_is_no_crash(shape: str) -> None:
    text = (f"graph(%x : Tensor):\n  %d : Long(2, requires_grad=0, device=cpu) = prim::Constant[value= 1  3 [ CPULongType{{{shape}}} ]]()\n"
            "  %n : int = prim::Constant[value=3]()\n  %e : Tensor = aten::div(%d, %n)\n  return (%e)\n")
    for words in (["opt", "--passes=constant-propagation"], ["run", "-", "-i", "x=1xf32=0"], ["decompile"]):
        assert main(words, io.BytesIO(text.encode()), io.StringIO(), io.StringIO()) in (0, 1)
