"""Classes of the source whose instances a graph makes: their methods, properties and static methods, read from the text.

Nothing in a class is executed. Compiling `__init__` determines the attributes of instances (`instances.py`).
"""
from __future__ import annotations

import ast
from collections.abc import Sequence

from irtool.ir import types
from irtool.ir.types import Type
from irtool.torchscript.annotations import dotted
from irtool.torchscript.meanings import Sugared
from irtool.torchscript.source_text import Function, Place, Unit, fail

MAX_BASES = 20
"""The most classes in a chain of inheritance."""


class ClassDefinition(Sugared):
    """A class whose instances a graph makes."""

    __slots__ = ("definition", "place", "type", "methods", "statics", "getters", "setters", "attributes", "is_begun", "declared",
                 "constants", "lists")
    what = "class"

    def __init__(self, definition: ast.ClassDef, place: Place) -> None:
        self.definition = definition
        self.place = place
        name = f"{place.module}.{definition.name}"
        self.type: Type = types.parse_type(f"InterfaceType<{name}>" if self.is_interface else name)
        self.methods: dict[str, Function] = {}
        self.statics: dict[str, Function] = {}
        self.getters: dict[str, Function] = {}
        self.setters: dict[str, Function] = {}
        self.attributes: dict[str, Type] = {}
        """The types of the attributes by name, each declared by the first assignment in `__init__`."""
        self.is_begun = False
        """Has compiling `__init__` begun?"""
        self.declared: dict[str, ast.expr] = {}
        """Of an archive's class: the annotations of the attributes, all of which its body declares."""
        self.constants: dict[str, ast.expr] = {}
        """Of an archive's class: names that its body assigns."""
        self.lists: dict[str, list[str]] = {}
        """Of an archive's class: `__parameters__`, `__buffers__`, `__forward_hooks__`, `__forward_pre_hooks__`."""

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def is_module(self) -> bool:
        """Is it a class of modules? (of an archive)"""
        return any((dotted(base) or "") == "Module" for base in self.definition.bases)

    @property
    def is_interface(self) -> bool:
        """Is it an interface, which only declares methods that other classes have? (of an archive)"""
        return any((dotted(base) or "").endswith("Interface") for base in self.definition.bases)


def class_definition(definition: ast.ClassDef, place: Place, depth: int = 0) -> ClassDefinition | None:
    """The definition of a class of the file; None if it inherits from a class that the compiler does not know.

    Members that its bases define are not part of it, as in torch.
    """
    bases = [dotted(base) or "" for base in definition.bases]
    if place.unit is None or definition.keywords or is_interface(definition):
        return None
    bases = [base for base in bases if base != "object"] if place.library is None else []
    if depth > MAX_BASES or any(base not in place.classes or class_definition(place.classes[base], place, depth + 1) is None
                                for base in bases):
        return None
    if bases and "script" in decorators(definition):
        fail(place, definition, "TorchScript classes does not support inheritance yet. Please directly inherit from 'object'.",
             len("class"))
    members = ClassDefinition(definition, place)
    unused = _unused_properties(definition)
    for statement in definition.body:
        if isinstance(statement, ast.FunctionDef) and "_drop" not in decorators(statement) and statement.name not in unused:
            _enter(members, statement, place.unit)
    if "dataclass" in decorators(definition):
        for each in _dataclass_methods(definition, place):
            members.methods.setdefault(each.name, Function(each, place, place.unit, members.type))
    return members


def is_interface(definition: ast.ClassDef) -> bool:
    """Is the class decorated with `torch.jit.interface`?"""
    return "interface" in decorators(definition)


def parameters_of(definition: ast.FunctionDef) -> list[ast.arg]:
    """All declared parameters, in order."""
    return [*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs]


def interfaces_of(function: Function) -> dict[int, ast.ClassDef]:
    """The position of each parameter whose type is an interface -> the interface."""
    named = {index: function.place.classes.get(dotted(each.annotation) or "")
             for index, each in enumerate(parameters_of(function.definition)) if each.annotation is not None}
    return {index: definition for index, definition in named.items() if definition is not None and is_interface(definition)}


def decorators(definition: ast.ClassDef | ast.FunctionDef) -> list[str]:
    """The last word of each decorator: `unused` of `@torch.jit.unused`."""
    return [(dotted(each.func if isinstance(each, ast.Call) else each) or "").rpartition(".")[2] for each in definition.decorator_list]


