"""The script front end: programs give what torch recorded, rejected ones its words at the right place, closures their graphs."""
from __future__ import annotations

import io
import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ir.verify import violations
from irtool.torchscript import compile_function_source, compile_source
from irtool.torchscript.annotations import type_name
from tests.script_programs import CASES, FOLDER, PROGRAMS, agree, as_json, graph_of, inputs_of

RECORDED = json.loads((FOLDER / "recorded.json").read_text())


def result(graph: irtool.Graph, line: str) -> Any:
    """What a run gives, as JSON; an error is an error."""
    try:
        return as_json(irtool.run(graph, inputs_of(line))[0])
    except irtool.RunError as error:
        return {"error": str(error)}


@pytest.mark.parametrize("program, name, lines", CASES, ids=[f"{program}-{name}" for program, name, _ in CASES])
def test_program_gives_what_torch_gives(program: str, name: str, lines: list[str]) -> None:
    graph = graph_of(program, name)
    assert not violations(graph)
    again = irtool.parse(str(graph)).graph()
    for line, wanted in zip(lines, RECORDED[program][name]["results"], strict=True):
        for each in (graph, again):
            found = result(each, line)
            if isinstance(wanted, dict) and "error" in wanted:
                assert "error" in found, f"torch raises: {wanted['error']}"
            else:
                assert agree(found, wanted), f"{line}: {found} is not {wanted}"


def test_there_are_as_many_programs_as_recorded() -> None:
    assert {(program, name) for program, name, _ in CASES} == {(program, name) for program in PROGRAMS for name in RECORDED[program]}


@pytest.mark.oracle
def test_torch_gives_what_is_recorded_and_its_graphs_run() -> None:
    """The programs with the more unusual forms, compared live: what torch gives, and what the graphs that it prints give here."""
    from tests.record_script import printed, record

    live, graphs = record("forms"), printed("forms")
    assert agree(live, RECORDED["forms"])     # threads change the order of sums
    for name, lines in [(name, lines) for program, name, lines in CASES if program == "forms" and name in graphs]:
        if "prim::EnumValue" in graphs[name]:       # the text does not hold what members stand for
            continue
        for line, wanted in zip(lines, live[name]["results"], strict=True):
            found = result(irtool.parse(graphs[name]).graph(), line)
            assert "error" in found if isinstance(wanted, dict) and "error" in wanted else agree(found, wanted), f"{name}({line}): {found}"


@pytest.mark.oracle
def test_programs_saved_by_torch_give_the_same() -> None:
    """The archives that torch saves of the programs with classes and unusual forms."""
    import torch

    from tests.record_script import loaded

    for program in ("forms", "classes"):
        module = loaded(program)
        for name, lines in [(name, lines) for each, name, lines in CASES if each == program]:
            archive = io.BytesIO()
            try:
                torch.jit.save(torch.jit.script(getattr(module, name)), archive)
                torch.jit.load(io.BytesIO(archive.getvalue()))
            except RuntimeError:        # torch cannot save calls of Python functions, nor load some unions
                continue
            ours = irtool.load(archive.getvalue())
            for line, wanted in zip(lines, RECORDED[program][name]["results"], strict=True):
                try:
                    found = as_json(ours(*inputs_of(line)))
                except irtool.RunError as error:
                    found = {"error": str(error)}
                right = "error" in found if isinstance(wanted, dict) and "error" in wanted else agree(found, wanted)
                assert right, f"{name}({line}): {found}"


PLUMBING = ("prim::Constant", "prim::unchecked_cast", "prim::Uninitialized", "prim::If", "prim::TupleConstruct", "prim::TupleUnpack",
            "prim::ListConstruct", "prim::Loop", "prim::min")


def test_straight_programs_use_the_operators_torch_uses() -> None:
    """Where nothing leaves a loop early and nothing is folded, the operators are torch's, one for one."""
    different = []
    for program, name, _ in CASES:
        counts: Counter[str] = Counter(node.kind for node in graph_of(program, name).walk())
        theirs = Counter(RECORDED[program][name]["operators"])
        for kind in PLUMBING:
            counts.pop(kind, None)
            theirs.pop(kind, None)
        if counts != theirs:
            different.append(name)
    assert len(different) < len(CASES) * 0.2, different


FORMULA = '''
    @mul.gradient
    def mul_gradient(self, other):
        scale = 2

        def backward(grad):
            return (grad * other * scale).sum_to_size(self.size()), (grad * self).sum_to_size(other.size())

        return self * other, backward
'''


