"""Calls: of operators, methods, functions of the source (inlined), Python's functions, and classes of exceptions."""
from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.constants import CONSTANT_KINDS, constant, is_constant
from irtool.ir.edits import clone_node
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.numbering import attribute_keys
from irtool.ir.schema import MISSING, Argument, Schema, schemas
from irtool.ir.types import ClassType, DictType, ListType, NamedTupleType, OptionalType, TupleType, Type, UnionType
from irtool.torchscript.annotations import annotation, dotted, signature, type_name, union
from irtool.torchscript.archive_code import unchecked_cast, uninitialized
from irtool.torchscript.class_definitions import ClassDefinition
from irtool.torchscript.containers import dict_, iterable, list_, ordered_dict, tuple_
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.environment import Meaning
from irtool.torchscript.forks import awaited, fork, wait
from irtool.torchscript.instances import (
    CALLED_METHODS,
    are_ordered,
    call_method,
    call_of_one,
    definition_of,
    for_instances,
    new_instance,
    sorting,
    special_method,
)
from irtool.torchscript.meanings import (
    Builtin,
    Called,
    Choice,
    ClosureValue,
    Context,
    Dispatch,
    Enumeration,
    ExceptionClass,
    Method,
    NewObject,
    Nothing,
    Overloads,
    Python,
    Range,
    Special,
    Structure,
    Sugared,
    Zip,
)
from irtool.torchscript.python_names import CONSTRUCTORS
from irtool.torchscript.source_text import Function
from irtool.torchscript.torch_calls import asserted, called_item, check, constructed, converted_type, slice_

Arguments = tuple[list[Value], dict[str, Value]]


def call(e: Emitter, node: ast.Call, hint: Type | None) -> Meaning:
    """Compile a call."""
    from irtool.torchscript.expressions import meaning_of, value_of

    callee = meaning_of(e, node.func)
    if isinstance(callee, Special):
        return SPECIALS[callee.name](e, node, callee, hint)
    while isinstance(callee, Choice):
        callee = chosen(e, node, callee)
    if isinstance(callee, Value):
        callee = called_instance(e, node, callee)
    if isinstance(callee, Builtin | Called | ClassDefinition | Method | Overloads | Structure):
        return call_meaning(e, node, callee, *arguments(e, node))
    if isinstance(callee, Dispatch):
        return call_of_one(e, node, callee, *arguments(e, node))
    if isinstance(callee, NewObject):
        e.at(node)
        return e.one("prim::CreateObject", (), callee.type)
    if isinstance(callee, Context):
        positional, named = arguments(e, node)
        return entered(e, callee.name, positional, named)
    if isinstance(callee, ClosureValue):
        e.fail(node, "cannot call a closure")
    if isinstance(callee, ExceptionClass):
        message = None
        if node.args:
            values = [value_of(e, each) for each in node.args]
            message = values[0] if len(values) == 1 else e.tuple_value(values)
            if message.type.key != "str":
                message = e.operator(node, "aten::str", [message])
        return ExceptionClass(callee.name, message)
    if isinstance(callee, Python):
        e.fail(node, f"python value of type '{callee.kind}' cannot be called: it is not a function that can be compiled")
    e.fail(node, "cannot call a EnumClass" if isinstance(callee, Enumeration) else f"{callee.what} cannot be called")


def called_instance(e: Emitter, node: ast.Call, callee: Value) -> Method:
    """`value(...)`: its method `__call__`."""
    definition = definition_of(e, callee.type)
    if definition is None or "__call__" not in definition.methods:
        e.fail(node, f"cannot call a value of type '{type_name(callee.type)}'")
    return Method(definition.methods["__call__"], callee)


Callee = Builtin | Called | ClassDefinition | Method | Overloads | Structure
"""Meanings that can be called."""


