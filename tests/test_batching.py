"""Batching rules against the loop: vmap of an operator is the operator on each slice, stacked."""
from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.dispatch import current, vmap
from irtool.dispatch.batch_rules import rule_of, why_no_rule
from irtool.dispatch.batched import draws
from irtool.dispatch.graph_functions import function_of
from irtool.ir.schema import parse_schema, schema_named
from irtool.ops import FAMILIES, OPS
from irtool.ops.call import overload
from irtool.ops.facts import facts_of_overload
from irtool.ops.kernels import softmax
from irtool.ops.tensor import Tensor, unwrapped
from tests.laws import family, kind, over, overload_samples

LENGTH = 3
RULES = Path(irtool.__file__).parent / "ops" / "batching"
NOT_BATCHED = {"aten::gradient.tensorarrayint": (1,), "aten::gradient.tensorarray": (1,)}
"""Arguments that a rule takes only without a hidden dimension, and says so."""


BATCHED = dict.fromkeys(("aten::batch_norm", "aten::native_batch_norm", "aten::_native_batch_norm_legit", "aten::_batch_norm_with_update",
                         "aten::_batch_norm_impl_index"), (3, 4))
"""Arguments that must be batched when others are: they are written into."""


SAMPLES = [overload_samples(name) for name in OPS if rule_of(name) is not None]
"""By overload with a rule, its samples."""


def arguments_of(name, call):
    op = OPS[name]
    args = call.arguments(op.schemas[op.names.index(name)])
    if draws(name, args):
        pytest.skip("other random numbers in each place")
    return args


def leaves(args):
    """Places of arrays among the arguments: (argument,) or (argument, place in its list)."""
    for i, arg in enumerate(args):
        if isinstance(arg, np.ndarray):
            yield (i,)
        elif isinstance(arg, list):
            yield from ((i, j) for j, each in enumerate(arg) if isinstance(each, np.ndarray))


def at(args, path):
    return args[path[0]] if len(path) == 1 else args[path[0]][path[1]]


def replaced(args, values):
    """The arguments with other values at some places."""
    found = [list(arg) if isinstance(arg, list) else arg for arg in args]
    for path, value in values.items():
        if len(path) == 1:
            found[path[0]] = value
        else:
            found[path[0]][path[1]] = value
    return found


def variants(array, path):
    """One array per place of the batch, the first the sample itself."""
    random = np.random.default_rng(len(path) + array.size)
    if array.dtype.kind in "fc":
        return [array, *[np.asarray(array * random.uniform(0.9, 1.1)) for _ in range(LENGTH - 1)]]
    return [array, *[array.copy() for _ in range(LENGTH - 1)]]


def result_leaves(value):
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in result_leaves(each)]
    return [value]


def handles(args):
    """Arguments with handles for arrays."""
    return [[Tensor(e) if isinstance(e, np.ndarray) else e for e in v] if isinstance(v, list) else
            Tensor(v) if isinstance(v, np.ndarray) else v for v in args]


def check(name, args, paths, dims):
    """vmap over the arrays at `paths`, their batch dimension at `dims`, against a loop."""
    found = overload(name)
    batches = {path: variants(at(args, path), path) for path in paths}
    expected = []
    for place in range(LENGTH):
        with np.errstate(all="ignore"):
            expected.append(result_leaves(found([np.array(v) if isinstance(v, np.ndarray) else v for v in
                                                 replaced(args, {path: each[place] for path, each in batches.items()})])))
    stacked = [np.stack(each, dim) for each, dim in zip(batches.values(), dims, strict=True)]

    def one(*given):
        values = replaced(args, dict(zip(paths, given, strict=True)))
        return [leaf for leaf in result_leaves(current().apply(name, handles(values)))]

    outs = vmap(lambda *given: [each for each in one(*given) if isinstance(each, Tensor)], in_dims=tuple(dims))(*stacked)
    wanted = [[row[i] for row in expected] for i, leaf in enumerate(expected[0]) if isinstance(leaf, np.ndarray)]
    assert len(outs) == len(wanted)
    for out, rows in zip(outs, wanted, strict=True):
        out, rows = unwrapped(out), np.stack(rows)
        assert out.shape == rows.shape and out.dtype == rows.dtype
        np.testing.assert_allclose(out, rows, rtol=1e-6 if out.dtype.itemsize < 8 else 1e-9, atol=1e-9)