def test_formula_returns_result_and_closure_with_context() -> None:
    graph = compile_function_source(FORMULA, "pointwise.py", 40)
    pair = graph.outputs[0].node.inputs[-1].node
    closure, context = pair.inputs
    assert closure.node.kind == "prim::Closure"
    backward = closure.node.attributes["Subgraph"].value
    assert isinstance(backward, irtool.Graph)
    assert [value.name for value in context.node.inputs][0::2] == ["other.1", "self.1"]
    assert str(backward.inputs[0].type) == "(Tensor, int, Tensor)"
    assert "pointwise.py:46:20" in str(graph)


def test_context_of_a_closure_that_names_nothing_is_empty() -> None:
    graph = compile_function_source("def f(x):\n    def backward(g):\n        return g\n    return x, backward\n")
    closure, context = graph.outputs[0].node.inputs[-1].node.inputs
    assert str(context.type) == "()"
    backward = closure.node.attributes["Subgraph"].value
    assert isinstance(backward, irtool.Graph)
    assert len(backward.inputs) == 2 and not violations(graph)


def test_helpers_are_inlined() -> None:
    helper = "def double(x):\n    return x * 2\n"
    graph = compile_function_source("def f(x):\n    return double(x) + 1\n", helpers={"double": (helper, "helpers.py", 7)})
    assert [node.kind for node in graph.block if node.kind != "prim::Constant"] == ["aten::mul", "aten::add"]


def test_deep_nesting_is_a_diagnostic() -> None:
    for text in ("def f(x):\n    return " + "(" * 100_000 + "x" + ")" * 100_000,
                 "def f(x):\n    return " + "-" * 5_000 + "x",
                 "def f(x):\n    return " + "x + " * 50_000 + "x",
                 "def f(x, n: int):\n    if n == 0:\n        x = x\n" + "".join(
                     f"    elif n == {i}:\n        x = x + {i}\n" for i in range(3000)) + "    return x\n"):
        with pytest.raises(irtool.ParseError):
            compile_source(text)


CLOSURES = {
    "loops and branches": """
def f(x, flag: bool, n: int):
    y = x * n
    def backward(g):
        if flag:
            r = g * y
        else:
            r = g
        for i in range(n):
            r = r + x
        return r, None
    return y, backward
""", "a closure in a closure": """
def f(x, y):
    z = x * y
    def outer(g):
        w = g * z
        def inner(h):
            return h * w * x
        return w, inner
    return z, outer
""", "a refined optional": """
def f(x, b: Optional[Tensor]):
    def backward(g):
        if b is not None:
            gb = g * b
        else:
            gb = g
        return gb
    return x, backward
""", "a parameter reassigned": """
def f(x, dim: int, keepdim: bool=False):
    size = x.size()
    def backward(g):
        if not keepdim:
            g = g.unsqueeze(dim)
        return g.expand(size), None, None
    return x.sum(dim, keepdim), backward
""", "a name that changes behind the def": """
def f(x):
    a = x + 1
    def backward(g):
        return g * a
    a = x + 2
    return a, backward
""", "an unused closure": """
def f(x):
    def one(g):
        return g * x
    def two(g):
        return g + x
    return x, one
""""",
}


@pytest.mark.oracle
@pytest.mark.parametrize("title", CLOSURES)
def test_closures_have_the_operators_and_contexts_torch_gives_them(title: str) -> None:
    torch = pytest.importorskip("torch")

    def theirs(nodes: Any, found: Counter[str]) -> Counter[str]:
        for node in nodes:
            found[node.kind()] += 1
            found[" ".join(str(value.type()) for value in node.outputs() if node.kind() == "prim::TupleUnpack")] += 1
            for block in node.blocks():
                theirs(block.nodes(), found)
            for name in node.attributeNames():
                if node.kindOf(name) == "g":
                    theirs(node.g(name).nodes(), found)
        return found

    def ours(graph: irtool.Graph, found: Counter[str]) -> Counter[str]:
        for node in graph.walk():
            found[node.kind] += 1
            found[" ".join(type_name(value.type) for value in node.outputs if node.kind == "prim::TupleUnpack")] += 1
            inner = node.attributes.get("Subgraph")
            if inner is not None and isinstance(inner.value, irtool.Graph):
                ours(inner.value, found)
        return found

    graph = compile_source(CLOSURES[title]).graph()
    assert not violations(graph)
    assert str(irtool.parse(str(graph)).graph()) == str(graph)
    wanted = theirs(torch.jit.CompilationUnit(CLOSURES[title]).f.graph.nodes(), Counter())
    found = ours(graph, Counter())
    wanted.pop("", None), found.pop("", None)
    assert found == wanted


