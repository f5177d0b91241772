"""The passes of a plan: what rewrites a lowered program, in which order, when, and why.

`PLAN_PASSES` is all there is: nothing else rewrites a program between lowering and the choice of memory. `irtool plan --print-after-all`
shows the program after each.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from irtool.execute.fusing import fused_graph, is_worth_fusing, may_be_native
from irtool.execute.fusion import GroupOptions
from irtool.execute.native.building import compiler
from irtool.execute.native.c_loops import NativeLoop
from irtool.execute.plan import memory
from irtool.execute.plan.batch_slices import join_siblings
from irtool.execute.plan.constant_results import drop_needless
from irtool.execute.plan.convolution_epilogues import finish_convolutions
from irtool.execute.plan.convolutions import prepare_weights
from irtool.execute.plan.copies import needless_copies
from irtool.execute.plan.in_place_loops import keep_in_place, spread_inputs
from irtool.execute.plan.large_results import into_buffers
from irtool.execute.plan.list_stacks import stack_lists
from irtool.execute.plan.lower import Lowering, Observed
from irtool.execute.plan.parallel import run_beside
from irtool.execute.plan.program import Program, Visit
from irtool.execute.plan.round_products import hoist_products
from irtool.execute.plan.row_functions import use_rows
from irtool.execute.plan.row_reductions import use_folds
from irtool.execute.written_out import written_out
from irtool.ir.graph import Graph, Node

ALWAYS, FUNCTION = "always", "function"
"""When a pass runs: for the slot interpreter too, which runs once; or only for the compiled function, which runs often."""




class Making:
    """A program under construction.

    graph: the graph to lower, with groups once `fuse` has chosen them; options: how groups and loops may run; thorough: does the program
    become a function that runs often? start: the function that lowers the graph, leaving out the copies passed to it.
    """

    __slots__ = ("graph", "observed", "options", "is_grouped", "thorough", "lowering", "program", "_start")

    def __init__(self, graph: Graph, observed: Observed | None, options: GroupOptions, is_grouped: bool, thorough: bool,
                 start: Callable[[Making, frozenset[tuple[Node, int]]], tuple[Program, Lowering]]) -> None:
        self.graph = graph
        self.observed = observed
        self.options = options
        self.is_grouped = is_grouped
        self.thorough = thorough
        self._start = start
        self.lower()

    def lower(self, without: frozenset[tuple[Node, int]] = frozenset()) -> None:
        """Lower the graph, which a pass may have changed. All rewrites so far are undone. without: copies to leave out, of those that
        were left out before too. Raises NotLowered."""
        self.program, self.lowering = self._start(self, without)


class PlanPass(NamedTuple):
    """One pass: its name, what it does to a program being made, when it runs, and why there is such a pass."""

    name: str
    run: Callable[[Making], None]
    when: str
    reason: str


def fuse(making: Making) -> None:
    """Form groups of pointwise operators, and lower again: for a single run only where a group may have other bits than its calls."""
    if not making.is_grouped and is_worth_fusing(making.program, making.options.native) \
            and (making.thorough or may_be_native(making.program, making.options.native)):
        making.is_grouped = True
        copy = fused_graph(making.graph, making.lowering.env)
        making.observed = observed_again(making.observed, copy)
        making.graph = copy
        making.lower()


def write_out(making: Making) -> None:
    """Replace recurrent operators by loops, and lower again, if loops become C; the operators are faster than loops in Python."""
    if making.options.native is False or compiler() is None:
        return
    copy = written_out(making.graph, making.lowering.env)
    if copy is None:
        return
    before = making.observed, making.graph, making.is_grouped
    making.observed = observed_again(making.observed, copy)
    making.graph = copy
    making.is_grouped = False       # what it is made of may be fused now
    making.lower()
    if not any(isinstance(each, Visit) and isinstance(each.function, NativeLoop) for each in memory.every(making.program.body)):
        making.observed, making.graph, making.is_grouped = before
        making.lower()


def drop_copies(making: Making) -> None:
    """Lower again without copies that no reader can distinguish from the original."""
    without = needless_copies(making.program)
    if without:
        making.lower(frozenset(without))


PLAN_PASSES: tuple[PlanPass, ...] = (
    PlanPass("write-out", write_out, ALWAYS, "a loop over time is compiled as a whole"),
    PlanPass("fuse", fuse, ALWAYS, "a group of pointwise operators touches memory once, block by block"),
    PlanPass("drop-copies", drop_copies, FUNCTION, "a copy that never meets its original need not be one; first, since it lowers again"),
    PlanPass("stack-lists", lambda making: stack_lists(making.program), FUNCTION,
             "a list with an array of one shape per iteration becomes one array, which the passes behind this one see through"),
    PlanPass("hoist-products", lambda making: hoist_products(making.program), ALWAYS,
             "one product of a tall matrix is faster than one of a row per iteration"),
    PlanPass("drop-constants", lambda making: drop_needless(making.program), FUNCTION,
             "what is the same in every run is computed once, what nobody reads never"),
    PlanPass("join-slices", lambda making: join_siblings(making.program), FUNCTION,
             "equal calls on slices of a small array cost one call instead of one each"),
    PlanPass("update-in-place", lambda making: keep_in_place(making.program), FUNCTION, "loop-carried arrays need no copy per iteration"),
    PlanPass("spread-inputs", lambda making: spread_inputs(making.program), FUNCTION,
             "an input that every iteration would broadcast is broadcast once, in front of the loop"),
    PlanPass("write-into-buffers", lambda making: into_buffers(making.program), ALWAYS, "large results take memory the plan has"),
    PlanPass("prepare-weights", lambda making: prepare_weights(making.program), ALWAYS,
             "what depends on a constant weight alone is done once"),
    PlanPass("finish-convolutions", lambda making: finish_convolutions(making.program), FUNCTION,
             "what follows a convolution element by element runs on each part of it that is in the cache"),
    PlanPass("parallel", lambda making: run_beside(making.program, making.options.threads), ALWAYS,
             "heavy instructions that do not need each other run on several threads"),
    PlanPass("row-functions", lambda making: use_rows(making.program, making.options.native), FUNCTION,
             "NumPy's loop over short rows costs more than what it does in one; last, since no pass reads loops in C"),
    PlanPass("row-reductions", lambda making: use_folds(making.program, making.options.native), FUNCTION,
             "the same for sums, means and extremes"),
)
"""In order."""


def rewrite(making: Making, after: Callable[[str, Program], None] | None = None) -> Program:
    """Run the passes; after: called with the name of each pass and the program after it.

    Raises NotLowered.
    """
    if after is not None:
        after("lower", making.program)
    for each in PLAN_PASSES:
        if making.thorough or each.when == ALWAYS:
            each.run(making)
            if after is not None:
                after(each.name, making.program)
    return making.program


def observed_again(observed: Observed | None, copy: Graph) -> Observed | None:
    """The facts observed at a graph's nodes, by the corresponding nodes of a copy of the graph."""
    if observed is None:
        return None
    nodes = {(node.kind, node.outputs[0].name): node for node in copy.walk() if node.outputs}
    pairs = [(nodes.get((node.kind, node.outputs[0].name)) if node.outputs else None, metas) for node, metas in observed.items()]
    return {node: metas for node, metas in pairs if node is not None}
