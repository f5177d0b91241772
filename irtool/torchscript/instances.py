"""Instances of the source's classes: making them, their attributes and methods, and operators on them.

A call of a method is inlined like that of a function. An attribute exists from its first assignment in `__init__` on, which must be outside
of control flow, and keeps the type that it has there.
"""
from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from copy import deepcopy

from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.graph import Value
from irtool.ir.types import ClassType, InterfaceType, ListType, TupleType, Type, UnionType
from irtool.torchscript.annotations import type_name
from irtool.torchscript.class_definitions import ClassDefinition, decorators, interfaces_of, parameters_of
from irtool.torchscript.classes import class_of, conforming, conforms
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.environment import Environment, Meaning
from irtool.torchscript.meanings import Called, Dispatch, Method, NewObject
from irtool.torchscript.source_text import Function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

UNARY_METHODS: dict[type[ast.AST], str] = {ast.USub: "__neg__", ast.Invert: "__invert__"}
CALLED_METHODS = {"len": "__len__", "int": "__int__", "float": "__float__", "bool": "__bool__", "str": "__str__", "complex": "__complex__",
                  "round": "__round__"}
"""Python function -> the method of an instance that it calls."""


def definition_of(e: Emitter, type: Type) -> ClassDefinition | None:
    """The class of the source that a type names."""
    if not isinstance(type, ClassType | InterfaceType):
        return None
    definition = class_of(type, e.place)
    return definition if isinstance(definition, ClassDefinition) and definition.type is type else None


def is_module_list(e: Emitter, value: Value) -> bool:
    """Is the value a list or dict of modules of an archive, whose elements are attributes?"""
    definition = definition_of(e, value.type)
    return definition is not None and definition.is_module and "__getitem__" not in definition.methods


def prepared(e: Emitter, node: ast.AST, definition: ClassDefinition) -> None:
    """Compile `__init__`, which determines the attributes; the other methods are compiled after the functions being compiled."""
    if definition.is_begun:
        return
    if "__init__" not in definition.methods:
        e.fail(node, f"Class {definition.name} does not have an __init__ function defined")
    definition.is_begun = True
    tables = definition.methods, definition.statics, definition.getters, definition.setters
    e.compilation.unchecked += [each for table in tables for each in table.values()
                                if not {"unused", "ignore"} & set(decorators(each.definition))]
    e.compilation.graph_of(definition.methods["__init__"])


