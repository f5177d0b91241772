"""Tensors that are written into, as one value per version: what differentiation and batching can follow.

`out[i] = x` in a loop writes into `out` through a view. Here every write makes a new version of the whole (`select_scatter`), views are
computed anew from the latest version, and branches and loops hand versions on like any other value.
"""
from __future__ import annotations

from collections.abc import Callable

from irtool.analysis.alias import Aliases
from irtool.analysis.liveness import remove_dead_nodes
from irtool.autodiff.hidden_writes import is_writer
from irtool.autodiff.in_place import containers_late, in_its_dtype
from irtool.ir.builder import Builder
from irtool.ir.effects import IF_KINDS, LOOP_KINDS, MUTATORS
from irtool.ir.graph import RETURN, Block, Graph, Node, Value
from irtool.ir.rewrite import clone_graph, clone_node
from irtool.ir.schema import schema_of, schemas
from irtool.ir.structure_kinds import CONTAINERS
from irtool.ir.types import TENSOR, TensorType, spell
from irtool.partial.items import holds_tensor

Put = Callable[[Builder, Node, Value, Value], Value]


def _scatter(kind: str) -> Put:
    """The whole with a part of it replaced."""
    def put(build: Builder, view: Node, whole: Value, part: Value) -> Value:
        return build.node(kind, (whole, part, *view.inputs[1:]), output_types=(spell(TENSOR, build.dialect),)).output

    return put


def _reshaped(build: Builder, view: Node, whole: Value, part: Value) -> Value:
    return build.call("aten::reshape", part, build.call("aten::size", whole), type=TENSOR)


def _transposed(build: Builder, view: Node, whole: Value, part: Value) -> Value:
    return build.node(view.kind, (part, *view.inputs[1:]), output_types=(spell(TENSOR, build.dialect),)).output


VIEWS: dict[str, tuple[str, Put]] = {
    "aten::select": ("aten::select.int", _scatter("aten::select_scatter")),
    "aten::slice": ("aten::slice.Tensor", _scatter("aten::slice_scatter")),
    "aten::diagonal": ("aten::diagonal", _scatter("aten::diagonal_scatter")),
    "aten::transpose": ("aten::transpose.int", _transposed),
    "aten::t": ("aten::t", _transposed),
    "aten::unsqueeze": ("aten::unsqueeze", _reshaped),
    "aten::view": ("aten::view", _reshaped),
    "aten::squeeze": ("aten::squeeze.dim", _reshaped),
}
"""Kind of a view -> its overload, and what puts a new part back into the whole."""


def in_versions(graph: Graph) -> Graph:
    """A copy in which no tensor is written into; the graph itself where some write cannot be made a version."""
    if not any(map(is_writer, graph.walk())):
        return graph
    f = clone_graph(graph)
    containers_late(f.block)
    for node in f.walk():
        if is_writer(node):
            node.outputs[0].replace_all_uses_with(node.inputs[0])
    while _same_in_every_round(f.block):
        remove_dead_nodes(f)
    while (writer := next(filter(is_writer, f.walk()), None)) is not None:
        base = writer.inputs[0]
        while is_view(base.node):
            base = base.node.inputs[0]
        memory = Memory(f, base)
        if not memory.is_closed():
            return graph
        memory.rewrite()
    remove_dead_nodes(f)
    return f


def is_view(node: Node) -> bool:
    """Does it give a view from which a new whole can be made?"""
    if node.kind not in VIEWS or not isinstance(node.inputs[0].type, TensorType):
        return False
    schema = schema_of(node)
    return schema is not None and schema.name == VIEWS[node.kind][0]


def takes_a_view(node: Node) -> bool:
    """Does it write no numbers, but make its operand a view of itself, while other views stay as they are: `t_`, `squeeze_`, `detach_`?"""
    return any(result.alias is not None and not result.alias.is_write for schema in schemas(node.kind[:-1]) for result in schema.returns)


def _same_in_every_round(block: Block) -> bool:
    """A tensor that a loop carries round unchanged (but written into), or both branches give, is known by its first name."""
    changed = False
    for node in block:
        for inner in node.blocks:
            changed = _same_in_every_round(inner) or changed
        if node.kind in LOOP_KINDS:
            body = node.blocks[0]
            for start, value, following, output in zip(node.inputs[2:], body.inputs[1:], body.outputs[1:], node.outputs, strict=True):
                if following is value and isinstance(value.type, TensorType) and (value.has_uses or output.has_uses):
                    changed = changed or value.use_count > 1 or output.has_uses
                    value.replace_all_uses_with(start)
                    body.return_node.replace_input(body.inputs.index(value), value)
                    output.replace_all_uses_with(start)
        elif node.kind in IF_KINDS and len(node.blocks) == 2:
            for first, second, output in zip(node.blocks[0].outputs, node.blocks[1].outputs, node.outputs, strict=True):
                if first is second and output.has_uses and isinstance(first.type, TensorType):
                    output.replace_all_uses_with(first)
                    changed = True
    return changed


