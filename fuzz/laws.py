"""Laws between transformations: a function run eagerly, compiled, batched, differentiated in several ways gives what it must of itself.

The source of a program is executed as Python on irtool's tensors. The laws are the functions of LAWS below, each with a sentence.
"""
from __future__ import annotations

import math
import random
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Optional

import numpy as np

import irtool
from fuzz import layered, oracle, programs
from fuzz.case import Case
from fuzz.gradients import is_tame, leaves
from fuzz.judge import Skip, Wrong, agree, outcome, same
from fuzz.source import Style, program
from fuzz.values import OTHER_KINDS, copied, of_other_kind, other_values, value_of
from irtool.dispatch.trees import flatten

ROWS = 3
PROGRAM = "<program>"
"""The name of a program's file in tracebacks."""


class Subject:
    """A function with its arguments: arrays first, then numbers, which every transformation leaves alone."""

    def __init__(self, case: Case, tally: Counter[str]) -> None:
        self.values = [value_of(literal) for literal in case.inputs.values()]
        self.function = executed(case.text)
        self.tally = tally
        self.text = case.text
        self.places = [place for place, value in enumerate(self.values) if isinstance(value, np.ndarray)]

    @property
    def arrays(self) -> list[Any]:
        """Of the arguments, those that transformations are about."""
        return [self.values[place] for place in self.places]

    def pure(self, *arrays: Any) -> Any:
        """The function of the arrays, which it gets copies of."""
        args = list(self.values)
        for place, array in zip(self.places, arrays):
            args[place] = array.clone() if isinstance(array, irtool.Tensor) else irtool.torch.tensor(array)
        return self.function(*args)

    def weighted(self, *arrays: Any) -> Any:
        """One number of all results with a gradient: each element times a small number. Skips where there are none."""
        total: Any = None
        for number, leaf in enumerate(tensors(self.pure(*arrays))):
            if "float" in str(leaf.dtype):
                term = (leaf * (0.5 + number)).sum()
                total = term if total is None else total + term
        if total is None:
            raise Skip("no floating-point output")
        return total

    def floats(self, *arrays: Any) -> Any:
        """The floating-point tensors of all results. Skips where there are none."""
        found = tuple([leaf for leaf in tensors(self.pure(*arrays)) if "float" in str(leaf.dtype)])
        if not found:
            raise Skip("no floating-point output")
        return found

    @property
    def is_smooth(self) -> bool:
        """Are its arguments what gradients are taken of?"""
        return all(each.dtype == np.float64 for each in self.arrays)

    def expect(self, got: Callable[[], Any], want: Any, way: str) -> None:
        """Compare a result with arrays. A refusal is counted. Raises Wrong."""
        result = outcome(lambda: plain(got()))
        self.tally["ways"] += 1
        if result[0] == "refused":
            self.tally[f"refused: {way.partition(',')[0]}: {result[1]}"] += 1
        else:
            agree(result, ("value", want), way)

    def module(self) -> Any:
        """The program compiled. Skips what is refused."""
        return programs.compile_source(self.text, self.tally)


def rounded(value: Any, *digits: Any) -> Any:
    """Python's `round`, with TorchScript's result: a float for a float."""
    result = round(value, *digits)
    return float(result) if isinstance(value, float) else result


