"""The verifier's invariants of single nodes: operands, attributes and results fit the declaration of the kind, or its Form.

Passes rely on them: they read `node.inputs[1]` of an `aten::mul`, or `chunks` of a `prim::ConstantChunk`, without checking that it exists.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from irtool.ir.attribute import Opaque
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.effects import MUTATORS, SPECIAL_PRIMS, is_known_prim
from irtool.ir.graph import Graph, Node, counted
from irtool.ir.kinds import nearest_kind
from irtool.ir.schema import Schema, has_variables, schema_of, schemas
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.types import DictType, ListType, OptionalType, TupleType, Type
from irtool.ir.verify_constants import NUMBER_KEYS, constant_problem, is_fraction
from irtool.ir.verify_types import NUMBERS, STRICT_DIALECTS, Found, flows, result_problem

COUNT, OVERLOAD = "E0208", "E0212"
FINE = ("", "")
MAX_HINTS = 20
"""Only so many unknown kinds get a suggestion: each takes time, and nobody reads more."""


def check_operators(graph: Graph) -> Iterator[Found]:
    """Kinds of `aten::` and `prim::` are declared, and an overload accepts the operands."""
    strict = graph.dialect.name in STRICT_DIALECTS
    known: dict[tuple[object, ...], bool] = {}
    unknown: set[str] = set()
    for node in graph.walk():
        if node.blocks and node.kind.startswith("aten::"):
            yield node, f"{node.kind} has no blocks"
        key = (node.kind, *[value.type for value in node.inputs], len(node.outputs), *node.attributes)
        fine = known.get(key)
        if not fine:
            message, code = operator_problem(node, strict, len(unknown) < MAX_HINTS or node.kind in unknown)
            known[key] = not message
            if message:
                if not schemas(node.kind):
                    unknown.add(node.kind)
                yield node, message, code


def operator_problem(node: Node, strict: bool, has_hint: bool = True) -> tuple[str, str]:
    """What is wrong with a node's operator (empty if nothing is), and the code for it."""
    kind = node.kind
    space, colons, name = kind.partition("::")
    if not colons or space not in ("aten", "prim") or kind in SPECIAL_PRIMS or kind == "prim::Uninitialized":
        return FINE
    declared = schemas(kind)
    if not declared:
        if not strict or kind == "aten::ATen" or space == "prim" and is_known_prim(kind):
            return FINE
        hint = nearest_kind(kind) if has_hint else ""
        if space == "prim" and not hint:    # test programs register primitives that are not declared
            return FINE
        return f"unknown operator '{kind}'" + (f" (did you mean '{hint}'?)" if hint else ""), "E0103"
    if not strict:
        return _count_problem(node, declared), COUNT
    if len(declared) == 1 and declared[0].is_vararg:
        return FINE
    schema = schema_of(node)
    if schema is None:
        arguments = ", ".join([*(f"{value.type}" for value in node.inputs), *(f"{name}={text}" for name, text in node.attributes.items())])
        if len(declared) == 1:
            return f"{kind} does not take ({arguments}), expected {declared[0]}", OVERLOAD
        counts = sorted({len(each.arguments) for each in declared})
        if not node.attributes and not any(each.is_vararg for each in declared) and len(node.inputs) > counts[-1]:
            return f"{kind} takes at most {counts[-1]} operands, found {len(node.inputs)}", COUNT
        return f"no overload of {kind} takes ({arguments})", OVERLOAD
    if not schema.is_varret and len(node.outputs) != len(schema.returns) and not (
            len(schema.returns) < 2 and (not schema.returns and len(node.outputs) == 1 or schema.returns and _gives_list(schema))):
        given_count = len(node.inputs) + len(node.attributes)
        if any((len(each.returns) == len(node.outputs) or _gives_list(each)) and len(each.arguments) == given_count for each in declared):
            return FINE     # without number types, `max(%x, %dim, %keepdim)` resolves to `max.out`
        return f"{kind} gives {counted(len(schema.returns), 'result')}, found {len(node.outputs)}", COUNT
    return FINE


