"""Graph, Block, Node, Value: use-def chains, edited in constant time.

A `Graph` has a `Block`. A `Block` is a circular list of `Node`s, closed by a hidden return node (`prim::Return`) whose *inputs* are the
block's results; a hidden parameter node (`prim::Param`) *defines* the block's inputs as its outputs, as in torch's ir.h.

Note [lazy uses]: the uses of a whole graph are computed when those of one value are first read, and updated by edits from then on. They are
an ordered dict keyed by `(user, slot)`, so that adding and removing takes constant time and the order is deterministic. A graph that is
only parsed and printed never pays for uses. A node uses its inputs only while it is in a block of a graph.

Note [shared attributes]: nodes parsed from the same line template share the mapping `node.attributes`. Never change it in place:
`set_attribute` and `remove_attribute` copy it.

Only this package links and unlinks nodes and edits uses. The parser, which makes a million nodes a second, fills the slots of new nodes
itself (`irtool/text/parser.py`), before uses are computed.
"""
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from irtool.ir.displayed import Displayed
from irtool.ir.places import comes_before, note_place

if TYPE_CHECKING:
    from irtool.ir.attribute import Attribute
    from irtool.ir.dialect import Dialect
    from irtool.ir.schema import Literal
    from irtool.ir.source import SourceFile
    from irtool.ir.types import Type

PARAM = "prim::Param"
RETURN = "prim::Return"
NO_ATTRIBUTES: Mapping[str, Attribute] = {}
NO_BLOCKS: tuple[Block, ...] = ()
LONGEST_REPR = 200
"""Characters of a node's line in its repr."""
MAX_DIGITS = 4000
"""A name of more digits is not treated as an id, since Python refuses to parse numbers of more than 4300 digits."""


def counted(number: int, word: str) -> str:
    """A number with its word: `1 node`, `2 nodes`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


class Use(NamedTuple):
    """One operand position: `user.inputs[slot]` is the value."""

    user: Node
    slot: int


class Value(Displayed):
    """An SSA value: its name (the text after `%`), its type, the node that defines it, its uses."""

    __slots__ = ("name", "type", "node", "_uses")
    name: str
    type: Type
    node: Node
    _uses: dict[tuple[Node, int], None] | None

    def __init__(self, name: str, type: Type, node: Node) -> None:
        self.name = name
        self.type = type
        self.node = node
        self._uses = None

    @property
    def uses(self) -> list[Use]:
        """The operand positions that read this value, oldest first. A copy, so that the graph may be edited during a walk over it."""
        return [Use(user, slot) for user, slot in self._use_map()]

    @property
    def has_uses(self) -> bool:
        """Does a node (or the result of a block) read this value?"""
        return bool(self._use_map())

    @property
    def use_count(self) -> int:
        """The number of operand positions that read this value."""
        return len(self._use_map())

    @property
    def is_block_input(self) -> bool:
        """Is the value an input of a block (or graph), and not a node's result?"""
        return self.node.kind == PARAM

    @property
    def index(self) -> int:
        """The position among the outputs of the defining node."""
        return self.node.outputs.index(self)

    @property
    def has_id_name(self) -> bool:
        """Is the name a number, as for values that nobody named?"""
        return self.name.isdecimal() and self.name.isascii()

    def replace_all_uses_with(self, other: Value) -> None:
        """Let every operand that reads this value read `other` instead."""
        if other is self:
            return
        for user, slot in list(self._use_map()):
            user.replace_input(slot, other)

    def exchange(self, other: Value) -> None:
        """Exchange the places of two values as results (or block inputs); their readers stay."""
        mine, yours = self.node, other.node
        places = {self: other, other: self}
        for node in {mine, yours}:
            node.outputs = tuple([places.get(value, value) for value in node.outputs])
        self.node, other.node = yours, mine

    def _use_map(self) -> dict[tuple[Node, int], None]:
        if self._uses is None:
            graph = self.node.graph
            if graph is None:
                return {}
            graph.build_uses()
            if self._uses is None:      # of a node that is in no block
                return {}
        return self._uses

    def __str__(self) -> str:
        return f"%{self.name}"

    def __repr__(self) -> str:
        return f"<Value %{self.name} : {self.type}>"