def of_numbers(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Python's `min` or `max`, with TorchScript's result: a float for numbers of which one is a float."""
    def chosen(*values: Any) -> Any:
        result = choose(*values)
        return float(result) if isinstance(result, int) and any(isinstance(each, float) for each in values) else result
    return chosen


def executed(source: str) -> Any:
    """The function `f` of a source, on irtool's tensors. What Python itself refuses in it is a RunError."""
    space: dict[str, Any] = {"torch": irtool.torch, "F": irtool.torch.nn.functional, "Tensor": irtool.Tensor, "List": list, "Dict": dict,
                             "Optional": Optional, "Tuple": tuple, "math": math, "round": rounded,
                             "min": of_numbers(min), "max": of_numbers(max)}
    exec(compile(source, PROGRAM, "exec"), space)  # the generator's text

    def function(*args: Any) -> Any:
        try:
            return space["f"](*args)
        except (ArithmeticError, LookupError, ValueError) as error:     # of Python, as for `[].pop()`
            if traceback.extract_tb(error.__traceback__)[-1].filename != PROGRAM:
                raise
            raise irtool.RunError(f"{type(error).__name__}: {error}") from error
    return function


def tensors(value: Any) -> list[Any]:
    """Tensors in results, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in tensors(each)]
    return [value] if isinstance(value, irtool.Tensor) else []


def plain(value: Any) -> Any:
    """Arrays for tensors, in any structure."""
    if isinstance(value, irtool.Tensor):
        return np.array(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return {key: plain(each) for key, each in value.items()} if isinstance(value, dict) else value


def batches(subject: Subject) -> list[Any]:
    """Each array with a first dimension of ROWS: itself, and other values."""
    rows = []
    for array in subject.arrays:
        changed = array if array.dtype == bool else (array + 1).astype(array.dtype)
        rows.append(np.stack([array, other_values([array])[0], changed]))
    return rows


def row_by_row(subject: Subject, function: Callable[..., Any]) -> Any:
    """A loop in place of vmap, results stacked. Skips where a row raises, or results are no tensors of one shape."""
    batch = batches(subject)
    results = [outcome(lambda row=row: plain(function(*[each[row] for each in batch]))) for row in range(ROWS)]  # type: ignore[misc]
    if any(kind != "value" for kind, _ in results):
        raise Skip("a row raises")
    return stacked([value for _, value in results])


def stacked(values: list[Any]) -> Any:
    """Results of rows as one result. Skips what cannot be one."""
    first = values[0]
    if isinstance(first, dict):
        return {key: stacked([each[key] for each in values]) for key in first}
    if isinstance(first, list):
        if len({len(each) for each in values}) > 1:
            raise Skip("rows differ in structure")
        return [stacked(list(each)) for each in zip(*values)]
    if not isinstance(first, np.ndarray) or any(each.shape != first.shape or each.dtype != first.dtype for each in values):
        raise Skip("rows differ in structure")
    if not all(map(is_tame, values)):
        raise Skip("not finite")
    return np.stack(values)


# -- the laws
def eager(subject: Subject) -> None:
    """Run eagerly, a function gives what its compiled source gives, and writes the same into its arguments."""
    want = outcome(lambda: irtool.run(subject.module(), subject.values, interpret=True))
    if want[0] != "value":
        raise Skip("the reference raises")
    got = outcome(lambda: plain(subject.function(*wrapped(subject.values))))
    subject.tally["ways"] += 1
    if got[0] == "refused":
        subject.tally[f"refused: eager: {got[1]}"] += 1
    elif got[0] == "error" and raises_in_eager_torch(subject):
        subject.tally["eager raises, in what is not used"] += 1
    else:
        result = got[1] if got[0] == "value" and isinstance(got[1], list) and len(want[1]) != 1 else [got[1]]
        if " ** " in subject.text:
            result = with_powers(result, list(want[1]))
        agree((got[0], result if got[0] == "value" else got[1]), ("value", list(want[1])), "eager")


def with_powers(got: Any, want: Any) -> Any:
    """What Python gives, with floats for whole numbers where the script has floats of that value: powers of ints are floats in scripts."""
    if isinstance(got, list | tuple) and isinstance(want, list | tuple) and len(got) == len(want):
        return type(got)([with_powers(one, other) for one, other in zip(got, want, strict=True)])
    return float(got) if type(got) is int and type(want) is float and got == want else got


def wrapped(values: list[Any]) -> list[Any]:
    """Tensors with memory of their own for arrays."""
    return [irtool.torch.tensor(value.copy()) if isinstance(value, np.ndarray) else value for value in values]


def jit(subject: Subject) -> None:
    """Compiled, a function takes the decisions that it takes eagerly, whatever came before, and changes what eager changes."""
    fast = irtool.jit(subject.function)
    kind = OTHER_KINDS[len(subject.text) % len(OTHER_KINDS)]
    turns = {"": subject.values, ", other values": other_values(subject.values), f", {kind}": of_other_kind(subject.values, kind)}
    for which, values in [*turns.items(), *turns.items()]:
        args, same_args = wrapped(values), wrapped(values)
        want = outcome(lambda: plain(subject.function(*args)))  # noqa: B023
        got = outcome(lambda: plain(fast(*same_args)))  # noqa: B023
        subject.tally["ways"] += 1
        if got[0] == "refused":
            subject.tally[f"refused: jit: {got[1]}"] += 1
            return
        if want[0] == "value":
            agree(got, want, f"jit{which}")
            same(plain(same_args), plain(args), f"jit{which}: arguments after the call")


def vmap(subject: Subject) -> None:
    """vmap is a loop over the first dimension."""
    want = row_by_row(subject, subject.pure)
    subject.expect(lambda: irtool.vmap(subject.pure)(*batches(subject)), want, "vmap")
    subject.expect(lambda: irtool.jit(irtool.vmap(subject.pure))(*batches(subject)), want, "jit of vmap")


def grad(subject: Subject) -> None:
    """grad gives what the gradients of the compiled source give; jit of it, too."""
    gradient = irtool.grad(subject.weighted, argnums=tuple(range(len(subject.places))))
    want = reference_gradients(subject)
    subject.expect(lambda: list(gradient(*subject.arrays)), want, "grad")
    fast = irtool.jit(gradient)
    subject.expect(lambda: list(fast(*subject.arrays)), want, "jit of grad")
    subject.expect(lambda: list(fast(*subject.arrays)), want, "jit of grad, again")


def raises_in_eager_torch(subject: Subject) -> bool:
    """Does torch raise as well, run as Python? False where torch is not installed."""
    return oracle.library() is not None and oracle.ran(oracle.eager(subject.text), subject.values)[0] == "error"


def reference_gradients(subject: Subject) -> list[Any]:
    """Of the compiled source, by the reference. Skips what it refuses, what is not finite, and what raises only where dead code runs."""
    if outcome(lambda: subject.pure(*subject.arrays))[0] == "error" and raises_in_eager_torch(subject):
        raise Skip("it raises as Python, in torch too")
    module = subject.module()
    outputs = outcome(lambda: irtool.run(module, subject.values, interpret=True))
    if outputs[0] != "value":
        raise Skip("the reference raises")
    seeds = [np.full(leaf.shape, 0.5 + number, leaf.dtype) if leaf.dtype.kind in "f" else None for number,
             leaf in enumerate(leaves(outputs[1]))]
    if all(seed is None for seed in seeds):
        raise Skip("no floating-point output")
    result = outcome(lambda: irtool.vjp(module, subject.values, seeds, subject.places))
    if result[0] != "value":
        raise Skip("no gradient by the reference")
    dense = [np.zeros_like(array) if each is None else each for array, each in zip(subject.arrays, result[1])]
    if not all(map(is_tame, [*dense, *leaves(outputs[1])])):
        raise Skip("not finite")
    return dense


def vmap_of_grad(subject: Subject) -> None:
    """Gradients for each row are a loop of gradients."""
    gradient = irtool.grad(subject.weighted, argnums=tuple(range(len(subject.places))))
    want = row_by_row(subject, gradient)
    subject.expect(lambda: list(irtool.vmap(gradient)(*batches(subject))), want, "vmap of grad")
    subject.expect(lambda: list(irtool.jit(irtool.vmap(gradient))(*batches(subject))), want, "jit of vmap of grad")


def jvp(subject: Subject) -> None:
    """The tangent of a number is the sum of gradients times tangents. (Not where a tangent is zero times a slope that is not finite, which
    a write undoes in gradients alone: such a tangent is compared with torch's.)"""
    if any(each.size == 0 for each in subject.arrays):
        return      # the tangent of a mean of nothing is NaN, of which a sum over no elements knows nothing
    gradient = outcome(lambda: plain(irtool.grad(subject.weighted, argnums=tuple(range(len(subject.places))))(*subject.arrays)))
    if gradient[0] != "value" or not all(map(is_tame, gradient[1])):
        raise Skip("no gradient")
    tangents = layered.tangents(subject.arrays)
    dtype = plain(subject.weighted(*subject.arrays)).dtype
    want = np.asarray(sum(float((a * b).sum()) for a, b in zip(gradient[1], tangents)), dtype)
    results = outcome(lambda: [plain(each) for each in irtool.jvp(subject.floats, tuple(subject.arrays), tuple(tangents))[1]])
    if results[0] == "value" and not all(map(is_tame, results[1])) and oracle.library() is not None:
        if not all(is_tame(plain(each)) for each in subject.floats(*subject.arrays)):
            raise Skip("not finite")    # a mean of nothing inside, whose tangent is any multiple of nan
        agree(results, oracle.tangents(subject.text, subject.values, subject.places, tangents), "jvp: not finite")
        return
    subject.expect(lambda: irtool.jvp(subject.weighted, tuple(subject.arrays), tuple(tangents))[1], want, "jvp")


def masks(subject: Subject) -> None:
    """Gradients of some inputs are those of all, restricted; and a cotangent that is not there is one of zeros."""
    module = subject.module()
    outputs = outcome(lambda: irtool.run(module, subject.values, interpret=True))
    seeds = [np.ones(leaf.shape,
                     leaf.dtype) if leaf.dtype.kind == "f" else None for leaf in leaves(outputs[1])] if outputs[0] == "value" else []
    whole = outcome(lambda: irtool.vjp(module, subject.values, seeds, subject.places))
    if whole[0] != "value" or all(seed is None for seed in seeds) or not all(map(is_tame, whole[1])):
        raise Skip("no gradient")
    for place, gradient in zip(subject.places, whole[1]):
        subject.expect(lambda: irtool.vjp(module, subject.values, seeds, [place]), [gradient], "masks: one input of all")  # noqa: B023
    parts: list[Any] = []
    for number, seed in enumerate(seeds):
        if seed is None:
            continue
        alone = [each if at == number else None for at, each in enumerate(seeds)]
        zeros = [each if at == number or each is None else np.zeros_like(each) for at, each in enumerate(seeds)]
        one, other = (outcome(lambda: irtool.vjp(module, subject.values, given, subject.places)) for given in (alone, zeros))  # noqa: B023
        subject.tally["ways"] += 2
        if "value" not in (one[0], other[0]):
            return
        agree(("value", densely(subject, one[1])) if one[0] == "value" else one, ("value", densely(subject, other[1])), "masks: undefined")
        parts.append(densely(subject, one[1]))
    same([np.asarray(sum(each)) for each in zip(*parts)], densely(subject, whole[1]), "masks: sum of the outputs' gradients")


def densely(subject: Subject, gradients: Any) -> Any:
    """Zeros for None."""
    return [np.zeros_like(array) if each is None else each for array, each in zip(subject.arrays, gradients)]


def custom(subject: Subject) -> None:
    """A function whose own gradient is given to it as a custom one has the gradient that it had."""
    places = tuple(range(len(subject.places)))
    gradient = outcome(lambda: plain(list(irtool.grad(subject.weighted, argnums=places)(*subject.arrays))))
    if gradient[0] != "value" or not all(map(is_tame, gradient[1])):
        raise Skip("no gradient")
    wrapped_up = irtool.custom_vjp(lambda *xs: (subject.weighted(*xs), xs),
                                   lambda g, xs: tuple(each * g for each in irtool.grad(subject.weighted, argnums=places)(*xs)))
    again = irtool.grad(lambda *xs: wrapped_up(*xs) * 1.0, argnums=places)
    subject.expect(lambda: list(again(*subject.arrays)), gradient[1], "custom_vjp")
    subject.expect(lambda: list(irtool.jit(again)(*subject.arrays)), gradient[1], "jit of custom_vjp")


def graph(subject: Subject) -> None:
    """A graph is a function: compiled, batched, and run on tangents it gives what the Python function gives."""
    module = subject.module()
    want = outcome(lambda: irtool.run(module, subject.values, interpret=True))
    if want[0] != "value":
        raise Skip("the reference raises")
    expected = plain(list(want[1]))
    fast = irtool.jit(module)
    for _ in range(2):
        subject.expect(lambda: as_list(fast(*subject.values), len(expected)), expected, "jit of a graph")
    rows = row_by_row(subject, lambda *arrays: list(irtool.run(module, with_arrays(subject, arrays), interpret=True)))
    dims = tuple(0 if place in subject.places else None for place in range(len(subject.values)))
    args = with_arrays(subject, batches(subject))
    subject.expect(lambda: as_list(irtool.vmap(module, dims)(*args), len(rows)), rows, "vmap of a graph")


def as_list(value: Any, count: int) -> Any:
    """One result, or a tuple of several, as a list."""
    return list(value) if count != 1 else [value]


def with_arrays(subject: Subject, arrays: Any) -> list[Any]:
    """The arguments with other arrays in their places."""
    args = list(subject.values)
    for place, array in zip(subject.places, arrays):
        args[place] = copied(array)
    return args


def trace(subject: Subject) -> None:
    """A trace gives, on the values that it was made with, the tensors that the function gives; of anything else there is none."""
    want = outcome(lambda: subject.pure(*subject.arrays))
    if want[0] != "value":
        raise Skip("raises")
    results = flatten(want[1])[0]
    if results and all(isinstance(each, irtool.Tensor) for each in results):
        subject.expect(lambda: irtool.run(irtool.trace(subject.pure, subject.arrays), subject.arrays), plain(results), "trace")
        return
    subject.tally["ways"] += 1
    got = outcome(lambda: irtool.trace(subject.pure, subject.arrays))
    if got[0] == "value":
        raise Wrong("trace", "a graph of a function that gives something else than tensors")


GENERAL: dict[str, Callable[[Subject], None]] = {"eager": eager, "jit": jit, "vmap": vmap, "graph": graph, "trace": trace,
                                                 **layered.GENERAL}
SMOOTH: dict[str, Callable[[Subject], None]] = {"eager": eager, "jit": jit, "vmap": vmap, "grad": grad, "vmap_of_grad": vmap_of_grad,
                                                "jvp": jvp, "masks": masks, "custom": custom, "graph": graph, **layered.SMOOTH}
LAWS = GENERAL | SMOOTH
HIDING = frozenset(("vmap", "vmap_of_grad", "custom", "jacobians", "hessians", "vmap_of_jvp", "other_dims", "control_flow"))
"""Laws under which a program that decides by elements is refused."""


def draw(seed: int) -> Case:
    """Smooth programs on double precision, and others; three laws of each."""
    rng = random.Random(seed)
    is_smooth = rng.random() < 0.6
    laws = rng.sample(sorted(SMOOTH if is_smooth else GENERAL), 3)
    elements = HIDING.isdisjoint(laws) or rng.random() < 0.05
    drawn = program(seed, Style(grad=is_smooth, most=9, elements=elements))
    return Case("laws", drawn.source, drawn.inputs, {"laws": " ".join(laws)})


def check(case: Case, tally: Counter[str]) -> None:
    """The laws that the case names. Raises Wrong."""
    subject = Subject(case, tally)
    held = 0
    for name in case.options["laws"].split():
        try:
            LAWS[name](subject)
            held += 1
        except Skip as reason:
            tally[f"not tried: {name}: {reason}"] += 1
        except Wrong:
            raise
    if not held:
        raise Skip("no law applies")


def smaller(case: Case) -> Iterator[Case]:
    """One law alone; then as programs are made smaller."""
    laws = case.options.get("laws", "").split()
    if len(laws) > 1:
        yield from (case.with_option("laws", law) for law in laws)
    yield from programs.smaller(case)
