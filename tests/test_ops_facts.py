"""What torch answers where NumPy would answer otherwise, recorded; and laws every operator of these families keeps."""
from __future__ import annotations

import warnings
from importlib import import_module

import numpy as np
import pytest
from op_facts import FACTS
from side_by_side import complaint, encode, numbers, ours, recorded, theirs

import irtool
from irtool import UnsupportedError
from irtool.ir.schema import parse_schema, schemas
from irtool.ops.arrays import seeded
from irtool.ops.call import call_op
from tests.laws import over

FAMILIES = ("pointwise", "pointwise_binary", "bitwise", "comparison", "cast", "reduction", "statistics", "scan", "sort", "order",
            "histogram", "factory", "window", "random", "special", "polynomial", "fft", "stft")
OPS = [op for family in FAMILIES for op in import_module(f"irtool.ops.kernels.{family}").table]
RECORDED = recorded()


@pytest.mark.parametrize(("title", "name", "args", "named"), FACTS, ids=[fact[0] for fact in FACTS])
def test_fact(title, name, args, named):
    assert (why := complaint(ours(name, args, named), RECORDED[title], message=True)) is None, why


def test_titles_differ_and_are_recorded():
    assert len({fact[0] for fact in FACTS}) == len(FACTS)
    assert set(RECORDED) == {fact[0] for fact in FACTS}


@pytest.mark.oracle
def test_recorded_facts_are_what_torch_says():
    for title, name, args, named in FACTS:
        assert str(encode(theirs(name, args, named))) == str(encode(RECORDED[title])), title


@over("op", [pytest.param(op, id=op.names[0]) for op in OPS], lambda op: op.family)
def test_every_operator_says_what_it_does_and_uses_torchs_schema(op):
    assert op.doc, f"{op.names} has no doc"
    for text, name in zip(op.schemas, op.names, strict=True):
        known = next((schema for schema in schemas(name.partition(".")[0]) if schema.name == name), None)
        assert known is not None, f"torch has no {name}"
        assert described(parse_schema(text)) == described(known), name


def described(schema):
    arguments = [(a.name, a.type.text, repr(a.default), a.keyword_only, a.alias is not None and a.alias.is_write) for a in schema.arguments]
    return arguments, [(result.type.text, result.alias is not None) for result in schema.returns]


UNARY = [op for op in OPS if all(text.endswith("(Tensor self) -> Tensor") for text in op.schemas)]


@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "float32", "complex64"])
def test_unary_operators_leave_their_argument_alone_and_numpy_silent(dtype):
    x = numbers(1, (4, 5), dtype, special=True)
    before = x.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for op in UNARY:
            for view in (x, x.T, x[:, ::2], x[:0], np.array(x[0, 0])):
                result = ours(op.names[0], [view], {})
                assert not isinstance(result, np.ndarray) or not np.may_share_memory(result, x), op.names
    assert np.array_equal(x, before, equal_nan=dtype not in ("bool", "int64"))


def test_in_place_forms_write_into_self():
    x = np.array([1.0, -2.0, 3.0], np.float32)
    assert call_op("aten::add_.Tensor", [x, np.array([1, 1, 1])], alpha=2) is x
    assert call_op("aten::clamp_", [x, 0.5, None]) is x
    assert x.tolist() == [3.0, 0.5, 5.0]
    ints = np.array([1, 2])
    assert "can't be cast" in ours("aten::div_.Tensor", [ints, ints], {})[0]
    assert call_op("aten::pow_.Tensor", [ints, np.array([3, 3])]).tolist() == [1, 8]
    assert call_op("aten::__ior__.Scalar", [ints, 4]) is ints


def test_a_number_that_stands_for_a_tensor_is_promoted_as_a_number():
    assert call_op("aten::mul.Tensor", [np.array([1, 2]), 2.5]).dtype == np.float32
    assert call_op("aten::sub.Tensor", [np.array([1, 2], np.int32), 3], alpha=1).dtype == np.int32
    assert call_op("aten::where.self", [np.array([True]), np.array([1], np.int32), 3]).dtype == np.int32


