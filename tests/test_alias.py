"""Alias and mutation facts: conservative, and no more conservative than passes can live with."""
from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.analysis.alias import Aliases
from irtool.analysis.memory_classes import memory_class
from irtool.interpret import run as interpret
from irtool.ir.builder import Builder
from irtool.ir.effects import facts_of, has_side_effects, is_random, may_write
from irtool.ir.schema import declared_kinds, parse_schema
from irtool.ir.types import TENSOR, parse_type
from irtool.ops import OPS
from irtool.ops.arrays import seeded
from irtool.ops.samples.draw import Call
from irtool.testing.formulas import call_graph
from tests.laws import family, over, overload_samples


def facts(text: str) -> tuple[Aliases, dict[str, irtool.Value]]:
    graph = irtool.parse(text).graphs[0]
    return Aliases(graph), {value.name: value for value in graph.values()}


def test_views_share_memory_and_results_do_not() -> None:
    aliases, v = facts("""graph(%x : Tensor, %i : int):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::select(%a, %i, %i)
  %c : Tensor = aten::exp(%b)
  return (%c)
""")
    assert aliases.may_alias(v["a"], v["b"])
    assert not aliases.may_alias(v["a"], v["c"])
    assert not aliases.may_alias(v["a"], v["x"])
    assert not aliases.has_writes
    assert aliases.escapes(v["c"]) and aliases.escapes(v["x"]) and not aliases.escapes(v["b"])


def test_inputs_may_be_one_memory() -> None:
    aliases, v = facts("graph(%x : Tensor, %y : Tensor, %l : int[], %n : int):\n  return (%x)\n")
    assert aliases.may_alias(v["x"], v["y"])
    assert not aliases.may_alias(v["x"], v["l"])
    assert not aliases.may_alias(v["n"], v["n"])


def test_a_write_through_a_view_reaches_the_base() -> None:
    aliases, v = facts("""graph(%x : Tensor, %i : int):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::select(%a, %i, %i)
  %w : Tensor = aten::relu_(%b)
  %c : Tensor = aten::exp(%x)
  return (%a)
""")
    assert all(aliases.is_written(v[name]) for name in "abw")
    assert not aliases.is_written(v["c"]) and not aliases.is_written(v["x"])
    (write,) = (node for node in aliases.graph.walk() if node.kind == "aten::relu_")
    assert aliases.writes(write) == {v["a"]}
    assert not aliases.writes_wild(write)
    assert aliases.writes_into(write, [v["a"]]) and not aliases.writes_into(write, [v["c"]])


def test_what_goes_through_a_container_may_be_anything_of_its_kind() -> None:
    aliases, v = facts("""graph(%x : Tensor, %i : int):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::exp(%x)
  %l : Tensor[] = prim::ListConstruct(%a)
  %g : Tensor = aten::__getitem__(%l, %i)
  %w : Tensor = aten::relu_(%g)
  return (%b)
""")
    assert aliases.may_alias(v["g"], v["a"])
    assert aliases.is_written(v["a"]) and aliases.is_written(v["l"])
    assert not aliases.is_written(v["b"])


def test_a_list_for_cat_lets_nothing_escape() -> None:
    aliases, v = facts("""graph(%x : Tensor, %i : int):
  %a : Tensor = aten::neg(%x)
  %l : Tensor[] = prim::ListConstruct(%a, %a)
  %c : Tensor = aten::cat(%l, %i)
  return (%c)
""")
    assert not aliases.escapes(v["a"])


def test_branches_and_loops_pass_memory_on() -> None:
    aliases, v = facts("""graph(%x : Tensor, %c : bool, %n : int):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::exp(%x)
  %d : Tensor = aten::exp(%x)
  %p : Tensor = prim::If(%c)
    block0():
      -> (%a)
    block1():
      -> (%b)
  %q : Tensor = prim::Loop(%n, %c, %p)
    block0(%i : int, %z : Tensor):
      %y : Tensor = aten::add_(%z, %z, %i)
      -> (%c, %z)
  return (%q)
""")
    assert aliases.roots(v["q"]) == {v["a"], v["b"]}
    assert aliases.is_written(v["a"]) and aliases.is_written(v["b"]) and not aliases.is_written(v["d"])
    assert aliases.escapes(v["a"])


def test_unknown_operators_and_calls_are_taken_at_their_worst() -> None:
    aliases, v = facts("graph(%x : Tensor):\n  %a : Tensor = aten::neg(%x)\n  %b : Tensor = my::op(%a)\n  return (%b)\n")
    (neg, op) = aliases.graph.nodes
    assert aliases.is_written(v["a"]) and has_side_effects(op) and may_write(op) and not may_write(neg)


