"""Gradients: the same by the reference, by plans and tapes of every executor, by pairs of graphs, and in torch; refusals are the same, too.

Ways: `vjp` (irtool.vjp, again and again), the executors of programs.py, `record` (a tape that is kept), `pair` (the pass differentiate,
f and df run by the interpreter), `groups` (create-autodiff-subgraphs first), `passes` (other passes first), `differences` (gradcheck).
"""
from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import irtool
from fuzz import oracle, programs
from fuzz.case import Case
from fuzz.judge import Outcome, Skip, Wrong, agree, agree_with_either, outcome
from fuzz.pipelines import steps
from fuzz.programs import EXECUTORS, compile_source, torch_function
from fuzz.rounding import agree_but_for_rounding
from fuzz.source import Style, program
from fuzz.values import OTHER_KINDS, copied, elements, of_other_kind, value_of
from irtool.analysis.gradients_off import modes_in
from irtool.execute.mixed_dtypes import may_mix
from irtool.ir.types import spell, tensor_type

HUGE = 1e6
"""Gradients beyond this, and those that are not finite, say nothing."""
EXCUSED = ("modified by an inplace operation", "is a view and ", "A view was created in no_grad mode",
           "does not require grad and does not have a grad_fn", "does not support automatic differentiation for outputs with complex dtype",
           "Found dtype ", "derivative for ", "Negation, the `-` operator, on a bool", "a leaf Variable that requires grad is being used",
           "_backward\" not implemented for 'Complex", "unsupported for Sparse tensors", "'nll_loss_forward' is not differentiable",
           "cannot reshape tensor of 0 elements into shape [-1, 0]")
"""torch's autograd keeps one version of what is written into; irtool has them all, and what it gives is compared between its ways. And
torch's views made in no_grad say that they require gradients, and have none. It differentiates fewer operators than irtool, and fewer of
complex numbers, and fewer losses of mixed dtypes. A view that was made before its base got a gradient by a write is a leaf to it. Its
scripts give real operands complex gradients. Few of its operators take the sparse gradients of others. It has no gradients of weights of
cross_entropy_loss. (Which operators irtool itself has none for is stated, and compared with torch, in test_refused_gradients.py.)"""
TURNED_PARTS = re.compile(r"aten::(view_as_real|view_as_complex|real|imag|conj|_conj|_neg_view)\(.*"
                          r"aten::((un)?squeeze_|t_|(transpose|swapaxes|swapdims)_)\(", re.DOTALL)
"""Views of another dtype whose shape was changed in place: once such a view is written into, torch's gradient makes it anew without the
change, and its shape does not fit ("returned an invalid gradient")."""
EXPANDED = "more than one element of the written-to tensor"
"""What torch's backward pass says of a write into an expanded tensor that its forward pass took: it writes the gradient likewise."""
UNSEEN = re.compile(r"aten::(logical_(and|or|xor|not)_|narrow_copy)\(")
"""Writes that torch's autograd does not see: what was overwritten counts as the result, with slope 1 instead of 0. And narrow_copy, whose
gradient is 0 in torch if the start is negative."""
HIDDEN_VIEWS = re.compile(r"aten::unsafe_(chunk|split|split_with_sizes)\(")
"""Views that torch takes for new tensors: the caller promises not to write into them, so no gradient sees a write."""
NOT_THE_SLOPE = re.compile(r"aten::(mse_loss|smooth_l1_loss)\(|aten::view_as_real.*aten::(un)?squeeze_.*aten::index_add_", re.DOTALL)
"""Means whose gradient divides by the elements of the operand in torch (which warns), though a larger target repeats it. And index_add_
into real views whose shape was changed in place, of which torch takes other elements."""
FEW = 40
"""Elements of all inputs together, for finite differences."""
RATHER = ("plain", "default", "threads", "profiling", "unoptimised", "record", "pair", "groups")


def draw(seed: int) -> Case:
    """Smooth programs on double precision; of large tensors, one in twenty."""
    rng = random.Random(seed)
    style = Style(grad=True, compiled=True, large=rng.random() < 1 / 20, most=11, one_result=rng.random() < 0.4)
    drawn = program(seed, replace(style, silent=rng.random() < 1 / 3, mixed=rng.random() < 1 / 4))
    rare = [way for way in ("native", "differences") if rng.random() < 0.1]
    ways = {"vjp", *rng.sample(RATHER, 3), *rare}
    options = {"ways": " ".join(sorted(ways))}
    if rng.random() < 0.3:
        options["ways"] += " passes"
        options["pipeline"] = ",".join(rng.choice(steps()) for _ in range(3))
    if rng.random() < 0.2:
        options["undefined"] = str(rng.randrange(3))
    if rng.random() < 0.4:
        options["wrt"] = str(rng.randrange(1, 8))
    if not style.large and rng.random() < 0.15:
        options["kinds"] = " ".join(rng.choices(OTHER_KINDS, k=3))
    return Case("gradients", drawn.source, drawn.inputs, options)


