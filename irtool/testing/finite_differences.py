"""Are gradients right? They are compared with differences of the outputs, in double precision, along random directions.

    report = gradcheck(graph, inputs)           # first and second order
    report.is_right, str(report), report.worst

Order 2 differentiates the graph of gradients again. At each order a tape (`irtool.dispatch`) must compute the same gradients.
If the graph is a single operator, its compiled gradient formula must compute the same bits as the formula run as Python.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from irtool.accepted_values import refuse_none
from irtool.autodiff.gradient_modes import settle_grad_mode
from irtool.autodiff.gradient_questions import QUESTIONS, settle_questions
from irtool.dispatch.graph_functions import tape_gradients
from irtool.execute.graph_gradients import Differentiated, prepared, wanted
from irtool.execute.phases import forget_shapes
from irtool.interpret import Observer, all_nodes, located, run
from irtool.ir.arguments import check_count, check_graph, check_inputs, check_seed, misfit
from irtool.ir.constants import is_constant
from irtool.ir.displayed import Displayed
from irtool.ir.errors import Error, RunError, UnsupportedError
from irtool.ir.graph import Graph, Node, Value, counted
from irtool.ir.module import Module
from irtool.ir.schema import Literal, Schema, node_arguments, qualified, schema_of
from irtool.ir.types import TensorType
from irtool.ops.array_library import np
from irtool.ops.arrays import is_array, seeded
from irtool.ops.formula import run_formula
from irtool.ops.size_facts import DETACHING
from irtool.testing.derivatives import derivative, widened

Array = np.ndarray[Any, np.dtype[Any]]

STEP = 1e-4
"""The step of differences, relative to the size of the input; half the step is used too, and a third difference is extrapolated from
both."""
FINER = (1 / 16, 1 / 256, 1 / 4096)
"""Parts of the step that are tried where the whole step leaves a question open."""
SHARPER = 8
"""What a smaller step gives counts if the allowed difference is smaller by this factor: truncation shrinks by far more, rounding grows."""
VAGUE = 1e-4
"""A comparison that allows a larger part of the derivative says little."""
RTOL = 1e-6
AGREES, DIFFERS, KINK, NOT_FINITE = "agrees", "differs", "kink", "not finite"


class Row:
    """One comparison: the derivative of a random combination of the outputs, along a random direction of one input."""

    __slots__ = ("order", "input", "name", "outputs", "gradient", "difference", "allowed", "state")

    def __init__(self, order: int, input: int, name: str, outputs: str, gradient: float, difference: float, allowed: float,
                 state: str) -> None:
        self.order = order
        self.input = input
        self.name = name            # of the input
        self.outputs = outputs      # the outputs that take part: "all", or the number of one
        self.gradient = gradient    # computed by the gradient
        self.difference = difference
        self.allowed = allowed
        """The allowed difference: the tolerance, rounding, and the uncertainty of the differences themselves."""
        self.state = state

    @property
    def off(self) -> float:
        """The difference of the two."""
        return abs(self.gradient - self.difference)

    @property
    def is_open(self) -> bool:
        """Might smaller steps tell more?"""
        return self.state in (DIFFERS, KINK) or self.state == AGREES and \
            self.allowed > VAGUE * max(abs(self.gradient), abs(self.difference), 1e-3)

    def __repr__(self) -> str:
        return f"<{self.state}: {self}>"

    def __str__(self) -> str:
        return f"{self.name}: {self.gradient:.8g} by the gradient, {self.difference:.8g} by differences, off by {self.off:.2g}" \
               f" (allowed {self.allowed:.2g})"


class Report(Displayed):
    """The result of a check."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.unsupported: dict[int, str] = {}
        """By order, the reason why it could not be checked."""
        self.eager: dict[str, str] = {}
        """By operator, how the bits of its formula, run as Python, differ; "" if all are equal."""
        self.tape: dict[int, str] = {}
        """By order, how the gradients of a tape differ; "" if they agree."""

    @property
    def is_right(self) -> bool:
        """Was everything checked and right? If no comparison was finite, nothing was checked."""
        differs = [*self.eager.values(), *self.tape.values(), *[row.state == DIFFERS for row in self.rows]]
        is_blind = not self.compared() and any(row.state == NOT_FINITE for row in self.rows)
        return not self.unsupported and not any(differs) and not is_blind

    @property
    def worst(self) -> Row | None:
        """The comparison that is nearest to the allowed difference, or furthest beyond it."""
        return max(self.compared(), key=lambda row: row.off / row.allowed if row.off == row.off else np.inf, default=None)

    def compared(self, order: int = 0) -> list[Row]:
        """The comparisons of one order, or of all, that are finite and at smooth points."""
        return [row for row in self.rows if row.state in (AGREES, DIFFERS) and order in (0, row.order)]

    def lines(self) -> list[str]:
        """The report as lines of text."""
        out = []
        for order in sorted({row.order for row in self.rows} | self.unsupported.keys()):
            if order in self.unsupported:
                out.append(f"order {order}: {self.unsupported[order]}")
                continue
            rows = self.compared(order)
            left = [f", {count} at a {KINK}" for count in [sum(r.state == KINK and r.order == order for r in self.rows)] if count]
            left += [f", {count} not finite" for count in [sum(r.state == NOT_FINITE and r.order == order for r in self.rows)] if count]
            good = sum(row.state == AGREES for row in rows)
            out.append(f"order {order}: {good} of {len(rows)} derivatives agree{''.join(left)}")
            if rows:
                out.append(f"  worst: {max(rows, key=lambda row: row.off / row.allowed if row.off == row.off else np.inf)}")
            if order in self.tape:
                out.append(f"  a tape {self.tape[order] or 'gives the same gradients'}")
        out += [f"{name}: the formula as Python {'gives the same bits' if not text else text}" for name, text in self.eager.items()]
        return out

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        rows = self.compared()
        return f"<Report: {sum(row.state == AGREES for row in rows)} of {counted(len(rows), 'derivative')} agree>"


