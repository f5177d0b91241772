"""Gradients do not depend on the way to have them: interpreted, planned, in groups, node by node; nor do cotangents, nor refusals."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradient_ways import alike, differences, outcome, ways
from random_programs import program
from write_programs import write_program

import irtool
from irtool.passmanager import PassManager
from irtool.torchscript.front import compile_source

ONES = np.ones(2, np.float32)


def numbers(*values: float) -> Any:
    return np.array(values, np.float32)


# -- cotangents
TREES = """graph(%x : Tensor, %c : bool, %d : Dict(str, Tensor)):
  %a : str = prim::Constant[value="a"]()
  %b : str = prim::Constant[value="b"]()
  %w : Tensor = aten::__getitem__(%d, %b)
  %y : Tensor = aten::mul(%x, %w)
  %z : Tensor = aten::sin(%y)
  %r : (Tensor, Tensor) = prim::If(%c)
    block0():
      %1 : (Tensor, Tensor) = prim::TupleConstruct(%y, %z)
      -> (%1)
    block1():
      %2 : (Tensor, Tensor) = prim::TupleConstruct(%z, %x)
      -> (%2)
  %l : Tensor[] = prim::ListConstruct(%x, %y)
  %t : (Tensor[], (Tensor, Tensor)) = prim::TupleConstruct(%l, %r)
  %e : Dict(str, Tensor) = prim::DictConstruct(%b, %y, %a, %z)
  return (%z, %t, %e)