def call_meaning(e: Emitter, node: ast.AST, callee: Callee, positional: list[Value], named: Mapping[str, Value]) -> Value:
    """Call an operator, a function of the source, a method, or a class on values."""
    e.at(node)
    if isinstance(callee, Builtin):
        if callee.receiver is not None:
            positional = [callee.receiver, *positional]
        if callee.kind == "aten::sort" and positional and are_ordered(e, positional[0]):
            return inlined_call(e, node, sorting(e, node, positional[0]), positional, named)
        return e.operator(node, callee.kind, positional, named, callee.receiver is not None)
    if isinstance(callee, ClassDefinition):
        return new_instance(e, node, callee, positional, named)
    if isinstance(callee, Method):
        return call_method(e, node, callee, positional, named)
    if isinstance(callee, Structure):
        return structure(e, node, callee, positional, named)
    if isinstance(callee, Overloads):
        functions = [each for each in callee.functions if isinstance(each, Function)]
        declared = [signature(each).result if callee.are_known else None for each in functions]
        candidates = [schema_of_function(each, result or e.compilation.graph_of(each).outputs[0].type)
                      for each, result in zip(functions, declared, strict=True)]
        match, reasons = e.resolver.choose(candidates, positional, named)
        if match is None and not schemas(f"aten::{callee.name}"):
            e.refuse_call(node, callee.name, candidates, reasons)
        if match is None:       # arguments in the operator's form, as in formulas and in the code of archives
            return e.operator(node, f"aten::{callee.name}", positional, named)
        return call_function(e, node, functions[[each is match.schema for each in candidates].index(True)], positional, named)
    assert isinstance(callee.function, Function)
    return call_function(e, node, callee.function, positional, named)