def _count_problem(node: Node, declared: tuple[Schema, ...]) -> str:
    """For older dialects, whose types say little: a node has as many operands as some declaration accepts, and that declaration's
    results."""
    schema = schema_of(node)
    if schema is None:
        count = len(node.inputs) + len(node.attributes.keys() - {"scalars"})
        fewest = min(sum(not argument.has_default for argument in each.arguments) for each in declared)
        most = max(len(each.arguments) for each in declared)
        if not fewest <= count <= most and not any(each.is_vararg for each in declared):
            return f"{node.kind} takes {fewest}{f' to {most}' if most > fewest else ''} arguments, found {count}"
        counts = {len(each.returns) for each in declared if not each.is_varret}
    else:
        counts = set() if schema.is_varret or _gives_list(schema) else {len(schema.returns)}
    named = schemas(f"{node.kind}_with_indices")        # the declaration of `aten::max_pool2d` until mid-2018
    if counts and len(node.outputs) not in counts and not (named and len(node.outputs) == len(named[0].returns)):
        return f"{node.kind} gives {' or '.join(map(str, sorted(counts)))} result{'' if counts == {1} else 's'}, found {len(node.outputs)}"
    return ""


def _gives_list(schema: Schema) -> bool:
    """Is the only result a list of tensors (or numbers)? Until mid-2018, and longer in traces, its elements were the node's results."""
    return len(schema.returns) == 1 and isinstance(schema.returns[0].type, ListType) and not has_variables(schema.returns[0].type)


def check_prims(graph: Graph) -> Iterator[Found]:
    """Constants, and nodes that make or take apart containers, have the operands and results that their types say."""
    for node in graph.walk():
        check = _PRIM_CHECKS.get(node.kind)
        if check is not None:
            message = check(node, graph.dialect.name in STRICT_DIALECTS)
            if message:
                yield node, message


def _one_result(node: Node, what: str) -> str:
    return "" if len(node.outputs) == 1 else f"{node.kind} gives one {what}, found {len(node.outputs)} results"


def _list_problem(node: Node, strict: bool) -> str:
    if len(node.outputs) != 1 or not strict and node.output.type.key not in NUMBER_KEYS:
        return _one_result(node, "list") or _fraction_problem(node)
    type = node.output.type
    if not isinstance(type, ListType):
        return "" if type.key == "Any" or isinstance(type, OptionalType) else f"{node.kind} gives a list, found {type}"
    for value in node.inputs:
        if not flows(value.type, type.element):
            return f"{node.kind} makes {type} of %{value.name} : {value.type}"
    return ""


def _fraction_problem(node: Node) -> str:
    """A problem if a list of ints is made of a constant that is no whole number, which texts of 2018 can say (`ListConstruct(0.5)`)."""
    type = node.output.type
    if not isinstance(type, ListType):
        return ""
    for value in node.inputs:
        attribute = value.node.attributes.get("value") if value.node.kind == "prim::Constant" else None
        if attribute is not None and is_fraction(attribute.value, type.element):
            return f"{node.kind} makes {type} of {attribute.text[:40]}, expected whole numbers"
    return ""


def _tuple_problem(node: Node, strict: bool) -> str:
    type = node.output.type if len(node.outputs) == 1 else None
    if isinstance(type, TupleType) and len(type.elements) != len(node.inputs):
        return f"{node.kind} makes {type} of {len(node.inputs)} values"
    if type is None or not strict and type.key not in NUMBER_KEYS:
        return _one_result(node, "tuple")
    if not isinstance(type, TupleType):
        return "" if type.key in ("Any", "Tuple") else f"{node.kind} gives a tuple, found {type}"
    for value, element in zip(node.inputs, type.elements, strict=True):
        if not flows(value.type, element):
            return f"{node.kind} makes {type} of %{value.name} : {value.type}"
    return ""


def _dict_problem(node: Node, strict: bool) -> str:
    if len(node.inputs) % 2:
        return f"{node.kind} takes keys and values in turn, found {len(node.inputs)} operands"
    if len(node.outputs) == 1 and strict and not isinstance(node.output.type, DictType) and node.output.type.key != "Any":
        return f"{node.kind} gives a dict, found {node.output.type}"
    return _one_result(node, "dict")


