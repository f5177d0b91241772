"""One function being compiled: its graph, the place of new nodes, the meanings of names, and calls of operators.

`statements.py`, `expressions.py` and other modules compile the parts of a function; their parameter `e` is the `Emitter`. Constants are at
the start of the graph, each once.
"""
from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.errors import did_you_mean
from irtool.ir.graph import NO_ATTRIBUTES, Block, Graph, Node, Value
from irtool.ir.python_operators import COMPARISONS
from irtool.ir.schema import DEFAULT_WORDS, Argument, Schema, declared_kinds, schemas
from irtool.ir.types import ListType, OptionalType, Type
from irtool.torchscript.annotations import type_name
from irtool.torchscript.environment import Environment, Meaning
from irtool.torchscript.meanings import ClosureValue, TypeValue
from irtool.torchscript.resolve import Match, Recipe, Resolver
from irtool.torchscript.source_text import Function, Place, fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from irtool.torchscript.front import Compilation

T = TypeVar("T")
MAX_SHOWN_VARIANTS = 40
SWAPPED = {"aten::add": "aten::add", "aten::mul": "aten::mul", **{each.kind: f"aten::{each.swapped}" for each in COMPARISONS}}
"""Kinds whose operands are swapped where the first is a number and the second a tensor."""


class Emitter:
    """Compiles one function, or a closure in the function that `outer` compiles."""

    def __init__(self, function: Function, compilation: Compilation, outer: Emitter | None = None) -> None:
        self.function = function
        self.compilation = compilation
        self.outer = outer
        self.place: Place = function.place
        self.graph = Graph(name=function.name)
        self.build = Builder(self.graph)
        self.block: Block = self.graph.block
        self.env = Environment()
        self.inferred: set[Value] = set()
        self.empty: set[Value] = set()
        """Lists written `[]` that no variable has yet; the use of such a list determines its type."""
        self.resolver = Resolver(self.inferred, self.empty)
        self.declared_return: Type | None = None
        self.merged_return: Type | None = None
        self.loops = 0
        """How many loops surround the code being compiled."""
        self.captures: dict[Value, Value] = {}
        """In a closure: value of the surrounding function -> value in the closure."""
        self.unpack: Node | None = None
        """In a closure: the node that unpacks the context."""
        self._constant_builder = Builder(self.graph)
        self._last_constant: Node | None = None
        self._constants: dict[tuple[str, Hashable], Value] = {}
        self._counts: dict[str, int] = {}

    # -- where
    def at(self, node: ast.AST) -> None:
        """Give nodes from here on this place in the source."""
        if hasattr(node, "lineno"):
            self.build.tail = " # " + self.place.where(node)

    def fail(self, node: ast.AST, message: str, width: int = 0, code: str = "E0601") -> NoReturn:
        """Raise a ParseError about the program."""
        fail(self.place, node, message, width, code)

    @contextmanager
    def inside(self, block: Block, env: Environment) -> Iterator[None]:
        """A context in which nodes are added to the end of `block`, and names are looked up in `env`."""
        before = self.block, self.env
        self.block, self.env = block, env
        self.build.at_end(block)
        try:
            yield
        finally:
            self.block, self.env = before
            self.build.at_end(self.block)

    def discard(self, compile: Callable[[Block], T]) -> T:
        """Compile what never runs into a block, for the errors in it; the block is not kept."""
        node = self.node("prim::If", (self.constant(True),), ())
        compiled = compile(node.add_block())
        node.destroy()
        return compiled

    # -- making nodes
    def constant(self, value: object, type: Type | None = None) -> Value:
        """A constant, made once per graph, at its start."""
        key = (type.text if type is not None else "", f"{value.__class__.__name__} {value!r}")
        cached = self._constants.get(key)
        if cached is None:
            builder = self._constant_builder
            if self._last_constant is None:
                builder.at_start(self.graph.block)
            else:
                builder.after(self._last_constant)
            builder.tail = self.build.tail
            cached = self._constants[key] = builder.constant(value, type)
            self._last_constant = cached.node
        return cached

    def shared_constant(self, key: Hashable, node: Node, type: Type | None = None) -> Value:
        """The constant of another graph's node (or, for a node without a result, of this type), made once per graph."""
        cached = self._constants.get(("", key))
        if cached is None:
            copy = Node(node.kind, (), node.attributes)
            copy.tail = self.build.tail
            cached = copy.add_output(self.graph.fresh_id(), type or node.outputs[0].type)
            if self._last_constant is None:
                self.graph.block.prepend(copy)
            else:
                copy.insert_after(self._last_constant)
            self._last_constant = copy
            self._constants["", key] = cached
        return cached

    def none(self) -> Value:
        """The constant None."""
        return self.constant(None)

    def node(self, kind: str, inputs: Sequence[Value], output_types: Sequence[Type],
             attributes: Mapping[str, Attribute] = NO_ATTRIBUTES) -> Node:
        """Make a node at the present place."""
        return self.build.node(kind, inputs, attributes, output_types)

    def one(self, kind: str, inputs: Sequence[Value], type: Type, attributes: Mapping[str, Attribute] = NO_ATTRIBUTES) -> Value:
        """Make a node with one result; returns the result."""
        return self.build.node(kind, inputs, attributes, (type,)).outputs[0]

    def list_value(self, values: Sequence[Value], element: Type) -> Value:
        """`prim::ListConstruct`."""
        return self.one("prim::ListConstruct", values, types.list_of(element))

    def tuple_value(self, values: Sequence[Value]) -> Value:
        """`prim::TupleConstruct`."""
        return self.one("prim::TupleConstruct", values, types.tuple_of([value.type for value in values]))

    def unpacked(self, value: Value) -> list[Value]:
        """The elements of a tuple: those of which it was made, if known."""
        if value.node.kind == "prim::TupleConstruct":
            return list(value.node.inputs)
        return list(self.node("prim::TupleUnpack", (value,), value.type.elements).outputs)

    def cast(self, value: Value, type: Type) -> Value:
        """The same value under another type."""
        return self.one("prim::unchecked_cast", (value,), type)

    def uninitialized(self, type: Type) -> Value:
        """A value that is never read."""
        return self.one("prim::Uninitialized", (), type)

    # -- names
    def lookup(self, name: str) -> Meaning | None:
        """The meaning of a name: in this function, around a closure, in the file, or in Python."""
        meaning = self.local(name)
        return meaning if meaning is not None else self.compilation.global_name(name, self.function.unit)

    def local(self, name: str) -> Meaning | None:
        """The meaning of a name in this function; values of the surrounding function are captured."""
        meaning = self.env.find(name)
        if meaning is not None or self.outer is None:
            return meaning
        outside = self.outer.local(name)
        if isinstance(outside, ClosureValue):
            return ClosureValue(self.capture(outside.pair))
        return self.capture(outside) if isinstance(outside, Value) else outside

    def capture(self, outside: Value) -> Value:
        """A value of the surrounding function in this closure, taken out of the context."""
        inside = self.captures.get(outside)
        if inside is None:
            assert self.unpack is not None and self.outer is not None
            name = self.graph.fresh_id() if outside.has_id_name else self.graph.fresh_name(outside.name)
            inside = self.captures[outside] = self.unpack.add_output(name, outside.type)
            if outside in self.outer.inferred:
                self.inferred.add(inside)
        return inside

    # -- types
    def type_name(self, value: Value) -> str:
        """The type of a value, for messages."""
        return self.resolver.name_of(value)

    def converted(self, value: Value, wanted: Type, implicit: bool = True) -> Value:
        """The value, converted towards the wanted type where torch converts implicitly; the caller checks whether it fits."""
        recipe, _ = self.resolver.convert(wanted, value, implicit)
        return self.make(recipe)

    # -- calling operators
    def make(self, recipe: Recipe) -> Value:
        """The operand that a recipe describes."""
        match recipe:
            case ("value", Value() as value):
                return value
            case ("call", str() as kind, tuple() as inner):
                return self.operator(self.build_place(), kind, [self.make(inner)])
            case ("list", Type() as element, list() as parts):
                return self.list_value([self.make(part) for part in parts], element)
            case ("tuple", list() as parts):
                return self.tuple_value([self.make(part) for part in parts])
            case ("element", tuple() as whole, int() as index):
                return self.unpacked(self.make(whole))[index]
            case ("default", Argument() as argument):
                return self.default(argument)
        raise TypeError(f"no such recipe: {recipe[0]}")

    def build_place(self) -> ast.AST:
        """A syntax node without a place, so that messages name the function instead."""
        return self.function.definition

    def default(self, argument: Argument) -> Value:
        """The default of a schema's argument as a constant."""
        value = argument.default
        if value is None:
            return self.none()
        type = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
        if isinstance(value, str) and type.key == "int":
            value = DEFAULT_WORDS.get(value, 0)
        if isinstance(type, ListType):
            if not isinstance(value, list):
                value = [value] * max(argument.fixed_size, 1)
            elif len(value) == 1 and argument.fixed_size > 1:
                value = value * argument.fixed_size
            return self.constant(value, type)
        return self.constant(value) if type.key == "Scalar" else self.constant(value, type)

    def operator(self, node: ast.AST, kind: str, positional: Sequence[Value], named: Mapping[str, Value] | None = None,
                 is_method: bool = False) -> Value:
        """Call an operator: the overload that torch would choose, with all arguments explicit. Raises ParseError, which lists the
        overloads."""
        swapped = self.of_number_and_tensor(node, kind, positional) if len(positional) == 2 and not named and not is_method else None
        if swapped is not None:
            return swapped
        if self.place.library is not None:
            from irtool.torchscript.upgraders import upgraded

            before = upgraded(self, node, kind, positional, named or {}, is_method)
            if before is not None:
                return before
        candidates = schemas(kind)
        if not candidates and not kind.startswith(("aten::", "prim::")) and not named:      # an operator of an unknown library
            return self.one(kind, positional, types.TENSOR)
        match, reasons = self.resolver.choose(candidates, positional, named or {}, is_method)
        if match is None:
            self.refuse_call(node, kind, candidates, reasons)
        return self.apply(match)

    def of_number_and_tensor(self, node: ast.AST, kind: str, operands: Sequence[Value]) -> Value | None:
        """An operator of a number and a tensor, `2 + x` as well as `torch.add(2, x)`, in terms of others that take the tensor first."""
        number, tensor = operands
        if number.type.key not in ("int", "float", "complex") or not isinstance(tensor.type, types.TensorType):
            return None
        if kind in SWAPPED:
            return self.operator(node, SWAPPED[kind], [tensor, number])
        if kind == "aten::sub":
            return self.operator(node, "aten::add", [self.operator(node, "aten::neg", [tensor]), number])
        if kind == "aten::div":
            return self.operator(node, "aten::mul", [self.operator(node, "aten::reciprocal", [tensor]), number])
        return None

    def apply(self, match: Match) -> Value:
        """Make the node of a chosen overload. Several results become a tuple; none, an empty one."""
        inputs = [self.make(recipe) for recipe in match.recipes]
        results = match.results
        node = self.node(match.schema.kind, inputs, results)
        if len(results) == 1:
            return node.outputs[0]
        return self.packed(node, match.schema)

    def packed(self, node: Node, schema: Schema) -> Value:
        """The results of a node as one value: of `l.sort()`, which has none, the empty tuple."""
        names = [result.name for result in schema.returns]
        if names and all(names):
            type = types.named_tuple_of(names, [value.type for value in node.outputs])
            return self.one("prim::TupleConstruct", node.outputs, type)
        return self.tuple_value(node.outputs)

    def refuse_call(self, node: ast.AST, kind: str, candidates: Sequence[Schema], reasons: Sequence[str]) -> NoReturn:
        """Raise the error that no overload accepts the arguments."""
        name = kind.partition("::")[2]
        if not candidates:
            near = [each.partition("::")[2] for each in declared_kinds() if each.startswith("aten::")]
            self.fail(node, f"object has no attribute {name}{did_you_mean(name, near)}", code="E0604")
        if len(candidates) == 1:
            self.fail(node, f"{candidates[0]}:\n{reasons[0]}", code="E0609")
        shown = [f"\n  {schema}:\n  {reason}" for schema, reason in zip(candidates, reasons, strict=True)][:MAX_SHOWN_VARIANTS]
        self.fail(node, "Arguments for call are not valid.\nThe following variants are available:\n" + "\n".join(shown), code="E0609")

    # -- meanings
    def as_value(self, meaning: Meaning, node: ast.AST) -> Value:
        """The value of a meaning. Raises ParseError for a meaning that is no value."""
        if isinstance(meaning, Value):
            return meaning
        if isinstance(meaning, ClosureValue):
            return meaning.pair
        if isinstance(meaning, TypeValue):
            self.fail(node, f"type '{type_name(meaning.type)}' cannot be used as a value")
        kind = getattr(meaning, "kind", "")
        if meaning.what == "python value":
            self.fail(node, f"python value of type '{kind}' cannot be used as a value. Perhaps it is a closed over global variable? If so, "
                            "please consider passing it in as an argument or use a local variable instead.")
        self.fail(node, f"{getattr(meaning, 'name', meaning.what)} cannot be used as a value")

    def numbered(self, name: str) -> str:
        """A fresh name `name.N` for the next value of a variable."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return self.graph.fresh_name(f"{name}.{count}")

    def name_value(self, value: Value, name: str) -> None:
        """Name a temporary after the variable it is assigned to."""
        if value.has_id_name and value.node.graph is self.graph and value.node.kind != "prim::Constant":
            value.name = self.numbered(name)