def _unused_properties(definition: ast.ClassDef) -> set[str]:
    """The names in `__jit_unused_properties__ = [...]`, which torch does not compile."""
    return {each.value for statement in definition.body
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__jit_unused_properties__"
            for each in ast.walk(statement.value) if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def _enter(members: ClassDefinition, method: ast.FunctionDef, unit: Unit) -> None:
    words = decorators(method)
    if "staticmethod" in words:
        members.statics[method.name] = Function(method, unit.place, unit)
        return
    if "classmethod" in words:
        return
    if not method.args.args and not method.args.posonlyargs:
        fail(unit.place, method, f"method {method.name} has no parameter for the instance (self)", len("def"))
    table = members.getters if "property" in words else members.setters if "setter" in words else members.methods
    table[method.name] = Function(method, unit.place, unit, members.type)


DATACLASS_OPTIONS = {"init": True, "repr": True, "eq": True, "order": False, "unsafe_hash": False, "match_args": True, "slots": False,
                     "weakref_slot": False}
"""The options of `dataclass` that TorchScript compiles, and what they are if they are not given."""
FIELD_OPTIONS = ("default", "compare", "repr", "hash")
"""Those of `field`."""


def _options(call: ast.expr, known: Sequence[str], place: Place, what: str) -> dict[str, ast.expr]:
    """The keyword arguments of a call; one that torch does not compile is refused."""
    if not isinstance(call, ast.Call):
        return {}
    given = ["a positional one"] * len(call.args) + [each.arg or "**" for each in call.keywords]
    wrong = next((name for name in given if name not in known), None)
    if wrong is not None:
        fail(place, call, f"options of {what} are not supported, but for {', '.join(known)}: found {wrong}")
    return {each.arg: each.value for each in call.keywords if each.arg is not None}


def _dataclass_methods(definition: ast.ClassDef, place: Place) -> list[ast.FunctionDef]:
    """`__init__`, `__eq__` and the order as `dataclass` writes them."""
    own = {each.name for each in definition.body if isinstance(each, ast.FunctionDef)}
    if "script" not in decorators(definition) and "__init__" not in own:
        fail(place, definition, f"Failed to get source for {definition.name}.__init__: torch.jit.script has to decorate the dataclass",
             len("class"))
    options = dict(DATACLASS_OPTIONS)
    for decorator, word in zip(definition.decorator_list, decorators(definition), strict=True):
        if word == "dataclass":
            given = _options(decorator, [*DATACLASS_OPTIONS], place, word)
            options |= {name: ast.unparse(value) == "True" for name, value in given.items()}
    parameters, stores, compared, after = ["self"], [], [], []
    for each in definition.body:
        if not isinstance(each, ast.AnnAssign) or not isinstance(each.target, ast.Name):
            continue
        name, type, default = each.target.id, each.annotation, each.value
        details: dict[str, ast.expr] = {}
        if isinstance(default, ast.Call):
            if (dotted(default.func) or "").rpartition(".")[2] != "field":
                fail(place, each, "defaults of dataclasses that are calls are not supported")
            details = _options(default, FIELD_OPTIONS, place, "field")
            default = details.get("default")
        if isinstance(type, ast.Subscript) and (dotted(type.value) or "").rpartition(".")[2] == "InitVar":      # for __post_init__ only
            type = type.slice
            after.append(name)
        else:
            stores.append(f"    self.{name} = {name}")
            if "compare" not in details or ast.unparse(details["compare"]) != "False":
                compared.append(each)
        parameters.append(f"{name}: {ast.unparse(type)}" + (f" = {ast.unparse(default)}" if default is not None else ""))
    if "__post_init__" in own:
        stores.append(f"    self.__post_init__({', '.join(after)})")
    lines = [f"def __init__({', '.join(parameters)}) -> None:", *(stores or ["    pass"])] if options["init"] else []
    lines += _comparison(definition, compared, "__eq__", "!=", "return False", True) if options["eq"] else []
    if options["order"]:
        for method, sign, equal in (("__lt__", "<", False), ("__le__", "<", True), ("__gt__", ">", False), ("__ge__", ">", True)):
            lines += _comparison(definition, compared, method, sign, "return True", equal, is_order=True)
    methods = [each for each in ast.parse("\n".join(lines)).body if isinstance(each, ast.FunctionDef)]
    for each in methods:
        for node in ast.walk(each):
            ast.copy_location(node, definition)
    return methods


def _comparison(definition: ast.ClassDef, fields: list[ast.AnnAssign], method: str, sign: str, outcome: str, equal: bool,
                is_order: bool = False) -> list[str]:
    """The lines of a method that compares field by field: `outcome` where `sign` holds, for an order False where it holds the other way
    round, and `equal` at last. An optional field that is None in one object only makes them unequal, and cannot be ordered."""
    lines = [f"def {method}(self, other: '{definition.name}') -> bool:"]
    for index, each in enumerate(fields):
        ours, theirs, name = f"ours{index}", f"theirs{index}", ast.unparse(each.target)
        test = [f"if {ours} {sign} {theirs}:", f"    {outcome}",
                *([f"elif {theirs} {sign} {ours}:", "    return False"] if is_order else [])]
        if (dotted(each.annotation.value if isinstance(each.annotation, ast.Subscript) else each.annotation) or "").endswith("Optional"):
            other = f'raise TypeError("Cannot compare {definition.name} with None")' if is_order else "return False"
            test = [f"if {ours} is not None and {theirs} is not None:", *(f"    {line}" for line in test),
                    f"elif ({ours} is None) != ({theirs} is None):", f"    {other}"]
        lines += [f"    {line}" for line in (f"{ours} = self.{name}", f"{theirs} = other.{name}", *test)]
    return [*lines, f"    return {equal}"]