def test_out_overloads_write() -> None:
    aliases, v = facts("graph(%x : Tensor, %n : int):\n  %a : Tensor = aten::neg(%x)\n  %b : Tensor = aten::exp(%x)\n"
                       "  %c : Tensor = aten::add(%x, %b, %n, %a)\n  return (%b)\n")
    assert aliases.is_written(v["a"]) and not aliases.is_written(v["b"]) and aliases.may_alias(v["a"], v["c"])


def test_chance() -> None:
    graph = irtool.parse("""graph(%x : Tensor, %p : float, %t : bool):
  %f : bool = prim::Constant[value=0]()
  %a : Tensor = aten::dropout(%x, %p, %t)
  %b : Tensor = aten::dropout(%x, %p, %f)
  %c : Tensor = aten::rand_like(%x, %f, %f, %f, %f, %f)
  return (%a, %b, %c)
""").graphs[0]
    _, a, b, c = graph.nodes
    assert (is_random(a), is_random(b), is_random(c)) == (True, False, True)


def test_every_declared_kind_has_facts() -> None:
    plain = [kind for kind in declared_kinds() if facts_of(kind).is_plain]
    assert len(plain) > 1200 and {"aten::add", "aten::cat", "aten::conv2d", "aten::size"} <= set(plain)
    assert not {"aten::add_", "aten::view", "aten::rand", "prim::Print", "aten::append", "aten::t"} & set(plain)


@pytest.mark.parametrize(("text", "name"), [("Float(2, 3)", "T"), ("Tensor?", "T"), ("int", ""), ("int[]", "int[]"), ("Tensor[]", "T[]"),
                                            ("(int, str)", ""), ("(int, Tensor)", "(, T)"), ("Any", "?"),
                                            ("__torch__.M", "C(__torch__.M)")])
def test_memory_classes(text: str, name: str) -> None:
    assert memory_class(parse_type(text)) == name


@pytest.mark.parametrize(("training", "kept"), [(1, 2), (0, 1)])
def test_batch_norm_in_training_writes_its_running_statistics_which_no_schema_says(training, kept):
    text = f"""graph(%x : Tensor, %m : Tensor, %v : Tensor):
  %t : bool = prim::Constant[value={training}]()
  %none : NoneType = prim::Constant()
  %e : float = prim::Constant[value=0.5]()
  %1 : Tensor = aten::batch_norm(%x, %none, %none, %m, %v, %t, %e, %e, %t)
  %2 : Tensor = aten::batch_norm(%x, %none, %none, %m, %v, %t, %e, %e, %t)
  return (%2, %m)
"""
    module = irtool.PassManager("cse,dce").run(irtool.parse(text))
    assert str(module).count("aten::batch_norm") == kept


@over("name, sample", [case for name in OPS for case in overload_samples(name)], family)
def test_memory_that_a_kernel_shares_is_known_to_be_shared(name: str, sample: Call) -> None:
    """What a kernel gives is an operand, or a part of one, only where the facts say that it may be."""
    op = OPS[name]
    text = next(text for text, own in zip(op.schemas, op.names, strict=True) if own == name)
    graph, values, _ = call_graph(parse_schema(text), sample.arguments(text))
    with seeded(0):
        results = interpret(graph, values)
    build = Builder(graph).at_start(graph.block)
    operands = []
    for value in graph.inputs:              # made here: of what comes in from outside nothing is known anyway
        copy = build.node("aten::clone", (value,), output_types=(TENSOR,))
        value.replace_all_uses_with(copy.output)
        copy.set_inputs([value])
        operands.append(copy.output)
    build.at_end(graph.block)
    pairs = []
    for value, result in zip(graph.outputs, results, strict=True):
        if isinstance(result, np.ndarray):
            pairs.append((value, result))
        elif isinstance(result, list):
            pairs += [(build.node("aten::__getitem__", (value, build.constant(place)), output_types=(TENSOR,)).output, each)
                      for place, each in enumerate(result) if isinstance(each, np.ndarray)]
    aliases = Aliases(graph)
    for value, result in pairs:
        for operand, argument in zip(operands, values, strict=True):
            assert aliases.may_alias(value, operand) or not np.shares_memory(result, argument), (name, str(graph))


def list_calls() -> list[str]:
    """A graph per operator on a list, here of integers, that gives a list: it returns both."""
    constants = {"int": "%one", "t": "%one", "bool": "%flag", "t[]": "%m", "int[]": "%m"}
    texts = []
    for op in OPS.values():
        for schema in map(parse_schema, op.schemas):
            operands = [constants.get(str(argument.type)) for argument in schema.arguments]
            if operands[:1] == ["%m"] and None not in operands and [str(each.type) for each in schema.returns] in (["t[]"], ["int[]"]):
                texts.append(f"""graph(%one : int, %flag : bool):
  %l : int[] = prim::ListConstruct(%one, %one)
  %m : int[] = prim::ListConstruct(%one)
  %r : int[] = {schema.name.partition(".")[0]}({', '.join(['%l', *map(str, operands[1:])])})
  return (%l, %r)
""")
    return texts