"""


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("text", [TREES, TREES.replace("  return", "  %v : Tensor[] = aten::values(%e)\n  return")])
def test_cotangents_are_flat_or_trees(text: str, taken: bool) -> None:
    """Flat, the entries of a dict come in the order in which they were inserted; of a tree the keys count."""
    x, w = np.array([0.5, -1.0]), np.array([2.0, 3.0])
    inputs = [x, taken, {"a": x, "b": w}]
    g = [np.full(2, 10.0 ** place) for place in range(7)]
    first, second = (w, w * np.cos(x * w)) if taken else (w * np.cos(x * w), np.ones(2))
    slope = g[0] * w * np.cos(x * w) + g[1] + g[2] * w + g[3] * first + g[4] * second + g[5] * w + g[6] * w * np.cos(x * w)
    flat, tree = g, [g[0], [[g[1], g[2]], (g[3], g[4])], {"a": g[6], "b": g[5]}]
    graph = irtool.parse(text)
    for cotangents in (flat, tree):
        assert not differences(graph, inputs, cotangents, [0], [slope])
    without = [None, (None, None), {"a": None, "b": g[5]}]
    expected = [g[5] * w, {"a": np.zeros(2), "b": g[5] * x}]
    assert not differences(graph, inputs, without, [0, 2], expected)


def test_what_is_no_tensor_needs_no_cotangent() -> None:
    module = compile_source("def f(x: Tensor, n: int):\n    return x * 2, (n, str(n), x.sum()), {'a': x * n}")
    g = [np.full(2, 10.0), np.asarray(100.0), np.full(2, 1000.0)]
    for cotangents in (g, [g[0], None, None, g[1], g[2]], [(g[0], (None, None, g[1]), {"a": g[2]})]):
        assert not differences(module.graph(), [np.ones(2), 3], cotangents, [0], [np.full(2, 3120.0)])


@pytest.mark.parametrize(("cotangents", "words"), [
    ([ONES], "expected 7 cotangents, got 1"),
    ([None, None, {"a": ONES}], "cotangent 2 lacks the key 'b' of its output"),
    ([None, None, {"a": ONES, "b": ONES, "bb": ONES}], "cotangent 2 has the key 'bb', its output has 'b', 'a' (did you mean 'b'?)"),
    ([None, [[ONES], None], None], "cotangent 1[0] is of a list of 2, expected a list or tuple of as many, not one of 1"),
    ([None, [[ONES, ONES], (ONES, "x")], None], "a cotangent is an array of numbers or None, not str x"),
    ([None, None, [ONES, ONES]], "cotangent 2 is of a dict with the keys 'b', 'a', expected a dict of those, not list"),
    ([None, None, {"a": ONES, "b": np.ones(3)}], "a cotangent has shape (3,), its output (2,)"),
])
def test_cotangents_that_do_not_fit_are_refused_in_the_same_words(cotangents: Any, words: str) -> None:
    inputs = [ONES, True, {"a": ONES, "b": ONES}]
    for name, call in ways(irtool.parse(TREES), inputs, cotangents, [0]):
        assert words in outcome(call), name


# -- dicts
DICTS = {
    "read": "def f(x, y):\n    d = {'a': x * y, 'b': y}\n    return d['a'] * d['b']\n",
    "changed": "def f(x, y):\n    d = {'a': x}\n    d['b'] = d['a'] * y\n    d['a'] = d['b'] + x\n    return d\n",
    "an entry given twice": "def f(x, y):\n    d = {'a': x * 2, 'a': y}\n    return d\n",
    "in a loop": "def f(x, y):\n    d = {0: x}\n    for i in range(3):\n        d[i + 1] = d[i] * y\n    return d[3], d\n",
    "keys and values": "def f(x, y):\n    d = {'b': x * y, 'a': y}\n    s = x\n    for k in d.keys():\n        s = s * d[k]\n"
                       "    for v in d.values():\n        s = s + v\n    for k, v in d.items():\n        s = s * v\n    return s\n",
    "pop and update": "def f(x, y):\n    d = {'a': x * y}\n    e = {'b': y * y}\n    d.update(e)\n    p = d.pop('a')\n"
                      "    d.setdefault('c', x)\n    return d, p * d['b']\n",
    "of lists": "def f(x, y):\n    d = {'a': [x, y]}\n    d['a'].append(x * y)\n    return d\n",
    "in a branch": "def f(x, y):\n    d = {'a': x}\n    if bool(x.sum() > 0):\n        d['a'] = x * y\n    else:\n        d['b'] = y\n"
                   "    return d\n",
    "written into": "def f(x, y):\n    d = {'a': x * y}\n    d['a'].mul_(y)\n    return d\n",
}


@pytest.mark.parametrize("name", DICTS)
def test_dicts_have_gradients(name: str) -> None:
    """Those of differences."""
    graph = compile_source(DICTS[name]).graph()
    x, y = np.array([0.5, 1.5]), np.array([2.0, -0.5])
    outputs = irtool.run(graph, [x, y])
    cotangents = [np.full(np.shape(leaf), 1.0 + place) for place, leaf in enumerate(flat(outputs))]

    def total(x: Any, y: Any) -> Any:
        return sum((leaf * one).sum() for leaf, one in zip(flat(irtool.run(graph, [x, y])), cotangents, strict=True))

    expected = [np.array([(total(*up) - total(*down)) / 2e-6 for up, down in moved([x, y], place)]) for place in range(2)]
    assert not differences(graph, [x, y], cotangents, [0, 1], expected, zeros=True)


def flat(value: Any) -> list[Any]:
    parts = list(value.values()) if isinstance(value, dict) else value
    return [leaf for each in parts for leaf in flat(each)] if isinstance(parts, list | tuple) else [parts]


def moved(values: list[Any], place: int) -> list[tuple[list[Any], list[Any]]]:
    """The values with each element of one of them moved up, and down."""
    out = []
    for at in range(values[place].size):
        up, down = [value.copy() for value in values], [value.copy() for value in values]
        up[place].flat[at] += 1e-6
        down[place].flat[at] -= 1e-6
        out.append((up, down))
    return out


# -- instances
def test_attributes_of_an_instance_have_gradients_from_the_first_time_on() -> None:
    graph = irtool.parse("""graph(%self : __torch__.M, %x : Tensor):
  %l : __torch__.L = prim::GetAttr[name="l"](%self)
  %w : Tensor = prim::GetAttr[name="w"](%l)
  %n : int = prim::GetAttr[name="n"](%self)
  %u : Tensor = prim::GetAttr[name="u"](%self)
  %y : Tensor = aten::mul(%x, %w)
  %z : Tensor = aten::mul(%y, %n)
  return (%z)
