"""Programs: a function gives the same by the reference, by every executor, again and again, on other values and other memory, and in torch;
some also on inputs of other sizes, ranks and dtypes in turn.

Ways: `run` (irtool.run: interpreted, then planned), `plain` (an executor without C), `native` (all groups as loops in C), `default`,
`threads`, `profiling`, `unoptimised`, `decompiled` (printed as source and compiled again), `text` (torch's graph of the source).
"""
from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import irtool
from fuzz import oracle
from fuzz.case import Case
from fuzz.judge import SCRIPT_ALONE, Outcome, Skip, Wrong, agree, agree_with_either, outcome, same
from fuzz.reduction import fewer_statements
from fuzz.rounding import agree_but_for_rounding
from fuzz.source import Style, program
from fuzz.values import OTHER_KINDS, copied, of_other_kind, other_memory, other_values, spelled, value_of
from irtool.interpret import run as every_node

EXECUTORS: dict[str, dict[str, Any]] = {
    "plain": {"native": False}, "native": {"native": True}, "default": {}, "threads": {"native": False, "threads": 2},
    "profiling": {"profiling": True, "native": False}, "unoptimised": {"optimize": False},
}
"""What irtool.compile is asked for."""
EXACT = ("plain", "profiling")
"""Ways whose bits are the reference's; not of complex numbers, whose product in NumPy rounds otherwise in place."""
MIXED = 1e-6
"""The tolerance of double precision where it may come from single precision, which other kernels round otherwise."""
NAN_OF_INFINITY = re.compile(r"gelu|(var|std)_mean")
"""Operators that give nan for some infinities in torch: its vectors of `gelu`, and means by Welford's algorithm unless the last element
is the infinite one. irtool gives the infinity."""
WAYS = (*EXECUTORS, "decompiled", "text")


def draw(seed: int) -> Case:
    """One in twelve has large tensors; one in six runs with loops in C alone."""
    rng = random.Random(seed)
    is_large = rng.random() < 1 / 12
    drawn = program(seed, Style(compiled=True, large=is_large))
    ways = {"run", *rng.sample(("plain", "default", "threads", "profiling", "unoptimised"), 2)}
    ways |= {"native"} if rng.random() < (0.5 if is_large else 1 / 8) else set()
    ways |= {"decompiled"} if rng.random() < 0.25 else set()
    ways |= {"text"} if rng.random() < 0.4 else set()
    options = {"ways": " ".join(sorted(ways))}
    if not is_large and rng.random() < 0.2:
        options["kinds"] = " ".join(rng.choices(OTHER_KINDS, k=4))
    return Case("programs", drawn.source, drawn.inputs, options)


def check(case: Case, tally: Counter[str]) -> None:
    """All ways against the reference, and the reference against torch. Raises Wrong, Skip."""
    sets = input_sets(case)
    function = torch_function(case.text, tally)
    module = compile_source(case.text, tally)
    wants = [outcome(partial(irtool.run, module, values, interpret=True)) for values in sets]
    tally["ways"] += len(wants)
    refusals = [words for kind, words in wants if kind == "refused"]
    if refusals:
        tally[f"refused: {refusals[0]}"] += 1
        if wants[0][0] == "refused":
            raise Skip("refused")
        sets, wants = sets[:1], wants[:1]
    tally["cases that raise"] += wants[0][0] == "error"
    if function is not None:
        compare_with_torch(function, case.text, module, sets, wants, tally)
    wants = [(want[0], copied(want[1])) for want in wants]
    for way in case.options["ways"].split():
        check_way(way, case, module, function, sets, wants, tally)
    if "kinds" in case.options:
        check_kinds(case, module, sets[0], tally)


def input_sets(case: Case) -> list[list[Any]]:
    """The inputs, other values of the same kinds, and the same values in other memory."""
    values = [value_of(literal) for literal in case.inputs.values()]
    return [values, other_values(values), other_memory(values)]


def compile_source(text: str, tally: Counter[str]) -> Any:
    """The module of a source. A refusal is counted, and the case skipped."""
    try:
        return irtool.from_script(text, "f")
    except irtool.Error as error:
        from fuzz.judge import refusal

        tally[f"refused: source: {refusal(error)}"] += 1
        raise Skip("source refused") from None


