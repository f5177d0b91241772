"""The overload that a call means: candidates in torch's order, first without implicit conversions, then with them.

Matching does not touch the graph: the conversion that an argument needs (a list made of numbers, a tensor read as a number) is kept as a
recipe, which is executed only for the chosen overload.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from irtool.ir import types
from irtool.ir.graph import Value
from irtool.ir.schema import Argument, Schema, substitute
from irtool.ir.types import DictType, ListType, OptionalType, TupleType, Type, TypeVar, UnionType
from irtool.torchscript.annotations import type_name

TENSOR_KEY = types.TENSOR.key
NEVER_CHOSEN = "aten::view.dtype"
"""An overload that torch does not choose: for its compiler a dtype is an int, and `x.view(2)` asks for a shape."""
Recipe = tuple[object, ...]
"""How to make an operand: ("value", v), ("list", element type, [recipes]), ("call", kind, recipe), ("tuple", [recipes]), ("element",
tuple value, index), ("default", argument)."""


class Mismatch(Exception):
    """A candidate does not accept the arguments; the message is the reason."""


class Match:
    """The chosen overload, a recipe per operand, and the types that its type variables stand for."""

    __slots__ = ("schema", "recipes", "variables")

    def __init__(self, schema: Schema, recipes: list[Recipe], variables: dict[str, Type]) -> None:
        self.schema = schema
        self.recipes = recipes
        self.variables = variables

    @property
    def results(self) -> list[Type]:
        """The types of the results."""
        return [substitute(result.type, self.variables) for result in self.schema.returns]


class Resolver:
    """Matches arguments with schemas. `inferred`: values whose type was assumed (parameters without annotation); `empty`: lists written
    `[]`, which get the wanted element type."""

    def __init__(self, inferred: set[Value], empty: set[Value]) -> None:
        self.inferred = inferred
        self.empty = empty

    def name_of(self, value: Value) -> str:
        """The type of a value in messages: `Tensor (inferred)` for a parameter without annotation."""
        return type_name(value.type) + (" (inferred)" if value in self.inferred else "")

    def choose(self, candidates: Sequence[Schema], positional: Sequence[Value], named: Mapping[str, Value],
               is_method: bool = False) -> tuple[Match | None, list[str]]:
        """The first candidate that accepts the arguments; or None, with a reason per candidate.

        The object of a method call is the first of `positional`; it is the argument called self, wherever the schema has it.
        """
        if len(candidates) == 1:
            try:
                return self.match(candidates[0], positional, named, True, is_method), []
            except Mismatch as mismatch:
                return None, [str(mismatch)]
        reasons: list[str] = []
        for convert in (False, True):
            reasons = []
            for schema in candidates:
                if schema.name == NEVER_CHOSEN:
                    reasons.append("A dtype is an int in TorchScript, which asks for a shape.")
                    continue
                try:
                    return self.match(schema, positional, named, convert, is_method), []
                except Mismatch as mismatch:
                    reasons.append(str(mismatch))
        return None, reasons

    def match(self, schema: Schema, positional: Sequence[Value], named: Mapping[str, Value], convert: bool,
              is_method: bool = False) -> Match:
        """One candidate. Raises Mismatch."""
        variables: dict[str, Type] = {}
        recipes: list[Recipe] = []
        used = 0
        used_names: set[str] = set()
        receiver = None
        if is_method:
            receiver, *positional = positional
            if not any(argument.name == "self" for argument in schema.arguments):
                raise Mismatch("Provided self argument not used in schema.")
        for i, argument in enumerate(schema.arguments):
            if receiver is not None and argument.name == "self":
                recipes.append(self.operand(argument, receiver, convert, variables))
            elif not argument.keyword_only and used < len(positional):
                if convert and self._takes_rest(schema, i, positional[used]):
                    recipes.append(self._list_of_rest(argument, positional[used:], variables))
                    used = len(positional)
                    continue
                if argument.name in named:
                    raise Mismatch(f"Argument '{argument.name}' specified both as positional and keyword argument.")
                recipes.append(self.operand(argument, positional[used], convert, variables))
                used += 1
            elif (name := keyword_of(argument, schema, named)) is not None:
                used_names.add(name)
                recipes.append(self.operand(argument, named[name], convert, variables))
            elif argument.has_default:
                recipes.append(("default", argument))
            else:
                raise Mismatch(f"Argument {argument.name} not provided.")
        if schema.is_vararg:
            recipes += [("value", value) for value in positional[used:]]
            used = len(positional)
        if used != len(positional):
            before = receiver is not None
            raise Mismatch(f"Expected at most {used + before} arguments but found {len(positional) + before} positional arguments.")
        for name in named:
            if name not in used_names:
                raise Mismatch(f"Keyword argument {name} unknown.")
        return Match(schema, recipes, variables)

    def operand(self, argument: Argument, value: Value, convert: bool, variables: dict[str, Type]) -> Recipe:
        """The recipe for the operand of one argument. Raises Mismatch."""
        if argument.fixed_size:
            formal = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
            if isinstance(formal, ListType) and value.type.key in ("int", "float") and formal.element.key == value.type.key:
                return "list", formal.element, [("value", value)] * argument.fixed_size
        reason = bind(argument.type, value.type, variables)
        if reason:
            raise Mismatch(f"Could not match type {self.name_of(value)} to {type_name(argument.type)} in argument '{argument.name}': "
                           f"{reason}.")
        wanted = substitute(argument.type, variables)
        recipe, converted = self.convert(wanted, value, convert)
        if not types.is_subtype(converted, wanted):
            message = (f"Expected a value of type '{type_name(wanted)}' for argument '{argument.name}' but instead found type "
                       f"'{self.name_of(value)}'.")
            if value in self.inferred:
                message += (f"\nInferred the value for argument '{argument.name}' to be of type 'Tensor' because it was not annotated with "
                            "an explicit type.")
            raise Mismatch(message)
        return recipe

    def convert(self, wanted: Type, value: Value, implicit: bool) -> tuple[Recipe, Type]:
        """torch's tryConvertToType: the value, or a recipe for one that is nearer to the wanted type, and its type."""
        plain: Recipe = ("value", value)
        if isinstance(wanted, OptionalType) and not isinstance(value.type, OptionalType) and value.type.key != "None":
            return self.convert(wanted.element, value, implicit)
        if isinstance(value.type, TupleType):
            return converted_tuple(wanted, plain, value.type, implicit)
        if isinstance(wanted, ListType) and value in self.empty:
            return ("list", wanted.element, []), types.list_of(wanted.element)
        if not implicit:
            return plain, value.type
        kind = conversion(wanted, value.type)
        return (plain, value.type) if kind is None else (("call", kind, plain), types.INT if kind == "aten::Int" else wanted)

    def _takes_rest(self, schema: Schema, index: int, first: Value) -> bool:
        """Is this the last positional argument, a list that takes all remaining arguments (`x.view(2, 3)`)?"""
        arguments = schema.arguments
        argument = arguments[index]
        formal = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
        if not isinstance(formal, ListType) or argument.fixed_size or isinstance(formal.element, TypeVar):
            return False
        if index + 1 < len(arguments) and not arguments[index + 1].keyword_only:
            return False
        takes_any = formal.element.key == "Any"        # `len(x)` of an optional is 1 in torch: that of the list [x]
        expected = first.type.element if isinstance(first.type, OptionalType) and not takes_any else first.type
        if isinstance(expected, ListType) or expected.key == "None" and not takes_any:
            return False
        return not (isinstance(first.type, TupleType) and all(_fits_element(each, formal.element) for each in first.type.elements))

    def _list_of_rest(self, argument: Argument, rest: Sequence[Value], variables: dict[str, Type]) -> Recipe:
        """The list of all these, converted where they have to be. Among several overloads, none takes a list of this kind as long as one
        takes the arguments as they are."""
        formal = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
        assert isinstance(formal, ListType)
        element = Argument(argument.name, formal.element, formal.element.text, 0, argument.default, False, None)
        return "list", formal.element, [self.operand(element, value, True, variables) for value in rest]