def structure(e: Emitter, node: ast.AST, callee: Structure, positional: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """A named tuple, from its fields."""
    from irtool.torchscript.expressions import value_of

    parts = zip(callee.type.names, callee.type.elements, callee.defaults, strict=True)
    fields = tuple([Argument(name, type, type.text, 0, MISSING if value is None else value, False, None) for name, type, value in parts])
    text = f"{callee.name}({', '.join(f'{field.type.text} {field.name}' for field in fields)})"
    schema = Schema(text, callee.name, fields, (), False, False)
    match, reasons = e.resolver.choose([schema], positional, named)
    if match is not None and any(recipe[0] == "default" for recipe in match.recipes):       # which must fit as arguments do
        given = {recipe[1] for recipe in match.recipes if recipe[0] == "default"}
        omitted = [(each.name, each.default, each.type) for each in fields if each in given and isinstance(each.default, ast.expr)]
        values = {name: value_of(e, default, type) for name, default, type in omitted}
        match, reasons = e.resolver.choose([schema], positional, {**named, **values})
    if match is None:
        e.refuse_call(node, callee.name, [schema], reasons)
    return e.one("prim::TupleConstruct", [e.make(recipe) for recipe in match.recipes], callee.type)


def chosen(e: Emitter, node: ast.Call, choice: Choice) -> Sugared:
    """The function that a call means, of two between which an argument decides. That argument must be a constant bool."""
    argument: ast.expr | None = node.args[choice.position] if len(node.args) > choice.position else None
    argument = next((keyword.value for keyword in node.keywords if keyword.arg == choice.argument), argument)
    if argument is None:
        return choice.if_false
    from irtool.torchscript.expressions import value_of

    value = value_of(e, argument)
    answer = constant(value) if is_constant(value) and not isinstance(argument, ast.Name) else None       # a variable may change
    if not isinstance(answer, bool):
        e.fail(node.func, f"Keyword argument '{choice.argument}' for boolean dispatch at position was not constant: it has to be True or "
                          "False where the function is called")
    return choice.if_true if answer else choice.if_false


def arguments(e: Emitter, node: ast.Call) -> Arguments:
    """Values of the positional and the named arguments."""
    from irtool.torchscript.expressions import listed, value_of

    positional = listed(e, node.args, None)
    named: dict[str, Value] = {}
    for keyword in node.keywords:
        assert keyword.arg is not None      # check_syntax
        named[keyword.arg] = value_of(e, keyword.value)
    return positional, named


# ---------------------------------------------------------------- functions of the source
def schema_of_function(function: Function, result: Type) -> Schema:
    """The parameters of a function as a schema, so that calls of functions and operators are matched alike."""
    declared = signature(function)
    parameters = []
    each = zip(declared.names, declared.types, declared.defaults, declared.repeats, declared.keyword_only, strict=True)
    for name, type, default, count, keyword_only in each:
        parameters.append(Argument(name, type, type.text, count, MISSING if default is None else default, keyword_only, None))
    words = [f"{type.text} {name}" for name, type in zip(declared.names, declared.types, strict=True)]
    if True in declared.keyword_only:
        words.insert(declared.keyword_only.index(True), "*")
    return Schema(f"{function.name}({', '.join(words)}) -> {result.text}", function.name, tuple(parameters), (), False, False)


def call_function(e: Emitter, node: ast.AST, function: Function, positional: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """Call a function, whose nodes are copied to the place of the call unless it is one of an archive."""
    if any((dotted(each) or "").endswith("unused") or ast.unparse(each).endswith("ignore(drop=True)")
           for each in function.definition.decorator_list):
        e.at(node)
        e.node("prim::RaiseException", (e.constant("This Python function is annotated to be ignored and cannot be run"), e.none()), ())
        return e.uninitialized(signature(function).result or types.TENSOR)
    if function.place.library is not None:
        return call_by_name(e, node, function, positional, named)
    return inlined_call(e, node, function, positional, named)


def inlined_call(e: Emitter, node: ast.AST, function: Function, positional: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """Copy the nodes of a function to the place of the call."""
    function = for_instances(e, node, function, positional, named)
    if e.compilation.is_active(function):
        what = "method" if function.owner is not None else "function"
        e.fail(node, f"{what} '{function.name}' is called recursively. Recursive calls are not supported")
    graph = e.compilation.graph_of(function)
    schema = schema_of_function(function, graph.outputs[0].type)
    match, reasons = e.resolver.choose([schema], positional, named)
    if match is None:
        e.refuse_call(node, function.name, [schema], reasons)
    e.at(node)
    return inline(e, graph, [default(e, recipe[1]) if recipe[0] == "default" else e.make(recipe) for recipe in match.recipes])


def call_by_name(e: Emitter, node: ast.AST, function: Function, positional: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """Call a function or method of an archive's code, which is compiled on first use."""
    declared = signature(function)
    result = declared.result or e.compilation.graph_of(function).outputs[0].type
    schema = schema_of_function(function, result)
    match, reasons = e.resolver.choose([schema], positional, named)
    if match is None:
        e.refuse_call(node, function.name, [schema], reasons)
    operands = [default(e, recipe[1]) if recipe[0] == "default" else e.make(recipe) for recipe in match.recipes]
    e.at(node)
    if function.owner is not None:
        return e.one("prim::CallMethod", operands, result, {"name": Attribute.of(function.name)})
    name = f"{function.place.module}.{function.name}"
    constant_node = Node("prim::Constant", (), {"name": Attribute.of(name)})
    callee = e.shared_constant(("function", name), constant_node, types.parse_type("Function"))
    return e.one("prim::CallFunction", (callee, *operands), result)


def default(e: Emitter, argument: object) -> Value:
    """The default of a parameter, with the parameter's type."""
    from irtool.torchscript.expressions import value_of

    assert isinstance(argument, Argument) and isinstance(argument.default, ast.expr)
    value = _as_declared(e, argument.default, value_of(e, argument.default, argument.type), argument.type)
    if argument.fixed_size and value.type.key in ("int", "float"):
        return e.list_value([value] * argument.fixed_size, value.type)
    return value


CONVERSIONS = {"float": "aten::Float", "complex": "aten::Complex", "int": "aten::Int", "bool": "aten::Bool"}
"""Types of numbers -> the operators that convert to them."""


def _as_declared(e: Emitter, node: ast.expr, value: Value, type: Type) -> Value:
    """A default in the type of its parameter, to which torch converts numbers, also those in tuples: `x: float = -1`."""
    if isinstance(type, OptionalType):
        return value if value.type.key == "None" else _as_declared(e, node, value, type.element)
    if isinstance(type, TupleType) and isinstance(value.type, TupleType) and value.type.key != type.key:
        parts = zip(e.unpacked(value), type.elements, strict=True)
        return e.tuple_value([_as_declared(e, node, part, wanted) for part, wanted in parts])
    kind = CONVERSIONS.get(type.key)
    if kind is None or value.type.key == type.key or value.type.key not in CONVERSIONS:
        return value
    return e.operator(node, kind, [value])


def inline(e: Emitter, graph: Graph, inputs: Sequence[Value]) -> Value:
    """Copy the nodes of a graph to the present place; its constants become constants of this graph."""
    mapping = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.block:
        if node.kind in CONSTANT_KINDS:
            mapping[node.outputs[0]] = e.shared_constant((node.outputs[0].type.key, attribute_keys(node)), node)
        else:
            clone_node(node, mapping, None, e.graph).insert_before(e.block.return_node)
    return mapping[graph.outputs[0]]


def entered(e: Emitter, name: str, given: Sequence[Value], named: Mapping[str, Value]) -> Context:
    """A new instance of a context manager, with its constructor inlined."""
    manager = e.one("prim::CreateObject", (), types.parse_type(f"__torch__.{name}"))
    if name == "torch.jit.strict_fusion":
        return Context(name, manager)
    if name.endswith(".autocast"):
        place = 2 if name.startswith("torch.amp.") else 0       # where the device and a dtype come first
        enabled = named.get("enabled", given[place] if len(given) > place else e.constant(True))
        e.node("prim::SetAttr", (manager, enabled), (), {"name": Attribute.of("_enabled")})
        return Context(name, manager)
    positional = [*given, *named.values()]
    attribute = "prev" if not positional else "name" if name.endswith("record_function") else "mode"
    e.node("prim::SetAttr", (manager, positional[0] if positional else e.constant(False)), (), {"name": Attribute.of(attribute)})
    return Context(name, manager)


# ---------------------------------------------------------------- Python's functions
def _one(e: Emitter, node: ast.Call, name: str) -> Value:
    positional, named = arguments(e, node)
    if len(positional) != 1 or named:
        e.fail(node, f"{name} expected exactly 1 argument but found {len(positional) + len(named)}")
    e.at(node)
    return positional[0]


def special_call(e: Emitter, node: ast.Call, name: str, positional: Sequence[Value]) -> Value | None:
    """The result of a Python function on an instance (`len(x)` calls `x.__len__()`); None for other values."""
    method = CALLED_METHODS.get(name)
    return special_method(e, node, method, positional[0]) if method is not None and len(positional) == 1 else None


def truth(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`bool(x)`. A list, a dict or a string is True if it has elements."""
    value = _one(e, node, "bool")
    of_instance = special_method(e, node, "__bool__", value)
    if of_instance is not None:
        return of_instance
    if isinstance(value.type, ListType | DictType) or value.type.key == "str":
        return e.operator(node, "aten::gt", [e.operator(node, "aten::len", [value]), e.constant(0)])
    return value if value.type.key == "bool" else e.operator(node, "aten::Bool", [value])


def cast(kind: str, target: str) -> Callable[[Emitter, ast.Call, Special, Type | None], Value]:
    """`int(x)` and its kin."""
    def compile_cast(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
        positional, named = arguments(e, node)
        e.at(node)
        if len(positional) == 1 and not named and positional[0].type.key == target:
            return positional[0]
        return special_call(e, node, callee.name, positional) or e.operator(node, kind, positional, named)
    return compile_cast


def operator(kind: str) -> Callable[[Emitter, ast.Call, Special, Type | None], Value]:
    """A function that compiles a Python function that is an operator."""
    def compile_operator(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
        positional, named = arguments(e, node)
        e.at(node)
        return special_call(e, node, callee.name, positional) or e.operator(node, kind, positional, named)
    return compile_operator


def sorted_(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`sorted(x)`."""
    positional, named = arguments(e, node)
    e.at(node)
    if len(positional) != 1 or named or not are_ordered(e, positional[0]):
        return e.operator(node, "aten::sorted", positional, named)
    copy = e.operator(node, "aten::list", positional)
    inlined_call(e, node, sorting(e, node, copy), [copy], {})
    return copy


def length(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`len(x)`."""
    value = _one(e, node, "len")
    if isinstance(value.type, TupleType):
        return e.constant(len(value.type.elements))
    return special_call(e, node, "len", [value]) or e.operator(node, "aten::len", [value])


def extremum(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`min(...)`, `max(...)`, of numbers and lists: tensors become numbers, as in torch."""
    positional, named = arguments(e, node)
    e.at(node)
    return e.operator(node, f"prim::{callee.name}", positional, named)


def absolute(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`abs(x)`, of tensors and of numbers."""
    value = _one(e, node, "abs")
    kind = "aten::abs" if isinstance(value.type, types.TensorType) else "prim::abs"
    return special_call(e, node, "abs", [value]) or e.operator(node, kind, [value])


def rounded(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`round(x)`: a number becomes a float, as in torch."""
    positional, named = arguments(e, node)
    e.at(node)
    if len(positional) == 1 and positional[0].type.key in ("int", "float"):
        return e.one("aten::round", positional, types.FLOAT)
    return special_call(e, node, "round", positional) or e.operator(node, "aten::round", positional, named)


def range_(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Meaning:
    """`range(...)`."""
    positional, named = arguments(e, node)
    if named and positional:
        e.fail(node, "range does not accept any keyword arguments")
    for value in positional:
        if value.type.key != "int":
            e.fail(node, f"all inputs of range must be ints, found {e.type_name(value)} in argument {positional.index(value)}")
    e.at(node)
    if not 1 <= len(positional) <= 3:
        e.fail(node, f"range expected at {'most 3 arguments' if positional else 'least 1 arguments'}, got {len(positional)}")
    if len(positional) == 1:
        return Range(None, positional[0], None)
    return Range(positional[0], positional[1], positional[2] if len(positional) == 3 else e.constant(1))


def zip_(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Meaning:
    """`zip(...)`."""
    from irtool.torchscript.loop_statements import static_length

    if not node.args:
        e.fail(node, "zip expected at least 1 arguments, got 0")
    parts = [iterable(e, part) for part in node.args]
    if len({static_length(part) is None for part in parts}) > 1:
        e.fail(node, "Can not iterate over a module list or tuple with a value that does not have a statically determinable length")
    return Zip(parts)


def enumerate_(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Meaning:
    """`enumerate(...)`."""
    from irtool.torchscript.expressions import value_of

    if not node.args or len(node.args) + len(node.keywords) > 2:
        e.fail(node, f"enumerate expected at {'most 2' if node.args else 'least 1'} arguments, got {len(node.args) + len(node.keywords)}")
    start = node.args[1] if len(node.args) > 1 else node.keywords[0].value if node.keywords else None
    return Zip([None, iterable(e, node.args[0])], value_of(e, start) if start is not None else None)


def instance(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`isinstance(...)` as a value."""
    from irtool.torchscript.conditions import instance_check

    return instance_check(e, node).as_value(e)


def printed(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Meaning:
    """`print(...)`, which has no value."""
    positional, named = arguments(e, node)
    if named:
        e.fail(node, "print doesn't accept any keyword arguments")
    e.at(node)
    e.node("prim::Print", positional, ())
    return Nothing()


def annotate(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`torch.jit.annotate(T, value)`: as in torch, the value keeps a type of its own that is more exact, unless it is None or T is Any."""
    from irtool.torchscript.assignment import widened
    from irtool.torchscript.expressions import value_of

    if len(node.args) != 2:
        e.fail(node, "annotate expected exactly 2 arguments")
    wanted = annotation(node.args[0], e.place)
    value = e.converted(value_of(e, node.args[1], wanted), wanted)
    if not types.is_subtype(value.type, wanted):
        e.fail(node, f"expected an expression of type {type_name(wanted)} but found {e.type_name(value)}")
    if types.same(value.type, wanted) or value.type.key != "None" and wanted.key != "Any":
        return value
    return widened(e, value, wanted)


def unwrap_optional(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`torch.jit._unwrap_optional(x)`: an error at run time if it is None."""
    value = _one(e, node, "_unwrap_optional")
    is_optional = isinstance(value.type, OptionalType) or isinstance(value.type, UnionType) and types.NONE in value.type.elements
    return e.operator(node, "aten::_unwrap_optional", [value]) if is_optional else value


def has_attribute(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`hasattr(x, "name")`: a constant, since the compiler knows the attributes."""
    from irtool.torchscript.expressions import meaning_of, value_attribute

    if len(node.args) != 2 or not isinstance(node.args[1], ast.Constant) or not isinstance(node.args[1].value, str):
        e.fail(node, "hasattr's second argument must be a string literal")
    holder = meaning_of(e, node.args[0])
    if isinstance(holder, Value) and not isinstance(holder.type, ClassType | NamedTupleType):
        e.fail(node, f"hasattr's first argument must be an object or NamedTuple, got {e.type_name(holder)} instead")
    attribute = ast.copy_location(ast.Attribute(node.args[0], node.args[1].value, ast.Load()), node)
    return e.constant(isinstance(holder, Value) and value_attribute(e, attribute, holder) is not None)


def get_attribute(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Meaning:
    """`getattr(x, "name")`."""
    from irtool.torchscript.expressions import meaning_of

    if len(node.args) not in (2, 3) or not isinstance(node.args[1], ast.Constant) or not isinstance(node.args[1].value, str):
        e.fail(node, "getattr's second argument must be a string literal")
    question = ast.copy_location(ast.Call(node.func, node.args[:2], []), node)
    if len(node.args) == 3 and not constant(has_attribute(e, question, callee, hint)):
        return meaning_of(e, node.args[2])
    return meaning_of(e, ast.copy_location(ast.Attribute(node.args[0], node.args[1].value, ast.Load()), node))


def known(answer: bool) -> Callable[[Emitter, ast.Call, Special, Type | None], Value]:
    """A function that compiles a question about the running program to a constant answer."""
    return lambda e, node, callee, hint: e.constant(answer)


def not_tracing(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`torch.jit.is_tracing()`: False, but no constant, so that both branches of an `if` are compiled, as in torch."""
    return e.operator(node, "aten::__not__", [e.constant(True)])


def refused(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """Refuse Python functions that TorchScript does not have."""
    e.fail(node, f"Python builtin <built-in function {callee.name}> is currently not supported in Torchscript")


def tensor_cast(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`x.float()` and its kin: aten::to."""
    from irtool.torchscript.expressions import CASTS

    assert callee.receiver is not None
    positional, named = arguments(e, node)
    if positional or named:
        e.fail(node, f"{callee.name.rpartition('.')[2]} expected no arguments")
    e.at(node)
    code = CASTS[callee.name.rpartition(".")[2]]
    return e.operator(node, "aten::to", [callee.receiver, e.constant(code), e.constant(False), e.constant(False), e.none()])


def tensor_size(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`x.size()`, `x.size(d)`."""
    assert callee.receiver is not None
    positional, named = arguments(e, node)
    e.at(node)
    return e.operator(node, "aten::size", [callee.receiver, *positional], named)


LIST_ELEMENTS = {"int": 0, "float": 1, "bool": 3, "complex": 2}
"""Types of elements -> their numbers in prim::tolist."""


def tensor_tolist(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`x: List[int] = t.tolist()`: the annotation determines how deep the list is."""
    assert callee.receiver is not None
    if hint is None:
        e.fail(node, "Expected type hint for result of tolist()")
    depth, element = 0, hint
    while isinstance(element, ListType):
        depth, element = depth + 1, element.element
    if element.key not in LIST_ELEMENTS:
        e.fail(node, f"{type_name(element)} is not one of the supported element types for tolist: int, float, complex, bool")
    e.at(node)
    return e.one("prim::tolist", (callee.receiver, e.constant(depth), e.constant(LIST_ELEMENTS[element.key])), hint)


SPECIALS: dict[str, Callable[[Emitter, ast.Call, Special, Type | None], Meaning]] = {
    "int": cast("aten::Int", "int"), "float": cast("aten::Float", "float"), "bool": truth,
    "complex": cast("aten::Complex", "complex"), "str": cast("aten::str", "str"), "len": length, "min": extremum, "max": extremum,
    "abs": absolute, "round": rounded, "sorted": sorted_, "range": range_, "zip": zip_, "enumerate": enumerate_,
    "isinstance": instance, "print": printed, "annotate": annotate,
    "unchecked_cast": unchecked_cast, "uninitialized": uninitialized,
    "unwrap_optional": unwrap_optional, "list": list_, "dict": dict_, "tuple": tuple_, "hasattr": has_attribute,
    "getattr": get_attribute, "is_scripting": known(True), "never": known(False),
    "is_tracing": not_tracing,
    **{name: operator(f"aten::{name}") for name in
       ("sum", "any", "all", "ord", "chr", "hex", "oct", "bin", "hash", "pow", "divmod")},
    "id": operator("prim::id"), "rangelist": operator("prim::rangelist"), "_to_tensor": cast("prim::NumToTensor", "Tensor"),
    **{name: refused for name in ("reversed", "type", "super", "iter", "next", "decorator")},
    **{f"tensor.{name}": tensor_cast for name in
       ("byte", "char", "short", "int", "long", "half", "float", "double", "bool", "bfloat16", "cfloat", "cdouble")},
    "tensor.size": tensor_size, "tensor.tolist": tensor_tolist, "tensor.type": converted_type, "tensor.__getitem__": called_item,
    "slice": slice_, "fork": fork, "wait": wait,
    "awaitable": fork, "awaitable_wait": awaited, "awaitable_nowait": awaited,
    "check": check, "asserted": asserted, "OrderedDict": ordered_dict, **dict.fromkeys(CONSTRUCTORS, constructed),
}

__all__ = ["call", "call_function", "type_name", "union"]
