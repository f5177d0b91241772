"""Is the gradient formula of an operator right? One call of it is tried in every way it can be used.

    problems = check_formula("aten::mul.Tensor", call(real(2, 3), real(3)))     # [] when all is well

- the gradient is the slope of the results (order 1), and the gradient of the gradient is the slope of the gradient (order 2): central
  differences in double precision, along a random direction of all inputs at once;
- for every subset of the inputs, the gradients are those among the gradients for all, at both orders;
- for every subset of the gradients that come in, the graph specialised to it, the graph that decides when it runs, and zeros handed in
  for the missing ones agree;
- types that are complete change nothing, nor does it that operands are computed in the graph rather than handed in;
- the compiled formula gives the same bits as the formula run as Python.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

from irtool.autodiff.formula_graphs import Formula, compiled
from irtool.execute.graph_gradients import Differentiated, fitted
from irtool.execute.output_cotangents import as_seed
from irtool.execute.pairs import with_zeros
from irtool.interpret import run
from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.dialect import LATEST
from irtool.ir.edits import clone_graph
from irtool.ir.errors import Error
from irtool.ir.graph import Graph, Value
from irtool.ir.schema import Schema, parse_schema, schema_of
from irtool.ir.types import ListType, OptionalType, Type, spell, tensor_type
from irtool.ops import OPS
from irtool.ops.array_library import np
from irtool.ops.arrays import seeded
from irtool.ops.formula import formula_of, run_formula
from irtool.passes import BY_NAME
from irtool.passes.specialize_undef import Specializer
from irtool.testing.derivatives import derivative
from irtool.testing.finite_differences import drawn, flattened, floating, inner, shifted, sizes

if TYPE_CHECKING:
    from irtool.ops.samples.draw import Call

T = TypeVar("T")
STEP = 2e-4
RTOL = 2e-6
CLOSE = 1e-9
"""The allowed difference between two ways to compute the same, relative to the largest number."""
FEW, MANY = 3, 7
"""Of up to FEW things all subsets are tried; of up to MANY, each one and each two; of more, each one and each two neighbours."""


def check_formula(name: str, sample: Call, order: int = 2, seed: int = 0, pairs: bool = True) -> list[str]:
    """What is wrong with the gradient formula of the overload `name` on a sample call; empty if nothing is.

    pairs: at order 2, also try each two of the inputs and of the results, beside each one and all. On a sample that is rough, only the two
    forms of the formula are compared. Raises the errors of the operator.
    """
    return Trial(name, sample, seed).problems(order, pairs)


def subsets(items: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """The proper subsets to try, beside the whole."""
    if len(items) > MANY:
        yield from zip(items, strict=True)
        yield from zip(items, items[1:], strict=False)
        return
    for count in range(1, len(items) if len(items) <= FEW else FEW):
        yield from combinations(items, count)


class Trial:
    """One operator on some arguments."""

    def __init__(self, name: str, sample: Call, seed: int = 0) -> None:
        op = OPS[name]
        text = next(text for text, candidate in zip(op.schemas, op.names, strict=True) if candidate == name)
        self.name = name
        self.sample = sample
        self.schema = parse_schema(text)
        self.args = sample.arguments(text)
        self.seed = seed
        self.random = np.random.default_rng(seed)
        function = formula_of(name)
        assert function is not None
        self.formula: Formula = compiled(function, name)
        self.taken = len(self.formula.backward.inputs) - 1
        """The number of results that have a gradient: the first ones."""
        self.graph, self.inputs, tensors = call_graph(self.schema, self.args)
        arguments = [tensors[place] for place in sample.places(text)]
        self.wrt = [i for each in arguments for i in each]
        self.draws = {tensors[place][0]: draw for place, draw in sample.draws(text).items()}
        units = [(i,) for i in self.wrt] if len(self.wrt) <= FEW else [tuple(each) for each in arguments]
        self.parts = [tuple(i for unit in some for i in unit) for some in subsets(units)]
        """Subsets of the inputs; the tensors of a list are kept together if there are more than a few."""
        self.single = units if len(units) > 1 else []
        self.outputs = run(self.graph, self.inputs, seed=seed)
        leaves = [drawn(leaf, self.random) if sample.results is None or place in sample.results else None
                  for place, output in enumerate(self.outputs[:self.taken]) for leaf in flattened(output)]
        self.cotangents = leaves + [None] * (sum(len(flattened(output)) for output in self.outputs) - len(leaves))
        self.failures: list[str] = []

    def problems(self, order: int, pairs: bool = True) -> list[str]:
        """Try everything."""
        chosen = schema_of(next(node for node in self.graph.block if node.kind == self.schema.kind))
        if chosen is not None and chosen.name != self.name and formula_of(chosen.name) is not formula_of(self.name):
            return [f"a node with these operands is {chosen.name}"]
        self.attempt("compiled and eager", self.same_bits)
        if self.sample.why_rough:
            return self.failures
        self.attempt("order 1", self.first)
        if order > 1 and not self.failures:
            self.attempt("order 2", lambda: self.second(pairs))
        return self.failures

    def attempt(self, what: str, check: Any) -> None:
        """Run a check; an exception counts as a problem."""
        try:
            self.failures += [f"{what}: {problem}" for problem in check()]
        except Error as error:
            self.failures.append(f"{what}: {error.message}")

    # -- order 1
    def first(self) -> Iterator[str]:
        """Check the gradients against differences; parts of the inputs; parts of the incoming gradients."""
        whole = Differentiated(self.graph, self.wrt)
        gradients = whole.gradients(self.inputs, self.cotangents, self.seed)
        yield from self.against_slope(self.graph, self.inputs, self.wrt, self.cotangents, gradients)
        for some in self.parts:
            got = Differentiated(self.graph, some).gradients(self.inputs, self.cotangents, self.seed)
            yield from unequal(f"for inputs {list(some)} alone", got, [gradients[self.wrt.index(i)] for i in some])
        typed = Differentiated(with_types(self.graph, self.inputs, self.outputs), self.wrt)
        yield from unequal("with complete types", typed.gradients(self.inputs, self.cotangents, self.seed), gradients)
        computed = Differentiated(behind_others(self.graph, self.wrt), self.wrt)
        yield from unequal("behind other operators", computed.gradients(self.inputs, self.cotangents, self.seed), gradients)
        places = [i for i, each in enumerate(self.cotangents) if each is not None]
        for present in subsets(places):
            for form in (whole, typed):
                yield from self.undefined(form, [each if i in present else None for i, each in enumerate(self.cotangents)], list(present))

    def undefined(self, whole: Differentiated, cotangents: list[Any], present: list[int]) -> Iterator[str]:
        """Check missing gradients: detected at run time, known beforehand, given as zeros."""
        late = whole.gradients(self.inputs, cotangents, self.seed)
        zeros = [np.zeros_like(full) if each is None and full is not None else each
                 for each, full in zip(cotangents, self.cotangents, strict=True)]
        yield from unequal(f"gradients of results {present} alone, and zeros for the others",
                           late, whole.gradients(self.inputs, zeros, self.seed))
        known = specialized(whole, self.inputs, cotangents, self.seed)
        yield from unequal(f"gradients of results {present} alone, specialised and not", known, late, exact=True)

    # -- order 2
    def second(self, pairs: bool) -> Iterator[str]:
        """Check the graph of gradients, which takes the inputs and a gradient of each result, in the same way."""
        leaves = [drawn(output, self.random) if self.sample.results is None or i in self.sample.results else None
                  for i, output in enumerate(self.outputs)]
        without = [i for i, each in enumerate(leaves) if each is None]
        gradient_graph, results = derivative(self.graph, self.wrt, without)
        values = [*self.inputs, *[leaves[i] for i in results]]
        wrt = [*self.wrt, *range(len(self.inputs), len(values))]
        outputs = run(gradient_graph, values, seed=self.seed)
        if all(output is None for output in outputs):
            return      # the formula gives no gradient for these operands
        shapes = [self.inputs[i] for i in self.wrt] if len(outputs) == len(self.wrt) else outputs     # a real input has a real gradient
        cotangents = [drawn(each, self.random) if output is not None else None for each, output in zip(shapes, outputs, strict=True)]
        whole = Differentiated(gradient_graph, wrt)
        gradients = whole.gradients(values, cotangents, self.seed)
        yield from self.against_slope(gradient_graph, values, wrt, cotangents, gradients)
        typed, _ = derivative(with_types(self.graph, self.inputs, self.outputs), self.wrt, without)
        yield from unequal("with complete types", Differentiated(typed, wrt).gradients(values, cotangents, self.seed), gradients)
        for some in subsets(results) if pairs else ((i,) for i in results if len(results) > 1):
            part, _ = derivative(self.graph, self.wrt, [i for i in range(len(leaves)) if i not in some])
            remaining = [i for i in range(len(values)) if i < len(self.inputs) or results[i - len(self.inputs)] in some]
            zeroed = [value if i in remaining else shifted(value, value, -1.0) for i, value in enumerate(values)]
            if len(part.outputs) == len(gradient_graph.outputs):
                want = whole.gradients(zeroed, cotangents, self.seed)
                differentiated = Differentiated(part, [i for i in range(len(remaining)) if remaining[i] in wrt])
                got = differentiated.gradients([values[i] for i in remaining], cotangents)
                yield from unequal(f"gradients of results {list(some)} alone", got, [want[wrt.index(i)] for i in remaining if i in wrt])
        for some in (self.parts if pairs else self.single) if len(outputs) == len(self.wrt) else ():
            part, _ = derivative(self.graph, some, without)
            some_wrt = [*some, *wrt[len(self.wrt):]]
            some_cotangents = [each for i, each in zip(self.wrt, cotangents, strict=True) if i in some]
            got = Differentiated(part, some_wrt).gradients(values, some_cotangents, self.seed)
            zeroed = [each if i in some else None for i, each in zip(self.wrt, cotangents, strict=True)]
            want = whole.gradients(values, zeroed, self.seed)
            yield from unequal(f"for inputs {list(some)} alone", got, [want[wrt.index(i)] for i in some_wrt])

    def against_slope(self, graph: Graph, inputs: list[Any], wrt: Sequence[int], cotangents: list[Any],
                      gradients: list[Any]) -> Iterator[str]:
        """Compare with the slope along one random direction of all inputs; when they differ, input by input."""
        directions = {i: self.direction(i, inputs[i]) for i in wrt}
        problem = self.off(graph, inputs, directions, cotangents, dict(zip(wrt, gradients, strict=True)))
        if problem is None:
            return
        yield problem
        for i in wrt if len(wrt) > 1 else ():
            problem = self.off(graph, inputs, {i: directions[i]}, cotangents, dict(zip(wrt, gradients, strict=True)))
            if problem is not None:
                yield f"input {i}: {problem}"

    def direction(self, i: int, value: Any) -> Any:
        """A random direction in which an input is moved; None for an input that is not moved."""
        random_direction = drawn(value, self.random)
        return self.draws[i].direction(value, random_direction) if i in self.draws else random_direction

    def off(self, graph: Graph, inputs: list[Any], directions: dict[int, Any], cotangents: list[Any],
            gradients: dict[int, Any]) -> str | None:
        """How the gradient differs from the slope; empty if it does not."""
        size = max((float(np.max(np.abs(leaf), initial=0.0)) for i in directions for leaf in floating(inputs[i])), default=1.0)
        step = STEP * max(1.0, size)
        total = 0.0

        def along(t: float) -> float:
            nonlocal total
            moved = [shifted(value, directions.get(i), t * step) for i, value in enumerate(inputs)]
            pairs = list(zip([leaf for out in run(graph, moved, seed=self.seed) for leaf in flattened(out)], cotangents, strict=True))
            total = sum(sizes(leaf, each) for leaf, each in pairs if each is not None and leaf is not None)
            return sum(inner(each, leaf) for leaf, each in pairs)

        coarse, fine = (along(1.0) - along(-1.0)) / (2 * step), (along(0.5) - along(-0.5)) / step
        slope = (4 * fine - coarse) / 3
        gradient = sum(inner(gradients[i], directions[i]) for i in directions)
        noise = 64 * float(np.finfo(np.float64).eps) * max(total, 1.0) / step
        if abs(gradient - slope) <= RTOL * max(1.0, abs(slope), abs(gradient)) + noise + abs(fine - coarse):
            return None
        return f"{gradient:.8g} by the gradient, {slope:.8g} by differences"

    # -- compiled and eager
    def same_bits(self) -> Iterator[str]:
        """Compare the formula as two graphs with the formula as Python."""
        forward, backward = self.formula.split()
        *results, context = run(forward, self.args, seed=self.seed)[0]
        with seeded(self.seed):
            outputs, eager = run_formula(self.name, self.args)
        if not all(map(bits_equal, results, outputs)):
            yield "the results differ"
        seeds = [drawn(output, self.random) for output in outputs[:self.taken]]
        places = [i for i, each in enumerate(seeds) if each is not None]
        for present in (*subsets(places), tuple(places)) if places else ():
            some = [each if i in present else None for i, each in enumerate(seeds)]
            got = run(backward, [context, *map(self.turned, some)], seed=self.seed)
            got = got[0] if len(self.args) > 1 else got
            with seeded(self.seed):
                want = eager(*some)
            for i, (one, other) in enumerate(zip(got, want, strict=True)):
                if not bits_equal(self.fitted(one, self.args[i]), other):
                    yield f"the gradients of argument {i} differ when those of results {list(present)} are given"

    def turned(self, gradient: Any) -> Any:
        """The gradient for formulas that multiply by the plain derivative: they take and return conjugates."""
        if isinstance(gradient, list | tuple):
            return [self.turned(each) for each in gradient]
        return gradient if gradient is None or self.formula.is_conjugated else np.conj(gradient)

    def fitted(self, gradient: Any, argument: Any) -> Any:
        """The gradient in the dtype of its argument, as `run_formula` returns it."""
        if isinstance(gradient, list | tuple):
            return [self.fitted(each, one) for each, one in zip(gradient, argument, strict=True)]
        if gradient is None or argument is None:
            return None
        gradient = self.turned(gradient)
        return (gradient.real if gradient.dtype.kind == "c" and argument.dtype.kind != "c" else gradient).astype(argument.dtype)


# A copy that reads the negative of the negative of inputs: df then asks f for facts about them, such as their sizes.
def behind_others(graph: Graph, wrt: Sequence[int]) -> Graph:
    """A copy that reads the negative of the negative of inputs: df asks f for what it needs of them, such as their sizes."""
    graph = clone_graph(graph)
    build = Builder(graph).at_start(graph.block)
    for value in [graph.inputs[i] for i in wrt]:
        if not isinstance(value.type, types.TensorType):
            continue
        first = build.node("aten::neg", (value,), output_types=(types.TENSOR,))
        second = build.node("aten::neg", first.outputs, output_types=(types.TENSOR,))
        value.replace_all_uses_with(second.output)
        first.set_inputs([value])
    return graph


def call_graph(schema: Schema, args: Sequence[Any]) -> tuple[Graph, list[Any], dict[int, list[int]]]:
    """A graph that is one call: its inputs are the tensors among the arguments, the rest is constant. Also the values of its inputs, and
    by argument the inputs that are its floating-point tensors."""
    graph = Graph(LATEST)
    build = Builder(graph)
    inputs: list[Any] = []
    chosen: dict[int, list[int]] = {}

    def entered(value: Any, place: int) -> Value:
        if value.dtype.kind in "fc":
            chosen.setdefault(place, []).append(len(inputs))
        inputs.append(value)
        return graph.block.add_input(graph.fresh_id(), types.TENSOR)

    operands = []
    for place, (argument, value) in enumerate(zip(schema.arguments, args, strict=True)):
        type = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
        if isinstance(value, np.ndarray):
            operands.append(entered(value, place))
        elif isinstance(value, list | tuple) and any(isinstance(each, np.ndarray) for each in value) and isinstance(type, ListType):
            pieces = [entered(each, place) if each is not None else build.constant(None) for each in value]
            operands.append(build.construct_list(pieces, of_tensors(type.element)))
        else:
            operands.append(operand(build, value, type))
    node = build.node(schema.kind, operands, output_types=[of_tensors(result.type) for result in schema.returns])
    graph.block.set_outputs(node.outputs)
    return graph, inputs, chosen


def of_tensors(type: Type) -> Type:
    """Is the type a list of tensors? `t[]` counts as one here."""
    if isinstance(type, ListType):
        return types.list_of(of_tensors(type.element))
    return types.TENSOR if isinstance(type, types.TypeVar) or type.key in ("Future", "Await", "Any") else type


def operand(build: Builder, value: Any, type: Type) -> Value:
    """A constant for an argument that is no tensor."""
    if isinstance(value, list | tuple) and isinstance(type, ListType):
        return build.construct_list([build.constant(each) for each in value], type.element)
    if value is None or isinstance(value, np.ndarray) or str(type.key) in ("Scalar", "Any") or isinstance(type, types.TensorType):
        return build.constant(value)
    if isinstance(type, ListType):      # one int stands for all dimensions
        return build.constant(value)
    return build.constant(float(value) if str(type.key) == "float" else value, type)


def with_types(graph: Graph, inputs: Sequence[Any], outputs: Sequence[Any]) -> Graph:
    """A copy whose tensors have the dtypes and sizes that were observed."""
    copy = clone_graph(graph)
    for value, array in zip([*copy.inputs, *copy.outputs], [*inputs, *outputs], strict=True):
        if isinstance(array, np.ndarray):
            value.type = spell(tensor_type(array.dtype.name, array.shape, None, None, "cpu"), copy.dialect)
    return copy


def specialized(whole: Differentiated, inputs: Sequence[Any], cotangents: Sequence[Any], seed: int) -> list[Any]:
    """The gradients of the graph specialised to the incoming gradients."""
    pair = whole.pair
    assert pair is not None     # otherwise its gradients would have been refused
    outputs = run(pair.f, inputs, seed=seed)
    seeds: list[Any] = []
    leaves = iter(cotangents)
    for index, output in enumerate(outputs[:pair.real_outputs]):
        parts = [next(leaves) for _ in flattened(output)]
        if index in pair.input_vjps:
            given = as_seed(parts if isinstance(output, list | tuple) else parts[0], output)
            seeds.append(None if given is None else with_zeros(given, output))
    seeds += [None] * (len(pair.input_vjps) - len(seeds))
    captured = [*[inputs[i] for i in pair.captured_inputs], *[outputs[i] for i in pair.captured_outputs]]
    df = clone_graph(pair.df)
    Specializer(df, [each is not None for each in seeds] + [True] * len(captured)).run()
    BY_NAME["lower-grad-of"](df)
    gradients = dict(zip(pair.output_vjps, run(df, [*seeds, *captured], seed=seed), strict=True))
    return [fitted(gradients[index], inputs[index]) if index in gradients else None for index in whole.wrt]


# -- comparisons
def unequal(what: str, got: Sequence[Any], want: Sequence[Any], exact: bool = False) -> Iterator[str]:
    """The differences of two lists of gradients; None counts as zero."""
    for i, (one, other) in enumerate(zip(flattened(got), flattened(want), strict=True)):
        if one is None or other is None:
            same = not np.any(one) and not np.any(other) if one is not None or other is not None else True
        elif exact:
            same = bits_equal(one, other)
        else:
            same = one.shape == other.shape and one.dtype == other.dtype and np.allclose(
                one, other, rtol=0, atol=CLOSE * max(1.0, float(np.max(np.abs(other), initial=0.0))), equal_nan=True)
        if not same:
            yield f"{what}: gradient {i} is {one!r}, not {other!r}"


def bits_equal(one: Any, other: Any) -> bool:
    """The same numbers in the same shapes."""
    if isinstance(one, list | tuple):
        return isinstance(other, list | tuple) and len(one) == len(other) and all(map(bits_equal, one, other))
    if one is None or other is None:
        return one is other
    a, b = np.asarray(one), np.asarray(other)
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