def gradcheck(graph: Graph | Module, inputs: Sequence[Any], wrt: Sequence[int] | None = None, *, seed: int = 0, order: int = 2,
              directions: int = 2, rtol: float = RTOL) -> Report:
    """Compare the gradients of a graph with differences of its outputs around `inputs`, up to `order`.

    wrt: positions of inputs, by default of all that contain floating-point tensors. These, and dtypes in the graph, are converted to double
    precision. `seed` is that of directions and of random operators. Points where a graph is not smooth are reported as such (`Row.state`).
    An order with an operator that has no gradient is in `Report.unsupported`.

    Raises RunError if there is nothing to differentiate, if the graph does not run, and if differences see a value that the graph detaches.
    """
    graph = check_graph("gradcheck", graph)
    check_inputs("gradcheck", graph, inputs)
    refuse_none(graph, inputs)
    check_seed("gradcheck", seed)
    check_count("gradcheck", "order", order)
    check_count("gradcheck", "directions", directions)
    if isinstance(rtol, bool) or not isinstance(rtol, int | float | np.floating) or not rtol >= 0:
        raise misfit("gradcheck", "rtol", rtol, "a number that is not negative")
    values = [wide(value) for value in inputs]
    chosen = tuple(i for i, value in enumerate(values) if next(floating(value), None) is not None) if wrt is None \
        else wanted("gradcheck", wrt, graph, values)
    if not chosen:
        raise RunError("no input contains a floating-point tensor: there is nothing to differentiate", code="E0506")
    names = [f"%{value.name}" for value in graph.inputs]
    report = Report()
    graph = widened(graph)
    if any(node.kind in QUESTIONS for node in graph.walk()) and settle_grad_mode(graph):    # else differences are those of other answers
        settle_questions(graph, [place in chosen for place in range(len(values))])
    if any(isinstance(value, np.ndarray) and isinstance(declared.type, TensorType) and declared.type.shape not in (None, value.shape)
           for value, declared in zip(values, graph.inputs, strict=True)):
        forget_shapes(graph)        # those that a trace saw
    random = np.random.default_rng(seed)
    for n in range(1, order + 1):
        try:
            check = Check(graph, values, chosen, names, n, seed, rtol)
            report.rows += check.rows(random, directions)
            refuse_detached(graph, report)
            try:
                report.tape[n] = check.compare_tape()
            except UnsupportedError:
                pass        # tapes run fewer operators; the comparisons are in the report
            if n == 1:
                report.eager = compare_eager(graph, values, dict(zip(chosen, check.gradients[0], strict=True)), check.cotangents[0], seed)
            if n < order:
                outputs = run(prepared(graph), values, seed=seed)
                graph, taken = derivative(graph, chosen)
                values = [*values, *[drawn(outputs[i], random) for i in taken]]
        except UnsupportedError as error:
            report.unsupported[n if n not in {row.order for row in report.rows} else n + 1] = error.message
            break
        count = len(values) - len(names)
        names += [f"the gradient of output {i}" if n == 1 else f"gradient {i} of order {n}" for i in range(count)]
        chosen = (*chosen, *range(len(values) - count, len(values)))
    return report