def test_a_list_that_an_operator_returns_is_known_to_be_its_operand() -> None:
    """torch's schema of `+=` of lists does not say so; what is written into its result was lost in plans."""
    texts = list_calls()
    assert len(texts) > 8
    for text in texts:
        graph = irtool.parse(text).graph()
        held, result = interpret(graph, [1, False])
        assert held is not result or Aliases(graph).may_alias(*graph.outputs), text


def containers(random: Random) -> str:
    """A graph of equal tensors that go through tuples, lists, branches and the caller's list; it returns some of them."""
    lines = ["graph(%c : bool, %held : Tensor[], %x : Tensor):", "  %n : NoneType = prim::Constant()", "  %s : int[] = aten::size(%x)",
             "  %i : int = prim::Constant[value=0]()"]
    tensors = ["x"]
    for step in range(random.randint(4, 9)):
        match random.randrange(6):
            case 0 | 1:
                lines.append(f"  %t{step} : Tensor = aten::ones(%s, %n, %n, %n, %n)")
                tensors.append(f"t{step}")
            case 2:
                lines.append(f"  %t{step} : Tensor = aten::neg(%{random.choice(tensors)})")
                tensors.append(f"t{step}")
            case 3:
                pairs = [random.choices(tensors, k=2) for _ in range(2)]
                lines.append(f"  %p{step} : (Tensor, Tensor) = prim::If(%c)")
                for block, (a, b) in enumerate(pairs):
                    lines += [f"    block{block}():", f"      %q{step}{block} : (Tensor, Tensor) = prim::TupleConstruct(%{a}, %{b})",
                              f"      -> (%q{step}{block})"]
                lines.append(f"  %t{step} : Tensor, %u{step} : Tensor = prim::TupleUnpack(%p{step})")
                tensors += [f"t{step}", f"u{step}"]
            case 4:
                a, b = random.choices(tensors, k=2)
                lines += [f"  %l{step} : Tensor[] = prim::ListConstruct(%{a}, %{b})",
                          f"  %t{step} : Tensor = aten::__getitem__(%l{step}, %i)"]
                tensors.append(f"t{step}")
            case _:
                lines.append(f"  %a{step} : Tensor[] = aten::append(%held, %{random.choice(tensors)})"
                             if random.random() < 0.5 else f"  %t{step} : Tensor = aten::relu_(%{random.choice(tensors)})")
    a, b, d = random.choices(tensors, k=3)
    return "\n".join([*lines, f"  %r : (Tensor, Tensor) = prim::TupleConstruct(%{a}, %{b})", f"  return (%{d}, %r)", ""])


@given(st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=200, deadline=None)
def test_equal_tensors_become_one_only_where_nobody_outside_sees_both(random: Random, branch: bool) -> None:
    """After cse, what the caller holds has the same elements and shares memory exactly where it did before."""
    text, seen = containers(random), []
    for passes in ("", "cse", "peephole,cse"):
        held: list[np.ndarray] = []
        x = np.array([-1.0, 2.0], np.float32)
        one, two = irtool.run(irtool.PassManager(passes).run(irtool.parse(text)), [branch, held, x])
        arrays = [one, *two, *held]         # a graph that writes runs on a copy of x
        seen.append(([array.tolist() for array in arrays], [[np.shares_memory(a, b) for b in arrays] for a in arrays]))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize(("body", "written", "seen"), [
    ("c = Held(w * 2)\n    c.x = c.x + x\n    return c.x * x", False, False),
    ("c = Held(x)\n    return c.x * w", False, False),
    ("c = Held(x)\n    return c.x", False, True),
    ("c = Held(x)\n    c.x.add_(1)\n    return c.x * w", True, True),
    ("c = Held(x * 1)\n    c.x = x\n    d = c\n    d.x.mul_(2)\n    return c.x * w", True, True),
])
def test_writes_into_a_new_instance_are_no_writes_into_inputs(body: str, written: bool, seen: bool) -> None:
    """written: what nodes write into; seen: that, and what a result may share memory with."""
    graph = irtool.from_script("class Held:\n    def __init__(self, x: Tensor):\n        self.x = x\n"
                               f"def f(x: Tensor, w: Tensor):\n    {body}\n", "f").graph()
    aliases = Aliases(graph)
    assert aliases.touched_inputs(by_results=False)[0] == written
    assert aliases.touched_inputs()[0] or not seen
    x, w = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    expected = irtool.run(graph, [x.copy(), w], interpret=True)[0]
    executor = irtool.compile(graph)
    for _ in range(2):
        result = executor(x, w)[0]
        np.testing.assert_array_equal(result, expected)
        assert x.tolist() == [1, 2] and w.tolist() == [3, 4]