DIFFERENCES, SHAPED = re.compile(r"\.diff\("), re.compile(r"\b(t|transpose|swapaxes|swapdims|squeeze|unsqueeze)_\(")
"""torch's `diff` along a dimension without elements is its operand itself, whose shape what gives the result another one changes too."""


def torch_function(text: str, tally: Counter[str]) -> Any:
    """torch's function; None where torch is not installed, or has another idea of shapes. Skips what torch does not compile."""
    if oracle.library() is None or DIFFERENCES.search(text) and SHAPED.search(text):
        tally["not compared with torch"] += 1
        return None
    try:
        return oracle.compiled(text)
    except Exception as error:
        raise Skip(f"torch does not compile: {str(error).strip().partition(chr(10))[0][:60]}") from None


def compare_with_torch(function: Any, source: str, module: Any, sets: list[list[Any]], wants: list[Outcome], tally: Counter[str]) -> None:
    """The reference is compared with torch on all inputs: with TorchScript, and with eager torch where that differs. Raises Wrong."""
    for which, values, got in zip(("", " on other values", " on other memory"), sets, wants):
        tally["compared with torch"] += 1
        reference = partial(irtool.run, module, values, interpret=True)
        if got[0] == "error":       # perhaps of what is not used: torch and plans may leave that out
            planned = outcome(lambda: irtool.compile(module).run(values))       # noqa: B023  called here
            if planned[0] == "value" and oracle.ran(function, values)[0] == "value":
                tally["raises in the reference alone, in what is not used"] += 1
                got = planned
        compare = partial(compare_results, values=values, got=got, way=f"torch{which}", tally=tally, reference=reference)
        try:
            agree_with_either(compare, function, partial(oracle.eager, source, False), tally)
        except Wrong:
            want = oracle.ran(function, values)
            if "corrcoef" in source and is_same(nan_for_infinity(got), nan_as_in(nan_for_infinity(want), nan_for_infinity(got)), "torch"):
                tally["torch has a correlation of equal numbers, whose mean it rounds"] += 1
                continue
            if "histogram" in source and counts_beside(got, want):
                tally["rounding decides between two bins"] += 1
                continue
            if not NAN_OF_INFINITY.search(source) or not is_same(nan_for_infinity(got), nan_for_infinity(want), "torch"):
                raise
            tally["torch has nan for an infinity"] += 1


def compare_results(function: Any, values: list[Any], got: Outcome, way: str, tally: Counter[str], reference: Callable[[], Any]) -> None:
    """What the reference gave against what a function of torch gives. Raises Wrong."""
    want = oracle.ran(function, values)
    if "is singular" in str(got[1]) + str(want[1]) and got[0] != want[0]:
        tally["rounding decides whether a matrix is singular"] += 1
        return
    if want[0] == "error" and got[0] == "value":
        if oracle.FAULTS.search(want[1]):
            tally["torch falls over"] += 1
            return
        if "stride" in want[1] and any(isinstance(each, np.ndarray) and not each.size for each in values):
            tally["torch refuses strides of no elements"] += 1
            return
        if oracle.is_script(function) and raises_as_torch_has_it(function, values):
            tally["raises in torch alone, in what is not used"] += 1
            return
        raise Wrong(way, f"lenient: no error, but torch: {want[1][:150]}")
    if want[0] == "value":
        found = (got[0], tuple(got[1]) if got[0] == "value" else got[1])
        flat = want[1] if isinstance(want[1], tuple) and got[0] == "value" and len(got[1]) != 1 else (want[1],)
        try:
            agree(found, ("value", flat), way, least=MIXED)
        except Wrong:       # single precision: torch's own sums of a million elements are off by more than the tolerance
            precise = oracle.ran(function, doubled(values))
            wide = in_dtypes_of(flat, (precise[1],) if len(flat) == 1 else precise[1]) if precise[0] == "value" else None
            if wide is not None and is_same(found, ("value", wide), way):
                tally["as torch has it in double precision"] += 1
            else:
                agree_but_for_rounding(found, ("value", flat), way, reference, tally, MIXED)