def keyword_of(argument: Argument, schema: Schema, named: Mapping[str, Value]) -> str | None:
    """The keyword of an argument; functions of torch call `input` what their operators call self."""
    if argument.name in named:
        return argument.name
    return "input" if argument.name == "self" and "input" in named and schema.kind.startswith("aten::") else None


def converted_tuple(wanted: Type, tuple_: Recipe, type: Type, implicit: bool) -> tuple[Recipe, Type]:
    """A tuple as a list, or with its elements converted."""
    elements = type.elements
    if isinstance(wanted, OptionalType):
        wanted = wanted.element
    if isinstance(wanted, ListType) and all(_fits_element(each, wanted.element) for each in elements):
        return ("list", wanted.element, [("element", tuple_, i) for i in range(len(elements))]), types.list_of(wanted.element)
    if not isinstance(wanted, TupleType) or len(wanted.elements) != len(elements) or types.is_subtype(type, wanted):
        return tuple_, type
    recipes: list[Recipe] = []
    given: list[Type] = []
    for i, (each, element) in enumerate(zip(wanted.elements, elements, strict=True)):
        recipe: Recipe = ("element", tuple_, i)
        kind = conversion(each, element) if implicit else None
        if isinstance(element, TupleType):
            recipe, element = converted_tuple(each, recipe, element, implicit)
        elif kind is not None:
            recipe, element = ("call", kind, recipe), types.INT if kind == "aten::Int" else each
        recipes.append(recipe)
        given.append(element)
    return ("tuple", recipes), types.tuple_of(given)