@pytest.mark.parametrize("annotation, type", [
    ("Union[int, float, complex]", "Scalar"), ("Union[int, complex, None, float]", "Scalar?"), ("Union[float, int]", "Union(float, int)"),
    ("Optional[Union[int, float, complex]]", "Scalar?"), ("torch.types.Number", "Union(int, float, bool)"),
])
def test_unions_of_all_numbers_are_scalars(annotation: str, type: str) -> None:
    graph = compile_source(f"def f(x: {annotation}):\n    return isinstance(x, int), x\n").graph()
    assert str(graph.inputs[0].type) == type
    for value in (1, 1.5):
        assert irtool.run(graph, [value]) == [(value == 1, value)]


def test_long_function_is_no_problem() -> None:
    text = "def f(x):\n" + "".join(f"    x = x + {i}\n" for i in range(5000)) + "    return x\n"
    assert len(compile_source(text).graph().nodes) > 5000


REJECTED = (FOLDER / "rejected.txt").read_text().split("# ====\n")
REFUSALS = json.loads((FOLDER / "rejected.json").read_text())


@pytest.mark.parametrize("source, refusal", list(zip(REJECTED, REFUSALS, strict=True)),
                         ids=[f"{i}-{refusal['message'][:40]}" for i, refusal in enumerate(REFUSALS)])
def test_rejected_program_gets_torchs_words_at_the_right_line(source: str, refusal: dict[str, Any]) -> None:
    with pytest.raises(irtool.ParseError) as caught:
        compile_source(source, "f", "rejected.py")
    diagnostic = caught.value.diagnostics[0]
    assert refusal["message"] in diagnostic.message
    assert not refusal["line"] or diagnostic.line == refusal["line"]
    assert diagnostic.col > 0 and diagnostic.source is not None and diagnostic.source.name == "rejected.py"


@pytest.mark.parametrize("body, message, column", [
    ("    while n > 0:\n        n = n - 1\n    else:\n        n = 2\n    return n", "else branches of while loops aren't supported", 5),
    ("    return +n", "unsupported unary operator: UAdd", 12),
    ("    return nn", "undefined value nn (did you mean 'n'?)", 12),
    ("    return torch.sine(n)", "object has no attribute sine (did you mean 'sin'?)", 12),
    ("    return Held(n)", "class Held cannot be compiled: only named tuples, enumerations, exceptions and those without bases can", 12),
    ("    return torch.is_tensor(n)", "object has no attribute is_tensor (did you mean 'as_tensor'?)", 12),
    ("    é = torch.zeros(n); return é + nope", "undefined value nope", 36),
])
def test_messages_of_our_own_point_at_the_column(body: str, message: str, column: int) -> None:
    with pytest.raises(irtool.ParseError) as caught:
        compile_source(f"def f(n: int):\n{body}\n\nclass Held(dict):\n    pass\n")
    diagnostic = caught.value.diagnostics[0]
    assert (diagnostic.message, diagnostic.col) == (message, column)


@pytest.mark.parametrize("use, name", [
    ("Held(n).other", "other"), ("Held(n) + 1", "__add__"), ("len(Held(n))", "__len__"), ("Held(n)[0]", "__getitem__"),
    ("-Held(n)", "__neg__"), ("n in Held(n)", "__contains__"), ("bool(Held(n))", "__bool__"),
])
def test_what_a_class_does_not_define_is_named(use: str, name: str) -> None:
    source = f"class Held:\n    def __init__(self, x: int):\n        self.x = x\n\n\ndef f(n: int):\n    return {use}\n"
    with pytest.raises(irtool.ParseError, match=f"'__torch__.Held' object has no attribute or method '{name}'. Did you forget"):
        compile_source(source, "f", "model.py")


INTERFACES = """
@torch.jit.interface
class Scales:
    def scale(self, x: Tensor, n: int) -> Tensor:
        pass

class Times:
    def __init__(self, k: int):
        self.k = k

    def scale(self, x: Tensor, n: int) -> Tensor:
        return x * self.k + n

class Plus:
    def __init__(self):
        self.calls = 0

    def scale(self, x: Tensor, n: int) -> Tensor:
        self.calls += n
        return x + self.calls

def scaled(x: Tensor, by: Scales, then: Scales, n: int = 2) -> Tensor:
    for i in range(n):
        x = then.scale(by.scale(x, i), 2)
    return x

def f(x: Tensor, c: bool):
    plus = Plus()
    if c:
        x = scaled(x, Times(3), plus)
    return scaled(x, plus, plus, 3) + scaled(then=Times(2), by=Plus(), x=x), plus.calls
"""


