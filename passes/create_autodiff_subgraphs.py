"""Grouping of differentiable nodes."""
from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from irtool.analysis.alias import Aliases
from irtool.analysis.autodiff_groups import Item, all_groups, reads_of
from irtool.analysis.memory_classes import is_mutable
from irtool.analysis.shape_changes import loose_tensors
from irtool.autodiff.formula_graphs import has_gradient
from irtool.ir.attribute import Attribute
from irtool.ir.constants import CONSTANT_KINDS, is_constant, known_argument
from irtool.ir.dialect import Dialect
from irtool.ir.edits import clone_block, clone_node, inline_graph, replace_node
from irtool.ir.effects import FRESH, category_of, node_may_write
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.remarks import count, missed, wants_remarks
from irtool.ir.schema import schema_of
from irtool.ir.structure_kinds import GROUPED_PRIMS
from irtool.ir.types import TENSOR, ListType, TensorType
from irtool.ops.torch_lists import SYMBOLIC
from irtool.passes import BY_NAME, Values

KINDS = frozenset(name.partition(".")[0] for name in SYMBOLIC) | {"aten::chunk"}
NO_NODES: Mapping[Node, Sequence[Node]] = {}
NO_VALUES: Mapping[Value, Container[Node]] = {}


def create_autodiff_subgraphs(graph: Graph, threshold: int = 2, form: str = "") -> bool:
    """Move each group of at least `threshold` differentiable nodes into an inner graph, which a `prim::DifferentiableGraph` runs.

    Blocks of control flow are searched for groups too. `form=2018` groups neighbours; `form=modern` groups along edges from producer to
    consumer, moves nodes between them away, copies constants into the group, and merges equal nodes at the end. The default form is that of
    the file's dialect.

    before:
        graph(%x : Tensor, %y : Tensor):
          %2 : Tensor = aten::mul(%x, %y)
          %3 : Tensor = aten::tanh(%2)
          %4 : Tensor = my::op(%3)
          return (%4)

    after:
        graph(%x : Tensor, %y : Tensor):
          %5 : Tensor = prim::DifferentiableGraph_0(%x, %y)
          %4 : Tensor = my::op(%5)
          return (%4)
        with prim::DifferentiableGraph_0 = graph(%0 : Tensor,
              %1 : Tensor):
          %2 : Tensor = aten::mul(%0, %1)
          %3 : Tensor = aten::tanh(%2)
          return (%3)
    """
    BY_NAME["create-autodiff-subgraphs"].check(threshold=threshold, form=form)
    if form == "2018" or not form and graph.dialect.attribute_arguments:
        aliases = Aliases(graph) if any(map(node_may_write, graph.walk())) else None
        return slice_runs(graph, graph.block, threshold, loose_tensors(graph), aliases)
    return Slicer(graph, threshold).run()


create_autodiff_subgraphs.values = {"threshold": Values.at_least(1), "form": Values.one_of("2018", "modern")}    # type: ignore[attr-defined]
create_autodiff_subgraphs.repeats = "groups become neighbours, and can then be merged, as in torch"      # type: ignore[attr-defined]


class Slicer:
    """Groups of producers and consumers, block by block, as torch's SubgraphSlicer forms them."""

    def __init__(self, graph: Graph, threshold: int) -> None:
        self.graph = graph
        self.threshold = threshold
        self.aliases = Aliases(graph)
        self.renamed: dict[Value, Value] = {}
        self.loose = loose_tensors(graph)       # whose shapes change in place, so that their types are not true everywhere

    def run(self) -> bool:
        """Group the nodes of all blocks; returns whether anything changed."""
        groups = all_groups(self.graph, self.threshold, self.may_group, lambda: self.aliases, doubles, views_of_operands)
        if wants_remarks():
            self.explain({node for group in groups for node in group.nodes()})
        for group in groups:
            self.make(group)
        return BY_NAME["cse"](self.graph) or bool(groups)

    def may_group(self, node: Node) -> bool:
        """Does torch differentiate a node symbolically, and can the constants that it reads be copied?"""
        return is_symbolic(node) and not (self.aliases.has_writes and any(
            is_constant(value) and self.aliases.is_written(value) for value in node.inputs))

    def explain(self, grouped: Container[Node]) -> None:
        """Remark on each operator with a tensor result that is in no group."""
        for node in self.graph.walk():
            if node in grouped or not is_tensor_operator(node):
                continue
            why = ("torch has no symbolic gradient of this operator" if node.kind not in KINDS else
                   "of this overload, or of these arguments, torch has no symbolic gradient" if not is_symbolic(node) else
                   "something writes into a constant that it reads" if not self.may_group(node) else
                   f"fewer than {self.threshold} such operators are producer and consumer, with nothing between them that must stay")
            missed(self.graph, node, "not differentiated in a group", why)

    def make(self, group: Item) -> None:
        """Make the node for a group, unless merging equal nodes leaves too few."""
        node = wrap(self.graph, group.nodes(), group.operands(), group.results(), group.left, group.passed, self.renamed,
                    self.loose)
        inner = node.graphs["Subgraph"]
        BY_NAME["cse"](inner)
        if sum(each.kind not in CONSTANT_KINDS for each in inner.block) < self.threshold:
            results = inline_graph(inner, node, node.inputs)
            self.renamed.update(zip(node.outputs, results, strict=True))
            replace_node(node, results)


