"""Annotations (PEP 484, `int | None`, `# type:` comments) -> IR types, and IR types as torch's messages spell them."""
from __future__ import annotations

import ast
import re

from irtool.ir import types
from irtool.ir.errors import did_you_mean
from irtool.ir.types import DictType, ListType, OptionalType, TupleType, Type, TypeVar, UnionType, WrapperType
from irtool.torchscript.repair import NO_DEFAULT
from irtool.torchscript.source_text import Function, Place, fail, literal

SIMPLE: dict[str, Type] = {
    "Tensor": types.TENSOR, "int": types.INT, "float": types.FLOAT, "bool": types.BOOL, "complex": types.COMPLEX, "str": types.STR,
    "None": types.NONE, "NoneType": types.NONE, "number": types.NUMBER, "Any": types.ANY, "Device": types.DEVICE, "device": types.DEVICE,
    "Generator": types.GENERATOR, "dtype": types.INT, "LongTensor": types.TENSOR, "FloatTensor": types.TENSOR, "Stream": types.STREAM,
    "types.Number": types.union_of([types.INT, types.FLOAT, types.BOOL]),
    "Parameter": types.TENSOR, "nn.Parameter": types.TENSOR, "nn.parameter.Parameter": types.TENSOR, "nn.Buffer": types.TENSOR,
}
BARE = {"List": "a contained type", "Tuple": "a contained type", "Optional": "a contained type", "Dict": "contained types",
        "list": "a contained type", "tuple": "a contained type", "dict": "contained types", "Union": "contained types",
        "Future": "a contained type"}
"""Types that need the types of their elements."""
PREFIXES = ("torch.", "typing.", "t.", "T.")
TORCH_ONLY = ("number", "Device", "Generator", "Stream", "NoneType", "LongTensor", "FloatTensor", "dtype", "device", "Parameter")
"""Names that mean nothing in Python unless the file imports them: torch looks names in strings up there."""


def annotation(node: ast.expr, place: Place) -> Type:
    """The type an annotation means. Raises ParseError: `Unknown type name 'Foo'`."""
    if isinstance(node, ast.Constant):
        if node.value is None:
            return types.NONE
        if isinstance(node.value, str):
            if "|" in node.value:       # torch reads `int | None` in code only, not in strings
                fail(place, node, f"Unknown type name '{node.value[:80]}'", code="E0610")
            if node.value in TORCH_ONLY and (place.unit is None or node.value not in place.unit.modules):
                fail(place, node, f"Unknown type name '{node.value}'", code="E0610")
            return _from_text(node.value, node, place)
    name = dotted(node)
    if name is not None:
        for prefix in PREFIXES:
            name = name.removeprefix(prefix)
        named = SIMPLE.get(name)
        if named is None:
            named = named_type(name, place) or SIMPLE.get(imported(name, place))
        if named is None and name in BARE:
            inside = "int, int" if name in ("Dict", "dict", "Union") else "int"
            fail(place, node, f"Attempted to use {name} without {BARE[name]}. Please add {BARE[name].replace('types', 'type')}, e.g. "
                              f"{name}[{inside}]")
        if named is None:
            fail(place, node, f"Unknown type name '{name}'{did_you_mean(name, SIMPLE)}", code="E0610")
        return named
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return union([annotation(node.left, place), annotation(node.right, place)])
    if isinstance(node, ast.Subscript):
        return _subscripted(node, place)
    if isinstance(node, ast.Tuple) and not node.elts:
        return types.tuple_of(())
    fail(place, node, "Expression of this form is not supported as a type", code="E0610")


def imported(name: str, place: Place) -> str:
    """What a name stands for that an import gave a name of its own: `Tensor` of `th.Tensor` after `import torch as th`."""
    head, dot, rest = name.partition(".")
    module = place.unit.modules.get(head) if place.unit is not None else None
    return f"{module}{dot}{rest}".removeprefix("torch.").removeprefix("typing.") if module is not None else name