def refuse_detached(graph: Graph, report: Report) -> None:
    """Raises RunError if gradients and differences may differ rightly, since differences also see values that a graph detaches."""
    node = next((node for node in all_nodes(graph) if qualified(node.kind) in DETACHING | QUESTIONS), None)
    if node is not None and any(row.state == DIFFERS for row in report.rows):
        raise located(RunError(f"gradcheck: {node.kind} hides from gradients what differences see: there is nothing to compare with",
                               code="E0506"), node)


class Check:
    """The first order of one graph."""

    def __init__(self, graph: Graph, inputs: list[Any], wrt: tuple[int, ...], names: list[str], order: int, seed: int, rtol: float) -> None:
        self.graph = graph
        self.inputs = inputs
        self.wrt = wrt
        self.names = names
        self.order = order
        self.seed = seed
        self.rtol = rtol
        self.differentiated = Differentiated(graph, wrt)
        self.outputs = run(graph, inputs, seed=seed)
        self.cotangents: list[list[Any]] = []
        """Gradients of the leaves of the outputs: of all that can have one; then, if they are few, of each alone."""
        self.labels: list[str] = []
        self.gradients: list[list[Any]] = []
        """The gradients of the inputs for each of these lists of cotangents."""

    def rows(self, random: np.random.Generator, directions: int) -> list[Row]:
        """Compare along `directions` directions of each input."""
        self.seed_outputs(random)
        self.gradients = [self.differentiated.gradients(self.inputs, each, self.seed) for each in self.cotangents]
        out: list[Row] = []
        for at, index in enumerate(self.wrt):
            for _ in range(directions):
                direction = drawn(self.inputs[index], random)
                if direction is not None:
                    with np.errstate(all="ignore"):     # the rows report values that are not finite
                        out += self.along(at, index, direction)
        return out

    def seed_outputs(self, random: np.random.Generator) -> None:
        """Draw cotangents."""
        flat = [leaf for output in self.outputs for leaf in flattened(output)]
        whole = [drawn(leaf, random) for leaf in flat]
        self.cotangents, self.labels = [whole], ["all"]
        places = [i for i, each in enumerate(whole) if each is not None]
        if not places:
            raise RunError("no output is a floating-point tensor: there is nothing to differentiate", code="E0506")
        if 1 < len(places) <= 4:
            for place in places:
                self.cotangents.append([each if i == place else None for i, each in enumerate(whole)])
                self.labels.append(str(place))

    def compare_tape(self) -> str:
        """The first input for which a tape computes another gradient, as text; "" if all agree. Raises UnsupportedError."""
        try:
            of_tape = tape_gradients(self.graph, self.inputs, self.wrt, self.cotangents[0], self.seed)
        except UnsupportedError:
            raise
        except Error as error:
            return f"fails: {error.message}"
        for mine, its, index in zip(self.gradients[0], of_tape, self.wrt, strict=True):
            for one, other in zip(flattened(mine), flattened(its), strict=True):
                a, b = (np.zeros(()) if each is None else each for each in (one, other))
                size = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
                if not np.allclose(a, b, rtol=self.rtol, atol=self.rtol * size, equal_nan=True):
                    return f"differs by {float(np.nanmax(np.abs(a - b), initial=0.0)):.2g} for {self.names[index]}"
        return ""

    def along(self, at: int, index: int, direction: Any) -> list[Row]:
        """The comparisons along one direction of one input. Those that differ, see a kink, or are vague are made with smaller steps, too:
        of a function that oscillates within one step, differences tell neither the slope nor how uncertain they are."""
        size = max((float(np.max(np.abs(leaf), initial=0.0)) for leaf in floating(self.inputs[index])), default=1.0)
        step = STEP * max(1.0, size)
        rows = self.in_steps(at, index, direction, step)
        for part in FINER:
            if not any(row.is_open for row in rows):
                break
            finer = self.in_steps(at, index, direction, step * part)
            rows = [one if row.is_open and one.state in (AGREES, DIFFERS) and one.allowed < row.allowed / SHARPER else row
                    for row, one in zip(rows, finer, strict=True)]
        return rows

    def in_steps(self, at: int, index: int, direction: Any, step: float) -> list[Row]:
        """The comparisons along one direction of one input, by differences of this step and of half of it."""
        moved = {t: self.losses(index, direction, t * step) for t in (1.0, -1.0, 0.5, -0.5)}
        here = self.losses(index, direction, 0.0)
        out = []
        for n, label in enumerate(self.labels):
            gradient = inner(self.gradients[n][at], direction)
            values = {t: moved[t][n][0] for t in moved}
            coarse, fine = (values[1.0] - values[-1.0]) / (2 * step), (values[0.5] - values[-0.5]) / step
            rounding = 32 * np.finfo(np.float64).eps * max(here[n][1], abs(here[n][0])) / step
            bend, half_bend = [abs(values[t] - 2 * here[n][0] + values[-t]) / (t * step) for t in (1.0, 0.5)]
            difference = (4 * fine - coarse) / 3
            allowed = self.rtol * max(abs(gradient), abs(difference), 1e-3) + rounding + abs(fine - coarse)
            if not np.isfinite([difference, bend, half_bend]).all():
                state = NOT_FINITE
            elif half_bend > 0.75 * bend and half_bend > 100 * rounding and half_bend > 1e-6 * abs(difference):
                state = KINK        # the second difference does not shrink with the step
            else:
                state = AGREES if abs(gradient - difference) <= allowed else DIFFERS
            out.append(Row(self.order, index, self.names[index], label, gradient, difference, allowed, state))
        return out

    def losses(self, index: int, direction: Any, step: float) -> list[tuple[float, float]]:
        """For each list of cotangents, the combination of the outputs, and the sum of the sizes of its terms."""
        inputs = list(self.inputs)
        inputs[index] = shifted(inputs[index], direction, step)
        flat = [leaf for output in run(self.graph, inputs, seed=self.seed) for leaf in flattened(output)]
        out = []
        for cotangents in self.cotangents:
            terms = [(inner(leaf, each), sizes(leaf, each)) for leaf, each in zip(flat, cotangents, strict=True)
                     if each is not None and leaf is not None]
            out.append((sum(term for term, _ in terms), sum(size for _, size in terms)))
        return out