def test_arguments_that_are_interfaces_have_the_methods_of_their_classes() -> None:
    """A call changes the instance that it is given; numbers of torch's."""
    module = compile_source(INTERFACES)
    for x, taken, expected, calls in ((1.0, True, 158.0, 13), (0.5, False, 36.5, 9)):
        for way in ({"interpret": True}, {}):
            result, count = irtool.run(module, [np.full(2, x), taken], **way)[0]
            assert result.tolist() == [expected] * 2 and count == calls


@pytest.mark.parametrize(("call", "words"), [
    ("use(Whole(), x)", "instead found type '__torch__.Whole', which has not all of its methods"),
    ("use(x, x)", "instead found type 'Tensor', which has not all of its methods"), ("use(x=x)", "Argument i not provided")])
def test_an_argument_that_does_not_conform_to_its_interface_is_refused(call: str, words: str) -> None:
    source = "@torch.jit.interface\nclass Runs:\n    def run(self, x: Tensor) -> Tensor:\n        pass\n" \
             "class Whole:\n    def __init__(self):\n        self.k = 2\n    def run(self, x: int) -> int:\n        return x\n" \
             f"def use(i: Runs, x: Tensor) -> Tensor:\n    return i.run(x)\ndef f(x: Tensor) -> Tensor:\n    return {call}\n"
    with pytest.raises(irtool.ParseError, match=re.escape(words)):
        compile_source(source)


def test_methods_that_nobody_calls_are_compiled_too() -> None:
    source = ("class Held:\n    def __init__(self, x: int):\n        self.x = x\n    def unused(self):\n        return self.missing\n"
              "def f(n: int):\n    return Held(n).x\n")
    with pytest.raises(irtool.ParseError, match="has no attribute or method 'missing'") as caught:
        compile_source(source, "f", "model.py")
    assert caught.value.diagnostics[0].line == 5


@pytest.mark.parametrize("name", ["math.log2", "math.trunc", "math.hypot", "cmath.isclose", "cmath.erf"])
def test_functions_of_math_that_torch_does_not_know_are_no_operators(name: str) -> None:
    """`aten::log2` exists, of tensors."""
    with pytest.raises(irtool.ParseError, match=f"object has no attribute {name.partition('.')[2]}"):
        compile_source(f"import math\nimport cmath\ndef f(x):\n    return {name}(x)")


def test_a_string_is_no_literal() -> None:
    """Each literal is an object of its own, as in torch."""
    graph = compile_source('def f(s: str):\n    return s is "ab", "ab" is not s, s is s').graph()
    assert irtool.run(graph, ["ab"])[0] == (False, True, True)


def test_parameters_that_only_take_positional_arguments_are_refused() -> None:
    with pytest.raises(irtool.ParseError, match="has no parameters that only take positional arguments") as caught:
        compile_source("def f(x: Tensor, /, y: Tensor):\n    return x + y\n")
    assert (caught.value.diagnostics[0].line, caught.value.diagnostics[0].col) == (1, 7)


def test_types_have_the_names_that_imports_give_them() -> None:
    graph = compile_source("""
import torch as th
import typing as tp
from torch import Tensor as Array
from typing import Dict as Map, Optional as Maybe

def f(x: th.Tensor, a: Array, m: Map[str, tp.List[Array]], n: Maybe[tp.Any], k: Maybe[Array]) -> Map[str, tp.List[th.Tensor]]:
    return m
""").graph()
    assert [value.type.text for value in graph.inputs] == ["Tensor", "Tensor", "Dict(str, Tensor[])", "Any", "Tensor?"]


def test_every_function_with_a_mistake_is_reported() -> None:
    with pytest.raises(irtool.ParseError) as caught:
        compile_source("def f(x):\n    return a\n\ndef g(x):\n    return x\n\ndef h(x):\n    return b\n")
    assert [diagnostic.line for diagnostic in caught.value.diagnostics] == [2, 8]


def test_one_number_is_a_list_before_another_overload_takes_it() -> None:
    """As torch has it: `view(-1)` gives a shape, not a dtype."""
    assert "int[] = prim::ListConstruct" in str(compile_source("def f(x):\n    return x.view(-1)\n"))


def test_a_module_of_torch_nn_is_answered_with_the_way_out() -> None:
    with pytest.raises(irtool.ParseError, match=r"weights are not in the source: write torch.jit.script\(Net\(...\)\).save\('net.pt'\)"):
        irtool.from_script("import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n")