def named_type(name: str, place: Place) -> Type | None:
    """The type that a class of the file is, or that a name of the file's top level stands for."""
    from irtool.torchscript.classes import class_called, conforming, interface_called

    definition = class_called(name, place)
    if definition is not None:
        return definition.type
    interface = interface_called(name, place)
    if interface is not None:
        parts = [each.type for each in conforming(interface, place)]
        return union(parts) if parts else None
    alias = place.aliases.get(name)
    if alias is None or isinstance(alias, ast.Constant) and not isinstance(alias.value, str):
        return None
    if name in place.known_types:
        fail(place, alias, f"'{name}' is an alias of itself")
    place.known_types[name] = None
    try:
        return annotation(alias, place)
    finally:
        del place.known_types[name]


def dotted(node: ast.expr) -> str | None:
    """`torch.nn.functional` of an attribute chain; None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def _from_text(text: str, at: ast.expr, place: Place) -> Type:
    try:
        return annotation(_moved(ast.parse(text.strip(), mode="eval").body, at), place)
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        fail(place, at, f"Unknown type name '{text[:80]}'", code="E0610")


def _moved(node: ast.expr, at: ast.AST) -> ast.expr:
    """A copy of the tree in which every part has the position of `at`, for messages."""
    for each in ast.walk(node):
        ast.copy_location(each, at)
    return node


def check_key(key: Type, place: Place, node: ast.AST) -> None:
    """Raises ParseError for a type that dictionary keys cannot have."""
    if key.key not in ("int", "float", "bool", "complex", "str", "Tensor", "Device", "Any"):
        fail(place, node, f"Cannot create dict for key type '{key}', only int, float, complex, Tensor, device and string keys are "
                          "supported")


def _subscripted(node: ast.Subscript, place: Place) -> Type:
    name = imported(dotted(node.value) or "", place).rpartition(".")[2]
    arguments = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name in ("Tuple", "tuple"):
        return types.tuple_of([annotation(each, place) for each in arguments])
    if name in ("List", "list") and len(arguments) == 1 or name.startswith("BroadcastingList"):
        return types.list_of(annotation(arguments[0], place))
    if name == "Optional" and len(arguments) == 1:
        element = annotation(arguments[0], place)
        return union([element, types.NONE]) if isinstance(element, UnionType) else types.optional(element)
    if name in ("Dict", "dict") and len(arguments) == 2:
        key = annotation(arguments[0], place)
        check_key(key, place, node)
        return types.dict_of(key, annotation(arguments[1], place))
    if name == "Union":
        return union([annotation(each, place) for each in arguments])
    if name in ("Future", "_Await", "Await") and len(arguments) == 1:
        return types.parse_type(f"{name.lstrip('_')}({annotation(arguments[0], place).text})")
    fail(place, node, f"Unknown type constructor {name}{did_you_mean(name, ('List', 'Optional', 'Dict', 'Tuple', 'Union'))}", code="E0610")


def union(parts: list[Type]) -> Type:
    """The union of types; the optional of a type and None."""
    flat: list[Type] = []
    for part in parts:
        inner = part.elements if isinstance(part, UnionType) else (part.element, types.NONE) if isinstance(part, OptionalType) else (part,)
        flat += [each for each in inner if not any(types.same(each, known) for known in flat)]
    numbers = [each for each in flat if each.key in ("int", "float", "complex")]
    if len(numbers) == 3:
        flat = [*[each for each in flat if each not in numbers], types.NUMBER]
    maximal = [each for each in flat if not any(other is not each and types.is_subtype(each, other) for other in flat)]
    others = [each for each in maximal if each.key != "None"]
    if len(maximal) == 1:
        return maximal[0]
    if len(others) == 1:
        return types.optional(others[0])
    return types.union_of(maximal)


def repeats(node: ast.expr | None) -> int:
    """N for `BroadcastingListN[T]`, for which one T may stand instead of N; else 0."""
    while isinstance(node, ast.Subscript):
        name = (dotted(node.value) or "").rpartition(".")[2]
        if name.startswith("BroadcastingList") and name[16:].isdecimal():
            return int(name[16:])
        node = node.slice if name == "Optional" else None
    return 0


class Signature:
    """The parameters in order: name, type, default (None: none), whether the type was omitted, whether only a keyword gives it; and the
    declared result, if any."""

    __slots__ = ("names", "types", "inferred", "defaults", "repeats", "keyword_only", "result")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.types: list[Type] = []
        self.inferred: list[bool] = []
        self.defaults: list[ast.expr | None] = []
        self.repeats: list[int] = []
        self.keyword_only: list[bool] = []
        self.result: Type | None = None


VARARGS = ("Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults")


def signature(function: Function) -> Signature:
    """Read the parameters of a definition from annotations or type comments. Raises ParseError."""
    definition, place = function.definition, function.place
    arguments = definition.args
    for starred in (arguments.kwarg, arguments.vararg):
        if starred is not None:
            fail(place, starred, VARARGS)
    for default in arguments.kw_defaults:
        if default is not None:
            fail(place, default, VARARGS)
    if arguments.posonlyargs and place.library is None:
        fail(place, arguments.posonlyargs[0],
             "expected ident but found '/': TorchScript has no parameters that only take positional arguments")
    parameters = Signature()
    positional = [*arguments.posonlyargs, *arguments.args]
    every = [*positional, *arguments.kwonlyargs]
    commented, parameters.result = _type_comment(definition, len(every) - (function.owner is not None), place)
    if commented is not None and function.owner is not None:
        commented = [function.owner, *commented]
    if commented is None and definition.returns is not None:
        parameters.result = annotation(definition.returns, place)
    missing = len(positional) - len(arguments.defaults)
    for i, argument in enumerate(every):
        parameters.names.append(argument.arg)
        parameters.repeats.append(repeats(argument.annotation))
        default = arguments.defaults[i - missing] if missing <= i < len(positional) else None
        parameters.defaults.append(None if isinstance(default, ast.Name) and default.id == NO_DEFAULT else default)
        declared = _parameter_type(argument, commented[i] if commented else function.owner if i == 0 else None, place)
        parameters.types.append(declared or types.TENSOR)
        parameters.inferred.append(declared is None)
        parameters.keyword_only.append(i >= len(positional))
        if parameters.defaults[i] is not None and place.library is None:
            _check_default(parameters, i, function)
    return parameters


DEFAULTS: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (int, float), "bool": (bool, int, float), "str": (str,), "complex": (int, float, complex),
    "Scalar": (int, float, complex), "None": (type(None),), "Tensor": (type(None),), "Device": (str,)}
NUMBERS = ("int", "float", "bool", "complex")
MUTABLE = ("Mutable default parameters are not supported because Python binds them to the function and they persist across function calls. "
           "As a workaround, make the default None and instantiate the default parameter within the body of the function.")


def _check_default(parameters: Signature, index: int, function: Function) -> None:
    """Raises ParseError for a default that is a literal, but not of its parameter's type."""
    name, type, default = parameters.names[index], parameters.types[index], parameters.defaults[index]
    assert default is not None
    if isinstance(default, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp):
        fail(function.place, default, f"{MUTABLE} Found on parameter {name}.")
    try:
        value = literal(default)
    except ValueError:
        return          # a name, such as that of a dtype
    if not _takes_default(type, value) and not parameters.repeats[index]:
        message = f'Expected a default value of type {type_name(type)}{" (inferred)" * parameters.inferred[index]} on parameter "{name}".'
        if parameters.inferred[index]:
            message += f'Because "{name}" was not annotated with an explicit type it is assumed to be type \'Tensor\'.'
        fail(function.place, function.definition, message, 3)