def is_tensor_operator(node: Node) -> bool:
    """Is a node an operator one of whose results is a tensor?"""
    return node.kind.startswith("aten::") and any(isinstance(value.type, TensorType) for value in node.outputs)


def views_of_operands(group: Item) -> list[Node]:
    """The nodes of a group whose results may share memory with its operands, and those that depend on them."""
    if not any(category_of(node) != FRESH for node in group.nodes_reversed):
        return []
    aliases, inner = _on_its_own(group)
    return _with_users(group, [value.node for value in group.gives
                               if is_mutable(value.type) and (aliases.is_wild(inner[value]) or _holds_views(value))])


def _holds_views(value: Value) -> bool:
    """Is a value a list of views (of `split`)?"""
    return isinstance(value.type, ListType) and category_of(value.node) != FRESH


def doubles(group: Item) -> list[Node]:
    """The nodes of a group whose results may share memory with an earlier result, and those that depend on them."""
    if len(group.gives) < 2 or not any(category_of(node) != FRESH for node in group.nodes_reversed):
        return []
    aliases, inner = _on_its_own(group)
    place = {value: i for i, value in enumerate(inner)}
    sets: list[list[Value]] = []
    for value in group.gives:
        near = [each for each in sets if aliases.may_alias(inner[min(each, key=place.__getitem__)], inner[value])]
        for each in near:
            each.append(value)
        if not near:
            sets.append([value])
    return _with_users(group, [value.node for each in sets for value in sorted(each, key=place.__getitem__)[1:]])


def _on_its_own(group: Item) -> tuple[Aliases, dict[Value, Value]]:
    """The aliases in a graph of only the group, and the values of the group there."""
    nodes = group.nodes()
    graph = Graph()
    mapping = {value: graph.block.add_input(graph.fresh_id(), value.type) for value in group.reads}
    for node in nodes:
        for value in reads_of(node):
            if value not in mapping:
                clone_node(value.node, mapping, graph.block, graph)
        clone_node(node, mapping, graph.block, graph)
    return Aliases(graph), mapping


def _with_users(group: Item, start: list[Node]) -> list[Node]:
    """The nodes `start`, and those of the group that depend on them, in order."""
    wanted = set(start).intersection(group.nodes_reversed)
    values = {value for node in wanted for value in node.outputs}
    nodes = []
    for node in group.nodes():
        if node in wanted or not values.isdisjoint(reads_of(node)):
            nodes.append(node)
            values.update(node.outputs)
    return nodes


def slice_runs(graph: Graph, block: Block, threshold: int, loose: set[Value], aliases: Aliases | None) -> bool:
    """Wrap maximal runs of neighbours in a block, and recursively in the blocks of other nodes. loose: as for `wrap`.

    aliases: of a graph with writes (None: there are none). What writes, and what makes memory that is written, stays outside: a group does
    not say which of its operands and results share memory.
    """
    changed = False
    run: list[Node] = []
    for node in [*block, None]:
        if node is not None and is_differentiable(node) and (aliases is None or not node_may_write(node) and not any(
                map(aliases.is_written, node.outputs))):
            run.append(node)
            continue
        if len(run) >= threshold:
            wrap(graph, run, loose=loose)
            changed = True
        run = []
        for inner in node.blocks if node is not None else ():
            changed = slice_runs(graph, inner, threshold, loose, aliases) or changed
    return changed


def is_symbolic(node: Node) -> bool:
    """Does torch differentiate a node symbolically?"""
    if node.kind in GROUPED_PRIMS:
        return True
    if node.kind == "prim::GradOf":
        return len(node.blocks) == 1 and all(map(is_symbolic, node.blocks[0]))
    if node.kind not in KINDS:
        return False
    schema = schema_of(node)
    if schema is None or schema.name not in SYMBOLIC:
        return False
    return schema.name != "aten::dropout" or known_argument(node, "train") is not False


