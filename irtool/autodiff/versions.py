"""Functionalisation: a tensor that is written into becomes one value per version, which differentiation and batching can follow.

`out[i] = x` in a loop writes into `out` through a view. Here every write computes a new version of the whole tensor (`select_scatter`),
views are computed again from the latest version, and branches and loops return and carry versions like any other value.
"""
from __future__ import annotations

from collections.abc import Callable

from irtool.analysis.gradients_off import is_off, modes_in
from irtool.analysis.liveness import remove_dead_nodes
from irtool.analysis.memory_orders import STRIDES, MemoryOrders
from irtool.analysis.overlaps import may_overlap
from irtool.autodiff.hidden_writes import is_writer
from irtool.autodiff.in_place import containers_late, kind_without_write, replaced
from irtool.autodiff.later_readers import is_container
from irtool.autodiff.own_parts import aliases_with_own_parts
from irtool.ir.builder import Builder
from irtool.ir.edits import clone_graph, clone_node, replace_inputs
from irtool.ir.effects import IF_KINDS, LOOP_KINDS, MUTATORS
from irtool.ir.graph import RETURN, Block, Graph, Node, Value
from irtool.ir.schema import schema_of, schemas
from irtool.ir.structure_kinds import CONTAINERS
from irtool.ir.types import TENSOR, TensorType, spell
from irtool.ops.size_facts import CONJUGATES
from irtool.partial.items import holds_tensor

Put = Callable[[Builder, Node, Value, Value], Value]


def _scatter(kind: str) -> Put:
    """A function that adds the node of a kind that replaces a part of a tensor, and returns the new whole."""
    def put(build: Builder, view: Node, whole: Value, part: Value) -> Value:
        return build.node(kind, (whole, part, *view.inputs[1:]), view.attributes, output_types=(spell(TENSOR, build.dialect),)).output

    return put


def _reshaped(build: Builder, view: Node, whole: Value, part: Value) -> Value:
    return build.call("aten::reshape", part, build.call("aten::size", whole), type=TENSOR)


def _transposed(build: Builder, view: Node, whole: Value, part: Value) -> Value:
    return build.node(view.kind, (part, *view.inputs[1:]), view.attributes, output_types=(spell(TENSOR, build.dialect),)).output


VIEWS: dict[str, tuple[str, Put]] = {
    "aten::select": ("aten::select.int", _scatter("aten::select_scatter")),
    "aten::slice": ("aten::slice.Tensor", _scatter("aten::slice_scatter")),
    "aten::diagonal": ("aten::diagonal", _scatter("aten::diagonal_scatter")),
    "aten::transpose": ("aten::transpose.int", _transposed),
    "aten::t": ("aten::t", _transposed),
    "aten::unsqueeze": ("aten::unsqueeze", _reshaped),
    "aten::view": ("aten::view", _reshaped),
    "aten::squeeze": ("aten::squeeze.dim", _reshaped),
    **{kind: (kind, _transposed) for kind in CONJUGATES},
}
"""Kind of a view -> its overload, and the function that computes the whole tensor from a new part."""


def in_versions(graph: Graph) -> Graph:
    """A copy of the graph without writes into tensors; the graph itself if it has none, or if one cannot be replaced."""
    if not any(map(is_writer, graph.walk())):
        return graph
    f = clone_graph(graph)
    containers_late(f.block)
    for node in f.walk():
        if is_writer(node):
            node.outputs[0].replace_all_uses_with(node.inputs[0])
    while _same_in_every_round(f.block):
        remove_dead_nodes(f)
    versions = Versions(f)
    if not versions.is_closed():
        return graph
    versions.sweep(f.block)
    if versions.is_detached:
        return graph
    remove_dead_nodes(f)
    return f


def is_view(node: Node) -> bool:
    """Is a node a view of one of VIEWS, so that the whole can be computed from a new part?"""
    if node.kind not in VIEWS or not isinstance(node.inputs[0].type, TensorType):
        return False
    schema = schema_of(node)
    return schema is not None and schema.name == VIEWS[node.kind][0]


def takes_a_view(node: Node) -> bool:
    """Does a node change only the shape or strides of its operand, not of its other views: `t_`, `squeeze_`, `detach_`?"""
    plain = schemas(kind_without_write(node.kind))
    return any(result.alias is not None and not result.alias.is_write for schema in plain for result in schema.returns)


def _same_in_every_round(block: Block) -> bool:
    """Replace values that are always one tensor by that tensor: values that a loop carries unchanged (though it may write into them), and
    results of an `If` whose branches return the same value. Returns whether the block changed."""
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
    """Turn a `view` into a `reshape`: a version has the elements of the tensor, but perhaps other strides."""
    if node.kind == "aten::view":
        node.kind = "aten::reshape"
    return node