def in_any_layout(node: Node) -> Node:
    """`view` as `reshape`: a version has the numbers of the tensor, its strides may be others."""
    if node.kind == "aten::view":
        node.kind = "aten::reshape"
    return node


class Memory:
    """A tensor that is written into, and the views of it."""

    def __init__(self, graph: Graph, base: Value) -> None:
        self.graph = graph
        self.base = base
        self.names = [base]
        self.whole: dict[Value, Value] = {}
        """View -> what it is a view of."""
        for value in self.names:        # grows on the way
            for user, slot in value.uses:
                if slot == 0 and is_view(user):
                    self.whole[user.outputs[0]] = value
                    self.names.append(user.outputs[0])
        self.known = set(self.names)
        self.writers = {user for value in self.names for user, slot in value.uses if slot == 0 and is_writer(user)}
        self.version: dict[Value, Value] = {}
        """Name -> the version that it is a view of where it stands."""
        self.build = Builder(graph)

    def is_closed(self) -> bool:
        """Is it known who reads and writes that memory, and can every write be made a version?"""
        aliases = Aliases(self.graph)
        known = self.known | {node.outputs[0] for node in self.writers}
        for value in self.graph.values():
            if isinstance(value.type, TensorType) and value not in known and aliases.may_alias(self.base, value):
                return False
        return all(schemas(node.kind[:-1]) and not takes_a_view(node) for node in self.writers) and all(
            self.is_read(user) for value in self.names for user, _ in value.uses)

    def is_read(self, user: Node) -> bool:
        """Does a user only read the memory, there and then? Not where it hands it out of a block, or puts it into a list for later."""
        if user.kind == RETURN:
            return user.owner_block.owning_node is None
        if user.kind in LOOP_KINDS:
            return False
        if user.kind not in CONTAINERS or user.kind in MUTATORS or not user.outputs:
            return True
        for reader, _ in user.outputs[0].uses:
            if reader.owner is not user.owner or reader.kind in MUTATORS:
                return False
            if any(not isinstance(value.type, TensorType) and holds_tensor(value.type) for value in reader.outputs):
                return False        # what it gives holds the tensor, too
            node = user.next
            while node is not reader:
                if self.writes(node):
                    return False
                node = node.next
        return True

    def writes(self, node: Node) -> bool:
        """Does a node, or one in its blocks, write into the memory?"""
        return node in self.writers or any(inner in self.writers for block in node.blocks for inner in block.walk())

    def rewrite(self) -> None:
        """Make a value of every version."""
        self.sweep(self.base.node.owner_block, self.base)

    def sweep(self, block: Block, current: Value) -> Value:
        """Rewrite the nodes of a block, which starts with this version; gives that with which it ends."""
        started = block is not self.base.node.owner or self.base.is_block_input
        for node in (*block, block.return_node):
            if not started:
                started = node is self.base.node
                continue
            for slot, value in enumerate(node.inputs):
                if value in self.known:
                    node.replace_input(slot, self.read(value, current, node))
            if node in self.writers:
                current = self.write(node, current)
            elif node.blocks:
                current = self.descend(node, current)
            for value in node.outputs:
                if value in self.known:
                    self.version[value] = current
                    if current is not self.base:
                        in_any_layout(node)
        return current

    def read(self, value: Value, current: Value, node: Node) -> Value:
        """A name as it is now: the version, or a view of it."""
        if value is self.base:
            return current
        if self.version.get(value) is current:
            return value
        source = self.read(self.whole[value], current, node)
        return in_any_layout(clone_node(value.node, {value.node.inputs[0]: source}, None, self.graph)).insert_before(node).outputs[0]

    def write(self, node: Node, current: Value) -> Value:
        """A write becomes a new version."""
        build = self.build.before(node)
        written = build.node(node.kind[:-1], node.inputs, node.attributes, [node.outputs[0].type])
        written.tail, written.line = node.tail, node.line
        part, view = in_its_dtype(self.graph, written, node.inputs[0]), node.inputs[0]
        while view is not current:
            whole = view.node.inputs[0]
            put = _reshaped if view.node.kind == "aten::reshape" else VIEWS[view.node.kind][1]
            part = put(build, view.node, whole, part)
            view = whole
        node.destroy()
        return part

    def descend(self, node: Node, current: Value) -> Value:
        """Branches and loops hand versions on."""
        if not self.writes(node):
            for block in node.blocks:
                self.sweep(block, current)
            return current
        if node.kind in LOOP_KINDS:
            node.add_input(current)
            body = node.blocks[0]
            start = body.add_input(self.graph.fresh_id(), current.type)
            body.add_output(self.sweep(body, start))
        else:
            for block in node.blocks:
                block.add_output(self.sweep(block, current))
        return node.add_output(self.graph.fresh_id(), spell(TENSOR, self.graph.dialect))