def is_differentiable(node: Node) -> bool:
    """Can a node be in a graph that is to be differentiated?"""
    if node.kind in GROUPED_PRIMS or node.kind in KINDS:
        return True
    if node.kind == "prim::GradOf":
        return len(node.blocks) == 1 and all(map(is_differentiable, node.blocks[0]))
    if node.blocks or not node.kind.startswith("aten::"):
        return False
    schema = schema_of(node)
    return schema is not None and has_gradient(schema) is True


def wrap(graph: Graph, nodes: list[Node], operands: Sequence[Value] = (), results: Sequence[Value] | None = None,
         unused: Mapping[Node, Sequence[Node]] = NO_NODES, passed: Mapping[Value, Container[Node]] = NO_VALUES,
         renamed: dict[Value, Value] | None = None, loose: set[Value] | None = None) -> Node:
    """Move neighbours into a new graph; returns the node that runs it. Values are numbered in the order of nodes and inputs.

    operands: the first inputs, in order; results: the order of the outputs; unused: node -> constants to copy in front of it (of the return
    node: at the end) though nobody reads them; passed: operand -> the nodes outside that read it as a result of the group; renamed: result
    of an earlier group -> its present value, to which the results of this group are added; loose: values whose types say nothing of their
    shapes here, to which such results are added.
    """
    inside = set(nodes)
    loose = set() if loose is None else loose
    if renamed is not None:
        operands = [newest(value, renamed) for value in operands]
    copy = _Copy(graph.dialect, operands, loose)
    for node in nodes:
        copy.constants(unused.get(node, ()))
        copy.node(node)
    copy.constants(unused.get(nodes[0].owner_block.return_node, ()))
    kind = "prim::GraphExecutor" if graph.dialect.attribute_arguments else "prim::DifferentiableGraph"
    group = Node(kind, copy.operands, {"Subgraph": Attribute("<Graph>", copy.graph)})
    group.insert_before(nodes[0])
    count("groups made")
    count("nodes grouped", len(nodes))
    for value in [value for node in nodes for value in node.outputs] if results is None else results:
        if value.node in inside:
            readers = [(user, slot) for user, slot in value.uses if user not in inside]
        else:
            readers = [(user, slot) for user, slot in value.uses if user in passed.get(value, ())]
        if readers:
            output = group.add_output(graph.fresh_id(), TENSOR if value in loose and value.node not in inside else value.type)
            copy.graph.block.add_output(copy.mapping[value])
            if renamed is not None and value.node in inside:
                renamed[value] = output
            if value in loose:
                loose.add(output)
            for user, slot in readers:
                user.replace_input(slot, output)
    for node in reversed(nodes):
        node.destroy()
    return group


def newest(value: Value, renamed: Mapping[Value, Value]) -> Value:
    """The present value for `value`, since nodes moved into groups have new results."""
    while value in renamed:
        value = renamed[value]
    return value


class _Copy:
    """The graph under construction, into which nodes are copied."""

    def __init__(self, dialect: Dialect, operands: Sequence[Value], loose: Container[Value] = ()) -> None:
        self.graph = Graph(dialect)
        self.mapping: dict[Value, Value] = {}
        self.loose = loose
        self.operands: list[Value] = []
        """The outer values of its inputs, in order."""
        for value in operands:
            self.add_input(value)

    def add_input(self, value: Value) -> None:
        self.mapping[value] = self.graph.block.add_input(self.graph.fresh_id(), TENSOR if value in self.loose else value.type)
        self.operands.append(value)

    def constants(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node.output not in self.mapping:
                clone_node(node, self.mapping, self.graph.block, self.graph)

    def node(self, node: Node) -> None:
        graph, mapping = self.graph, self.mapping
        copy = Node(node.kind, (), node.attributes)
        copy.tail = node.tail
        copy.line = node.line
        for old in node.outputs:
            mapping[old] = copy.add_output(graph.fresh_id(), old.type)
        for value in reads_of(node):
            if is_constant(value):
                self.constants((value.node,))
            elif value not in mapping:
                self.add_input(value)
        copy.set_inputs([mapping[value] for value in node.inputs])
        graph.block.append(copy)
        for block in node.blocks:
            inner = copy.add_block()
            for value in block.inputs:
                mapping[value] = inner.add_input(graph.fresh_id(), value.type)
            clone_block(block, inner, mapping, graph)
