"""A method as one graph: calls are inlined, and of a branch that the instance decides only the block that is taken remains.

Scripted modules branch often on facts that are known before they run: is this argument None, is the module in training mode? Functions of
torch.nn.functional do so dozens of times per call. So the graph is not copied and then simplified, but walked: the condition of an `If` is
computed first, and only the block that is taken is copied, with the calls in it.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from irtool.analysis.liveness import remove_dead_nodes
from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.awaitables import (
    AWAITABLE,
    FORK,
    is_awaited_at_once,
    is_awaited_once_elsewhere,
    only_raises,
    reads_what_changes,
    time_is_seen,
    too_early,
)
from irtool.ir.builder import Builder
from irtool.ir.constants import CONSTANT_KINDS, NOT_CONSTANT, constant
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.graph import NO_ATTRIBUTES, Block, Graph, Node, Value
from irtool.ir.numbering import attribute_keys
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.types import (
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    is_subtype,
)
from irtool.ops.array_library import np
from irtool.ops.folding import evaluate, is_foldable
from irtool.ops.structure import Object, attribute_name
from irtool.torchscript.library import Library

Place = tuple[int, str]
"""The id of an instance, and the name of an attribute."""
MAX_CALLS = 200
"""The deepest nesting of calls."""
MAX_NODES = 2_000_000
PLAIN = (bool, int, float, str)


class Opening:
    """One graph whose calls are inlined. `read` lists the attributes for whose values it is made: instance, name, value."""

    def __init__(self, library: Library, graph: Graph, root: Object | None, varying: set[Place], at_once: bool = False) -> None:
        """root: the instance that is the graph's first input, or None: the values of its attributes are ignored; varying: attributes
        that the method writes, whose present values therefore say nothing; at_once: let all forks run where they stand. Raises Error."""
        self.library = library
        self.at_once = at_once
        self.graph = Graph(graph.dialect, graph.name)
        self.graph.source = graph.source
        self.varying = varying
        self.stored: set[Place] = set()
        self.read: list[tuple[Object, str, Any]] = []
        self.objects: dict[Value, Object] = {}
        self._asked: set[Place] = set()
        self._tuples: dict[Value, list[Value]] = {}
        self._elements: dict[Value, tuple[Object, Value]] = {}
        """Modules that are elements of a list or dict of modules, at a position that the graph computes."""
        self._known: dict[Value, Any] = {}
        self._constants: dict[object, Value] = {}
        self._heads = Builder(self.graph)
        self._last: Node | None = None
        self._early: list[tuple[Node, list[Value], list[Node]]] = []
        """Awaitables that run before they are awaited: the node, its operands, the nodes of its body."""
        self._late: dict[Value, tuple[Node, list[Value]]] = {}
        """Futures whose forks run in the branch that waits for them: the node, and its operands."""
        self._active: list[object] = []
        self._count = 0
        env: dict[Value, Value] = {}
        for index, value in enumerate(graph.inputs):
            env[value] = self.graph.block.add_input(value.name, value.type)
            if index == 0 and root is not None:
                self.objects[env[value]] = root
        self.library.settle(graph)
        self.graph.block.set_outputs(self._results(graph.block, env, self.graph.block))
        for node, operands, body in self._early:
            if time_is_seen(body, operands, self.graph):
                raise too_early(node)
        read = [value for _, operands in self._late.values() for value in operands]
        self.is_too_late = reads_what_changes(read, self.graph.walk())
        """Would a fork that runs where it is awaited see other values?"""
        remove_dead_nodes(self.graph)

    # -- blocks
    def _results(self, block: Block, env: dict[Value, Value], into: Block) -> list[Value]:
        """Copy the nodes of a block to the end of `into`; returns its results."""
        for node in block:
            self._step(node, env, into)
        return [env[value] for value in block.outputs]

    def _step(self, node: Node, env: dict[Value, Value], into: Block) -> None:
        kind = node.kind
        if kind in CONSTANT_KINDS:
            env[node.outputs[0]] = self._constant_of(node)
            return
        operands = [env[value] for value in node.inputs]
        handler = HANDLERS.get(kind)
        results = handler(self, node, operands, env, into) if handler is not None else None
        if results is None:
            results = self._folded(node, operands)
        if results is None:
            results = self._copied(node, operands, env, into)
        env.update(zip(node.outputs, results, strict=True))

    def _copied(self, node: Node, operands: Sequence[Value], env: dict[Value, Value], into: Block) -> Sequence[Value]:
        self._count += 1
        if self._count > MAX_NODES:
            raise UnsupportedError(f"{self.graph.name}: more than {MAX_NODES} nodes with calls opened", code="E0404")
        copy = Node(node.kind, operands, node.attributes)
        copy.tail, copy.line = node.tail, node.line
        into.append(copy)
        for output in node.outputs:
            copy.add_output(self.graph.fresh_id(), ready(output.type))
        for block in node.blocks:
            inner = copy.add_block()
            inside = dict(env) if not block.inputs else env
            for value in block.inputs:
                inside[value] = inner.add_input(self.graph.fresh_id(), ready(value.type))
            inner.set_outputs(self._results(block, inside, inner))
        return copy.outputs

    # -- known values
    def _constant_of(self, node: Node) -> Value:
        """The constant, made once per graph, at its start."""
        type = node.outputs[0].type
        key = type.text, attribute_keys(node), isinstance(type, EnumType) and self._count_member()
        if key not in self._constants:
            copy = Node(node.kind, (), node.attributes)
            copy.tail = node.tail
            self._enter(key, copy.add_output(self.graph.fresh_id(), node.outputs[0].type), copy)
        return self._constants[key]

    def _count_member(self) -> int:
        """A unique number for each constant of an enumeration, since for torch's `is` each constant is another object."""
        self._count += 1
        return self._count

    def _enter(self, key: object, value: Value, node: Node) -> None:
        if self._last is None:
            self.graph.block.prepend(node)
        else:
            node.insert_after(self._last)
        self._last = node
        self._constants[key] = value
        content = constant(value)
        if content is not NOT_CONSTANT and not isinstance(content, TensorLiteral):
            self._known[value] = content

    def constant(self, value: Any, type: Type) -> Value | None:
        """A constant of a Python value; None if it cannot be a constant."""
        key = "value", value.__class__, repr(value), type.text
        if key not in self._constants:
            try:
                attributes = {} if value is None else {"value": Attribute.of(value, self.graph.dialect, type)}
            except Error:
                return None
            node = Node("prim::Constant", (), attributes or NO_ATTRIBUTES)
            self._enter(key, node.add_output(self.graph.fresh_id(), type), node)
        return self._constants[key]

    def _folded(self, node: Node, operands: Sequence[Value]) -> list[Value] | None:
        """The results of a node whose operands are known."""
        if not operands or node.blocks or not all([value in self._known for value in operands]) or not is_foldable(node.kind):
            return None
        values = evaluate(node, [self._known[value] for value in operands])
        if values is None or not all([value is None or isinstance(value, PLAIN) for value in values]):
            return None
        if any(value is None and not may_be_none(output.type) for value, output in zip(values, node.outputs, strict=True)):
            return None         # a cast of None, which never runs
        results = [self.constant(value, output.type) for value, output in zip(values, node.outputs, strict=True)]
        return [value for value in results if value is not None] if None not in results else None

    # -- kinds of nodes; each method returns the results, or None if the node is to be copied
    def choose(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> list[Value] | None:
        """An `If` whose condition is known: the branch that is taken."""
        condition = self._known.get(operands[0])
        if not isinstance(condition, bool):
            return None
        return self._results(node.blocks[0 if condition else 1], env, into)

    def is_none(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> list[Value] | None:
        """`x is None`, if the type of x decides it."""
        nothing = [value for value in operands if value in self._known and self._known[value] is None]
        others = [value for value in operands if value not in nothing]
        if len(nothing) != 1 or len(others) != 1:
            return None
        if others[0] not in self._known and may_be_none(others[0].type):
            return None
        value = self.constant(node.kind == "aten::__isnot__", node.output.type)
        return None if value is None else [value]

    def cast(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> list[Value] | None:
        """A value with another type, if it has that type already."""
        if operands[0] in self.objects or is_subtype(operands[0].type, node.output.type):
            return operands[:1]
        known = self._known.get(operands[0])
        value = None if known is None else self.constant(known, node.output.type)
        return None if value is None else [value]

    def tuple_(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> Sequence[Value]:
        """A tuple, whose elements are known from here on."""
        results = self._copied(node, operands, env, into)
        self._tuples[results[0]] = operands
        return results

    def unpacked(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> list[Value] | None:
        """The elements of a tuple that this graph made."""
        return self._tuples.get(operands[0])

    def item(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> list[Value] | None:
        """An element of a tuple that this graph made."""
        elements = self._tuples.get(operands[0])
        index = self._known.get(operands[1]) if len(operands) > 1 else None
        if elements is None or not isinstance(index, int) or not -len(elements) <= index < len(elements):
            return None
        return [elements[index]]

    def load(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> Sequence[Value] | None:
        """An attribute: an instance, or a number or string that the method does not write."""
        holder = self.objects.get(operands[0])
        if holder is None:
            return None
        name = attribute_name(node)
        place = id(holder), name
        value = holder.attributes.get(name)
        if isinstance(value, Object):
            self._note(holder, name, value)
            results = self._copied(node, operands, env, into)
            self.objects[results[0]] = value
            return results
        if place in self.varying or not (value is None or isinstance(value, PLAIN)):
            return None
        known = self.constant(value, node.output.type)
        if known is None:
            return None
        self._note(holder, name, value)
        return [known]

    def _note(self, holder: Object, name: str, value: Any) -> None:
        if (id(holder), name) not in self._asked:
            self._asked.add((id(holder), name))
            self.read.append((holder, name, value))

    def store(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> None:
        """A write of an attribute, after which its value at the start of the call says nothing."""
        holder = self.objects.get(operands[0])
        if holder is not None:
            self.stored.add((id(holder), attribute_name(node)))

    def method(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> list[Value] | None:
        """`prim::CallMethod` of a known instance, or of a class that is no interface."""
        name = str(node.attributes["name"].value)
        if operands[0] in self._elements:
            container, index = self._elements[operands[0]]
            modules = [(key, each) for key, each in container.attributes.items() if isinstance(each, Object)
                       and (index.type.key == "str" or key.isdecimal())]        # an int is the name of no other module
            return [self._one_of(modules, index, node, operands, into)]
        holder = self.objects.get(operands[0])
        type = holder.type if holder is not None else operands[0].type
        if isinstance(type, InterfaceType):
            return [self._of_some_class(self.library.instances_of(type, name), node, operands, into)]
        if isinstance(type, UnionType):         # an interface's value that is of one class or another
            return [self._of_some_class(type.elements, node, operands, into)]
        if not isinstance(type, ClassType):
            return None
        return self._called(self.library.method(type, name), (type.text, name, id(holder)), operands, into)

    def _of_some_class(self, classes: Sequence[Type], node: Node, operands: list[Value], into: Block) -> Value:
        """The result of the method of an instance whose class is known when the graph runs, as branches."""
        build, name = Builder(self.graph).at_end(into), str(node.attributes["name"].value)
        if not classes:
            words = self.constant(f"no class of the code is an instance of {operands[0].type} with a method {name}", types.STR)
            build.node("prim::RaiseException", (words,) if words is not None else (), output_types=())
            return build.node("prim::Uninitialized", (), output_types=(node.output.type,)).output
        answer = build.node("prim::isinstance", operands[:1], {"types": Attribute.of(list(classes[:1]))}, (types.BOOL,)).output
        chosen = build.node("prim::If", (answer,))
        first, rest = chosen.add_block(), chosen.add_block()
        instance = Builder(self.graph).at_end(first).node("prim::unchecked_cast", operands[:1], output_types=(classes[0],)).output
        graph = self.library.method(classes[0], name)
        first.set_outputs(self._called(graph, (classes[0].text, name, id(node)), [instance, *operands[1:]], first))
        rest.set_outputs([self._of_some_class(classes[1:], node, operands, rest)])
        return chosen.add_output(self.graph.fresh_id(), node.output.type)

    def element(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> list[Value] | None:
        """`modules[index]`: a call of its method becomes branches that compare the index with each module's name."""
        container = self.objects.get(operands[0])
        if container is None:
            return None
        value = Node(node.kind, operands, node.attributes).add_output(self.graph.fresh_id(), node.output.type)
        self._elements[value] = container, operands[1]
        return [value]

    def _one_of(self, modules: Sequence[tuple[str, Object]], index: Value, node: Node, operands: list[Value], into: Block) -> Value:
        """The result of the method of the module at a computed index, as branches."""
        build = Builder(self.graph).at_end(into)
        type = node.output.type
        if not modules:
            unit = "of Python compilation unit at: 0x0"
            words = self.constant(f"{operands[0].type} ({unit}) does not have a field with name '{{}}'", types.STR)
            assert words is not None
            message = build.node("aten::format", (words, index), output_types=(types.STR,)).output
            build.node("prim::RaiseException", (message,), output_types=())
            return build.node("prim::Uninitialized", (), output_types=(type,)).output
        name, module = modules[0]
        key = self.constant(name if index.type.key == "str" else int(name), index.type)
        assert key is not None
        chosen = build.node("prim::If", (build.node("aten::eq", (index, key), output_types=(types.BOOL,)).output,))
        first, rest = chosen.add_block(), chosen.add_block()
        graph = self.library.method(module.type, str(node.attributes["name"].value))
        instance = Node("prim::GetAttr", operands[:1]).add_output(self.graph.fresh_id(), module.type)
        self.objects[instance] = module
        first.set_outputs(self._called(graph, (module.type.text, name, id(module)), [instance, *operands[1:]], first))
        rest.set_outputs([self._one_of(modules[1:], index, node, operands, rest)])
        return chosen.add_output(self.graph.fresh_id(), type)

    def function(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> list[Value] | None:
        """`prim::CallFunction` of a function of the archive."""
        name = str(node.inputs[0].node.attributes["name"].value)
        graph = self.library.function(name)
        return None if graph is None else self._called(graph, name, operands[1:], into)

    def _called(self, graph: Graph, key: object, operands: Sequence[Value], into: Block) -> list[Value]:
        if key in self._active:
            raise Error(f"'{graph.name}' calls itself. Recursive calls are not supported", code="E0601")
        if len(self._active) > MAX_CALLS:
            raise UnsupportedError(f"{graph.name}: more than {MAX_CALLS} calls in calls", code="E0404")
        self._active.append(key)
        self.library.settle(graph)
        results = self._results(graph.block, dict(zip(graph.inputs, operands, strict=True)), into)
        self._active.pop()
        return results

    def fork(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> list[Value] | None:
        """`prim::fork`, `prim::awaitable`: the graph runs at once, and its result replaces the future; where only a branch waits for a
        fork, there, since it raises nowhere else. Raises UnsupportedError."""
        subgraph = node.subgraph
        if subgraph is None:
            return None
        if node.kind == FORK and not self.at_once and is_awaited_once_elsewhere(node) and only_raises(subgraph, self.library.callee):
            future = Node(node.kind, operands).add_output(self.graph.fresh_id(), node.output.type)
            self._late[future] = node, operands
            return [future]
        last = into.return_node.prev
        results = self._called(subgraph, node, operands, into)
        if node.kind == AWAITABLE and not is_awaited_at_once(node):
            nodes = into.nodes
            self._early.append((node, operands, nodes[nodes.index(last) + 1:] if last in nodes else nodes))
        return results

    def closure(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> list[Value] | None:
        """A nested function, whose graph `prim::fork` runs."""
        value = self.constant(None, node.output.type)
        return None if value is None else [value]

    def wait(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> list[Value] | None:
        """`aten::wait` of a future that this graph made, and its kin: its value."""
        late = self._late.get(operands[0])
        if late is not None:
            fork, given = late
            assert fork.subgraph is not None
            return self._called(fork.subgraph, fork, given, into)
        return None if isinstance(operands[0].type, FutureType | AwaitType) else operands

    def scaled(self, node: Node, operands: list[Value], env: dict[Value, Value], into: Block) -> list[Value] | None:
        """`x * CONSTANTS.c0`: a constant without dimensions that is the second operand becomes a number, as in torch's executor.

        So `x * 1.5` of a trace, where x is a tensor of integers, is float32 although the archive holds a tensor of float64.
        """
        literal = constant(operands[1])
        if not isinstance(literal, TensorLiteral) or literal.data is None or literal.shape != ():
            return None
        number = np.asarray(literal.data).item()
        rounds = node.kind.startswith("aten::div") and len(operands) == 3
        if isinstance(operands[0].type, TensorType) and not isinstance(number, bool) and not rounds:
            operands[1] = self.constant(number, types.parse_type(type(number).__name__)) or operands[1]
        return None


def may_be_none(type: Type) -> bool:
    """Does the type allow None?"""
    return isinstance(type, OptionalType | UnionType) or str(type.key) in ("None", "NoneType", "Any")


def ready(type: Type) -> Type:
    """A type with the element types of futures in place of the futures."""
    if isinstance(type, FutureType | AwaitType):
        return ready(type.element)
    if "Future" not in type.text and "Await" not in type.text:
        return type
    if isinstance(type, ListType | OptionalType):
        return (types.list_of if isinstance(type, ListType) else types.optional)(ready(type.element))
    if isinstance(type, DictType):
        return types.dict_of(type.key_type, ready(type.value_type))
    return types.tuple_of(map(ready, type.elements)) if isinstance(type, TupleType) else type


HANDLERS = {
    "prim::If": Opening.choose, "aten::__is__": Opening.is_none, "aten::__isnot__": Opening.is_none, "prim::unchecked_cast": Opening.cast,
    "prim::TupleConstruct": Opening.tuple_, "prim::TupleUnpack": Opening.unpacked, "prim::TupleIndex": Opening.item,
    "prim::GetAttr": Opening.load, "prim::SetAttr": Opening.store, "prim::CallMethod": Opening.method,
    "prim::CallFunction": Opening.function, "prim::fork": Opening.fork, "prim::awaitable": Opening.fork, "prim::Closure": Opening.closure,
    "prim::ModuleContainerIndex": Opening.element, "aten::wait": Opening.wait, "prim::awaitable_wait": Opening.wait,
    "prim::awaitable_nowait": Opening.wait,
    **{f"aten::{name}": Opening.scaled for name in "add sub subtract mul multiply div divide true_divide".split()},
}
"""Kind -> the method that simplifies nodes of the kind."""


def opened(library: Library, graph: Graph, root: Object | None, varying: Iterable[Place] = ()) -> Opening:
    """A copy of a graph with calls inlined. varying: attributes that others write.

    The attributes that the method writes are known only afterwards; then the graph is made again. Raises Error.
    """
    varying = set(varying)
    at_once = False
    while True:
        opening = Opening(library, graph, root, varying, at_once)
        if opening.is_too_late:
            at_once = True
            continue
        assumed = {(id(holder), name) for holder, name, value in opening.read if not isinstance(value, Object)}
        if not assumed & opening.stored:
            return opening
        varying |= opening.stored