class Node(Displayed):
    """One operation: `outputs = kind[attributes](inputs)`, with nested blocks, scope and source comment."""

    __slots__ = ("kind", "inputs", "outputs", "attributes", "blocks", "tail", "line", "owner", "prev", "next")
    kind: str
    """The qualified name in the text: `aten::mul`, `prim::If`; `^Name` for a Python operator; unqualified in old dialects."""
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    attributes: Mapping[str, Attribute]
    """Ordered. Shared between nodes: see Note [shared attributes]."""
    blocks: tuple[Block, ...]
    tail: str
    """The text after the operands: `, scope: A/B[c] # file.py:3:4`; empty in most graphs."""
    line: int
    """The line, from 1, of the text that it was parsed from; 0 for a node made by a pass."""
    owner: Block | None
    """The block that contains the node; None: none yet, or no more."""
    prev: Node
    next: Node

    def __init__(self, kind: str, inputs: Iterable[Value] = (), attributes: Mapping[str, Attribute] = NO_ATTRIBUTES) -> None:
        self.kind = kind
        self.inputs = tuple(inputs)
        self.outputs = ()
        self.attributes = attributes
        self.blocks = NO_BLOCKS
        self.tail = ""
        self.line = 0
        self.owner = None
        self.prev = self.next = self

    # -- its place
    @property
    def graph(self) -> Graph | None:
        """The graph that contains this node; None: none."""
        return self.owner.graph if self.owner is not None else None

    @property
    def output(self) -> Value:
        """The only result. Raises ValueError if there is not exactly one."""
        (value,) = self.outputs
        return value

    @property
    def scope(self) -> str:
        """The scope path (`Net/Linear[fc]`); empty: none."""
        return self.tail.partition(", scope: ")[2].partition(" # ")[0]

    @property
    def source(self) -> str:
        """The source comment (`model.py:12:16`); empty: none."""
        return self.tail.partition(" # ")[2]

    @property
    def subgraph(self) -> Graph | None:
        """The inner graph of the node (`prim::FusionGroup`, `prim::DifferentiableGraph`, ...); None for most nodes."""
        return self.graphs.get("Subgraph") if "Subgraph" in self.attributes else None

    @property
    def graphs(self) -> dict[str, Graph]:
        """All inner graphs of the node, by attribute: `Subgraph`, and `ReverseSubgraph` for a packed gradient pair."""
        return {name: attribute.value for name, attribute in self.attributes.items()
                if attribute.text == "<Graph>" and isinstance(attribute.value, Graph)}

    def before_in_block(self, other: Node) -> bool:
        """Is this node before `other` in the same block? Raises ValueError for nodes of different blocks."""
        block = self.owner_block
        if other.owner is not block:
            raise ValueError(f"{self.kind} and {other.kind} are in different blocks")
        return self is not other and comes_before(block, self, other)

    @property
    def owner_block(self) -> Block:
        """The block that contains the node. Raises ValueError if none does."""
        if self.owner is None:
            raise ValueError(f"{self.kind} is in no block")
        return self.owner

    def argument(self, name: str) -> Value | Literal | list[Value] | None:
        """The node's value for the argument `name` of its schema, in every dialect.

        An operand is returned as a Value; an attribute (`aten::add[alpha={1}](...)`) or a default as a Literal; a `Tensor[]` written as
        several operands as a list of Values. None if no schema fits the node, or it has no such argument.
        `constants.known_argument` reads constants.
        """
        from irtool.ir.schema import node_argument

        return node_argument(self, name)

    # -- edits
    def add_output(self, name: str, type: Type) -> Value:
        """Add a result at the end."""
        return self.add_outputs([(name, type)])[0]

    def add_outputs(self, wanted: Iterable[tuple[str, Type]]) -> list[Value]:
        """Add results of these names and types at the end, all at once, since adding them one by one takes quadratic time."""
        values = [Value(name, type, self) for name, type in wanted]
        for value in values if self.graph is not None and self.graph.has_uses_built else ():
            value._uses = {}
        self.outputs = (*self.outputs, *values)
        return values

    def remove_output(self, index: int) -> None:
        """Remove an unused result."""
        self.remove_outputs((index,))

    def remove_outputs(self, indices: Collection[int]) -> None:
        """Remove unused results, all at once, since removing them one by one takes quadratic time."""
        for index in indices:
            if self.outputs[index].has_uses:
                raise ValueError(f"%{self.outputs[index].name} is used")
        self.outputs = tuple([value for i, value in enumerate(self.outputs) if i not in indices])

    def replace_input(self, slot: int, value: Value) -> Value:
        """Replace the operand at `slot`; returns the old one."""
        old = self.inputs[slot]
        if old is not value:
            if old._uses is not None:
                old._uses.pop((self, slot), None)
            self.inputs = (*self.inputs[:slot], value, *self.inputs[slot + 1:])
            if self.owner is not None and value._uses is not None:
                value._uses[self, slot] = None
        return old

    def replace_input_with(self, old: Value, new: Value) -> None:
        """Replace every operand that is `old` by `new`."""
        for slot, value in enumerate(self.inputs):
            if value is old:
                self.replace_input(slot, new)

    def set_inputs(self, values: Iterable[Value]) -> None:
        """Replace all operands."""
        self._drop_uses()
        self.inputs = tuple(values)
        self._add_uses()

    def insert_input(self, slot: int, value: Value) -> None:
        """Insert an operand at `slot`."""
        self.set_inputs((*self.inputs[:slot], value, *self.inputs[slot:]))

    def add_input(self, value: Value) -> None:
        """Add an operand at the end."""
        self.inputs = (*self.inputs, value)
        if self.owner is not None and value._uses is not None:
            value._uses[self, len(self.inputs) - 1] = None

    def remove_input(self, slot: int) -> None:
        """Remove an operand; later ones move up."""
        self.remove_inputs((slot,))

    def remove_inputs(self, slots: Collection[int]) -> None:
        """Remove operands, all at once; later ones move up."""
        self.set_inputs([value for slot, value in enumerate(self.inputs) if slot not in slots])

    def set_attribute(self, name: str, value: Attribute) -> None:
        """Add or replace one attribute (see Note [shared attributes])."""
        self.attributes = {**self.attributes, name: value}

    def remove_attribute(self, name: str) -> None:
        """Remove one attribute. Raises KeyError for an unknown name."""
        if name not in self.attributes:
            raise KeyError(name)
        self.attributes = {key: value for key, value in self.attributes.items() if key != name}

    def add_block(self) -> Block:
        """Add an empty block at the end."""
        block = Block(self.graph, self)
        self.blocks = (*self.blocks, block)
        return block

    def insert_before(self, other: Node) -> Node:
        """Insert the node directly before `other` (a node in a block, or a block's return node); returns the node."""
        self._link(other.prev, other, other.owner_block)
        return self

    def insert_after(self, other: Node) -> Node:
        """Insert the node directly after `other`; returns the node."""
        self._link(other, other.next, other.owner_block)
        return self

    def move_before(self, other: Node) -> None:
        """Move the node before `other`, perhaps in another block of the same graph."""
        if other is self:
            return
        self._unlink()
        self.prev, self.next = other.prev, other
        other.prev.next = other.prev = self
        self.owner = other.owner
        if self.owner is not None and self.owner._places is not None:
            note_place(self.owner, self)

    def move_after(self, other: Node) -> None:
        """Move the node after `other`."""
        self.move_before(other.next)

    def destroy(self) -> None:
        """Remove the node from its block for good, without its results. Raises ValueError if a result is used.

        Node and results refer to each other otherwise: memory would wait for the collector of cycles.
        """
        for value in self.outputs:
            if value.has_uses:
                raise ValueError(f"%{value.name} is still used by {value.uses[0].user.kind}")
        self.remove()
        self.outputs = ()

    def remove(self) -> None:
        """Remove the node even if results are used: the caller must replace the uses."""
        self._drop_uses_of_tree()
        self._unlink()
        self.owner = None
        self.prev = self.next = NOWHERE

    # -- links and uses, private to this package
    def _link(self, prev: Node, next: Node, block: Block) -> None:
        if self.owner is not None:
            raise ValueError(f"{self.kind} is already in a block; use move_before")
        self.prev, self.next = prev, next
        prev.next = self
        next.prev = self
        self.owner = block
        if block._places is not None:
            note_place(block, self)
        graph = block.graph
        if graph is not None:
            self._settle(graph)

    def _unlink(self) -> None:
        self.prev.next, self.next.prev = self.next, self.prev

    def _settle(self, graph: Graph) -> None:
        """Set the graph of the node and of all nodes in its blocks."""
        if graph.has_uses_built:
            for value in self.outputs:
                if value._uses is None:
                    value._uses = {}
            self._add_uses()
        for block in self.blocks:
            block._settle(graph)

    def _add_uses(self) -> None:
        if self.owner is None:
            return
        for slot, value in enumerate(self.inputs):
            if value._uses is not None:
                value._uses[self, slot] = None

    def _drop_uses(self) -> None:
        for slot, value in enumerate(self.inputs):
            if value._uses is not None:
                value._uses.pop((self, slot), None)

    def _drop_uses_of_tree(self) -> None:
        stack = [self]
        while stack:
            node = stack.pop()
            node._drop_uses()
            for block in node.blocks:
                stack.extend(block)
                stack.append(block.return_node)

    def __str__(self) -> str:
        from irtool.text.printer import node_text

        return node_text(self)

    def __repr__(self) -> str:
        from irtool.text.printer import Printer

        text = Printer(self.graph or Graph(), labels={}).line(self, "").strip()
        return f"<Node {text if len(text) <= LONGEST_REPR else text[:LONGEST_REPR] + '...'}>"


