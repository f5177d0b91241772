"""Gradients of recurrent nets, of connectionist temporal classification and through lists; every operator says what its gradient is."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.autodiff.formula_graphs import formula_of
from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.dialect import LATEST
from irtool.ir.graph import Graph
from irtool.ir.schema import schema_named
from irtool.ops import OPS
from irtool.testing.finite_differences import gradcheck

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def net(kind: str, layers: int = 1, bidirectional: bool = False, projection: int = 0, dropout: float = 0.0) -> list[Any]:
    """Arguments of a small net behind its input: states, parameters, and what they say."""
    random = np.random.default_rng(len(kind) + layers)
    directions, hidden, batch = 2 if bidirectional else 1, 2, 2
    shown = projection or hidden
    params: list[np.ndarray] = []
    for layer in range(layers):
        for _ in range(directions):
            width = shown * directions if layer else 2
            shapes: list[tuple[int, ...]] = [(GATES[kind] * hidden, width), (GATES[kind] * hidden, shown)]
            shapes += [(GATES[kind] * hidden,)] * 2 + [(projection, hidden)] * bool(projection)
            params += [random.standard_normal(shape) for shape in shapes]
    state = random.standard_normal((layers * directions, batch, shown))
    first = [state, random.standard_normal((layers * directions, batch, hidden))] if kind == "lstm" else state
    return [first, params, True, layers, dropout, dropout > 0, bidirectional]


def steps(kind: str, batch_first: bool = False, **options: Any) -> tuple[str, list[Any]]:
    """A call on three steps of two sequences."""
    shape = (2, 3, 2) if batch_first else (3, 2, 2)
    return f"{kind}.input", [np.random.default_rng(1).standard_normal(shape), *net(kind, **options), batch_first]


def packed(kind: str, **options: Any) -> tuple[str, list[Any]]:
    """A call on a sequence of three steps and one of two."""
    return f"{kind}.data", [np.random.default_rng(2).standard_normal((5, 2)), np.array([2, 2, 1]), *net(kind, **options)]


NETS = [
    steps("lstm", layers=2, bidirectional=True, projection=1), packed("lstm", layers=2, bidirectional=True), packed("lstm", projection=1),
    steps("lstm", True, layers=2, dropout=0.4), steps("gru", True, layers=2, bidirectional=True), packed("gru", layers=2, dropout=0.4),
    steps("rnn_tanh", bidirectional=True), packed("rnn_tanh", layers=2, bidirectional=True), packed("rnn_relu"),
]


def call_graph(name: str, args: list[Any], is_typed: bool) -> tuple[Graph, list[np.ndarray]]:
    """A graph that makes the call, its inputs the arrays among the arguments."""
    graph = Graph(LATEST)
    build = Builder(graph)
    arrays: list[np.ndarray] = []

    def operand(value: Any) -> Any:
        if isinstance(value, list) and any(isinstance(each, np.ndarray) for each in value):
            return build.construct_list([operand(each) for each in value], types.TENSOR)
        if not isinstance(value, np.ndarray):
            return build.constant(value)
        arrays.append(value)
        own = types.tensor_type(value.dtype.name, value.shape, types.contiguous_strides(value.shape)) if is_typed else types.TENSOR
        return graph.block.add_input(graph.fresh_id(), own)

    schema = schema_named(f"aten::{name}")
    assert schema is not None
    node = build.node(schema.kind, [operand(arg) for arg in args], output_types=[types.TENSOR] * len(schema.returns))
    graph.block.set_outputs(node.outputs)
    return graph, arrays


@pytest.mark.parametrize("number", range(len(NETS)), ids=[f"{number}-{name}" for number, (name, _) in enumerate(NETS)])
def test_nets_agree_with_differences(number: int) -> None:
    graph, arrays = call_graph(*NETS[number], is_typed=number % 2 == 0)
    report = gradcheck(graph, arrays, [i for i, array in enumerate(arrays) if array.dtype.kind == "f"][:4], directions=1)
    assert report.is_right, report


@pytest.mark.oracle
@pytest.mark.parametrize("is_typed", [True, False], ids=["typed", "untyped"])
@pytest.mark.parametrize(("name", "args"), [case for case in NETS if case[1][-3 if ".data" in case[0] else -4] == 0.0],
                         ids=[name for name, args in NETS if args[-3 if ".data" in name else -4] == 0.0])
def test_nets_have_torchs_gradients(name: str, args: list[Any], is_typed: bool) -> None:
    torch = pytest.importorskip("torch")
    kind, _, variant = name.partition(".")
    leaves: list[Any] = []

    def given(value: Any) -> Any:
        if isinstance(value, list):
            return [given(each) for each in value]
        if isinstance(value, np.ndarray):
            leaves.append(torch.tensor(value, requires_grad=value.dtype.kind == "f"))
            return leaves[-1]
        return value

    outputs = getattr(getattr(torch.ops.aten, kind), variant)(*[given(arg) for arg in args])
    seeds = [np.random.default_rng(place).standard_normal(tuple(out.shape)) for place, out in enumerate(outputs)]
    wrt = [i for i, leaf in enumerate(leaves) if leaf.requires_grad]
    for chosen in (range(len(outputs)), [0], [1]):
        expected = torch.autograd.grad([outputs[i] for i in chosen], [leaves[i] for i in wrt], [torch.tensor(seeds[i]) for i in chosen],
                                       retain_graph=True)
        graph, arrays = call_graph(name, args, is_typed)
        found = irtool.vjp(graph, arrays, [seed if i in chosen else None for i, seed in enumerate(seeds)], wrt)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-9, atol=1e-12)


CTC = """graph(%x : Tensor, %targets : Tensor):
  %dim : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %inputs : int[] = prim::Constant[value=[5, 4, 2]]()
  %lengths : int[] = prim::Constant[value=[3, 1, 3]]()
  %blank : int = prim::Constant[value=0]()
  %reduction : int = prim::Constant[value=0]()
  %zero_infinity : bool = prim::Constant[value=1]()
  %logs : Tensor = aten::log_softmax(%x, %dim, %none)
  %loss : Tensor = aten::ctc_loss(%logs, %targets, %inputs, %lengths, %blank, %reduction, %zero_infinity)
  return (%loss)