def _unpack_problem(node: Node, strict: bool) -> str:
    if len(node.inputs) != 1:
        return f"{node.kind} takes one operand, found {len(node.inputs)}"
    type = node.inputs[0].type
    if node.kind == "prim::TupleUnpack" and isinstance(type, TupleType) and len(type.elements) != len(node.outputs):
        return f"{node.kind} gives the {len(type.elements)} values of {type}, found {len(node.outputs)} results"
    if not strict:
        return ""
    wanted = TupleType if node.kind == "prim::TupleUnpack" else ListType
    if not isinstance(type, wanted) and type.key not in ("Any", "Tuple"):
        return f"{node.kind} takes a {'tuple' if wanted is TupleType else 'list'}, found %{node.inputs[0].name} : {type}"
    return ""


_PRIM_CHECKS: dict[str, Callable[[Node, bool], str]] = {
    "prim::Constant": constant_problem,
    "prim::ListConstruct": _list_problem,
    "prim::TupleConstruct": _tuple_problem,
    "prim::DictConstruct": _dict_problem,
    "prim::TupleUnpack": _unpack_problem,
    "prim::ListUnpack": _unpack_problem,
}


# ---------------------------------------------------------------- kinds without a declaration
class Form:
    """The form of nodes of a kind without schema: numbers of operands and of results, and required attributes."""

    __slots__ = ("operands", "results", "attributes")

    def __init__(self, operands: tuple[int, int], results: tuple[int, int], attributes: str = "") -> None:
        self.operands = operands
        self.results = results
        self.attributes = tuple(word.partition(":")[::2] for word in attributes.split())
        """Name and type (int, str or types) of each attribute; a `?` follows optional ones."""


ANY = 1 << 30
FORMS: dict[str, Form] = {
    "prim::ConstantChunk": Form((1, 1), (0, ANY), "chunks:int dim:int"),
    "prim::FusedChunk": Form((1, 1), (0, ANY), "chunks:int dim:int"),
    "prim::FusedConcat": Form((1, ANY), (1, 1), "dim:int"),
    "prim::TupleSlice": Form((1, 1), (1, 1), "beg:int end:int"),
    "prim::GetAttr": Form((1, 1), (1, 1), "name:str"),
    "prim::SetAttr": Form((2, 2), (0, 0), "name:str"),
    "prim::CallMethod": Form((1, ANY), (0, ANY), "name:str"),
    "prim::TypeCheck": Form((0, ANY), (1, ANY), "types:types?"),
    "prim::RequiresGradCheck": Form((0, ANY), (1, ANY), "types:types?"),
    "prim::Undefined": Form((0, 0), (1, 1)),
    "prim::AutogradZero": Form((0, 0), (1, 1)),
    "prim::None": Form((0, 0), (1, 1)),
    "prim::AutogradAdd": Form((2, 2), (1, 1)),
    "prim::AnyDefined": Form((0, ANY), (1, 1)),
    "prim::AutogradAnyNonZero": Form((0, ANY), (1, 1)),
    "prim::ReplaceIfUndef": Form((2, 2), (1, 1)),
    "prim::unchecked_cast": Form((1, ANY), (1, ANY)),      # several results for a tuple that was taken apart
    "prim::unchecked_unwrap_optional": Form((1, 1), (1, 1)),
    "prim::TupleIndex": Form((1, 2), (1, 1)),
    "prim::NumToTensor": Form((1, 1), (1, 1)),
    "prim::TensorToNum": Form((1, 1), (1, 1)),
    "prim::TensorToBool": Form((1, 1), (1, 1)),
    **{f"prim::{name}": Form((1, 1), (1, 1)) for name in (
        "Int Float Bool IntToFloat FloatToInt StringToFloat BoolToTensor ImplicitTensorToNum ListLen TupleLen").split()},
    "prim::isinstance": Form((1, 1), (1, 1), "types:types"),
    "prim::Guard": Form((1, 1), (1, 1)),
    "prim::Print": Form((0, ANY), (0, 1)),
    "prim::NamedTupleConstruct": Form((0, ANY), (1, 1)),
    "prim::tolist": Form((3, 3), (1, 1)),
    "prim::fork": Form((0, ANY), (1, 1)),
    "prim::awaitable": Form((0, ANY), (1, 1)),
    "aten::wait": Form((1, 1), (1, 1)),
    "prim::awaitable_wait": Form((1, 1), (1, 1)),
    "prim::awaitable_nowait": Form((1, 1), (1, 1)),
}