""")
    values = [{"l": {"w": numbers(3, 4)}, "n": 2, "u": ONES}, numbers(5, 6)]
    expected = [{"l.w": numbers(10, 12), "n": None, "u": None}, numbers(6, 8)]
    assert not differences(graph, values, [ONES], [0, 1], expected)


# -- programs
@pytest.mark.parametrize("seed", range(24, 48))
def test_random_programs_that_write(seed: int) -> None:
    graph = compile_source(write_program(seed, 12, control=seed % 3 == 0)).graph()
    inputs = list(np.random.default_rng(seed).standard_normal((2, 3, 3)))
    check(graph, inputs)


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    """With loops, branches and lists; every other one writes."""
    graph = compile_source(program(seed, writes=seed % 2 == 0)).graph()
    check(graph, [*np.random.default_rng(seed).standard_normal((2, 3)), 3])


def check(graph: Any, inputs: list[Any]) -> None:
    """All ways give the same, where the program runs at all."""
    outputs = outcome(lambda: irtool.run(graph, inputs, interpret=True))
    if isinstance(outputs, str):
        return
    rng = np.random.default_rng(1)
    cotangents = [rng.standard_normal(np.shape(leaf)) for leaf in flat(outputs)]
    assert not differences(graph, inputs, cotangents, [0, 1], zeros=True)


@pytest.mark.parametrize("change", ["if {n} > 0:", "for i in range({n}):"])
@pytest.mark.parametrize("held", ["l += [b]", "l.append(b)", "l[0] = b", "l = l + [b]", "l = [b]", "l.insert(0, b)"])
@pytest.mark.parametrize("view", ["a[0]", "a.unbind(0)[0]"])
def test_a_list_that_changes_in_a_block_sees_later_writes(view: str, held: str, change: str) -> None:
    """Its elements have the gradients of what is in the memory at the end."""
    source = f"def f(x, y):\n    a = x * 1.5\n    b = a * 1\n    l = [a, b]\n    {change}\n        {held}\n" \
             f"    {view}.mul_(y[0, 0])\n    return l\n"
    for number in (0, 1):
        graph = compile_source(source.format(n=f"int(x.numel()) - {6 - number}")).graph()
        check(graph, list(np.random.default_rng(0).standard_normal((2, 2, 3))))


def test_what_is_written_into_a_detached_tensor_has_gradients() -> None:
    """Also where it is read by its first name, which the write did not give."""
    source = "def f(x, y):\n    a = x * 1\n    b = a.detach()\n    c = b[0]\n    b.div_(a[1, 1] * y)\n    return a * 1, b * 1, c * y\n"
    check(compile_source(source).graph(), list(np.random.default_rng(0).standard_normal((2, 3, 3))))


@pytest.mark.parametrize("expression", [
    "torch.nn.functional.linear(x, y)", "torch.matmul(x, y.t())", "torch.inner(x, y)", "torch.mm(x, y.t())", "x.cumprod(0).sum() * y",
    "x.cumsum(1).sum() * y", "x.prod(1).sum() * y", "torch.softmax(x, 1).sum() * y", "torch.cat([x, y])", "x.flip(0).sum() * y",
    "torch.logsumexp(x, 0).sum() * y.sum()", "x[:0].sum() + y", "torch.einsum('ij,kj->ik', [x, y])"])
@pytest.mark.parametrize("shapes", [((2, 0), (3, 0)), ((0, 2), (3, 2)), ((0, 0), (0, 0)), ((2, 3), (0, 3))])
def test_gradients_of_nothing(expression: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """Of tensors without numbers, zeros for those that have some: a sum over none is 0."""
    graph = compile_source(f"def f(x, y):\n    return {expression}\n").graph()
    inputs = [np.full(shape, 0.5) for shape in shapes]
    outputs = outcome(lambda: irtool.run(graph, inputs, interpret=True))
    if not isinstance(outputs, str):
        assert not differences(graph, inputs, [np.ones(outputs[0].shape)], [0, 1], zeros=True)


OVERLAPPING = {
    "index_fill_": "c.index_fill_(0, torch.tensor([0]), 2.0)", "masked_fill_": "c.masked_fill_(x > 0, 2.0)",
    "index_put_": "c[torch.tensor([0])] = x", "through a view": "c.t().index_fill_(0, torch.tensor([0]), 2.0)",
}


@pytest.mark.parametrize("make", ["(y * 1)[:1].expand(3, 2)", "torch.broadcast_to((y * 1)[0], (3, 2))"])
@pytest.mark.parametrize("name", OVERLAPPING)
def test_writes_into_elements_that_are_one_have_no_gradient(name: str, make: str) -> None:
    """torch computes them, and refuses their gradient."""
    graph = compile_source(f"def f(x, y):\n    c = {make}\n    {OVERLAPPING[name]}\n    return c * x\n").graph()
    inputs = [np.array([0.5, -1.0]), np.array([[1.0, 2.0], [3.0, 4.0]])]
    for way, call in ways(graph, inputs, [np.ones((3, 2))], [0, 1]):
        assert "more than one element of the written-to tensor refers to a single memory location" in outcome(call), way


def test_what_may_give_its_operand_back_is_written_through() -> None:
    """type_as of the same dtype, dropout without training: schemas do not say that they give views."""
    for made in ("a.type_as(y)", "torch.dropout(a, 0.5, False)", "a.sum_to_size([2])", "torch.atleast_1d(a)"):
        graph = compile_source(f"def f(x, y):\n    a = x * y\n    b = {made}\n    b.mul_(y)\n    return a * b\n").graph()
        x, y = np.array([0.5, -1.0]), np.array([2.0, 3.0])
        assert all(np.array_equal(irtool.run(graph, [x, y])[0], (x * y * y) ** 2) for _ in range(3))
        assert not differences(graph, [x, y], [np.ones(2)], [0, 1], [2 * x * y ** 4, 4 * x * x * y ** 3])


@pytest.mark.parametrize(("first", "wanted"), [("a.masked_fill_(y > 2.5, 3)", [1, 0]), ("a.mul_(torch.tensor([2, 2]))", [2, 2]),
                                               ("a.add_(y > 2.5)", [1, 1])])
def test_a_second_write_after_one_that_takes_another_dtype(first: str, wanted: list[int]) -> None:
    """Where dtypes are known, the result of the first is converted back; the second is taken out once all the same (exp2_, not exp_)."""
    graph = compile_source(f"def f(x, y):\n    a = x * y\n    {first}\n    b = a * 1\n    a.exp2_()\n    return a, b\n").graph()
    x, y = np.array([0.5, -1.0]), np.array([2.0, 3.0])
    ((_, b),) = irtool.run(graph, [x, y])
    slope = np.exp2(b) * np.log(2) * np.array(wanted)
    assert not differences(graph, [x, y], [np.ones(2), None], [0, 1], [slope * y, slope * x])


@pytest.mark.parametrize("made", ["e + [v]", "[v] * 2", "list([v])", "torch.meshgrid([v])", "torch.broadcast_tensors([v, v])"])
def test_elements_of_a_list_that_is_made_of_another_are_written_through(made: str) -> None:
    """What is read before the write stays in front of it, in groups too."""
    graph = compile_source("def f(x, y):\n    e: List[Tensor] = []\n    a = x * y\n    v = torch.as_strided(a, [2], [1])\n"
                           f"    m = {made}\n    b = m[0] * y\n    a.mul_(y)\n    return b * 2, m[0] * y\n").graph()
    x, y = np.array([0.5, -1.0]), np.array([2.0, 3.0])
    for _ in range(3):
        ((before, after),) = irtool.run(graph, [x, y])
        assert np.array_equal(before, 2 * x * y * y) and np.array_equal(after, x * y ** 3)
    assert not differences(graph, [x, y], [np.ones(2), np.ones(2)], [0, 1], [2 * y * y + y ** 3, 4 * x * y + 3 * x * y * y])


# -- groups, and gradients of one's own
CHAIN = """graph(%a : Tensor, %b : Tensor):
  %2 : Tensor = aten::mul(%a, %b)
  %3 : Tensor = aten::tanh(%2)
  %4 : Tensor = aten::mul(%3, %b)
  return (%4, %3)