NOWHERE = Node("prim::Nowhere")     # the neighbour of nodes that were removed


class Block:
    """A list of nodes with inputs and results, of a node or of a graph."""

    __slots__ = ("graph", "owning_node", "param_node", "return_node", "_places")

    def __init__(self, graph: Graph | None, owning_node: Node | None = None) -> None:
        self.graph = graph
        self._places: dict[Node, int] | None = None     # increasing numbers along the block, computed on first use
        self.owning_node = owning_node
        self.param_node = Node(PARAM)
        self.return_node = Node(RETURN)
        self.param_node.owner = self
        self.return_node.owner = self

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The block's inputs: outputs of the hidden parameter node."""
        return self.param_node.outputs

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The block's results: inputs of the hidden return node."""
        return self.return_node.inputs

    def __repr__(self) -> str:
        owner = "a graph" if self.owning_node is None else self.owning_node.kind
        return f"<Block of {owner}, {counted(sum(1 for _ in self), 'node')}>"

    def __iter__(self) -> Iterator[Node]:
        """The nodes in order. During the walk, the current node may be removed or moved."""
        end = self.return_node
        node = end.next
        while node is not end:
            after = node.next
            yield node
            node = after

    def __reversed__(self) -> Iterator[Node]:
        end = self.return_node
        node = end.prev
        while node is not end:
            before = node.prev
            yield node
            node = before

    @property
    def nodes(self) -> list[Node]:
        """A snapshot of the nodes in order."""
        return list(self)

    def append(self, node: Node) -> Node:
        """Add a node at the end; returns the node."""
        end = self.return_node
        node._link(end.prev, end, self)
        return node

    def prepend(self, node: Node) -> Node:
        """Add a node at the start; returns the node."""
        return node.insert_after(self.return_node)

    def add_input(self, name: str, type: Type) -> Value:
        """Add an input at the end; returns it."""
        return self.param_node.add_output(name, type)

    def results_to_inputs(self, values: Sequence[Value]) -> None:
        """Make results of other nodes inputs of the block: the same value objects, so that readers need no change. The nodes, which have
        one result each, are removed."""
        for value in values:
            if value.node.owner is not None:    # dead code elimination may have removed the node of a value that is not read
                value.node.remove()
            value.node = self.param_node
        self.param_node.outputs = (*self.param_node.outputs, *values)

    def remove_input(self, index: int) -> None:
        """Remove an unused input."""
        self.param_node.remove_output(index)

    def remove_inputs(self, indices: Collection[int]) -> None:
        """Remove unused inputs, all at once."""
        self.param_node.remove_outputs(indices)

    def add_output(self, value: Value) -> int:
        """Add a result at the end; returns its position."""
        self.return_node.add_input(value)
        return len(self.outputs) - 1

    def set_outputs(self, values: Iterable[Value]) -> None:
        """Replace all results."""
        self.return_node.set_inputs(values)

    def remove_output(self, index: int) -> None:
        """Remove a result."""
        self.return_node.remove_input(index)

    def remove_outputs(self, indices: Collection[int]) -> None:
        """Remove results, all at once."""
        self.return_node.remove_inputs(indices)

    def walk(self) -> Iterator[Node]:
        """All nodes, nested ones included, in text order: a node comes before the nodes of its blocks."""
        # positions to continue at (None: at the start), and the node that ends the block
        waiting: list[tuple[Node | None, Node]] = [(None, self.return_node)]
        while waiting:
            node, end = waiting.pop()
            node = node or end.next
            while node is not end:
                following = node.next
                yield node
                if node.blocks:
                    waiting.append((following, end))
                    waiting += [(None, block.return_node) for block in reversed(node.blocks)]
                    break
                node = following

    def contains(self, node: Node) -> bool:
        """Is `node` in this block, or in a block nested in it?"""
        block = node.owner
        while block is not None and block is not self:
            block = block.owning_node.owner if block.owning_node is not None else None
        return block is self

    def _settle(self, graph: Graph) -> None:
        self.graph = graph
        if graph.has_uses_built:
            for value in self.param_node.outputs:
                if value._uses is None:
                    value._uses = {}
        for node in self:
            node._settle(graph)
        self.return_node._settle(graph)