def check(case: Case, tally: Counter[str]) -> None:
    """All ways against the reference, and the reference against torch. Raises Wrong, Skip."""
    values = [value_of(literal) for literal in case.inputs.values()]
    wrt = [place for place, value in enumerate(values) if isinstance(value, np.ndarray) and value.dtype.kind in "fc"]
    if not wrt:
        raise Skip("no floating-point input")
    mask = int(case.options.get("wrt", -1))     # bits: which of these need gradients; an input without may get one by a write
    wrt = [place for number, place in enumerate(wrt) if mask >> number & 1] or wrt
    function = torch_function(case.text, tally)
    module = compile_source(case.text, tally)
    outputs = outcome(lambda: irtool.run(module, values, interpret=True))
    if outputs[0] != "value":
        tally[f"{'refused' if outputs[0] == 'refused' else 'raises'}: {outputs[1]}"] += 1
        raise Skip("no outputs")
    seeds = cotangents(leaves(outputs[1]), case.options.get("undefined"))
    if not seeds or all(seed is None for seed in seeds):
        raise Skip("no floating-point output")
    want = outcome(lambda: irtool.vjp(module, values, seeds, wrt, interpret=True))
    tally["ways"] += 1
    if want[0] == "refused":
        tally[f"refused: {want[1]}"] += 1
    if function is not None:
        agree_with_either(lambda each: compare_with_torch(each, module, values, seeds, wrt, want, tally), function,
                          lambda: oracle.eager(case.text, False), tally)
    want = copied(want)
    if want[0] == "value" and not all(map(is_tame, [*want[1], *leaves(outputs[1])])):
        raise Skip("not finite")
    for way in case.options["ways"].split():
        check_way(way, case, module, values, seeds, wrt, want, tally)
    if "kinds" in case.options:
        check_kinds(case, module, values, wrt, tally)


def is_tame(value: Any) -> bool:
    """Is it finite, and of moderate size?"""
    return not isinstance(value, np.ndarray) or bool(np.isfinite(value).all() and np.abs(value).max(initial=0) < HUGE)