def _takes_default(type: Type, value: object) -> bool:
    """May a literal be the default of a parameter?"""
    if isinstance(type, OptionalType):
        return value is None or _takes_default(type.element, value)
    if isinstance(type, UnionType):         # which converts no numbers
        kind = value.__class__.__name__
        return any(_takes_default(each, value) and (each.key not in NUMBERS or each.key == kind) for each in type.elements)
    if isinstance(type, TupleType):
        return isinstance(value, tuple) and len(value) == len(type.elements) and all(map(_takes_default, type.elements, value))
    if isinstance(type, ListType):
        return isinstance(value, tuple) and all(_takes_default(type.element, each) for each in value)
    if isinstance(type, DictType):
        return False
    wanted = DEFAULTS.get("Tensor" if isinstance(type, types.TensorType) else type.key)
    return wanted is None or isinstance(value, wanted)


def _parameter_type(argument: ast.arg, commented: Type | None, place: Place) -> Type | None:
    if commented is not None:
        return commented
    if argument.annotation is not None:
        return annotation(argument.annotation, place)
    return None


def _as_expression(node: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Name("_"), node)


TYPE = "# type:"
IGNORED = re.compile(r"# type: ignore(\[[a-zA-Z-]+\])?$")
MISSPELT = re.compile(r"#[\t ]*type[\t ]*(?!: ignore(\[.*\])?$):")
"""What torch takes for a type comment written in another way, `#type: (int) -> int`."""
COUNTS = "Number of type annotations ({}) did not match the number of function parameters ({})"