# -- values
def wide(value: Any) -> Any:
    """A value with its floating-point arrays in double precision."""
    if isinstance(value, list | tuple):
        return type(value)(wide(each) for each in value)
    if isinstance(value, dict):
        return {key: wide(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | np.generic) and (value.dtype.kind in "fc" or value.dtype.name == "bfloat16"):
        return np.asarray(value).astype(np.complex128 if value.dtype.kind == "c" else np.float64)
    return value


def flattened(value: Any) -> list[Any]:
    """The leaves of lists, tuples and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for each in value for leaf in flattened(each)] if isinstance(value, list | tuple) else [value]


def floating(value: Any) -> Iterator[Array]:
    """The floating-point arrays in a value."""
    for leaf in flattened(value):
        if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "fc":
            yield np.asarray(leaf)


def drawn(value: Any, random: np.random.Generator) -> Any:
    """Random numbers with the structure, shapes and dtypes of a value; None for a value that is no floating-point tensor."""
    if isinstance(value, list | tuple | dict):
        parts = [drawn(each, random) for each in (value.values() if isinstance(value, dict) else value)]
        if all(each is None for each in parts):
            return None
        return dict(zip(value, parts, strict=True)) if isinstance(value, dict) else parts
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "fc":
        return None
    real = np.asarray(random.standard_normal(value.shape))
    return np.asarray(real + 1j * random.standard_normal(value.shape)) if value.dtype.kind == "c" else real.astype(value.dtype)


def shifted(value: Any, direction: Any, step: float) -> Any:
    """value + step * direction."""
    if direction is None:
        return value
    if isinstance(value, list | tuple):
        return type(value)(shifted(each, one, step) for each, one in zip(value, direction, strict=True))
    if isinstance(value, dict):
        return {key: shifted(each, direction[key], step) for key, each in value.items()}
    return value + step * direction


def inner(a: Any, b: Any) -> float:
    """The real inner product; 0 if one of the two is None."""
    if isinstance(a, dict) and isinstance(b, dict):
        return sum(inner(each, b[key]) for key, each in a.items())
    if isinstance(a, list | tuple) or isinstance(b, list | tuple):
        return 0.0 if a is None or b is None else sum(inner(x, y) for x, y in zip(a, b, strict=True))
    return 0.0 if a is None or b is None else float(np.sum(np.conj(a) * b).real)


def sizes(a: Any, b: Any) -> float:
    """The sum of the sizes of the terms of the inner product."""
    return float(np.sum(np.abs(a) * np.abs(b)))


# -- the formula as Python
class Operands(Observer):
    """Remembers the operands of one node, as they were before the node wrote into them."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.values: dict[Value, Any] = {}

    def before(self, node: Node, operands: Sequence[Any]) -> None:
        if node is self.node:
            self.values = {value: deepcopy(each) if is_array(each) else each for value, each in zip(node.inputs, operands, strict=True)}


def compare_eager(graph: Graph, inputs: list[Any], compiled: dict[int, Any], cotangents: list[Any], seed: int = 0) -> dict[str, str]:
    """For a graph that is a single operator on its inputs: by operator, how its formula as Python differs. Empty for other graphs."""
    nodes = [node for node in graph.walk() if not is_constant_node(node) and node.kind != "prim::ListConstruct"]
    schema = schema_of(nodes[0]) if len(nodes) == 1 else None
    if schema is None or tuple(graph.outputs) != tuple(nodes[0].outputs):
        return {}
    if not all(isinstance(value.type, TensorType) for value in graph.outputs):
        return {}
    watcher = Operands(nodes[0])
    run(graph, inputs, observer=watcher)
    arguments = node_arguments(nodes[0], schema)
    args = [argument_value(each, watcher.values) for each in arguments]
    try:
        with seeded(seed):
            _, backward = run_formula(schema.name, args)
            expected = backward(*cotangents)
    except UnsupportedError:
        return {}
    except Error as error:
        return {schema.name: f"fails: {error.message}"}
    return {schema.name: difference_of(graph, schema, arguments, expected, compiled)}


def is_constant_node(node: Node) -> bool:
    """Is the node a constant?"""
    return len(node.outputs) == 1 and is_constant(node.output)


def argument_value(argument: Value | Literal | list[Value], values: dict[Value, Any]) -> Any:
    """The value of an argument of the node."""
    if isinstance(argument, list):
        return [values[each] for each in argument]
    return values[argument] if isinstance(argument, Value) else argument.value


def difference_of(graph: Graph, schema: Schema, arguments: Sequence[Value | Literal | list[Value]], expected: list[Any],
                  compiled: dict[int, Any]) -> str:
    """The first argument whose two gradients differ, as text; "" if none do."""
    by_value: dict[Value, Any] = {}
    for argument, gradient in zip(arguments, expected, strict=True):
        if not isinstance(argument, Value):
            continue
        if argument.node.kind == "prim::ListConstruct" and isinstance(gradient, list):
            for element, piece in zip(argument.node.inputs, gradient, strict=True):
                by_value[element] = None if element in by_value else piece
        else:
            by_value[argument] = None if argument in by_value else gradient
    for index, gradient in compiled.items():
        value = graph.inputs[index]
        eager = by_value.get(value)
        if eager is not None and isinstance(gradient, np.ndarray) and not np.array_equal(eager, gradient, equal_nan=True):
            off = float(np.nanmax(np.abs(eager - gradient), initial=0.0)) if eager.shape == gradient.shape else np.inf
            return f"differs from the compiled one by {off:.2g} for %{value.name}"
    return ""