def leaves(value: Any) -> list[Any]:
    """Tensors in results, in order; of dicts in order of insertion."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in leaves(each)]
    return [value] if isinstance(value, np.ndarray) else []


def cotangents(outputs: list[Any], undefined: str | None) -> list[Any]:
    """An array for each output, None for that whose number is `undefined`, and for those that have no gradient."""
    rng = np.random.default_rng(len(outputs))
    seeds = [elements(rng, each.shape, each.dtype.name) if each.dtype.kind in "fc" else None for each in outputs]
    if undefined is not None and len(seeds) > int(undefined):
        seeds[int(undefined)] = None
    return seeds


def compare_with_torch(function: Any, module: Any, values: list[Any], seeds: list[Any], wrt: list[int], want: Outcome,
                       tally: Counter[str]) -> None:
    """torch.autograd on the same. Raises Wrong, also where torch has a gradient and the reference an error that is no refusal."""
    torch = oracle.library()
    inputs = [oracle.to_torch(each) for each in values]
    for place in wrt:
        inputs[place].requires_grad_()
    results = None
    try:
        results = oracle.leaves(function(*[each.clone() if place in wrt else each for place, each in enumerate(inputs)]))
        pairs = [(one, oracle.to_torch(np.asarray(seed))) for one, seed in zip(results, seeds) if seed is not None and one.requires_grad]
        gradients = [None for _ in wrt] if not pairs else torch.autograd.grad(
            [one for one, _ in pairs], [inputs[place] for place in wrt], [seed for _, seed in pairs], allow_unused=True)
    except Exception as error:
        words = str(error).strip().rpartition("\n")[2][:150]
        tally[f"torch raises: {words[:60]}"] += 1
        is_excused = any(each in words for each in EXCUSED) or results is not None and (
            EXPANDED in words or "returned an invalid gradient" in words and bool(TURNED_PARTS.search(str(module))))
        if oracle.GRADIENT_FAULTS.search(words) or UNSEEN.search(str(module)):
            return
        if want[0] == "value" and is_excused and not oracle.is_script(function):
            check_differences(module, values, tally, 5 * FEW)   # TorchScript gave another gradient, and eager torch refuses: who is right?
        elif want[0] == "value" and oracle.is_script(function) and not is_excused and programs.raises_as_torch_has_it(function, values):
            tally["raises in torch alone, in what is not used"] += 1
        elif want[0] == "value" and not (is_excused and oracle.is_script(function)):
            raise Wrong("torch", f"lenient: no error, but torch: {words}") from None
        return
    tally["compared with torch"] += 1
    expected = [np.zeros_like(values[place]) if each is None else oracle.to_numpy(each) for place, each in zip(wrt, gradients)]
    if all(map(is_tame, expected)) and want[0] != "refused":
        got = want[0], dense(want[1], values, wrt) if want[0] == "value" else want[1]
        try:
            agree_but_for_rounding(got, ("value", expected), "torch", partial(dense_reference, module, values, seeds, wrt), tally)
        except Wrong:
            if UNSEEN.search(str(module)) or HIDDEN_VIEWS.search(str(module)):
                tally["torch's gradient does not see a write, or a negative start"] += 1
                return
            # torch's `_unsafe_view`, in kron, does not see that what it saved was written into, and its `silu_` of complex numbers forgets
            # to refuse, and gives the conjugates: who is right?
            if "aten::kron(" in str(module) and not all(map(is_tame, leaves(irtool.run(module, values, interpret=True)))):
                tally["torch's gradient of kron, where differences cannot tell"] += 1
                return
            if want[0] != "value" or not check_differences(module, values, tally, 5 * FEW):
                if any(modes_in(module.graph())) and NOT_THE_SLOPE.search(str(module)):
                    tally["torch's gradient is known not to be the slope, where differences cannot tell"] += 1
                    return
                raise
            tally["torch's gradient is not the slope"] += 1


def dense(gradients: list[Any], values: list[Any], wrt: list[int]) -> list[Any]:
    """Zeros for None."""
    return [np.zeros_like(values[place]) if each is None else each for place, each in zip(wrt, gradients)]


def dense_reference(module: Any, values: list[Any], seeds: list[Any], wrt: list[int]) -> list[Any]:
    """The gradients by the interpreter, zeros for None."""
    return dense(irtool.vjp(module, values, seeds, wrt, interpret=True), values, wrt)


def check_way(way: str, case: Case, module: Any, values: list[Any], seeds: list[Any], wrt: list[int], want: Outcome,
              tally: Counter[str]) -> None:
    """One way, three times. Raises Wrong where it differs, or refuses what the reference does not, or the other way round."""
    if way == "differences":
        check_differences(module, values, tally)
        return
    try:
        calls = callers(way, module, values, seeds, wrt, case.options.get("pipeline", ""))
    except (irtool.PassError, irtool.UnsupportedError) as error:
        tally[f"refused: {way}: {str(error).rpartition('error: ')[2].partition(chr(10))[0][:80]}"] += 1
        return
    for call in calls:
        tally["ways"] += 1
        try:
            got = outcome(call)
        except Skip as reason:
            tally[f"not tried: {reason}"] += 1
            return
        if got[0] == "refused" and want[0] == "value" and way in ("pair", "groups", "passes"):
            tally[f"refused: {way}: {got[1]}"] += 1
            return
        if got[0] == "value" and want[0] == "refused":
            if not any(np.any(each) for each in dense(got[1], values, wrt)):
                tally["no gradient, where the reference refuses that of zeros"] += 1
                return
            raise Wrong(way, f"a gradient that the reference refuses: {want[1]}")
        if got[0] == "value" and want[0] == "value":
            got = "value", dense(got[1], values, wrt)
            agree_but_for_rounding(got, ("value", dense(want[1], values, wrt)), way, partial(dense_reference, module, values, seeds, wrt),
                                   tally)
        else:
            agree(got, want, way)


def check_kinds(case: Case, module: Any, values: list[Any], wrt: list[int], tally: Counter[str]) -> None:
    """Executors that take gradients at values of one kind, then at others, and again at those, give what the reference gives. Raises
    Wrong."""
    kinds, seeds, wants = {}, {}, {}
    for how in ("as drawn", *case.options["kinds"].split()):
        kinds[how] = values if how == "as drawn" else of_other_kind(values, how)
        outputs = outcome(partial(irtool.run, module, copied(kinds[how]), interpret=True))
        seeds[how] = cotangents(leaves(outputs[1]), None) if outputs[0] == "value" else []
        want = outcome(partial(irtool.vjp, module, copied(kinds[how]), seeds[how], wrt, interpret=True))
        if outputs[0] == want[0] == "value" and any(each is not None for each in seeds[how]) \
                and all(map(is_tame, [*want[1], *leaves(outputs[1])])):
            wants[how] = want
    for way in case.options["ways"].split():
        if way not in (*EXECUTORS, "vjp"):
            continue
        vjp: Any = partial(irtool.vjp, irtool.parse(str(module))) if way == "vjp" else irtool.compile(module, **EXECUTORS[way]).vjp
        for how in [*wants, *wants, *reversed(wants)]:
            tally["ways"] += 1
            got = outcome(partial(vjp, copied(kinds[how]), seeds[how], wrt))
            if got[0] == "value":
                got = "value", dense(got[1], kinds[how], wrt)
            agree_but_for_rounding(got, ("value", dense(wants[how][1], kinds[how], wrt)), f"{way}, {how}",
                                   partial(dense_reference, module, kinds[how], seeds[how], wrt), tally)


def callers(way: str, module: Any, values: list[Any], seeds: list[Any], wrt: list[int], pipeline: str) -> list[Callable[[], Any]]:
    """What to call, in order; pipeline: for the way `passes`. Raises PassError where the pass refuses."""
    if way == "vjp":
        return [lambda: irtool.vjp(module, values, seeds, wrt)] * 3
    if way in EXECUTORS:
        executor = irtool.compile(module, **EXECUTORS[way])
        return [lambda: executor.vjp(values, seeds, wrt)] * 3
    if way == "record":
        recording = irtool.compile(module, native=False)
        return [lambda: recording.record(values, wrt).backward(seeds)] * 2
    changed = irtool.parse(str(module))
    if way in ("groups", "passes"):
        irtool.PassManager("create-autodiff-subgraphs{threshold=1}" if way == "groups" else pipeline, verify=True).run(changed)
        return [lambda: irtool.vjp(changed, values, seeds, wrt, interpret=True), lambda: irtool.vjp(changed, values, seeds, wrt)]
    if may_mix(changed.graph(), values):        # df converts gradients back where types state dtypes
        state_types(changed.graph(), values)
    wanted = ",".join(map(str, wrt))
    irtool.PassManager(f"differentiate{{wrt={wanted}}},lower-grad-of,O1", verify=True).run(changed)
    return [lambda: by_pair(changed, values, seeds, wrt)]


def state_types(graph: Any, values: list[Any]) -> None:
    """Write dtypes and sizes of tensors into the types of a graph's inputs."""
    for value, array in zip(graph.inputs, values):
        if isinstance(array, np.ndarray):
            value.type = spell(tensor_type(array.dtype.name, array.shape), graph.dialect)