@over("name, call", [case for cases in SAMPLES for case in cases], kind)
def test_vmap_is_the_loop(name, call):
    args = arguments_of(name, call)
    paths = [path for path in leaves(args) if at(args, path).dtype.kind in "fc"]
    subsets = {tuple(paths), *[(path,) for path in paths]}
    for chosen in sorted(subsets):
        if overload(name).schema.is_mutable and (0,) not in chosen:
            continue        # nothing batched is written into what is the same for all
        if any(isinstance(args[place], np.ndarray) and (place,) not in chosen for place in BATCHED.get(name, ())):
            continue
        if chosen and not any(path[0] in NOT_BATCHED.get(name, ()) for path in chosen):
            check(name, args, chosen, [0] * len(chosen))
            check(name, args, chosen, [-1] * len(chosen))


@over("name, call", [cases[0] for cases in SAMPLES if cases], family)
def test_vmap_of_vmap_is_the_loop(name, call):
    args = arguments_of(name, call)
    paths = [path for path in leaves(args) if at(args, path).dtype.kind in "fc" and path[0] not in NOT_BATCHED.get(name, ())]
    if not paths or "!)" in OPS[name].schemas[OPS[name].names.index(name)]:
        return
    grids = {path: [variants(each, path) for each in variants(at(args, path), (*path, 0, 0))[:2]] for path in paths}

    def one(*given):
        return [leaf for leaf in result_leaves(current().apply(name, handles(replaced(args, dict(zip(paths, given, strict=True))))))
                if isinstance(leaf, Tensor)]

    outs = vmap(vmap(one, in_dims=-1))(*[np.stack([np.stack(row, -1) for row in grid]) for grid in grids.values()])
    for i in range(2):
        for j in range(LENGTH):
            for out, wanted in zip(outs, one(*[Tensor(grid[i][j].copy()) for grid in grids.values()]), strict=True):
                found, wanted = unwrapped(out)[i, j], unwrapped(wanted)
                assert found.shape == wanted.shape and found.dtype == wanted.dtype
                np.testing.assert_allclose(found, wanted, rtol=1e-6 if found.dtype.itemsize < 8 else 1e-9, atol=1e-9)


@over("name, call", [case for cases in SAMPLES for case in cases], family)
def test_indices_are_batched_too(name, call):
    """All arrays are batched, those of integers as they are; and those of integers alone. A rule may say that it does not take that."""
    args = arguments_of(name, call)
    paths = list(leaves(args))
    ints = [path for path in paths if at(args, path).dtype.kind in "iub"]
    if not ints or overload(name).schema.is_mutable or not any(isinstance(arg, np.ndarray) for arg in args):
        return
    for chosen in (paths, ints):
        try:
            check(name, args, chosen, [0] * len(chosen))
        except irtool.UnsupportedError as error:
            assert re.search("under vmap is not supported (where|with|without|for)", error.message), error.message