def counts_beside(got: Outcome, want: Outcome) -> bool:
    """Is each count that differs made up for by that of the next bin? torch's edges of bins are rounded as its vectors have it."""
    if got[0] != "value" or want[0] != "value" or len(got[1]) != 1 or not isinstance(want[1], np.ndarray) \
            or got[1][0].shape != want[1].shape:
        return False
    moved = np.cumsum(got[1][0] - want[1])
    return bool(moved.size and moved[-1] == 0 and not (moved[1:] * moved[:-1]).any())


def nan_for_infinity(each: Any) -> Any:
    """A value of any structure with nan for each infinity; a structure of one value as that value."""
    if isinstance(each, list | tuple):
        return nan_for_infinity(each[0]) if len(each) == 1 else tuple(map(nan_for_infinity, each))
    return np.where(np.isinf(each), each.dtype.type(np.nan), each) if isinstance(each, np.ndarray) and each.dtype.kind in "fc" else each


def nan_as_in(each: Any, like: Any) -> Any:
    """A value of any structure with nan where `like`, of the same structure, has it."""
    if isinstance(each, tuple) and isinstance(like, tuple) and len(each) == len(like):
        return tuple(map(nan_as_in, each, like))
    is_like = isinstance(each, np.ndarray) and isinstance(like, np.ndarray) and each.shape == like.shape and each.dtype.kind in "fc"
    return np.where(np.isnan(like), like, each) if is_like else each


def is_same(got: Outcome, want: Outcome, way: str) -> bool:
    """Do two outcomes agree?"""
    try:
        agree(got, want, way, least=MIXED)
    except Wrong:
        return False
    return True


def doubled(value: Any) -> Any:
    """Single precision as double precision, also inside of structures."""
    if isinstance(value, list | tuple):
        return type(value)(map(doubled, value))
    return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value


def in_dtypes_of(likes: Any, value: Any) -> Any:
    """Double precision as single precision where `likes` is that."""
    if isinstance(value, list | tuple) and isinstance(likes, list | tuple) and len(value) == len(likes):
        return type(value)(map(in_dtypes_of, likes, value))
    is_single = isinstance(likes, np.ndarray) and likes.dtype == np.float32 and isinstance(value, np.ndarray)
    return value.astype(np.float32) if is_single else value


def raises_as_torch_has_it(function: Any, values: list[Any]) -> bool:
    """Does torch's own graph of the source raise here, too? Then what raises is dead, and only torch keeps it: it drops fewer loops."""
    text = oracle.graph_text(function)
    return bool(text) and outcome(lambda: every_node(irtool.parse(text).graph(), copied(values)))[0] == "error"     # of dead ones, too


def check_way(way: str, case: Case, module: Any, function: Any, sets: list[list[Any]], wants: list[Outcome], tally: Counter[str]) -> None:
    """One way to run, four times over the inputs in turn. Raises Wrong."""
    is_complex = any(isinstance(value, complex) or getattr(value, "dtype", None) in ("complex64", "complex128") for value in sets[0])
    exact, rounds = way in EXACT and not is_complex and "complex" not in case.text, 4
    run: Callable[[list[Any]], Any]
    if way == "decompiled":
        kind, text = outcome(lambda: irtool.to_script(module, "f"))
        if kind != "value":
            tally[f"no source: {text}"] += 1
            return
        kind, again = outcome(lambda: irtool.from_script(text, "f"))
        if kind != "value":
            raise Wrong(way, f"source is refused: {again}")
        run, rounds = partial(irtool.run, again, interpret=True), 1
    elif way == "text":
        text = oracle.graph_text(function) if function is not None else str(module)
        if not text:
            return
        again = irtool.parse(text)
        if str(again) != text:
            raise Wrong(way, "the text is not printed back")
        run, rounds = partial(irtool.run, again), 2
    elif way == "run":
        run = partial(irtool.run, module)
    else:
        run = irtool.compile(module, **EXECUTORS[way]).run
    inputs = [copied(values) for values in sets]
    for turn in range(rounds):
        for which, values, want in zip(("", ", other values", ", other memory"), sets, wants):
            if which and turn in (1, 3):
                continue
            tally["ways"] += 1
            got, named = outcome(partial(run, values)), f"{way}{which}"
            reference = partial(irtool.run, module, values, interpret=True)
            try:
                agree_but_for_rounding(got, want, named, reference, tally, exact=exact and which != ", other memory")
            except Wrong:       # torch drops writes from its own graph
                if way != "text" or function is None:
                    raise
                if got[0] == "error":       # of what nothing reads: torch's text has it, though torch does not run it
                    got = outcome(partial(irtool.run, irtool.PassManager("dce").run(irtool.parse(text)), values))
                compare_results(function, values, got, named, tally, reference)
                tally[SCRIPT_ALONE] += 1
    for values, before in zip(sets, inputs):
        same(values, before, f"{way}: inputs after the run", exact=True)


