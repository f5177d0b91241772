"""What shape propagation says of an operator's results is true of them, however much is known of the operands."""
from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from irtool.analysis.shape_sizes import EXPANDED
from irtool.interpret import run
from irtool.ir.edits import clone_graph
from irtool.ir.schema import parse_schema
from irtool.ir.shapes import pointwise_strides
from irtool.ir.types import TensorType, tensor_type
from irtool.ops import OPS
from irtool.passes.propagate_shapes import propagate_shapes
from irtool.testing.formulas import call_graph
from irtool.text.parser import parse
from tests.laws import family, over, overload_samples


def steps(array):
    """Strides in elements."""
    return [stride // array.itemsize for stride in array.strides]


KNOWN = {
    "all": lambda x: tensor_type(x.dtype.name, x.shape, steps(x), False, "cpu"),
    "ranks": lambda x: tensor_type(x.dtype.name, (None,) * x.ndim, None, False, "cpu"),
    "dtypes": lambda x: tensor_type(x.dtype.name, None, None, False, "cpu"),
    "sizes": lambda x: tensor_type(None, x.shape, None, False, "cpu"),
}
"""How much the types of a graph's inputs say of the arrays."""


def untrue(type, result):
    """Is the result something else than its type says?"""
    if not isinstance(type, TensorType) or result is None:
        return False
    sizes = [None] * result.ndim if type.sizes is None else type.sizes
    return type.dtype not in (None, result.dtype.name) or len(sizes) != result.ndim or any(
        said not in (None, size) for said, size in zip(sizes, result.shape, strict=True))


@over("name, call", [case for name in OPS for case in overload_samples(name)], family)
def test_what_is_said_is_true(name, call):
    text = OPS[name].schemas[OPS[name].names.index(name)]
    schema, args = parse_schema(text), call.arguments(text)
    results = None
    for known, type_of in KNOWN.items():
        graph, inputs, _ = call_graph(schema, args)
        for value, array in zip(graph.inputs, inputs, strict=True):
            value.type = type_of(array)
        propagate_shapes(graph)
        assert not propagate_shapes(graph), f"{known} known: changes once more"
        results = results or run(graph, [each.copy() for each in inputs], seed=3)
        for value, result in zip(graph.outputs, results, strict=True):
            assert not untrue(value.type, result), f"{known} known: {value.type}, and it is {result.dtype}{list(result.shape)}"


@pytest.mark.parametrize("kind", sorted(name.partition(".")[0] for name in EXPANDED))
def test_results_are_the_same_after_operands_are_expanded(kind):
    for dtypes in itertools.product(("uint8", "int32", "int64", "float32"), repeat=2):
        for shapes in (((), (1,)), ((), (2, 3)), ((1,), (2, 3))):
            operands = [np.full(shape, value, np.int64).astype(dtype) for shape, value, dtype in zip(shapes, (7, 261), dtypes, strict=True)]
            graph = parse(f"graph(%x : Tensor, %y : Tensor):\n  %1 : Tensor = {kind}(%x, %y)\n  return (%1)").graph()
            for order in (operands, operands[::-1]):
                for value, operand in zip(graph.inputs, order, strict=True):
                    value.type = KNOWN["all"](operand)
                propagated = clone_graph(graph)
                propagate_shapes(propagated)
                (want,), (got,) = run(graph, order), run(propagated, order)
                assert got.dtype == want.dtype and np.array_equal(got, want), f"{order}\n{propagated}"
                assert not untrue(propagated.outputs[0].type, got), str(propagated)


def layout(draw):
    """Sizes, and operands that broadcast to them in some layout: (array, ...)."""
    sizes = [draw.choice((1, 2, 3)) for _ in range(draw.randrange(5))]
    return [arranged([1 if draw.random() < 0.2 else size for size in sizes][draw.choice((0, 0, 0, 1)):], draw)
            for _ in range(draw.choice((1, 2, 2, 3)))]


def arranged(sizes, draw):
    """Zeros whose dimensions lie in memory in some order, with gaps now and then."""
    order = draw.sample(range(len(sizes)), len(sizes))
    memory = np.zeros([sizes[dim] * (2 if draw.random() < 0.1 else 1) for dim in order], np.float32)
    memory = memory[tuple(slice(sizes[dim]) for dim in order)]
    return memory.transpose([order.index(dim) for dim in range(len(sizes))])


@pytest.mark.oracle
def test_layouts_are_those_of_torch():
    torch = pytest.importorskip("torch")
    draw = random.Random(1)
    for _ in range(2000):
        arrays = layout(draw)
        tensors = [torch.empty_strided(array.shape, steps(array)) for array in arrays]
        made = tensors[0].neg() if len(arrays) == 1 else tensors[0] + tensors[1] if len(arrays) == 2 else torch.addcmul(*tensors)
        found = pointwise_strides(made.shape, [(array.shape, steps(array)) for array in arrays])
        assert found == made.stride(), [(array.shape, steps(array)) for array in arrays]