def random_calls():
    """Programs of operators without samples: (name, function of a tensor, its extents)."""
    x = np.random.default_rng(0).standard_normal((4, 7))
    mask = x > 0.2
    for name, function, *given in (
        ("histc", lambda x: x.histc(5, -1, 1), x), ("histc of the data's range", lambda x: x.histc(4), x),
        ("histogram", lambda x: torch.histogram(x, 4), x), ("histogram of a range", lambda x: torch.histogram(x, 4, range=[-1.0, 1.0]), x),
        ("histogram of weights", lambda x, w: torch.histogram(x, 3, weight=w, density=True), x, np.abs(x)),
        ("histogram of edges", lambda x: torch.histogram(x, Tensor(np.array([-1.0, 0.0, 0.5, 2.0]))), x),
        ("histogram of batched edges", lambda x, e: torch.histogram(x, e), x, np.sort(x, 1)),
        ("histogramdd", lambda x: torch.histogramdd(x.reshape([7, 1]).repeat([1, 2]) * Tensor(np.array([1.0, -2.0])), [2, 3]), x),
        ("edges", lambda x: torch._histogramdd_bin_edges(x.reshape([-1, 1]), [3]), x),
        ("nonzero_static", lambda m: m.reshape([7, 1]).nonzero_static(size=5), mask),
        ("nonzero_static, more than there are", lambda m: m.nonzero_static(size=9), mask),
        ("masked_scatter", lambda x, m, y: x.masked_scatter(m, y), x, mask, 2 * x),
        ("masked_scatter_backward", lambda x, m: torch.masked_scatter_backward(x, m, [7]), x, mask),
        ("embedding_renorm", lambda x, i: torch.embedding_renorm(x.reshape([7, 1]), i, 0.5, 2.0), x, np.array([[0, 3]] * 4)),
        ("as_strided", lambda x: x.as_strided([3, 2], [2, 1], 1), x),
        ("as_strided_scatter", lambda x: x.as_strided_scatter(Tensor(np.zeros((2, 2))), [2, 2], [3, 1]), x),
        ("_reshape_from_tensor", lambda x: torch._reshape_from_tensor(x, Tensor(np.array([7, 1]))), x),
        ("tensor_split", lambda x: x.tensor_split(Tensor(np.array([2, 4]))), x),
        ("polygamma_", lambda x: x.clone().polygamma_(1), np.abs(x)),
        ("_unsafe_masked_index", lambda x, m: torch._unsafe_masked_index(x, m, [Tensor(np.arange(7)[::-1].copy())], 9), x, mask),
        ("put", lambda x, m, i: torch._unsafe_masked_index_put_accumulate(x, m, [i], x), x, mask, np.argsort(x, 1)),
        ("index_add", lambda x, i: x.index_add(0, i, x, alpha=2), x, np.argsort(x, 1)),
        ("take from the end", lambda x, i: x.take(i), x, np.argsort(x, 1) - 7),
        ("put from the end", lambda x, i: x.put(i, 2 * x), x, np.argsort(x, 1) - 7),
        ("put added from the end", lambda x: x.put(Tensor(np.array([-1, 6, -7])), x[:3], True), x),
        ("index_fill from the end", lambda x, i: x.index_fill(0, i, 3), x, np.argsort(x, 1)[:, :2] - 7),
        ("take_along_dim from the end", lambda x, i: x.take_along_dim(i, 0), x, np.argsort(x, 1) - 7),
        ("index from the end", lambda x, i: x[i], x, np.argsort(x, 1) - 7),
        ("index_put from the end", lambda x, i: x.index_put([i], x), x, np.argsort(x, 1) - 7),
        ("index_copy", lambda x, i: x.index_copy(0, i, x), x, np.argsort(x, 1)),
        ("index_reduce", lambda x, i: x.index_reduce(0, i, x, "amax"), x, np.argsort(x, 1)),
        ("index_fill", lambda x, i: x.index_fill(0, i, 3), x, np.argsort(x, 1)[:, :2]),
        ("_chunk_cat", lambda x: torch._chunk_cat([x, x.reshape([7, 1])[:5]], 0, 3), x),
        ("unflatten_dense_tensors", lambda x: torch.unflatten_dense_tensors(x, [Tensor(np.ones((2, 3))), Tensor(np.ones(1))]), x),
        ("_pad_packed_sequence", lambda x: torch._pad_packed_sequence(x, Tensor(np.array([3, 2, 2])), True, 0.0, 4)[0], x),
        ("_is_all_true", lambda m: torch._is_all_true(m) | torch._is_any_true(m), mask),
        ("prim::nbytes", lambda x: x + current().apply("prim::nbytes", [x]), x),
    ):
        yield pytest.param(function, given, id=name)