def test_views_are_views_and_conversions_that_change_nothing_give_the_tensor():
    z = np.array([1 + 2j], np.complex64)
    call_op("aten::real", [z])[...] = 7
    assert z[0] == 7 + 2j
    x = np.zeros(3, np.float32)
    assert call_op("aten::to.dtype", [x, 6]) is x
    assert np.may_share_memory(call_op("aten::detach", [x]), x)
    assert not np.may_share_memory(call_op("aten::clone", [x]), x)


def test_clone_keeps_strides_and_takes_a_memory_format():
    x = np.zeros((2, 3, 4, 5), np.float32)
    assert call_op("aten::clone", [x.transpose(0, 2, 1, 3)]).strides == x.transpose(0, 2, 1, 3).strides
    assert call_op("aten::clone", [x], memory_format=2).strides == (240, 4, 60, 12)


def test_float32_sums_over_rows_are_exact_enough():
    x = np.full((1_000_000, 2), 0.1, np.float32)
    assert abs(call_op("aten::sum.dim_IntList", [x, [0]]) - 100000).max() < 1
    assert call_op("aten::sum", [np.full(5000, 1, np.float16)]) == 5000


def test_random_numbers_repeat_with_a_seed():
    def draw():
        ones = np.ones(50, np.float32)
        return [call_op("aten::rand", [[3]]), call_op("aten::randperm", [9]), call_op("aten::dropout", [ones, 0.5, True])]
    with seeded(7):
        first = draw()
    with seeded(7):
        second = draw()
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    kept = first[2][first[2] != 0]
    assert 0 < len(kept) < 50 and (kept == 2).all()


@pytest.mark.parametrize(("name", "args", "mean", "spread"), [
    ("uniform", [-1.0, 2.0], 0.5, 0.866), ("normal_functional", [1.0, 2.0], 1.0, 2.0), ("exponential", [2.0], 0.5, 0.5),
    ("geometric", [0.3], 3.333, 2.789), ("bernoulli.p", [0.3], 0.3, 0.458), ("random.to", [10], 4.5, 2.872)])
def test_distributions(name, args, mean, spread):
    drawn = call_op(f"aten::{name}", [np.zeros(200_000, np.float32), *args])
    assert abs(drawn.mean() - mean) < 0.03 and abs(drawn.std() - spread) < 0.03


def test_multinomial_follows_the_weights():
    weights = np.array([0.1, 0.0, 0.9], np.float32)
    drawn = call_op("aten::multinomial", [weights, 20_000, True])
    assert np.allclose(np.bincount(drawn, minlength=3) / 20_000, weights, atol=0.02)
    assert sorted(call_op("aten::multinomial", [weights, 2]).tolist()) == [0, 2]


@pytest.mark.parametrize(("name", "args"), [("zeros", [[1 << 40, 1 << 40]]), ("arange", [1e15]), ("eye", [1 << 40]), ("rand", [[1 << 45]]),
                                            ("linspace", [0, 1, 1 << 45]), ("hann_window", [1 << 45])])
def test_absurd_sizes_are_refused_before_memory_is_asked_for(name, args):
    assert "memory" in ours(f"aten::{name}", args, {})[0]


def test_what_is_not_there_says_unsupported():
    for name, args, named in (("to.device", [np.zeros(1), "cuda:0", 6], {}), ("zeros", [[1]], {"layout": 1}),
                              ("chalf", [np.zeros(1)], {})):
        with pytest.raises(UnsupportedError):
            call_op(f"aten::{name}", args, **named)


@pytest.mark.parametrize("call", ["tril_indices(%n, %n, %n, %none", "triu_indices(%n, %n, %n, %none", "randperm(%n, %none"])
def test_indices_are_int64_also_where_none_is_written_for_their_dtype(call):
    """Their schemas have the default 4 (int64), which a None that is written replaces."""
    graph = irtool.parse(f"graph(%n : int):\n  %none : NoneType = prim::Constant()\n"
                         f"  %r : Tensor = aten::{call}, %none, %none, %none)\n  return (%r)\n")
    assert irtool.run(graph, [3])[0].dtype == np.int64