class Versions:
    """The tensors that a graph writes into. A tensor that is no view is a *base*; its *names* are the base and all views of it.

    A write through a name computes a new version of that name only. The value that the name is a view of is recomputed (`put`) when it is
    next read: so repeated writes at the end of a chain of views cost no copies of the base.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.build = Builder(graph)
        self.orders = MemoryOrders(graph, keeps_readers=False)
        self.base_of: dict[Value, Value] = {}
        """Name -> its base."""
        self.whole: dict[Value, Value] = {}
        """View -> the name that it is a view of."""
        self.writers: dict[Node, Value] = {}
        """Node that writes -> the base that it writes into."""
        self.last_writers: dict[Value, dict[Block, Node]] = {}
        """Base -> block -> its last node that writes into the base, itself or in its blocks."""
        self.written_in: dict[Node, dict[Value, None]] = {}
        """Node with blocks -> the outer bases that its blocks write into."""
        self.read_in: dict[Node, dict[Value, None]] = {}
        """Node with blocks -> the outer bases of which its blocks read a name."""
        self.latest: dict[Value, Value] = {}
        """Name -> its latest version; out of date if the name is not in `fresh`, since another name of the base was written."""
        self.newest: dict[Value, Value] = {}
        """Base -> the name that was written last."""
        self.fresh: dict[Value, set[Value]] = {}
        """Base -> the names whose latest version is up to date."""
        self.depth: dict[Value, int] = {}
        """Name -> the length of the chain of views from its base to it."""
        self.runs_off = is_off(graph) if any(modes_in(graph)) else None
        self.is_detached = False
        """Was a version computed where gradients are off? The tensor keeps its gradient there, and the version has none."""
        self.undo: list[Callable[[], object]] = []
        """Functions that restore the state before a block: versions made in a block are not visible after it."""
        for writer in filter(is_writer, graph.walk()):
            base = writer.inputs[0]
            while base not in self.base_of and is_view(base.node):
                base = base.node.inputs[0]
            base = self.base_of.get(base, base)
            if base not in self.base_of:
                self._note_names(base)
            self.writers[writer] = base
            self.note_last(writer, base)
            note_around(self.written_in, base, writer)

    def _note_names(self, base: Value) -> None:
        names = [base]
        self.base_of[base], self.latest[base], self.newest[base], self.fresh[base], self.depth[base] = base, base, base, {base}, 0
        for value in names:        # the loop appends to it
            for user, slot in value.uses:
                note_around(self.read_in, base, user)
                if slot == 0 and is_view(user):
                    view = user.outputs[0]
                    self.whole[view], self.base_of[view], self.depth[view] = value, base, self.depth[value] + 1
                    names.append(view)

    def note_last(self, writer: Node, base: Value) -> None:
        """Note a writer, which comes after all noted ones, in the blocks around it up to that of the base."""
        node: Node | None = writer
        while node is not None:
            block = node.owner_block
            self.last_writers.setdefault(base, {})[block] = node
            node = None if block is base.node.owner_block else block.owning_node

    def is_closed(self) -> bool:
        """Are all readers and writers of the bases known, and can every write become a version?"""
        aliases = aliases_with_own_parts(self.graph)
        roots: dict[Value, Value] = {}
        for base in self.newest:
            if any(roots.setdefault(root, base) is not base for root in aliases.roots(base)):
                return False
        if sum(map(aliases.is_wild, self.newest)) > 1:
            return False
        shares = aliases.sharing(self.newest)
        results = {node.outputs[0] for node in self.writers}
        if any(not is_container(value.type) and value not in self.base_of and value not in results and shares(value)
               for value in self.graph.values()):
            return False
        return all(schemas(kind_without_write(node.kind)) and not takes_a_view(node) and not may_overlap(node, aliases.may_alias)
                   for node in self.writers) and all(
            self.is_read(user, base) for name, base in self.base_of.items() for user, _ in name.uses)

    def is_read(self, user: Node, base: Value) -> bool:
        """Does a user read only the elements of a name, and only when it runs? False if it returns the tensor from a block, stores it in a
        container that is read after a later write, or asks for strides, which a version of a part does not have."""
        if user.kind in STRIDES:
            return False
        if user.kind == RETURN:
            return user.owner_block.owning_node is None
        if user.kind in LOOP_KINDS:
            return False
        if user.kind in CONTAINERS and (user.kind in MUTATORS or not user.outputs):
            return not self.may_be_written_after(user, base)
        if user.kind not in CONTAINERS:
            return True
        for reader, _ in user.outputs[0].uses:
            if reader.owner is not user.owner or reader.kind in MUTATORS or reader.kind in CONTAINERS and not reader.outputs:
                return False
            if any(not isinstance(value.type, TensorType) and holds_tensor(value.type) for value in reader.outputs):
                return False        # its result may contain the tensor
            node = user.next
            while node is not reader:
                if self.writers.get(node) is base or base in self.written_in.get(node, ()):
                    return False
                node = node.next
        return True

    def may_be_written_after(self, user: Node, base: Value) -> bool:
        """May a tensor be written after a node has put it into a list or dict, which then contains the new version?"""
        node = user
        while True:
            last = self.last_writers[base].get(node.owner_block)
            if last is not None and last is not node and node.before_in_block(last):
                return True
            owner = node.owner_block.owning_node
            if owner is None or node.owner is base.node.owner:
                return False
            node = owner
            if node.kind in LOOP_KINDS and base in self.written_in.get(node, ()):       # in the next round
                return True

    def sweep(self, block: Block) -> None:
        """Rewrite the nodes of a block in order."""
        for node in (*block, block.return_node):
            target = node.inputs[0] if node in self.writers else None
            if not self.base_of.keys().isdisjoint(node.inputs):
                replace_inputs(node, [self.read(value, node) if value in self.base_of else value for value in node.inputs])
            if target is not None:
                self.write(node, target)
            elif node.blocks:
                self.descend(node)
            for value in node.outputs:
                if value in self.whole:
                    base = self.base_of[value]
                    self.note(value, value)
                    if self.newest[base] is not base or self.latest[base] is not base:
                        in_any_layout(node)

    def note(self, name: Value, version: Value) -> None:
        """Set the version of a name, which is up to date."""
        fresh = self.fresh[self.base_of[name]]
        before = self.latest.get(name, name)

        def undo() -> None:
            fresh.discard(name)
            self.latest[name] = before
        self.undo.append(undo)
        self.latest[name] = version
        fresh.add(name)

    def begin(self, name: Value, version: Value) -> None:
        """Set the version of a name after a write: all other names of its base are out of date."""
        base = self.base_of[name]
        before, newest, fresh = self.latest[name], self.newest[base], self.fresh[base]

        def undo() -> None:
            self.latest[name], self.newest[base], self.fresh[base] = before, newest, fresh
        self.undo.append(undo)
        self.latest[name], self.newest[base], self.fresh[base] = version, name, {name}

    def read(self, name: Value, node: Node) -> Value:
        """The up-to-date version of a name, computed in front of `node` if necessary."""
        base, down = self.base_of[name], []
        written, fresh = self.newest[base], self.fresh[base]
        self.is_detached = self.is_detached or name not in fresh and self.may_run_off(node)
        while name not in fresh:
            while self.depth[written] > self.depth[name]:
                written = self.whole[written]
            if written is name:
                break
            down.append(name)
            name = self.whole[name]
        while name not in fresh:
            self.put(self.newest[base], node)
        for view in reversed(down):
            copy = clone_node(view.node, {view.node.inputs[0]: self.latest[name]}, None, self.graph)
            self.note(view, in_any_layout(copy).insert_before(node).outputs[0])
            name = view
        return self.latest[name]

    def may_run_off(self, node: Node) -> bool:
        """May a node, or one in its blocks, run where gradients are off?"""
        if self.runs_off is None:
            return False        # without a walk through blocks, which each read of a loop would repeat
        inner = [each for block in node.blocks for each in block.walk()]
        return any(self.runs_off(each) is not False for each in inner or [node])

    def put(self, view: Value, node: Node) -> None:
        """Recompute, in front of `node`, the name that `view` is a view of, from the view's latest version."""
        base, whole = self.base_of[view], self.whole[view]
        put = _reshaped if view.node.kind == "aten::reshape" else VIEWS[view.node.kind][1]
        self.note(whole, put(self.build.before(node), view.node, self.latest[whole], self.latest[view]))
        self.undo.append(lambda: self.newest.update({base: view}))
        self.newest[base] = whole

    def write(self, node: Node, name: Value) -> None:
        """Replace a write by the operator that does not write; its result is the new version of a name."""
        written = self.build.before(node).node(node.kind, node.inputs, node.attributes, [node.outputs[0].type])
        written.tail, written.line = node.tail, node.line
        self.begin(name, replaced(self.orders, written, node.inputs[0]))
        node.destroy()

    def descend(self, node: Node) -> None:
        """Rewrite the blocks of a node; bases written in them become results, and of a loop carried values too."""
        whole = {base: self.read(base, node) for base in self.read_in.get(node, ())}
        bases, is_loop = self.written_in.get(node, {}), node.kind in LOOP_KINDS
        for base in bases if is_loop else ():
            node.add_input(whole[base])
        for block in node.blocks:
            mark = len(self.undo)
            for base in bases if is_loop else ():
                self.begin(base, block.add_input(self.graph.fresh_id(), whole[base].type))
            self.sweep(block)
            for base in bases:
                block.add_output(self.read(base, block.return_node))
            while len(self.undo) > mark:
                self.undo.pop()()
        for base in bases:
            self.begin(base, node.add_output(self.graph.fresh_id(), spell(TENSOR, self.graph.dialect)))


def note_around(bases: dict[Node, dict[Value, None]], base: Value, node: Node) -> None:
    """Note a base for all nodes whose blocks contain `node` but not the base."""
    outside = base.node.owner_block
    while (block := node.owner_block) is not outside:
        around = block.owning_node
        if around is None or base in bases.setdefault(around, {}):
            return
        bases[around][base] = None
        node = around