@pytest.mark.parametrize(("function", "given"), list(random_calls()))
def test_vmap_of_a_program_is_the_loop(function, given):
    found = result_leaves(vmap(function)(*given))
    rows = [result_leaves(function(*[Tensor(each[place].copy()) for each in given])) for place in range(len(given[0]))]
    for out, wanted in zip(found, zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(unwrapped(out), np.stack([unwrapped(each) for each in wanted]), rtol=1e-9)


def test_dicts_hold_batched_tensors_by_identity():
    graph = irtool.from_script("""
def f(x, y):
    table: Dict[Tensor, Tensor] = {x: y}
    table[y] = x * 2
    other = dict(table)
    other.pop(x)
    found = table[x] if y in other and x not in other else x
    for value in table.values():
        found = found + value
    return found.sum() + len(table)
""").graph()
    x, y = np.ones((3, 2)), np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(np.asarray(vmap(function_of(graph))(x, y)), (2 * y + 2 * x).sum(1) + 2)


def tensor_overloads():
    """Overloads with a tensor among their operands."""
    for name in OPS:
        schema = parse_schema(OPS[name].schemas[OPS[name].names.index(name)])
        if any("Tensor" in argument.type.text for argument in schema.arguments):
            yield name


def test_nearly_everything_has_a_rule():
    names = [name for name in tensor_overloads() if "quantize" not in OPS[name].family]     # of which none has: a scale is of a whole
    missing = {name: why_no_rule(name) for name in names if rule_of(name) is None}
    assert len(missing) <= 0.05 * len(names), f"{len(missing)} of {len(names)} have no batching rule"
    assert all(missing.values()), f"no rule, and no reason: {[name for name, reason in missing.items() if not reason]}"


def test_a_rule_and_a_reason_are_not_both_stated():
    assert [name for name in OPS if rule_of(name) is not None and why_no_rule(name) is not None] == []


def test_a_module_of_rules_states_them_in_the_table_of_the_family_of_its_name():
    for path in RULES.glob("[a-z]*.py"):
        tables = {node.module for node in ast.walk(ast.parse(path.read_text()))
                  if isinstance(node, ast.ImportFrom) and any(alias.name == "table" for alias in node.names)}
        assert tables == ({f"irtool.ops.kernels.{path.stem}"} if path.stem != "batch_dim" else set())
        assert path.stem in (*FAMILIES, "batch_dim")


def test_an_overload_has_one_rule():
    def other(batch, *args):
        raise AssertionError

    assert rule_of("aten::softmax.int") is not None
    with pytest.raises(KeyError, match="aten::softmax.int has two batching rules"):
        softmax.table.batch("softmax.int")(other)
    with pytest.raises(KeyError, match="aten::cat is not in the family softmax"):
        softmax.table.batch("cat")(other)


def test_kernels_run_without_rules():
    code = """import sys, numpy, irtool
graph = irtool.parse("graph(%x : Tensor):\\n  %y : Tensor = aten::relu(%x)\\n  return (%y)\\n")
irtool.run(graph, [numpy.ones(3)])
print(any(name.startswith("irtool.ops.batching") for name in sys.modules))"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_what_has_no_rule_says_so():
    with pytest.raises(irtool.UnsupportedError, match="aten::nonzero under vmap is not supported: its sizes depend on the values"):
        vmap(lambda x: x.nonzero())(np.ones((3, 2)))


@pytest.mark.parametrize("kind", ["gather", "scatter", "scatter_add"])
@pytest.mark.parametrize("ranks", [(1, 0), (0, 0), (0, 1), (1, 1)])
def test_operands_without_dimensions_of_gather_and_scatter(kind, ranks):
    shapes = [(3, *(4, 1)[place > 0:][:rank]) for place, rank in enumerate(ranks)]
    x, index = np.arange(np.prod(shapes[0]), dtype=np.float64).reshape(shapes[0]), np.zeros(shapes[1], np.int64)
    more = () if kind == "gather" else (np.full(shapes[1], 7.0),)

    def one(x, index, *more):
        return getattr(irtool.torch, kind)(x, 0, index, *more)

    want = np.stack([np.asarray(one(*map(irtool.torch.tensor, each))) for each in zip(x, index, *more)])
    np.testing.assert_array_equal(np.asarray(irtool.vmap(one)(x, index, *more)), want)


@pytest.mark.parametrize("shape, function", [
    ((), lambda x: torch.nn.functional.pad(x, [1, -1])), ((), lambda x: torch.constant_pad_nd(x, [1, -1])),
    ((2, 4), lambda x: torch.pixel_shuffle(x, 1)), ((2, 4), lambda x: torch.pixel_unshuffle(x, 2)),
    ((3,), torch.tril), ((3,), torch.triu), ((1, 1, 1), torch.diag), ((1, 1, 1), torch.trace), ((2,), torch.fliplr), ((), torch.flipud),
    ((1, 2), torch.combinations), ((2, 2, 2), lambda x: x.H), ((), lambda x: torch.hsplit(x, 1)), ((3,), lambda x: torch.cdist(x, x))])
def test_what_an_operator_refuses_of_a_sample_it_refuses_of_a_batch(shape, function):
    """It would take the batch dimension for one of its own."""
    with pytest.raises(irtool.Error):
        function(torch.tensor(np.ones(shape)))
    with pytest.raises(irtool.Error):
        vmap(function)(np.ones((3, *shape)))


@pytest.mark.parametrize("shapes, dims", [
    (((3, 1, 2, 4), (5, 4)), (0, None)), (((3, 2, 4), (1, 5, 4)), (0, None)), (((3, 2, 2, 4), (3, 5, 4)), (0, 0))])
def test_batches_of_cdist_are_broadcast_behind_the_hidden_dimension(shapes, dims):
    x, y = (np.random.default_rng(len(shape)).uniform(size=shape) for shape in shapes)
    rows = [torch.cdist(*[torch.tensor(each if dim is None else each[place]) for each, dim in zip((x, y), dims, strict=True)])
            for place in range(LENGTH)]
    np.testing.assert_allclose(np.asarray(vmap(torch.cdist, dims)(x, y)), np.stack([np.asarray(row) for row in rows]))


def test_a_gradient_of_too_many_dimensions_is_refused():
    with pytest.raises(irtool.RunError):
        overload("aten::index_select_backward")([np.ones((1, 1, 2, 3)), [4, 3], 0, np.array([0, 1])])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_one_sample_of_nll_loss_may_have_a_target_with_a_dimension(reduction):
    def loss(x):
        return torch.nn.functional.nll_loss(x, torch.tensor([1]), reduction=reduction)

    assert loss(torch.tensor(np.ones(3))).shape == []
    assert overload("aten::nll_loss_forward")([np.ones(3), np.array([1]), None, 0, -100])[1] == 1
    np.testing.assert_array_equal(vmap(loss)(np.arange(6.0).reshape(2, 3)), [-1, -4])
    np.testing.assert_array_equal(vmap(irtool.grad(loss))(np.ones((2, 3))), [[0, -1, 0]] * 2)


@pytest.mark.parametrize("name", sorted(name for name in OPS if name.startswith("aten::") and facts_of_overload(name).is_pointwise and
                                        sum(each.type.text == "Tensor" for each in schema_named(name).arguments) > 1))
def test_batched_numbers_have_the_dtype_of_one_call(name: str) -> None:
    """A 0-d tensor of another dtype counts less in promotion, under vmap too, where it is one with a dimension on the layer below."""
    places = [place for place, each in enumerate(schema_named(name).arguments) if each.type.text == "Tensor"]
    function = getattr(irtool.torch.ops.aten, name.removeprefix("aten::").partition(".")[0])
    for small, large in itertools.product(("float16", "float32", "int32", "bool"), ("float64", "int64", "float32", "complex64")):
        for at in places:
            tensors = [Tensor(np.array(1).astype(large) if at == each else np.ones((3, 2), small)) for each in places]
            try:
                want = function(*tensors)
            except (irtool.Error, TypeError):
                continue
            if isinstance(want, Tensor):
                got = vmap(function)(*[Tensor(np.stack([each.array] * 2)) for each in tensors])
                assert got.dtype == want.dtype, (small, large, at)


def test_ranks_of_a_batch_of_matrices_without_tolerances() -> None:
    """There is no tensor beside the matrices whose dimensions count."""
    matrices = np.stack([np.eye(3), np.ones((3, 3)), np.zeros((3, 3))])
    assert vmap(torch.linalg.matrix_rank)(matrices).tolist() == [3, 1, 0]
    assert vmap(lambda m, tol: torch.linalg.matrix_rank(m, atol=tol))(matrices, np.array([2.0, 0.1, 0.1])).tolist() == [0, 1, 0]


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32", "int64"])
def test_numbers_between_bounds_of_any_dtype(dtype: str) -> None:
    """linspace and logspace of complex bounds lost the imaginary parts."""
    low = (np.arange(3) + (0.5j if dtype.startswith("c") else 0)).astype(dtype)
    high = (low * 2 + 1).astype(dtype)
    for function in (lambda x, y: torch.linspace(x, y, 4), lambda x, y: torch.logspace(x, y, 4, -2.0),
                     lambda x, y: torch.linspace(x, 2.5, 3), lambda x, y: torch.logspace(0.5, y, 3, 2.0)):
        wanted = np.stack([function(torch.tensor(low[row]), torch.tensor(high[row])).array for row in range(3)])
        found = irtool.vmap(function)(torch.tensor(low), torch.tensor(high)).array
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int64", "float16", "float64"])
@pytest.mark.parametrize("steps", [0, 1, 2, 7, 50])
def test_numbers_between_bounds_are_counted_as_without_batches(dtype: str, steps: int) -> None:
    """The bounds of whole numbers lose their fractions first: from 4.3 to 50 are 4, 4, 5, 6, not 4, 5, 6, 7."""
    low, high, to = np.array([4.3, 0.9, 2.5]), np.array([50.0, 99.8, 2.5], np.float32), getattr(torch, dtype)
    for function in (lambda x, y: torch.linspace(x, y, steps, dtype=to), lambda x, y: torch.linspace(1.7, y, steps, dtype=to),
                     lambda x, y: torch.linspace(x, 77, steps, dtype=to), lambda x, y: torch.logspace(x / 3, y / 30, steps, 2.5, dtype=to)):
        wanted = np.stack([function(torch.tensor(low[row]), torch.tensor(high[row])).array for row in range(3)])
        for found in (irtool.vmap(function)(torch.tensor(low), torch.tensor(high)), vmap(function)(low, high)):
            assert found.dtype == to
            np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("function", [
    lambda x: torch.linspace(x, 2, 3, dtype=torch.bool), lambda x: torch.linspace(x, 2, -1), lambda x: torch.logspace(x, 2, -1),
    lambda x: torch.linspace(x, 2j, 3, dtype=torch.float32), lambda x: torch.linspace(x.reshape(1), 2, 3)])
def test_numbers_between_bounds_are_refused_as_without_batches(function) -> None:
    with pytest.raises(irtool.RunError) as alone:
        function(torch.tensor(1.0))
    with pytest.raises(irtool.RunError) as batched:
        irtool.vmap(function)(torch.tensor([1.0, 2.0]))
    assert str(alone.value) in str(batched.value)


@pytest.mark.parametrize(("numbers", "minlength", "expected"), [
    ([[0, 1], [1, 1]], 4, [[1, 1, 0, 0], [0, 2, 0, 0]]), ([[0, 1], [1, 1]], 0, [[1, 1], [0, 2]]),
    ([[0, 2], [2, 1]], 1, [[1, 0, 1], [0, 1, 1]]), ([[], []], 3, [[0, 0, 0], [0, 0, 0]])])
def test_bincount_of_each_place(numbers, minlength, expected):
    x = np.array(numbers, np.int64)
    count = vmap(lambda each: torch.bincount(each, minlength=minlength))
    for found in (count(x), vmap(count)(x[None])[0], vmap(lambda each: torch.bincount(each, minlength=minlength), in_dims=1)(x.T),
                  irtool.jit(count)(x), count(x.astype(np.int32))):
        assert found.dtype == torch.int64
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_bincount_with_weights_and_what_it_refuses():
    x, weights = np.array([[0, 1], [2, 2]]), np.array([[1.0, 2.0], [3.0, 4.0]])

    def count(x, weights):
        return torch.bincount(x, weights, 3)
    np.testing.assert_array_equal(np.asarray(vmap(count)(x, weights)), [[1, 2, 0], [0, 0, 7]])
    np.testing.assert_array_equal(np.asarray(vmap(count, in_dims=(None, 0))(x[0], weights)), [[1, 2, 0], [3, 4, 0]])
    assert vmap(count)(x, weights.astype(np.float32)).dtype == torch.float32 and vmap(count)(x, x).dtype == torch.float64
    assert not np.asarray(irtool.grad(lambda w: vmap(count)(irtool.Tensor(x), w).sum())(weights)).any()
    compiled = irtool.jit(vmap(lambda each: torch.bincount(each, minlength=3)))
    for numbers, expected in ((x, [[1, 1, 0], [0, 0, 2]]), (x[::-1], [[0, 0, 2], [1, 1, 0]])):
        np.testing.assert_array_equal(np.asarray(compiled(numbers)), expected)
    for wrong, words in ((x - 1, "only supports 1-d non-negative"), (x * 2, "stack expects each tensor to be equal size, but got .3, 5."),
                         (x * 1.0, "not implemented for 'Double'")):
        for function in (compiled, vmap(lambda each: torch.bincount(each, minlength=3))):
            with pytest.raises(irtool.Error, match=words):
                function(wrong)