def new_instance(e: Emitter, node: ast.AST, definition: ClassDefinition, positional: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """A new instance, with its constructor inlined."""
    prepared(e, node, definition)
    if "__init__" not in definition.methods:
        e.fail(node, f"Class {definition.name} does not have an __init__ function defined")
    e.at(node)
    value = e.one("prim::CreateObject", (), definition.type)
    call_method(e, node, Method(definition.methods["__init__"], value), positional, named)
    return value


def for_instances(e: Emitter, node: ast.AST, function: Function, positional: Sequence[Value], named: Mapping[str, Value]) -> Function:
    """The function with interfaces (`torch.jit.interface`) replaced by the classes of its arguments, which each inlined call knows.
    Raises ParseError for an argument that is no instance, or whose class does not conform."""
    definition, place, classes = function.definition, function.place, dict[int, str]()
    for index, interface in interfaces_of(function).items():
        name = parameters_of(definition)[index].arg
        value = positional[index] if index < len(positional) else named.get(name)
        if value is None:
            e.fail(node, f"Argument {name} not provided")
        actual = definition_of(e, value.type)
        parts = value.type.elements if isinstance(value.type, UnionType) else ()
        if parts and {each.text for each in parts} <= {each.type.text for each in conforming(interface, place)}:
            continue        # one of several classes, which is known when the graph runs
        if actual is None or not conforms(actual, interface, place):
            e.fail(node, f"Expected a value of type '{place.module}.{interface.name}' for argument '{name}' but instead found type "
                         f"'{e.type_name(value)}', which has not all of its methods")
        classes[index] = actual.name
    if not classes:
        return function
    key = id(definition), tuple(classes.items())
    if key not in e.compilation.for_instances:
        copy = deepcopy(definition)
        for index, name in classes.items():
            declared = parameters_of(copy)[index]
            declared.annotation = ast.copy_location(ast.Name(name, ast.Load()), declared)
        e.compilation.for_instances[key] = Function(copy, place, function.unit, function.owner)
    return e.compilation.for_instances[key]


def call_method(e: Emitter, node: ast.AST, method: Method, positional: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """Inline a call of a method."""
    from irtool.torchscript.calls import call_function

    return call_function(e, node, method.function, [method.receiver, *positional], named)


def call_of_one(e: Emitter, node: ast.AST, method: Dispatch, positional: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """Inline a call of the method of whichever class the value is an instance of: a branch per class."""
    function, *rest = method.methods
    assert function.owner is not None
    if not rest:
        return call_method(e, node, Method(function, e.cast(method.receiver, function.owner)), positional, named)
    e.at(node)
    answer = e.one("prim::isinstance", (method.receiver,), types.BOOL, {"types": Attribute.of([function.owner])})
    chosen = e.node("prim::If", (answer,), ())
    for methods in ([function], rest):
        block = chosen.add_block()
        with e.inside(block, Environment(e.env)):
            block.add_output(call_of_one(e, node, Dispatch(method.receiver, methods), positional, named))
    return chosen.add_output(e.graph.fresh_id(), chosen.blocks[0].outputs[0].type)


# ---------------------------------------------------------------- attributes
def method_of_one(e: Emitter, node: ast.Attribute, value: Value) -> Dispatch | None:
    """`value.method`, if the value is an instance of one of several classes, all of which have the method."""
    definitions = [definition_of(e, each) for each in value.type.elements] if isinstance(value.type, UnionType) else []
    methods = [each.methods.get(node.attr) for each in definitions if each is not None]
    if not methods or len(methods) < len(definitions) or None in methods:
        return None
    for each in definitions:
        if each is not None:
            prepared(e, node, each)
    return Dispatch(value, [each for each in methods if each is not None])


def static_member(e: Emitter, node: ast.Attribute, definition: ClassDefinition) -> Meaning:
    """`Class.name`: a static method; in the code of archives also a function of the file of that name, as torch saves hooks."""
    library = e.place.library
    if node.attr == "__new__" and library is not None:
        return NewObject(definition.type)
    function = definition.statics.get(node.attr)
    if function is None and library is not None:
        function = library.function_called(f"{definition.type}.{node.attr}")
    if function is None:
        e.fail(node, f"'{definition.type}' has no static method '{node.attr}'")
    return Called(function)


def load_attribute(e: Emitter, node: ast.Attribute, value: Value, definition: ClassDefinition) -> Meaning | None:
    """`value.attr`: an attribute, a property, or a method bound to the value; None if there is none."""
    prepared(e, node, definition)
    e.at(node)
    attr = node.attr
    if attr in definition.attributes:
        return e.one("prim::GetAttr", (value,), definition.attributes[attr], {"name": Attribute.of(attr)})
    if attr in definition.getters:
        return call_method(e, node, Method(definition.getters[attr], value), (), {})
    return Method(definition.methods[attr], value) if attr in definition.methods else None


def missing_attribute(e: Emitter, node: ast.AST, name: str, type: Type) -> NoReturn:
    """Raises ParseError for reading an attribute that no assignment of `__init__` declares."""
    e.fail(node, f"'{type}' object has no attribute or method '{name}'. Did you forget to initialize an attribute in __init__()?")


def store_attribute(e: Emitter, node: ast.Attribute, holder: Value, value: Value, definition: ClassDefinition) -> None:
    """`holder.attr = value`; the first assignment in `__init__` declares the attribute."""
    from irtool.torchscript.calls import call_function

    prepared(e, node, definition)
    attr = node.attr
    if attr in definition.setters:
        call_function(e, node, definition.setters[attr], [holder, value], {})
        return
    declared = definition.attributes.get(attr)
    if declared is None:
        initializer = definition.methods.get("__init__")
        is_inside = initializer is not None and e.function.definition is initializer.definition and e.outer is None
        if not is_inside or holder.node.kind == "prim::CreateObject":
            e.fail(node, f"Tried to set nonexistent attribute: {attr}. Did you forget to initialize it in __init__()?")
        if e.env.frame_parent is not None or e.loops:
            e.fail(node, "First assignment cannot be in a control-flow block. Initialize the field at the top level first.")
        if holds(value.type, definition.type):
            e.fail(node, f"Assignment to attribute '{attr}' cannot be of a type that contains class '{definition.type}'.\nClasses that "
                         "recursively contain instances of themselves are not yet supported")
        declared = definition.attributes[attr] = value.type
    elif not types.is_subtype(value.type, declared):
        e.fail(node, f"Wrong type for attribute assignment. Expected {type_name(declared)} but got {e.type_name(value)}")
    e.empty.discard(value)
    e.at(node)
    e.node("prim::SetAttr", (holder, value), (), {"name": Attribute.of(attr)})


def holds(type: Type, part: Type) -> bool:
    """Is the type another one, or does it consist of it?"""
    return type is part or any(holds(each, part) for each in type.elements)


# ---------------------------------------------------------------- operators
def special_method(e: Emitter, node: ast.AST, name: str, value: Value, positional: Sequence[Value] = ()) -> Value | None:
    """The result of the method `name` of an instance (`__add__`, `__len__`); None for values that are no instances."""
    definition = definition_of(e, value.type)
    if definition is None:
        return None
    prepared(e, node, definition)
    function = definition.methods.get(name)
    if function is None:
        missing_attribute(e, node, name, value.type)
    return call_method(e, node, Method(function, value), positional, {})


def are_ordered(e: Emitter, value: Value) -> bool:
    """Is the value a list of instances that have `__lt__`, or of tuples that hold such instances?"""
    element = value.type.element if isinstance(value.type, ListType) else types.NONE
    return bool(classes_in(e, element)) and spelled(e, element) is not None


def classes_in(e: Emitter, type: Type) -> list[ClassDefinition]:
    """The classes of the instances in a value: it is one, or a tuple."""
    if isinstance(type, TupleType):
        return [each for element in type.elements for each in classes_in(e, element)]
    definition = definition_of(e, type)
    return [] if definition is None else [definition]


def spelled(e: Emitter, type: Type) -> str | None:
    """The annotation of a type that has an order; None for other types."""
    if isinstance(type, TupleType):
        elements = [spelled(e, each) for each in type.elements]
        return None if None in elements else f"Tuple[{', '.join(map(str, elements))}]"
    definition = definition_of(e, type)
    if definition is None:
        return str(type.key) if type.key in ("int", "float", "bool", "str", "Tensor") else None
    return None if "__lt__" not in definition.methods else definition.name if definition.place.library is None else str(definition.type)


def is_same(type: Type, left: str, right: str) -> str:
    """Source that asks if two parts of tuples are equal, as torch asks: instances are by identity, whatever `__eq__` says."""
    if isinstance(type, TupleType):
        parts = [is_same(each, f"{left}[{i}]", f"{right}[{i}]") for i, each in enumerate(type.elements)]
        return f"({' and '.join(parts)})" if parts else "True"
    return f"{left} is {right}" if isinstance(type, ClassType) else f"bool({left} == {right})"


def is_less(type: Type, left: str, right: str) -> str:
    """Source that compares two values: of tuples the first parts that differ."""
    if not isinstance(type, TupleType):
        return f"bool({left} < {right})"
    text = "False"
    for i, each in reversed(list(enumerate(type.elements))):
        parts = f"{left}[{i}]", f"{right}[{i}]"
        text = f"({text} if {is_same(each, *parts)} else {is_less(each, *parts)})"
    return text


SORT = """
def sort(items: List[{name}], reverse: bool = False):
    for i in range(1, len(items)):
        item = items[i]
        place = i
        while place > 0:
            before = items[place - 1]
            first, second = (before, item) if reverse else (item, before)
            if not {less}:
                break
            items[place] = before
            place -= 1
        items[place] = item
"""
"""Operators cannot call methods, so the calls are in the graph."""


def sorting(e: Emitter, node: ast.AST, value: Value) -> Function:
    """A function that sorts a list of instances, or of tuples with instances, in place; all its nodes have the place of the call."""
    assert isinstance(value.type, ListType)
    element = value.type.element
    definitions = classes_in(e, element)
    for definition in definitions:
        prepared(e, node, definition)
    (function,) = ast.parse(SORT.format(name=spelled(e, element), less=is_less(element, "first", "second"))).body
    assert isinstance(function, ast.FunctionDef)
    for each in ast.walk(function):
        ast.copy_location(each, node)
    return Function(function, definitions[0].place, e.function.unit)


AUTOCAST = ".amp.autocast_mode.autocast"
"""How the classes of torch end whose instances change, where they are entered, what operators compute."""


def entered(e: Emitter, node: ast.expr, value: Value) -> Value:
    """`with value:` calls `__enter__`."""
    definition = definition_of(e, value.type)
    if definition is None or not {"__enter__", "__exit__"} <= definition.methods.keys():
        e.fail(node, "With item expression must return an object: an instance of a class that has __enter__ and __exit__, or a context "
                     "manager of torch")
    if value.type.text.endswith(AUTOCAST):
        return e.one("prim::Enter", (value,), value.type)
    result = special_method(e, node, "__enter__", value)
    assert result is not None
    return result


def left(e: Emitter, node: ast.AST, value: Value) -> None:
    """The end of `with value:` calls `__exit__`."""
    if value.type.text.endswith(AUTOCAST):
        e.node("prim::Exit", (value,), (types.TENSOR,))
        return
    definition = definition_of(e, value.type)
    assert definition is not None
    count = len(definition.methods["__exit__"].definition.args.args)
    if count != 4:
        e.fail(definition.methods["__exit__"].definition, "__exit__ must have four parameters: the instance, and type, value and traceback "
                                                          "of an exception", len("def"))
    nothing = e.constant(None, types.ANY)
    special_method(e, node, "__exit__", value, [nothing] * 3)
