"""Reverse differentiation of a graph: adds temporaries to f, and makes df.

`differentiate_graph` prepares f, lets the sweep build df, and connects the two. The tables at the end, BLOCK_HANDLERS and HANDLERS, say
which handler differentiates which kind of node. `irtool.ir.pair` defines the form of the pair.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from irtool.analysis.liveness import remove_dead_nodes
from irtool.autodiff.branch_gradients import reverse_choice
from irtool.autodiff.formula_gradients import reverse_operator
from irtool.autodiff.gradient_modes import refuse_grad_mode
from irtool.autodiff.gradient_questions import refuse_questions
from irtool.autodiff.gradients import Gradients
from irtool.autodiff.groups import open_groups
from irtool.autodiff.in_place import is_rewritable
from irtool.autodiff.list_gradients import reverse_change, reverse_list
from irtool.autodiff.loop_gradients import reverse_loop
from irtool.autodiff.overwritten import copy_before_writes
from irtool.autodiff.reach import FLOATING, holds_tensors, requiring
from irtool.autodiff.recompute import choose_captures
from irtool.autodiff.refusals import refuse_omitted, refuse_shared, refuse_untyped, refuse_writes
from irtool.autodiff.saved_sizes import ask_in_df, ask_in_f
from irtool.autodiff.structure_gradients import reverse_cast, reverse_construct, reverse_sum, reverse_tuple_index, reverse_unpack
from irtool.autodiff.sweep import Handler, Sweep
from irtool.autodiff.unread_writes import without_writes
from irtool.autodiff.verbatim_gradients import read_saved, reverse_custom, reverse_packed
from irtool.ir.collector import Paused
from irtool.ir.custom import CUSTOM_VJP
from irtool.ir.effects import CHOICE_KINDS, LOOP_KINDS, MUTATORS
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.pair import REVERSE
from irtool.ir.structure_kinds import LIST_RESHAPING_KINDS, TYPE_CASTS
from irtool.ir.types import TensorType


class Reverse:
    """A differentiated graph: f, which is the graph with temporaries appended, df and the index lists."""

    __slots__ = ("f", "df", "real_outputs", "input_vjps", "captured_inputs", "captured_outputs", "output_vjps")

    def __init__(self, f: Graph, df: Graph, real_outputs: int, lists: Sequence[list[int]]) -> None:
        self.f = f
        self.df = df
        self.real_outputs = real_outputs
        self.input_vjps, self.captured_inputs, self.captured_outputs, self.output_vjps = lists

    @property
    def lists(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """The index lists in the order of `irtool.ir.pair.LISTS`."""
        return self.input_vjps, self.captured_inputs, self.captured_outputs, self.output_vjps


def differentiate_graph(graph: Graph, flags: Sequence[bool], modern: bool, trust_types: bool = False,
                        dtypes: Mapping[Value, str] | None = None, least: bool = False, origins: bool = False,
                        by_types: bool = False) -> Reverse:
    """Differentiate `graph` with respect to the inputs whose flag is set. The graph is changed: it becomes f.

    modern: make today's form of a pair; else that of 2018 (`GradOf` has an output per operand, df also lists inputs without gradient).
    trust_types: values whose type says `requires_grad=0` need no gradient.
    dtypes: dtypes of values that their types do not say; if an operator promoted an operand, df converts the gradient back.
    least: df recomputes elementwise results where that saves bytes between f and df.
    origins: comments in df name the node of f that each node comes from.
    by_types: nobody but the types says which inputs need gradients. An input whose type does not say is left without one where an operator
    has none for it (the running mean of batch_norm, say), which otherwise is an error.
    Raises UnsupportedError, at the node's line, for an operator without a gradient.
    """
    refuse_omitted(graph, "differentiate")
    with Paused():
        open_groups(graph)
        refuse_grad_mode(graph)
        writers = [node for node in graph.walk() if is_rewritable(node)]
        if writers:
            needs = requiring(graph, flags, trust_types)
            inputs = set(graph.inputs)
            without_writes(graph, [node for node in writers if node.output in needs or node.inputs[0] not in inputs])
        refuse_questions(graph, flags, trust_types)
        read_saved(graph)
        grads = Gradients(graph, flags, modern, trust_types, dtypes or {})
        if by_types:
            grads.excused = {value for value in graph.inputs if not isinstance(value.type, TensorType) or value.type.requires_grad is None}
        return reverse_of(grads, least, origins)


def reverse_of(grads: Gradients, least: bool, origins: bool) -> Reverse:
    """The pair of a prepared graph; `least` and `origins` as for `differentiate_graph`."""
    f, df, captures = grads.f, grads.df, grads.captures
    refuse_shared(f, grads.needs, grads.changes)
    refuse_untyped(f, grads.needs, f.outputs, f.block.return_node)
    real_outputs = len(f.outputs)
    for index, value in enumerate(f.outputs):
        if value in grads.needs:
            grads.add(value, grads.take_output(value, index))
    refuse_writes(f, grads.needs)
    Sweep(grads, BLOCK_HANDLERS, HANDLERS, reverse_operator, origins).walk(f.block)
    output_vjps: list[int] = []
    gradients: list[Value] = []
    grads.build.at_end(df.block)
    for index, value in enumerate(f.inputs):
        if value in grads.left_out and value in grads.current:      # a part of the gradient is none
            raise grads.left_out[value]
        if value in grads.needs and (value in grads.current or not grads.modern):
            output_vjps.append(index)
            gradients.append(grads.value_of(value))
    df.block.set_outputs(gradients)
    remove_dead_nodes(df)
    if grads.modern:
        ask_in_df(captures)
    ask_in_f(captures)
    if grads.modern or least:
        choose_captures(captures, least)
    copy_before_writes(captures)
    captured_inputs, captured_outputs, temporaries = captures.lift(real_outputs)
    grads.take_temporaries(temporaries, len(f.outputs) - len(temporaries))
    grads.drop_renamings()
    remove_dead_nodes(f)
    df = captures.in_order([*[value for _, value in grads.vjps], *[captures.at_top[f.inputs[i]] for i in captured_inputs],
                            *[captures.at_top[f.outputs[i]] for i in captured_outputs]])
    return Reverse(f, df, real_outputs, ([index for index, _ in grads.vjps], captured_inputs, captured_outputs, output_vjps))


BLOCK_HANDLERS: dict[str, Callable[[Sweep, Node], None]] = {
    **dict.fromkeys(CHOICE_KINDS, reverse_choice),
    **dict.fromkeys(LOOP_KINDS, reverse_loop),
}
"""Kind of a node with blocks -> its handler, which also walks the blocks."""

HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(LIST_RESHAPING_KINDS, reverse_list),
    **dict.fromkeys(MUTATORS, reverse_change),
    **dict.fromkeys(TYPE_CASTS, reverse_cast),
    "prim::ListConstruct": reverse_construct,
    "prim::TupleConstruct": reverse_construct,
    "prim::NamedTupleConstruct": reverse_construct,
    "prim::ListUnpack": reverse_unpack,
    "prim::TupleUnpack": reverse_unpack,
    "prim::TupleIndex": reverse_tuple_index,
    "prim::AutogradAdd": reverse_sum,
    CUSTOM_VJP: reverse_custom,
    REVERSE: reverse_packed,        # nodes of any kind that have a gradient of their own
}
"""Kind of a node without blocks -> its handler; `reverse_operator` handles all other kinds."""

__all__ = ["FLOATING", "Reverse", "differentiate_graph", "holds_tensors", "requiring"]