class Graph(Displayed):
    """A function: inputs, nodes, results, and how it is spelled (`dialect`).

    `name` and `metadata` come from the comment line in front of a graph (`# graph df: of=f df_input_vjps=[0, 1]`); `source` is
    the text it was parsed from; `layout` is the parser's record of what it must print differently from the canonical form. `runs` is
    what running it has made (`irtool.execute.run`): it goes with the graph, and a copy begins without.
    """

    __slots__ = ("block", "dialect", "name", "metadata", "source", "layout", "runs", "is_reverse", "has_uses_built", "_names", "_counts",
                 "_next_id", "__weakref__")

    def __init__(self, dialect: Dialect | None = None, name: str = "") -> None:
        if dialect is None:
            from irtool.ir.dialect import LATEST

            dialect = LATEST
        self.dialect: Dialect = dialect
        self.name = name
        self.metadata: dict[str, str] = {}
        self.is_reverse = False         # made by differentiation, so that inputs may be None
        self.source: SourceFile | None = None
        self.layout: object = None
        self.runs: object = None
        self.has_uses_built = False
        self._names: set[str] | None = None
        self._counts: dict[str, int] = {}
        """For each stem, the number from which on names may be free; names are only added until all are forgotten."""
        self._next_id = -1
        self.block = Block(self)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Inputs, in order."""
        return self.block.param_node.outputs

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Results, in order."""
        return self.block.return_node.inputs

    @property
    def nodes(self) -> list[Node]:
        """A snapshot of the top-level nodes in order."""
        return list(self.block)

    def walk(self) -> Iterator[Node]:
        """All nodes, nested ones included, in text order."""
        return self.block.walk()

    def walk_blocks(self) -> Iterator[Block]:
        """The graph's block and all nested ones, outer before inner, in text order."""
        yield self.block
        for node in self.walk():
            yield from node.blocks

    def values(self) -> Iterator[Value]:
        """Every value: inputs of blocks and results of nodes, in text order."""
        yield from self.inputs
        for node in self.walk():
            yield from node.outputs
            for block in node.blocks:
                yield from block.inputs

    def build_uses(self) -> None:
        """Compute every value's uses (see Note [lazy uses]), unless they are already."""
        if self.has_uses_built:
            return
        blocks = list(self.walk_blocks())
        for block in blocks:
            for value in block.param_node.outputs:
                value._uses = {}
            for node in block:
                for value in node.outputs:
                    value._uses = {}
        self.has_uses_built = True
        for block in blocks:
            for node in block:
                node._add_uses()
            block.return_node._add_uses()

    def forget_uses(self) -> None:
        """Drop all uses; they are computed again when next read. A graph that is made and passed on need not carry them."""
        if not self.has_uses_built:
            return
        for value in self.values():
            value._uses = None
        self.has_uses_built = False

    # -- names
    def renumber(self) -> None:
        """Renumber the numeric names from 0, in text order."""
        count = 0
        for value in self.values():
            name = value.name
            if name.isdecimal() and name.isascii():
                value.name = str(count)
                count += 1
        self._next_id = count
        self._names = None

    def fresh_id(self) -> str:
        """The next unused number as a name: the largest in the graph plus one, then counting up."""
        if self._next_id < 0:
            largest = -1
            for value in self.values():
                name = value.name
                if name.isdecimal() and name.isascii() and len(name) <= MAX_DIGITS:
                    largest = max(largest, int(name))
            self._next_id = largest + 1
        self._next_id += 1
        return str(self._next_id - 1)

    def fresh_name(self, base: str) -> str:
        """`base`, or `base.N` with the smallest N from 1 on that is free (a number at its end is replaced)."""
        if self._names is None:
            self._names = {value.name for value in self.values()}
            self._counts = {}
        stem, dot, number = base.rpartition(".")
        if not (dot and number.isdecimal()):
            stem = base
        name, count = base, self._counts.get(stem, 0)
        while name in self._names or (name.isdecimal() and name.isascii()):
            count += 1
            name = f"{stem}.{count}"
        self._names.add(name)
        self._counts[stem] = count
        return name

    def forget_names(self) -> None:
        """Forget which names are free, after names were changed from outside and before each pass: `fresh_id` starts from the largest id
        again."""
        self._names = None
        self._next_id = -1

    def __str__(self) -> str:
        from irtool.text.printer import graph_text

        return graph_text(self)

    def __repr__(self) -> str:
        return f"<Graph {self.name or ''}({', '.join('%' + v.name for v in self.inputs)}), {counted(sum(1 for _ in self.walk()), 'node')}>"