def check_kinds(case: Case, module: Any, values: list[Any], tally: Counter[str]) -> None:
    """Executors that run on values of one kind, then on others, and again on those, give what the interpreter gives. Raises Wrong."""
    kinds = {"as drawn": values} | {how: of_other_kind(values, how) for how in case.options["kinds"].split()}
    wants = {how: outcome(partial(irtool.run, module, copied(each), interpret=True)) for how, each in kinds.items()}
    for way in case.options["ways"].split():
        if way not in EXECUTORS:
            continue
        run = irtool.compile(module, **EXECUTORS[way]).run
        for how in [*kinds, *kinds, *reversed(kinds)]:
            tally["ways"] += 1
            reference = partial(irtool.run, module, copied(kinds[how]), interpret=True)
            agree_but_for_rounding(outcome(partial(run, copied(kinds[how]))), wants[how], f"{way}, {how}", reference, tally)


def smaller(case: Case) -> Iterator[Case]:
    """One way alone, fewer statements, fewer results, smaller inputs."""
    ways = case.options.get("ways", "").split()
    if len(ways) > 1:
        yield from (case.with_option("ways", way) for way in ways)
    kinds = case.options.get("kinds", "").split()
    yield from (case.with_option("kinds", " ".join(kinds[:place] + kinds[place + 1:])) for place in range(len(kinds)))
    lines = case.text.rstrip("\n").split("\n")
    for fewer in fewer_statements(lines):
        yield case.with_text("\n".join(fewer) + "\n")
    for last in fewer_results(lines[-1]):
        yield case.with_text("\n".join([*lines[:-1], last]) + "\n")
    yield from smaller_inputs(case)


def fewer_results(line: str) -> Iterator[str]:
    """One result alone, or all but one."""
    head, _, results = line.partition("return ")
    for joint in (", ", " + "):
        parts = results.split(joint)
        if len(parts) > 1 and not any(mark in results for mark in "[{"):
            yield from (f"{head}return {part.strip('(,)') if joint == ', ' else part}" for part in parts)
            yield from (f"{head}return {joint.join(parts[:place] + parts[place + 1:])}" for place in range(len(parts)))


def smaller_inputs(case: Case) -> Iterator[Case]:
    """Inputs spelled out, of shorter dimensions, of zeros."""
    for name, literal in case.inputs.items():
        dims, mark, _ = literal.partition("~")
        sizes = dims.split("x")
        if mark:
            for place, size in enumerate(sizes[:-1]):
                yield from (case.with_input(name, "x".join([*sizes[:place], less, *sizes[place + 1:]]) + literal[len(dims):])
                            for less in ("2", "3", "100", "5000") if int(less) < int(size))
            value = value_of(literal)
            if value.size <= 64:
                yield case.with_input(name, spelled(value))
        elif "=" in literal and "," in literal:
            head, _, elements = literal.partition("=")
            yield case.with_input(name, f"{head}={elements.partition(',')[0]}")
    before, start, rest = case.text.rpartition("def f(")
    for name in [name for name in case.inputs if name not in rest.partition("\n")[2]]:
        head, newline, body = rest.partition("\n")
        kept = ", ".join(word for word in head.rstrip("):").split(", ") if not word.startswith(f"{name}:"))
        inputs = {key: value for key, value in case.inputs.items() if key != name}
        yield Case(case.kind, f"{before}{start}{kept}):{newline}{body}", inputs, case.options)