def check_forms(graph: Graph) -> Iterator[Found]:
    """Nodes of kinds without schema have the operands, results and attributes of their Form; arguments that must be numbers are numbers."""
    strict = graph.dialect.name in STRICT_DIALECTS
    for node in graph.walk():
        kind = node.kind
        if node.attributes:
            message = _size_problem(node)
            if message:
                yield node, message
        form = FORMS.get(kind)
        if kind in CONSTANT_KINDS and len(node.outputs) != 1:
            yield node, f"{kind} gives 1 result, found {len(node.outputs)}"
            continue
        if kind == "prim::unchecked_cast" and len(node.inputs) != len(node.outputs):
            yield node, f"{kind} gives as many values as it takes, found {len(node.inputs)} operands and {len(node.outputs)} results"
        if form is not None:
            message = _form_problem(node, form)
            if message:
                yield node, message
        elif kind.startswith("aten::"):
            message = _argument_problem(node) if node.attributes else ""
            if message:
                yield node, message
            elif message := result_problem(node, strict):
                yield node, message, "E0209"


def _form_problem(node: Node, form: Form) -> str:
    for what, (fewest, most), count in (("takes", form.operands, len(node.inputs)), ("gives", form.results, len(node.outputs))):
        if not fewest <= count <= most:
            wanted = f"at least {fewest}" if most == ANY else str(fewest) if fewest == most else f"{fewest} or {most}"
            word = "operand" if what == "takes" else "result"
            return f"{node.kind} {what} {wanted} {word}{'' if fewest == most == 1 else 's'}, found {count}"
    for name, wanted in form.attributes:
        attribute = node.attributes.get(name)
        if attribute is None and wanted.endswith("?"):
            continue
        if attribute is None:
            return f"{node.kind} needs the attribute '{name}'"
        wanted = wanted.removesuffix("?")
        if attribute.types is None if wanted == "types" else not _IS[wanted](attribute.value):
            return f"the attribute '{name}' of {node.kind} is {_CALLED[wanted]}, found '{attribute.text[:40]}'"
    index = node.attributes.get("index")
    if node.kind == "prim::TupleIndex" and len(node.inputs) == 1 and not (index is not None and _is_int(index.value)):
        return f"{node.kind} needs an index, as an operand or as the attribute 'index'"
    return ""


def _size_problem(node: Node) -> str:
    """Ints have at most 64 bits, since torch reads no larger ones."""
    for name, attribute in node.attributes.items():
        if _MANY_DIGITS.search(attribute.text):
            found: object = attribute.value
            if isinstance(found, TensorLiteral) and found.is_number:
                found = found.item()
            values = found if isinstance(found, list) else [found]
            if any(isinstance(value, int) and not -1 << 63 <= value < 1 << 63 for value in values):
                return f"the attribute '{name}' of {node.kind} contains an int of more than 64 bits"
    return ""


_MANY_DIGITS = re.compile(r"\d{19}")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -1 << 63 <= value < 1 << 63


_IS: dict[str, Callable[[object], bool]] = {"int": _is_int, "str": lambda value: isinstance(value, str | Type)}
_CALLED = {"int": "an int", "str": "a name", "types": "a list of types"}


def _argument_problem(node: Node) -> str:
    """Attributes that are arguments have values of the arguments' types; none stands for the list that an operator changes."""
    if node.kind in MUTATORS and not node.inputs:
        return f"{node.kind} has no operand that it changes"
    schema = schema_of(node)
    if schema is None:
        return ""
    for name, attribute in node.attributes.items():
        place = schema.positions.get(name)
        if place is not None:
            argument = schema.arguments[place]
            value = attribute.as_type(argument.type)
            if isinstance(value, str | Opaque) and _is_numeric(argument.type):
                return f"the argument '{name}' of {node.kind} is {argument.type}, found '{attribute.text[:40]}'"
    return ""


def _is_numeric(type: Type) -> bool:
    while isinstance(type, OptionalType | ListType):
        type = type.element
    return type.key in NUMBERS