def conversion(wanted: Type, actual: Type) -> str | None:
    """The operator that makes a number (or a device) of a value of another type where torch does so of itself."""
    number = wanted.key
    if actual.key == TENSOR_KEY or isinstance(actual, types.TensorType):
        kind = {"float": "FloatImplicit", "int": "IntImplicit", "complex": "ComplexImplicit", "Scalar": "ScalarImplicit"}.get(number)
    elif actual.key == "Scalar":
        kind = {"float": "Float", "int": "Int", "complex": "Complex"}.get(number)
    elif actual.key == "bool":
        kind = {"float": "Float", "int": "Int", "Scalar": "Int"}.get(number)
    else:
        kind = "device" if actual.key == "str" and number == "Device" else None
    return f"aten::{kind}" if kind is not None else None


def _fits_element(actual: Type, element: Type) -> bool:
    return types.is_subtype(actual, element) or isinstance(element, TypeVar)


def bind(formal: Type, actual: Type, variables: dict[str, Type]) -> str:
    """Bind the type variables of a declared type. Returns the reason if it is impossible, else an empty text."""
    if not _has_variables(formal):
        return ""
    if isinstance(formal, TypeVar):
        known = variables.get(formal.name)
        if known is None:
            variables[formal.name] = actual
            return ""
        joined = types.join(known, actual)
        if joined is None or joined.key == "Any" and known.key != "Any":
            return (f"Type variable '{formal.name}' previously matched to type {type_name(known)} is matched to type {type_name(actual)}")
        if not isinstance(joined, OptionalType | UnionType):
            variables[formal.name] = joined if not isinstance(known, types.TensorType) else known
        return ""
    if isinstance(formal, OptionalType):
        if isinstance(actual, OptionalType):
            return bind(formal.element, actual.element, variables)
        return "" if actual.key == "None" else bind(formal.element, actual, variables)
    if isinstance(formal, ListType) and isinstance(actual, TupleType) and actual.elements:
        joined_all: Type | None = actual.elements[0]
        for each in actual.elements[1:]:
            joined_all = types.join(joined_all, each) if joined_all is not None else None
        return bind(formal.element, joined_all, variables) if joined_all is not None else _cannot(formal, actual)
    same_form = (isinstance(formal, ListType) and isinstance(actual, ListType)
                 or isinstance(formal, DictType) and isinstance(actual, DictType)
                 or isinstance(formal, TupleType) and isinstance(actual, TupleType)
                 or isinstance(formal, types.WrapperType) and type(formal) is type(actual))
    if not same_form or len(formal.elements) != len(actual.elements):
        return _cannot(formal, actual)
    return next((reason for x, y in zip(formal.elements, actual.elements, strict=True) if (reason := bind(x, y, variables))), "")


def _cannot(formal: Type, actual: Type) -> str:
    return f"Cannot match {type_name(formal)} to {type_name(actual)}"


def _has_variables(type: Type) -> bool:
    return isinstance(type, TypeVar) or any(map(_has_variables, type.elements))