def _type_line(definition: ast.FunctionDef, place: Place) -> str | None:
    """The text after `# type:` in a function: of one comment, or of one per parameter and a last one `# type: (...) -> T`.

    As in torch, such a comment counts on any line of the function.
    """
    start = min([definition.lineno, *[each.lineno for each in definition.decorator_list]])
    numbers = range(start + place.first_line - 1, (definition.end_lineno or start) + place.first_line)
    every = [place.line(number) for number in numbers]
    lines = [line for line in every if TYPE in line and not IGNORED.search(line)]
    if not lines:
        wrong = next((i for i, line in enumerate(every) if MISSPELT.search(line)), None)
        if wrong is not None:
            fail(place, definition, f"The annotation prefix in line {wrong} is probably invalid.\nIt must be '# type:'", len("def"))
        return None
    if len(lines) == 1:
        if not lines[0].lstrip().startswith(TYPE):
            word = "def" if lines[0].split()[0] == "def" else "ident"
            fail(place, definition, f"expected type comment but found '{word}' here: a lone comment '# type:' has to stand in a line of "
                                    "its own, and is the type of the function", len("def"))
        return lines[0].strip().removeprefix(TYPE).strip()
    parameters: list[str] = []
    for line in lines:
        text = line[line.find(TYPE) + len(TYPE):].strip()
        if text.startswith("(...) ->"):
            return text.replace("...", ", ".join(parameters), 1)
        parameters.append(text)
    fail(place, definition, "Return type line '# type: (...) -> ...' not found on multiline type annotation\nfor type lines:\n"
                            + "\n".join(lines), len("def"))


def _type_comment(definition: ast.FunctionDef, count: int, place: Place) -> tuple[list[Type] | None, Type | None]:
    """Parameter types (None without a comment) and result of `# type: (Tensor, int) -> Tensor`."""
    comment = _type_line(definition, place)
    if not comment:
        return None, None
    at = _as_expression(definition)
    head, arrow, result = comment.rpartition("->")
    head = (head if arrow else comment).strip()
    if not (head.startswith("(") and head.endswith(")")):
        fail(place, definition, "Failed to parse the return type of a type annotation: expected '# type: (...) -> ...'")
    returned = _from_text(result.partition("#")[0], at, place) if arrow else None
    if head == "(...)":
        fail(place, definition, COUNTS.format(1, count))
    try:
        parsed = ast.parse(f"_[{head[1:-1].replace('*', '')},]" if head[1:-1].strip() else "_[()]", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        fail(place, definition, f"Failed to parse the argument list of a type annotation: {comment[:80]}")
    assert isinstance(parsed, ast.Subscript) and isinstance(parsed.slice, ast.Tuple)
    parts = [annotation(_moved(each, at), place) for each in parsed.slice.elts]
    if len(parts) != count:
        fail(place, definition, COUNTS.format(len(parts), count))
    return parts, returned


def type_name(type: Type) -> str:
    """A type as torch's messages spell it: `List[int]`, `Optional[Tensor]`, `number`."""
    if isinstance(type, ListType):
        return f"List[{type_name(type.element)}]"
    if isinstance(type, OptionalType):
        return f"Optional[{type_name(type.element)}]"
    if isinstance(type, DictType):
        return f"Dict[{type_name(type.key_type)}, {type_name(type.value_type)}]"
    if isinstance(type, UnionType):
        return f"Union[{', '.join(map(type_name, type.elements))}]"
    if isinstance(type, TupleType):
        return f"Tuple[{', '.join(map(type_name, type.elements))}]" if type.elements else "Tuple[()]"
    if isinstance(type, WrapperType):
        return f"{type.word}[{type_name(type.element)}]"
    if isinstance(type, TypeVar):
        return type.name
    return {"Scalar": "number", "None": "NoneType"}.get(type.key, "Tensor" if isinstance(type, types.TensorType) else type.text)
