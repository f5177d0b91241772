"""Convolutions in C, and their gradients, give what the operators give, whatever their sizes; the same bits for any number of threads."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute.native import convolution_calls
from irtool.execute.native.building import compiler
from irtool.execute.native.convolution_calls import Convolution, Geometry
from irtool.execute.plan.compiled import Plan
from irtool.execute.plan.memory import every
from irtool.execute.plan.program import Call
from irtool.ops.kernels import conv

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")


class Case:
    """A convolution with sizes drawn from a seed."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.rank = rank = draw.choice([1, 2, 2, 2, 3])
        self.transposed = draw.random() < 0.3
        self.groups = draw.choice([1, 1, 2, 3, 5])
        depthwise = self.groups > 1 and draw.random() < 0.5
        self.channels = self.groups * (1 if depthwise else draw.randint(1, 9))
        self.outs = self.groups * (draw.randint(1, 2) if depthwise else draw.choice([1, 2, 5, 8, 13, 19]))
        self.kernel = [draw.randint(1, 4) for _ in range(rank)]
        self.stride = [draw.choice([1, 1, 2, 3]) for _ in range(rank)]
        self.dilation = [draw.choice([1, 1, 2]) for _ in range(rank)]
        self.padding = [draw.randint(0, d * (k - 1) + draw.randint(0, 1)) for d, k in zip(self.dilation, self.kernel, strict=True)]
        reach = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True)]
        self.extents = [max(r - 2 * p, p + 1, 1) + draw.randint(0, 90 if rank == 1 else 23 // rank)
                        for r, p in zip(reach, self.padding, strict=True)]
        if draw.random() < 0.15:        # the kernel covers the whole input
            self.groups, self.padding = 1, [0] * rank
            self.dilation, self.extents = [1] * rank, self.kernel if not self.transposed else [1] * rank
        self.more = [draw.randrange(max(s, d)) if self.transposed else 0 for s, d in zip(self.stride, self.dilation, strict=True)]
        self.samples = draw.choice([0, 1, 1, 2, 3])      # 0: no dimension for samples
        self.has_bias = draw.random() < 0.5
        self.dtype = draw.choice(["float32", "float32", "float64"])
        self.strided = draw.random() < 0.3
        self.generator = np.random.default_rng(seed)

    def text(self) -> str:
        """The graph: x, w and perhaps b to y."""
        lists = {"s": self.stride, "p": self.padding, "d": self.dilation, "o": self.more}
        return "\n".join([
            f"graph(%x : Tensor, %w : Tensor{', %b : Tensor' * self.has_bias}):",
            *["  %b : NoneType = prim::Constant()"] * (not self.has_bias), f"  %t : bool = prim::Constant[value={int(self.transposed)}]()",
            f"  %g : int = prim::Constant[value={self.groups}]()",
            *[f"  %{name} : int[] = prim::Constant[value=[{', '.join(map(str, values))}]]()" for name, values in lists.items()],
            "  %y : Tensor = aten::convolution(%x, %w, %b, %s, %p, %d, %t, %o, %g)", "  return (%y)", ""])

    def values(self) -> list[Any]:
        """x, w and perhaps b; x may lie channels last."""
        outs, channels = (self.channels, self.outs) if self.transposed else (self.outs, self.channels)
        sizes = [(*[self.samples] * (self.samples > 0), self.channels, *self.extents), (outs, channels // self.groups, *self.kernel),
                 *[(self.outs,)] * self.has_bias]
        x, *others = [self.generator.standard_normal(size).astype(self.dtype) for size in sizes]
        axis = x.ndim - self.rank - 1
        return [np.moveaxis(np.ascontiguousarray(np.moveaxis(x, axis, -1)), -1, axis) if self.strided else x, *others]


def near(result: Any, wanted: Any) -> None:
    """Asserts equality within the rounding of sums."""
    tolerance = 1e-4 if wanted.dtype == np.float32 else 1e-11
    np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance * max(1.0, np.abs(wanted).max(initial=0)))
    assert result.dtype == wanted.dtype


def in_c(plan: Plan) -> int:
    """How many calls of a plan are convolutions in C."""
    assert plan.latest is not None and plan.latest.program is not None
    return sum(isinstance(each, Call) and isinstance(each.function, Convolution) for each in every(plan.latest.program.body))


@pytest.mark.parametrize("seed", range(60))
def test_drawn_convolutions_and_their_gradients(seed: int) -> None:
    case = Case(seed)
    graph, values = irtool.parse(case.text()).graph(), case.values()
    (wanted,) = irtool.run(graph, values, interpret=True)
    cotangent = case.generator.standard_normal(wanted.shape).astype(case.dtype)
    wrt = range(len(values))
    gradients = irtool.vjp(graph, values, [cotangent], wrt, interpret=True)
    executor, plain = irtool.compile(graph, native=True), irtool.compile(graph, native=False)
    for _ in range(3):
        (result,), (without,) = executor.run(values), plain.run(values)
        near(result, wanted)
        assert result.flags.c_contiguous and without.tobytes() == wanted.tobytes()
        for one, each in zip(executor.vjp(values, [cotangent], wrt), gradients, strict=True):
            near(one, each)


@pytest.mark.parametrize("use", ["forward", "transposed", "weight"])
@pytest.mark.parametrize("groups", [1, 6])
def test_any_number_of_threads_gives_the_same_bits(use: str, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_calls, "WORTH_THREADS", 0)
    monkeypatch.setattr(Geometry, "is_worth_transforming", lambda self, is_frozen: is_frozen)
    single = (2, 1), (1, 1), (1, 1), groups
    geometry = (2, 1), (1, 1), (1, 1), (1, 1), groups
    at = Geometry(2, groups, 12 // groups, 18 // groups, (1, 20, 21), (1, 10, 21), (1, 3, 3), (1, 2, 1), (1, 1, 1), (0, 1, 1))
    generator = np.random.default_rng(0)
    x, y, w = [generator.standard_normal(size).astype("float32") for size in [(2, 12, 20, 21), (2, 18, 10, 21), (18, 12 // groups, 3, 3)]]
    operands, shape = {"forward": ((x, w), y.shape), "transposed": ((y, w), x.shape), "weight": ((x, y), w.shape)}[use]
    results = [Convolution(use, at, shape, "float32", False, threads)(*operands) for threads in (1, 2, 3, 5) for _ in range(2)]
    assert len({each.tobytes() for each in results}) == 1
    if use == "forward":
        at = at._replace(counts=(1, 20, 21), stride=(1, 1, 1))
        made = [Convolution(use, at, (2, 18, 20, 21), "float32", False, threads).frozen(w) for threads in (1, 2, 3, 5)]
        assert {each.use for each, _ in made} == {"winograd"}
        assert len({each(x, weight).tobytes() for each, weight in made for _ in range(2)}) == 1
    kernel = {"forward": lambda: conv.forward(np, x, w, *geometry), "transposed": lambda: conv.input_gradient(np, y, w, (20, 21), *single),
              "weight": lambda: conv._weight_gradient(np, y, x, (3, 3), *single)}[use]
    near(results[0], kernel())


@pytest.mark.parametrize("seed", range(40))
def test_samples_of_a_transposed_convolution_are_what_each_is_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several small images are multiplied together; the sums of each are added in the order in which they would be alone."""
    monkeypatch.setattr(convolution_calls, "WORTH_TURNING", 1 << 60)
    monkeypatch.setattr(convolution_calls, "WORTH_THREADS", 0)
    draw = random.Random(seed)
    kernel, stride, extents = ((1, *[draw.randint(1, most) for _ in range(2)]) for most in (4, 3, 7))
    padding = (0, *[draw.randint(0, each - 1) for each in kernel[1:]])
    counts = tuple([(n - 1) * s - 2 * p + k for n, s, p, k in zip(extents, stride, padding, kernel, strict=True)])
    groups, channels, outs, samples = draw.choice([1, 1, 3]), draw.randint(1, 20), draw.randint(1, 9), draw.randint(2, 19)
    if min(counts) < 1 or extents[1] * extents[2] < convolution_calls.FEWEST:
        return
    dtype = draw.choice(["float32", "float64"])
    generator = np.random.default_rng(seed)
    x, w = (generator.standard_normal(size).astype(dtype)
            for size in ((samples, groups * channels, *extents), (groups * channels, outs, *kernel)))
    at = Geometry(samples, groups, outs, channels, counts, extents, kernel, stride, (1, 1, 1), padding)
    together, *others = [Convolution("transposed", at._replace(samples=count), (count, groups * outs, *counts), dtype, False, threads)
                         for count, threads in ((samples, 1), (samples, 3), (1, 1))]
    result = together(x, w)
    assert np.array_equal(others[0](x, w), result)
    assert np.array_equal(np.concatenate([others[1](each[None], w) for each in x]), result)
    apart = [w[g * channels:(g + 1) * channels] for g in range(groups)]
    wanted = np.zeros((samples, groups * outs, *[c + 2 * p for c, p in zip(counts, padding, strict=True)]), "float64")
    for place in np.ndindex(*extents):
        for g, some in enumerate(apart):
            piece = np.einsum("nc,cohij->nohij", x[:, g * channels:(g + 1) * channels][(..., *place)], some)
            window = tuple([slice(i * s, i * s + k) for i, s, k in zip(place, stride, kernel, strict=True)])
            wanted[(slice(None), slice(g * outs, (g + 1) * outs), *window)] += piece
    inner = tuple([slice(p, p + c) for p, c in zip(padding, counts, strict=True)])
    near(result, wanted[(slice(None), slice(None), *inner)].astype(dtype))


@pytest.mark.parametrize("seed", range(30))
def test_drawn_convolutions_by_winograds_algorithm(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Geometry, "is_worth_transforming", lambda self, is_frozen: True)
    case, draw = Case(seed), random.Random(seed)
    case.rank, case.kernel, case.stride, case.dilation, case.transposed = 2, [3, 3], [1, 1], [1, 1], False
    case.padding, case.more = [draw.randint(0, 3), draw.randint(0, 3)], [0, 0]
    case.extents = [draw.randint(max(3 - 2 * p, 1), draw.choice([8, 40])) for p in case.padding]
    case.samples = draw.choice([1, 2, 5])
    graph, (x, w, *rest) = irtool.parse(case.text()).graph(), case.values()
    (wanted,) = irtool.run(graph, [x, w, *rest], interpret=True)
    executor = irtool.compile(graph, native=True)
    finished = irtool.parse(case.text().replace("  return (%y)", BEHIND["relu"] + "  return (%z)")).graph()
    frozen = Plan(irtool.freeze(finished, {1: w}), native=True)
    cotangent = case.generator.standard_normal(wanted.shape).astype(case.dtype)
    (gradient,) = irtool.vjp(graph, [x, w, *rest], [cotangent], [0], interpret=True)
    for _ in range(3):
        near(frozen([x, *rest])[0], np.maximum(wanted, 0))
        near(executor.vjp([x, w, *rest], [cotangent], [0])[0], gradient)
    assert frozen.latest is not None and frozen.latest.program is not None
    calls = [each for each in every(frozen.latest.program.body) if isinstance(each, Call) and isinstance(each.function, Convolution)]
    assert [each.function.use for each in calls] == ["winograd"] * int(np.prod(wanted.shape[-2:]) >= convolution_calls.FEWEST)


def test_bounds_keep_nans_and_infinities() -> None:
    at = Geometry(1, 1, 2, 3, (1, 1, 64), (1, 1, 64), (1, 1, 1), (1, 1, 1), (1, 1, 1), (0, 0, 0))
    x = np.zeros((1, 2, 64), "f")
    x[0, 0, :5] = np.nan, np.inf, -np.inf, 9, -9
    convolution = Convolution("forward", at, (1, 3, 64), np.dtype("f"), False, 1).bounded(0.0, 6.0)
    assert convolution is not None
    result = convolution(x, np.ones((3, 2, 1), "f"))
    for row in result[0]:
        np.testing.assert_array_equal(row[:6], np.array([np.nan, 6, 0, 6, 0, 0], "f"))


@pytest.mark.parametrize("seed", range(24))
def test_drawn_depthwise_convolutions_of_images(seed: int) -> None:
    case, draw = Case(seed), random.Random(seed)
    case.rank, case.transposed, case.groups, case.more = 2, False, 3, [0, 0]
    case.channels, case.outs, case.samples = 3, 3 * draw.randint(1, 2), draw.choice([1, 2])
    case.kernel = [draw.choice([2, 3, 3, 5, 7]), draw.choice([1, 3, 5, 7])]
    case.stride, case.dilation = [draw.choice([1, 1, 2, 3]), draw.choice([1, 1, 2, 3])], [draw.choice([1, 1, 2]), 1]
    case.padding = [draw.randint(0, 3), draw.randint(0, 3)]
    case.extents = [draw.randint(14, 120), draw.randint(14, 90)]
    graph, values = irtool.parse(case.text()).graph(), case.values()
    (wanted,) = irtool.run(graph, values, interpret=True)
    cotangent, wrt = case.generator.standard_normal(wanted.shape).astype(case.dtype), range(len(values))
    gradients = irtool.vjp(graph, values, [cotangent], wrt, interpret=True)
    executor = irtool.compile(graph, native=True)
    for _ in range(2):
        near(executor.run(values)[0], wanted)
        for one, each in zip(executor.vjp(values, [cotangent], wrt), gradients, strict=True):
            near(one, each)


@pytest.mark.parametrize("channels", [8, 64, 512])
def test_convolutions_round_like_products_of_blas(channels: int) -> None:
    at = Geometry(1, 1, channels, 16, (1, 24, 24), (1, 24, 24), (1, 3, 3), (1, 1, 1), (1, 1, 1), (0, 1, 1))
    generator, shape = np.random.default_rng(0), (1, 16, 24, 24)
    x, w = [generator.standard_normal(size).astype("f") for size in ((1, channels, 24, 24), (16, channels, 3, 3))]
    exact = Convolution("forward", at, shape, np.dtype("float64"), False, 1)(x.astype(float), w.astype(float))
    around = np.pad(x[0], ((0, 0), (1, 1), (1, 1)))
    columns = np.stack([around[:, i:i + 24, j:j + 24] for i in range(3) for j in range(3)], 1).reshape(channels * 9, -1)
    by_blas = np.abs((w.reshape(16, -1) @ columns).reshape(shape) - exact).mean()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Geometry, "is_worth_transforming", lambda self, is_frozen: is_frozen)
        direct = Convolution("forward", at, shape, np.dtype("float32"), False, 1)
        by_tiles, weight = direct.frozen(w)
    assert (direct.use, by_tiles.use) == ("forward", "winograd")
    assert np.abs(direct(x, w) - exact).mean() < 1.5 * by_blas
    assert np.abs(by_tiles(x, weight) - exact).mean() < 3 * by_blas


def test_transformed_filters_are_kept_where_they_are_not_far_larger_than_the_images() -> None:
    def use(channels: int, size: int) -> str:
        sizes = (1, size, size)
        at = Geometry(1, 1, channels, channels, sizes, sizes, (1, 3, 3), (1, 1, 1), (1, 1, 1), (0, 1, 1))
        weight = np.zeros((channels, channels, 3, 3), "f")
        return Convolution("forward", at, (1, channels, size, size), weight.dtype, False, 1).frozen(weight)[0].use
    assert [use(64, 56), use(128, 28), use(512, 28), use(256, 14)] == ["winograd", "winograd", "winograd", "forward"]


def test_what_a_weight_was_is_not_remembered() -> None:
    case = Case(1)
    executor, (x, w, *rest) = irtool.compile(irtool.parse(case.text()).graph(), native=True), case.values()
    for _ in range(5):
        w *= -1.5
        near(executor.run([x, w, *rest])[0], irtool.run(irtool.parse(case.text()).graph(), [x, w, *rest], interpret=True)[0])


@pytest.mark.parametrize("kind", ["conv2d", "conv_transpose2d", "_convolution"])
def test_large_convolutions_run_in_c_and_small_ones_do_not(kind: str) -> None:
    rest = {"conv2d": "%l, %z, %l, %one", "conv_transpose2d": "%l, %z, %z, %one, %l",
            "_convolution": "%l, %z, %l, %no, %z, %one, %no, %no, %no, %no"}[kind]
    text = ("graph(%x : Tensor, %w : Tensor, %b : Tensor):\n  %one : int = prim::Constant[value=1]()\n"
            "  %no : bool = prim::Constant[value=0]()\n  %l : int[] = prim::Constant[value=[1, 1]]()\n"
            f"  %z : int[] = prim::Constant[value=[0]]()\n  %y : Tensor = aten::{kind}(%x, %w, %b, {rest})\n  return (%y)\n")
    graph = irtool.parse(text).graph()
    for channels, size, expected in ((4, 4, 0), (16, 24, 1)):
        values = [np.ones((1, channels, size, size), "f"), np.ones((channels, channels, 3, 3), "f"), np.ones(channels, "f")]
        for native, count in ((None, expected), (False, 0), (True, 1)):
            plan = Plan(graph, native=native)
            for _ in range(3):
                near(plan(values)[0], irtool.run(graph, values, interpret=True)[0])
                assert in_c(plan) == count


def test_wrong_sizes_are_the_errors_of_the_operator() -> None:
    graph = irtool.parse(Case(0).text()).graph()
    with pytest.raises(irtool.Error, match="at least three dimensions"):
        irtool.compile(graph, native=True).run([np.ones((2, 3), "f")] * len(graph.inputs))


@pytest.mark.parametrize("seed", range(30))
def test_drawn_pools(seed: int) -> None:
    draw = random.Random(seed)
    kind, rank = draw.choice(["max", "avg"]), draw.choice([1, 2, 2, 2, 3])
    kernel, stride = [[draw.randint(1, most) for _ in range(rank)] for most in (4, 3)]
    lists = {"k": kernel, "s": stride, "p": [draw.randint(0, k // 2) for k in kernel], "d": [draw.choice([1, 1, 2]) for _ in kernel]}
    rest = "%d, %ceil" if kind == "max" else "%ceil, %counted" + ", %none" * (rank > 1)
    text = "\n".join([
        "graph(%x : Tensor):", *[f"  %{name} : int[] = prim::Constant[value={values}]()" for name, values in lists.items()],
        *[f"  %{name} : bool = prim::Constant[value={draw.randint(0, 1)}]()" for name in ("ceil", "counted")],
        f"  %none : NoneType = prim::Constant()\n  %y : Tensor = aten::{kind}_pool{rank}d(%x, %k, %s, %p, {rest})",
        "  %z : Tensor = aten::relu(%y)\n  return (%z)\n"])
    x = np.random.default_rng(seed).standard_normal((2, 3, *[draw.randint(2 * k, (90, 60, 12)[rank - 1]) for k in kernel]))
    x = x.astype(draw.choice(["float32", "float64"]))
    if draw.random() < 0.3:
        x.reshape(-1)[::7] = draw.choice([np.nan, -np.inf])
    graph = irtool.parse(text).graph()
    (wanted,) = irtool.run(graph, [x], interpret=True)
    plan = Plan(graph, native=True)
    for _ in range(3):
        (result,) = plan([x])
        if kind == "max":
            np.testing.assert_array_equal(result, wanted)
            assert in_c(plan) == 1 or np.prod(wanted.shape[2:]) < 4
        else:
            np.testing.assert_allclose(result, wanted, 1e-5, 1e-6)


BEHIND = {
    "relu": "  %z : Tensor = aten::relu(%y)\n",
    "residual": "  %q : Tensor = aten::add(%y, %r, %one)\n  %z : Tensor = aten::relu(%q)\n",
    "channel": "  %m : Tensor = aten::mul(%c, %y)\n  %q : Tensor = aten::add(%m, %c, %one)\n  %z : Tensor = aten::sigmoid(%q)\n",
    "twice": "  %q : Tensor = aten::tanh(%y)\n  %z : Tensor = aten::add(%q, %y, %one)\n",
    "row": "  %q : Tensor = aten::mul(%y, %u)\n  %z : Tensor = aten::relu(%q)\n",
    "clamp": "  %z : Tensor = aten::hardtanh(%y, %low, %high)\n",
    "self": "  %q : Tensor = aten::mul(%y, %y)\n  %z : Tensor = aten::sub(%q, %n, %one)\n",
}
"""What follows a convolution, by name."""


@pytest.mark.parametrize("name", BEHIND)
@pytest.mark.parametrize("seed", range(0, 60, 7))
def test_what_follows_runs_part_by_part(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(seed)
    monkeypatch.setattr(convolution_calls, "WORTH_THREADS", 0)
    monkeypatch.setattr(Geometry, "is_worth_transforming", lambda self, is_frozen: is_frozen)
    x, w, *bias = case.values()
    if not case.samples:
        x = x[None]
    text = case.text().replace("graph(", "graph(%r : Tensor, %c : Tensor, %u : Tensor, %n : Tensor, ")
    text = text.replace("  return (%y)", "  %one : int = prim::Constant[value=1]()\n  %low : float = prim::Constant[value=-0.5]()\n"
                        "  %high : float = prim::Constant[value=0.75]()\n" + BEHIND[name] + "  return (%z)")
    shape = irtool.run(irtool.parse(case.text()).graph(), [x, w, *bias], interpret=True)[0].shape
    r, c, u, s = [case.generator.standard_normal(size).astype(case.dtype) for size in (
        shape, (shape[1], *[1] * case.rank), (*[1] * (len(shape) - 1), shape[-1]), ())]
    values = [np.asfortranarray(r) if case.strided else r, c, u, s, x, w, *bias]
    graph = irtool.parse(text).graph()
    (wanted,) = irtool.run(graph, values, interpret=True)
    for threads in (1, 3):
        plan = Plan(graph, native=True, threads=threads)
        for _ in range(3):
            near(plan(values)[0], wanted)
        calls = [each for each in every(plan.latest.program.body) if isinstance(each, Call) and isinstance(each.function, Convolution)]
        if name in ("relu", "channel", "clamp") and calls:
            assert len(calls) == 1 and sum(isinstance(each, Call) for each in every(plan.latest.program.body)) == 1


@pytest.mark.parametrize("sizes", [(1, 2, 3, 40, 41, 3, 1), (2, 17, 20, 30, 31, 3, 1), (3, 9, 70, 33, 12, 2, 2), (40, 3, 5, 5, 6, 3, 1),
                                   (2, 8, 130, 40, 25, 1, 1), (2, 3, 16, 61, 3, 3, 2)], ids=str)
def test_gradients_for_weights_over_several_blocks(sizes: tuple[int, ...]) -> None:
    samples, channels, outs, tall, wide, kernel, stride = sizes
    counts = [(extent + 2 - kernel) // stride + 1 for extent in (tall, wide)]
    generator = np.random.default_rng(0)
    x, y = [generator.standard_normal(each) for each in [(samples, channels, tall, wide), (samples, outs, *counts)]]
    at = Geometry(samples, 1, channels, outs, (1, tall, wide), (1, *counts), (1, kernel, kernel), (1, stride, stride), (1, 1, 1), (0, 1, 1))
    wanted = conv._weight_gradient(np, y, x, (kernel, kernel), (stride, stride), (1, 1), (1, 1), 1)
    for dtype in ("float32", "float64"):
        near(Convolution("weight", at, wanted.shape, dtype, False, 1)(x.astype(dtype), y.astype(dtype)), wanted.astype(dtype))