def by_pair(module: Any, values: list[Any], seeds: list[Any], wrt: list[int]) -> list[Any]:
    """f and df of a module with a pair, run by the interpreter; only where outputs are tensors, as cotangents go by output there."""
    from irtool.execute.pairs import Forward
    from irtool.ir.pair import pairs

    forward = Forward(next(iter(pairs(module))), values)
    if not all(isinstance(each, np.ndarray) for each in forward.outputs):
        raise Skip("a pair that gives structures")
    gradients, _ = forward.backward({place: seed for place, seed in enumerate(seeds) if seed is not None})
    return [gradients.get(place) for place in wrt]


def check_differences(module: Any, values: list[Any], tally: Counter[str], most: int = FEW) -> bool:
    """gradcheck in the first order, of small inputs in double precision: was it tried, and right? Raises Wrong."""
    if any(each.dtype not in (np.float64, np.complex128) for each in values if isinstance(each, np.ndarray)) \
            or sum(map(np.size, values)) > most or any(modes_in(module.graph())) \
            or HIDDEN_VIEWS.search(str(module)):        # they do not know where gradients stop
        return False
    if not all(map(is_tame, leaves(irtool.run(module, values, interpret=True)))):
        return False        # what is not finite has no derivative
    kind, report = outcome(lambda: irtool.gradcheck(module, values, order=1))
    if kind == "value" and report.unsupported:
        kind = "refused"
    tally[f"gradcheck: {kind}"] += 1
    if kind == "value" and not report.is_right:
        raise Wrong("differences", str(report)[:500])
    return kind == "value"


def smaller(case: Case) -> Iterator[Case]:
    """Fewer passes; then as programs are made smaller."""
    steps = case.options.get("pipeline", "").split(",")
    for place in range(len(steps)) if len(steps) > 1 else ():
        yield case.with_option("pipeline", ",".join(steps[:place] + steps[place + 1:]))
    yield from programs.smaller(case)