"""


@pytest.mark.parametrize("targets", [[[1, 2, 2], [3, 0, 0], [1, 2, 3]], [1, 2, 2, 3, 1, 2, 3]], ids=["rows", "joined"])
def test_ctc_loss_after_log_softmax_to_third_order(targets: list[Any]) -> None:
    x = np.random.default_rng(3).standard_normal((5, 3, 4))
    report = gradcheck(irtool.parse(CTC), [x, np.array(targets)], [0], order=3, directions=1)
    assert report.is_right and len(report.compared(3)) > 0, report
    (gradient,) = irtool.vjp(irtool.parse(CTC), [x, np.array(targets)], [np.ones(3)], [0])
    assert not gradient[:, 2].any() and gradient[:4, 1].any() and not gradient[4, 1].any()      # too short for its labels; already over


LISTS = """graph(%a : Tensor, %b : Tensor, %n : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %none : NoneType = prim::Constant()
  %l : Tensor[] = aten::split(%a, %one, %zero)
  %m : Tensor[] = prim::ListConstruct(%b, %b)
  %k : Tensor[] = aten::add(%l, %m)
  %c : Tensor[] = aten::copy(%k)
  %d : Tensor[] = aten::slice(%c, %one, %none, %two)
  %e : Tensor[] = aten::mul(%d, %two)
  %f : Tensor = aten::__getitem__(%e, %n)
  %g : Tensor = aten::__getitem__(%c, %one)
  %h : Tensor = aten::mul(%f, %g)
  %i : Tensor = aten::cat(%k, %zero)
  return (%h, %i)
"""


@pytest.mark.parametrize("place", [0, 1, -1])
def test_gradients_go_through_lists_of_unknown_length(place: int) -> None:
    random = np.random.default_rng(4)
    report = gradcheck(irtool.parse(LISTS), [random.standard_normal((3, 2)), random.standard_normal((1, 2)), place], [0, 1])
    assert report.is_right, report


def test_a_permutation_put_together_in_a_loop_has_a_gradient_of_second_order() -> None:
    random = np.random.default_rng(5)
    graph, arrays = call_graph("linalg_tensorsolve", [random.standard_normal((2, 6, 3)), random.standard_normal((2, 3)), [1]], False)
    assert gradcheck(graph, arrays).is_right


def test_every_operator_says_what_its_gradient_is() -> None:
    silent = [name for name, op in OPS.items() if name not in op.formulas and name not in op.no_gradient and name not in op.unsupported]
    assert silent == []
    twice = [name for name, op in OPS.items() if (name in op.formulas) + (name in op.no_gradient) + (name in op.unsupported) > 1]
    assert twice == []


def test_an_unsupported_gradient_names_its_reason() -> None:
    schema = schema_named("aten::sorted.Tensor")
    assert schema is not None
    with pytest.raises(irtool.UnsupportedError, match="the gradient of aten::sorted.Tensor is not supported: the order of the elements"):
        formula_of(schema)