"""
STRAIGHT_THROUGH = """# graph f: f_real_outputs=1
graph(%x : Tensor):
  %1 : Tensor = aten::round(%x)
  return (%1)
# graph df: of=f df_input_vjps=[0] df_input_captured_inputs=[] df_input_captured_outputs=[] df_output_vjps=[0]
graph(%g : Tensor):
  return (%g)
"""
TWO_RESULTS = """# graph f: f_real_outputs=2
graph(%x : Tensor, %y : Tensor):
  %1 : Tensor = aten::neg(%x)
  %2 : Tensor = aten::exp(%y)
  return (%1, %2)
# graph df: of=f df_input_vjps=[0, 1] df_input_captured_inputs=[0] df_input_captured_outputs=[1] df_output_vjps=[1]
graph(%g : Tensor, %h : Tensor, %x : Tensor, %e : Tensor):
  %3 : Tensor = aten::mul(%g, %x)
  %4 : Tensor = aten::mul(%h, %e)
  %5 : int = prim::Constant[value=1]()
  %6 : Tensor = aten::add(%3, %4, %5)
  return (%6)
"""


@pytest.mark.parametrize("passes", ["create-autodiff-subgraphs", "create-autodiff-subgraphs{threshold=1}", "fuse{threshold=1}",
                                    "differentiate,pack-gradient", "differentiate,specialize-undef,pack-gradient",
                                    "create-autodiff-subgraphs,fuse", "differentiate,pack-gradient,create-autodiff-subgraphs,O1",
                                    "differentiate,pack-gradient,inline{groups},inline-autodiff-subgraphs{threshold=99}"])
def test_groups_have_the_gradients_of_what_is_in_them(passes: str) -> None:
    plain, grouped = irtool.parse(CHAIN), PassManager(passes, verify=True).run(irtool.parse(CHAIN))
    values, given = [numbers(1, -2), numbers(0.5, 3)], [numbers(1, 10), numbers(2, 3)]
    for cotangents in (given, [None, given[1]]) if "specialize" not in passes else (given,):
        expected = irtool.vjp(plain, values, cotangents, [0, 1], interpret=True)
        assert not differences(grouped, values, cotangents, [0, 1], expected)


@pytest.mark.parametrize("cotangents", [(1, 1), (1, None), (None, 1), (None, None)])
def test_a_specialised_df_takes_the_gradient_of_a_tuple(cotangents: tuple[int | None, ...]) -> None:
    """Whose elements, or which itself, may be undefined."""
    text = """graph(%x : Tensor):
  %1 : Tensor = aten::neg(%x)
  %2 : Tensor = aten::exp(%x)
  %3 : (Tensor, Tensor) = prim::TupleConstruct(%1, %2)
  return (%3)
"""
    packed = PassManager("differentiate,specialize-undef,pack-gradient", verify=True).run(irtool.parse(text))
    given = [None if each is None else ONES for each in cotangents]
    expected = irtool.vjp(irtool.parse(text), [numbers(1, -2)], given, [0], interpret=True)
    assert not differences(packed, [numbers(1, -2)], given, [0], expected)


def test_a_specialised_df_refuses_the_gradient_of_a_list() -> None:
    module = PassManager("differentiate,specialize-undef,pack-gradient").run(irtool.parse("""graph(%x : Tensor):
  %1 : Tensor = aten::neg(%x)
  %2 : Tensor[] = prim::ListConstruct(%1)
  return (%2)
"""))
    with pytest.raises(irtool.UnsupportedError, match=r"takes no undefined gradient of result 0, of type Tensor\[\]"):
        irtool.vjp(module, [ONES], [ONES], [0])


def test_a_group_that_is_opened_keeps_its_own_gradient() -> None:
    for passes in ("inline-autodiff-subgraphs{threshold=99}", "inline{groups}", "O1", "create-autodiff-subgraphs{threshold=1}"):
        module = PassManager(f"pack-gradient,{passes}", verify=True).run(irtool.parse(STRAIGHT_THROUGH))
        assert not differences(module, [numbers(0.4, 1.6)], [numbers(1, 2)], [0], [numbers(1, 2)])


PACKED = str(PassManager("pack-gradient").run(irtool.parse(STRAIGHT_THROUGH))).partition("graph(")[2].partition("\n  return")
AMONG_OTHERS = f"""graph(%w : Tensor, %c : bool):
  %n : int = prim::Constant[value=2]()
  %t : bool = prim::Constant[value=1]()
  %x : Tensor = prim::Loop(%n, %t, %w)
    block0(%i : int, %v : Tensor):
      %s : Tensor = aten::mul(%v, %w)
      %r : Tensor = prim::If(%c)
        block0():
          %p : Tensor = {PACKED[0].partition("= ")[2].replace("(%x)", "(%s)")}
          -> (%p)
        block1():
          -> (%s)
      -> (%t, %r)
  %y : Tensor = aten::mul(%x, %w)
  return (%y)
{PACKED[2].partition(chr(10))[2]}"""


@pytest.mark.parametrize("taken", [True, False])
def test_a_packed_gradient_in_a_loop_and_a_branch(taken: bool) -> None:
    """Its gradient is its own wherever it stands: here that of a product, rounded on the way forwards."""
    w = numbers(1.4, 2.2)
    first = np.round(w * w) if taken else w * w
    second = np.round(first * w) if taken else first * w
    slope = second + w * (first + w * (w + w))
    assert not differences(irtool.parse(AMONG_OTHERS), [w, taken], [ONES], [0], [slope])


def test_a_packed_gradient_among_other_things() -> None:
    """Two results, one of which may have no gradient: zeros for a df that does not know of undefined ones; None for what it leaves out."""
    packed = PassManager("pack-gradient").run(irtool.parse(TWO_RESULTS))
    x, y, g, h = numbers(2, 3), numbers(0, 1), numbers(1, 10), numbers(5, 7)
    for cotangents, expected in (([g, h], g * x + h * np.exp(y)), ([g, None], g * x), ([None, h], h * np.exp(y))):
        assert not differences(packed, [x, y], cotangents, [0, 1], [None, expected])


@pytest.mark.parametrize("passes", ["create-autodiff-subgraphs", "differentiate,pack-gradient"])
def test_groups_have_second_gradients(passes: str) -> None:
    plain, grouped = irtool.parse(CHAIN), PassManager(passes).run(irtool.parse(CHAIN))
    values, given = [numbers(1, -2), numbers(0.5, 3)], [numbers(1, 10), numbers(2, 3)]
    expected = second(plain, values, given)
    for _ in range(2):
        assert alike(second(grouped, values, given), expected)


def second(module: Any, values: list[Any], cotangents: list[Any], **options: Any) -> list[Any]:
    record = irtool.compile(module, **options).record(values, [0, 1])
    return record.backward_recorded(cotangents).backward([numbers(1, 2), numbers(3, 4)])


# -- second order
def test_second_gradients_where_an_input_was_not_reached() -> None:
    """The gradient of %y is zeros in the branch that is not taken; it has a gradient of its own, zeros."""
    graph = compile_source("def f(x, y, c: bool):\n    if c:\n        r = x * y\n    else:\n        r = x * x\n    return r.sum()\n")
    x = np.full(3, 2.0)
    for options in ({}, {"optimize": False}, {"profiling": True}):
        for taken, expected in ((False, [np.full(3, 2.0), np.zeros(3)]), (True, [np.ones(3), np.ones(3)])):
            record = irtool.compile(graph, **options).record([x, x + 1, taken], [0, 1])
            found = record.backward_recorded([np.array(1.0)])
            assert alike(found.outputs, [x + 1, x] if taken else [2 * x, 0 * x])
            assert alike(found.backward([np.ones(3), np.ones(3)]), expected, zeros=True)


@pytest.mark.parametrize("write", ["v.lerp_(x, 0.5)", "v[0] = x[0]", "v.unsqueeze(0).mul_(x)"])
def test_an_input_that_reaches_a_branch_by_a_write_is_unreached_alike_in_all_ways(write: str) -> None:
    """Zeros, as the branch that is not taken reads what %x was written into; on a tape of the graph as it stands, too."""
    graph = compile_source(f"def f(x, y, c: bool):\n    v = y * 1.0\n    {write}\n    r = y * 2.0\n    if c:\n        r = torch.tanh(v)\n"
                           "    return r.sum()\n")
    for options in ({}, {"optimize": False}, {"profiling": True}):
        record = irtool.compile(graph, **options).record([np.ones(3), np.ones(3), False], [0, 1])
        assert alike(record.backward([np.array(1.0)]), [np.zeros(3), np.full(3, 2.0)])


# -- closures
@pytest.mark.parametrize("passes", ["O1", "O1,O1", "peephole", "constant-propagation,dce,cse"])
def test_passes_keep_closures(passes: str) -> None:
    """torch types a closure NoneType: it is no None."""
    source = "def f(a, b):\n    def backward(g):\n        return g * b, g * a\n    return a * b, backward\n"
    module = PassManager(passes, verify=True).run(compile_source(source))
    assert "prim::Closure" in str(module) and "prim::Closure" in str(irtool.parse(str(module)))


# -- what differences see
def test_gradcheck_refuses_where_differences_see_what_is_detached() -> None:
    with pytest.raises(irtool.RunError, match="aten::detach hides from gradients what differences see"):
        irtool.gradcheck(compile_source("def f(x):\n    return x.detach() * x\n"), [np.array([1.0, 2.0])])
    assert irtool.gradcheck(compile_source("def f(x):\n    y = x.detach()\n    return x * x\n"), [np.array([1.0, 2.0])]).is_right


def test_a_tape_refuses_gradients_that_nodes_own() -> None:
    """It would go back through what the node computes, whatever the node says its gradient is."""
    packed = irtool.PassManager("differentiate,pack-gradient").run(irtool.from_script("def f(x):\n    return (x * x).sin()\n"))
    graph = irtool.parse(str(packed).replace("aten::cos", "aten::exp")).graph()
    x = np.array([1.0, 2.0])
    (own,) = irtool.vjp(graph, [x], [np.ones(2)], [0])
    np.testing.assert_allclose(own, 2 * x * np.exp(x * x))
    with pytest.raises(irtool.UnsupportedError, match="gradient of its own, which a tape does not take"):
        irtool.grad(irtool.dispatch.callables.function_of(graph))(x)
    with pytest.raises(irtool.UnsupportedError, match="gradient of its own"):
        irtool.vmap(irtool.grad(irtool.dispatch.callables.function_of(graph)))(np.ones((3, 2)))
    with pytest.raises(irtool.UnsupportedError, match="gradient of its own, which a trace does not take"):
        irtool.trace(graph, [x])
    np.testing.assert_array_equal(irtool.jit(irtool.dispatch.callables.function_of(graph))(x), np.sin(x * x))


@pytest.mark.parametrize("is_interpreted", [True, False])
@pytest.mark.parametrize(("change", "expected"), [
    ("", 1.0), ("    l.reverse()\n", 10.0), ("    l.append(x)\n", 101.0), ("    l = l + [x]\n", 101.0), ("    l.insert(0, x)\n", 11.0),
    ("    l.pop(0)\n", 0.0), ("    l = l[:]\n", 1.0), ("    l = l * 2\n", 101.0), ("    l.extend([v])\n", 1.0), ("    l[0] = v\n", 0.0),
])
def test_a_write_reaches_what_a_list_holds_however_the_list_changes(change: str, expected: float, is_interpreted: bool) -> None:
    """The element v has no gradient any more: a write has replaced all of it. Gradients of elements are 1, 10, 100, ... by place."""
    module = irtool.from_script(f"def f(x: Tensor):\n    v = x + 1\n    l = [x, v]\n{change}    v.fill_(-2.0)\n    return l\n")
    count = len(irtool.run(module, [np.ones(2)])[0])
    cotangents = [np.full(2, 10.0 ** place) for place in range(count)]
    for _ in range(3):
        (gradient,) = irtool.vjp(module, [np.ones(2)], list(cotangents), [0], interpret=is_interpreted)
        np.testing.assert_array_equal(gradient, np.full(2, expected))


@pytest.mark.parametrize("is_interpreted", [True, False])
@pytest.mark.parametrize("held", ["(v, x)", "(x, v)", "[(v, x)][0]", "{'a': (v, x)}['a']", "[[v], [x]]", "[v, x]", "(x, (v,))"])
def test_a_write_reaches_what_was_constructed_before(held: str, is_interpreted: bool) -> None:
    """No gradient comes from the element of v that was written, wherever v is held."""
    module = irtool.from_script(f"def f(x: Tensor):\n    v = x * 2\n    t = {held}\n    v[1:] = 1\n    return t\n")
    for _ in range(3):
        (gradient,) = irtool.vjp(module, [np.ones(2)], [np.ones(2)] * 2, [0], interpret=is_interpreted)
        np.testing.assert_array_equal(gradient, [3.0, 1.0])


@pytest.mark.parametrize("start", ["", "    m = m * 1.0\n    v = v * 1.0\n"], ids=["of inputs", "computed"])
@pytest.mark.parametrize("training", ["FT", "TF", "FTF", "TFT", "FF", "TT"])
def test_running_statistics_that_one_norm_writes_and_another_reads(training: str, start: str) -> None:
    """Each norm that does not train has the gradient for the statistics that it read."""
    norms = "".join(f"    n{place} = torch.batch_norm(x, None, None, m, v, {flag == 'T'}, 0.5, 1e-5, False)\n"
                    for place, flag in enumerate(training))
    product = " * ".join(f"(n{place} + {place})" for place in range(len(training)))
    graph = compile_source(f"def f(x, m, v):\n{start}{norms}    return {product}, m\n").graph()
    rng = np.random.default_rng(3)
    x, m, v = rng.standard_normal((5, 3)), rng.standard_normal(3), rng.random(3) + 0.5
    mean, variance, count = m, v, len(x)
    normal, slopes = [], []         # of each norm: its result, and its gradient for a cotangent
    for place, flag in enumerate(training):
        if flag == "T":
            scale = 1 / np.sqrt(x.var(0) + 1e-5)
            rows = (x - x.mean(0)) * scale
            slopes.append(lambda g, rows=rows, scale=scale: scale * (g - g.mean(0) - rows * (g * rows).mean(0)))
            mean, variance = (mean + x.mean(0)) / 2, (variance + x.var(0) * count / (count - 1)) / 2
        else:
            scale = 1 / np.sqrt(variance + 1e-5)
            rows = (x - mean) * scale
            slopes.append(lambda g, scale=scale: g * scale)
        normal.append(rows + place)
    expected = sum(slope(np.prod([each for at, each in enumerate(normal) if at != place], axis=0)) for place, slope in enumerate(slopes))
    assert not differences(graph, [x, m, v], [np.ones((5, 3)), None], [0], [expected])
