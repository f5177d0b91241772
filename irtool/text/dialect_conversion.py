"""Conversion between dialects: the same graphs as torch printed them in another period.

Kinds, types and attribute values are respelled; arguments change between attributes and operands (`argument_form.py`). Facts that the
target cannot express are left out of types (`device=cpu` in 2018), but values are kept unchanged then, so that no number is lost.
"""
from __future__ import annotations

from irtool.ir.attribute import Attribute, Opaque, TensorLiteral
from irtool.ir.attribute_reader import skip_string, split_attributes
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.dialect import DIALECTS, Dialect, dialect
from irtool.ir.errors import Error
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.module import Module
from irtool.ir.scalars import words_of
from irtool.ir.schema import is_tensor_like, schema_of
from irtool.ir.types import NONE, OptionalType, Type, parse_type, same, spell
from irtool.text.argument_form import arguments_to_attributes, arguments_to_operands
from irtool.text.old_meaning import modernize
from irtool.text.tidy import keep_comments, name_apart, owned_graphs

PRIM_WORDS = frozenset((
    "Constant", "If", "Loop", "Undefined", "FusionGroup", "GraphExecutor", "Eval", "ReplaceIfUndef", "TupleConstruct", "TupleUnpack",
    "ListConstruct", "ListUnpack", "Print", "NumToTensor", "TensorToNum", "AutogradAdd", "GradOf", "AnyDefined", "Drop", "Load", "Store",
    "FusedConcat", "ConstantChunk", "DifferentiableGraph", "Starred", "MemoryFence", "Select"))
"""Unqualified kinds of 2017 that became `prim::`; other capitalized ones became `onnx::`, the rest `aten::`."""

KEPT_WHOLE = ("^", "CppOp[")
"""Kinds that never had a namespace."""

ONNX_FLOATS = frozenset((
    "alpha", "beta", "gamma", "epsilon", "momentum", "ratio", "bias", "lambd", "spatial_scale", "height_scale", "width_scale", "scale",
    "mean", "high", "low", "scales", "extrapolation_value", "cubic_coeff_a", "norm_coefficient", "decay_factor", "value_float", "seed"))
"""ONNX attributes that are floats, although before 2020 they may be printed as `1`."""

CASTS = ("Int", "Float", "Bool")


def convert(module: Module, name: str) -> Module:
    """Convert every graph of the module to the dialect `name` (or alias: `2.13`), in place; returns the module.

    Raises Error for an unknown dialect.
    """
    target = dialect(name)
    for graph in module.graphs:
        convert_graph(graph, target)
    return module


def convert_graph(graph: Graph, target: Dialect) -> None:
    """Convert a graph, and the graphs that its nodes own.

    A graph that already has the dialect is respelled too, since a text seldom determines which of two similar dialects it has.
    """
    graphs = [graph]
    while graphs:
        one = graphs.pop()
        graphs += owned_graphs(one)
        _Conversion(one, target).run()


class _Conversion:
    """The conversion of one graph."""

    __slots__ = ("graph", "source", "target", "types")

    def __init__(self, graph: Graph, target: Dialect) -> None:
        self.graph = graph
        self.source = graph.dialect
        self.target = target
        self.types: dict[Type, Type] = {}

    def run(self) -> None:
        graph, source, target = self.graph, self.source, self.target
        name_apart(graph, target)
        if target.attribute_arguments and not source.attribute_arguments:
            for node in list(graph.walk()):
                arguments_to_attributes(graph, node, target)
        for node in list(graph.walk()):
            if node.owner is not None:
                self.rename(node)
                self.respell(node)
                self.cut_tail(node)
        for value in graph.values():
            value.type = self.spelled(value.type)
        graph.dialect = target
        if source.attribute_arguments and not target.attribute_arguments:
            for node in list(graph.walk()):
                arguments_to_operands(graph, node)
        if source.none_kind != "prim::Constant" and target.none_kind == "prim::Constant":
            modernize(graph)
        keep_comments(graph)

    def spelled(self, type: Type) -> Type:
        text = self.types.get(type)
        if text is None:
            text = self.types[type] = spell(type, self.target)
        return text

    # -- kinds
    def rename(self, node: Node) -> None:
        """Respell the kind."""
        if node.kind.startswith(KEPT_WHOLE):
            return
        scalars = node.attributes.get("scalars")
        if scalars is not None and self.target.typed:       # `Dropout 0.2 True(%x)` of 2017 is a Python operator
            node.kind = "^" + node.kind
            node.set_attribute("scalars", Attribute(words_of(scalars.text)))
            return
        if self.target.qualified_kinds:
            node.kind = qualified(node.kind)
        self.rename_none(node)
        self.rename_cast(node)
        if node.kind in ("prim::AnyDefined", "prim::AutogradAnyNonZero"):
            node.kind = self.target.any_defined_kind
        if not self.target.qualified_kinds:
            word = node.kind.rpartition("::")[2]
            if qualified(word) == node.kind:        # kinds that came later (`aten::Int`, `prim::dtype`) keep their namespace
                node.kind = word

    def rename_none(self, node: Node) -> None:
        """Replace the nodes that make None and undefined tensors by those of the target."""
        source, target = self.source, self.target
        if len(node.outputs) != 1:
            return
        value = node.outputs[0]
        is_none = node.kind in CONSTANT_KINDS and not node.attributes
        if node.kind in ("prim::Undefined", "prim::AutogradZero"):
            # before 2019, an absent argument was an undefined tensor
            is_none = source.none_kind != "prim::Constant" and target.none_kind == "prim::Constant" and _is_absent_argument(value)
            if not is_none:
                node.kind = target.undefined_kind
                return
            value.type = NONE
        if is_none and target.attribute_arguments:
            if _is_absent_tensor(value):
                node.kind = target.none_kind
                value.type = parse_type(target.tensor_word)
        elif is_none:
            node.kind = target.none_kind if target.none_kind != "prim::None" or value.type.key == "None" else "prim::Constant"

    def rename_cast(self, node: Node) -> None:
        """Replace the nodes that convert a tensor to a number: `prim::TensorToNum`, `prim::Int`, `aten::Int`."""
        namespace, _, word = node.kind.partition("::")
        if len(node.outputs) != 1 or len(node.inputs) != 1:
            return
        style = self.target.cast_namespace
        if word in CASTS and namespace in ("prim", "aten"):
            if style:
                node.kind = f"{style}::{word}"
            elif parse_type("Tensor").key == node.inputs[0].type.key:
                node.kind = "prim::TensorToBool" if word == "Bool" else "prim::TensorToNum"
        elif word in ("TensorToNum", "TensorToBool") and style:
            cast = {"float": "Float", "bool": "Bool"}.get(node.outputs[0].type.key, "Int" if word == "TensorToNum" else "Bool")
            node.kind = f"{style}::{cast}"

    # -- values
    def respell(self, node: Node) -> None:
        """Respell the texts of attributes."""
        if not node.attributes:
            return
        changed: dict[str, Attribute] = {}
        for name, attribute in node.attributes.items():
            if name == "scalars" or attribute.text.startswith(("<", "[<")):
                continue
            type = node.outputs[0].type if name == "value" and node.kind in CONSTANT_KINDS and len(node.outputs) == 1 else None
            text = self.value_text(node, name, attribute, type)
            if text != attribute.text:
                old = attribute.value
                if isinstance(old, TensorLiteral) and old.data is not None:
                    changed[name] = Attribute(text, TensorLiteral(text, old.dtype, old.shape, old.data))
                else:
                    changed[name] = Attribute(text)
        if changed:
            node.attributes = {name: changed.get(name, attribute) for name, attribute in node.attributes.items()}

    def value_text(self, node: Node, name: str, attribute: Attribute, type: Type | None) -> str:
        source, target = self.source, self.target
        value = attribute.value if type is None else attribute.as_type(type)
        if isinstance(value, TensorLiteral):
            return _retagged(attribute.text, target)
        if isinstance(value, Opaque):
            return attribute.text
        if type is not None and type.key == "Device" and isinstance(value, str) and target.device_constants == "list":
            return attribute.text       # only an argument's list can express it, no constant
        is_float = type is None and name in ONNX_FLOATS and node.kind.startswith("onnx::")
        if is_float:
            value = _as_floats(value)
        quoted = target.string_style in ("raw", "escaped") or _is_quoted(attribute.text, value)
        is_known = type is not None or is_float
        if not is_known and _is_loosely_written(value):
            return attribute.text       # nothing would show that `1`, for `1.`, is a float
        if quoted and _same_spelling(value, source, target) and not _is_loosely_written(value):
            return attribute.text
        if not _can_say(value, target):
            return attribute.text
        try:
            text = Attribute.of(value, target, type).text
        except Error:
            return attribute.text
        if isinstance(value, str) and not _reads_back(text, value):
            return Attribute.of(value, DIALECTS["G"], type).text      # without quotes, the string would be read as another value
        return text

    # -- the rest of the line
    def cut_tail(self, node: Node) -> None:
        """Remove scopes if the target has none; source comments stay, since they are comments."""
        if node.tail and not self.target.scopes and ", scope: " in node.tail:
            node.tail = f" # {node.source}" if node.source else ""


OLD_NAMES = {"fusion_group": "prim::FusionGroup"}
"""Kinds of 2017-09 -> their names since."""


def qualified(kind: str) -> str:
    """The kind with its namespace: `mul` is `aten::mul`, `If` is `prim::If`, `Conv` is `onnx::Conv`."""
    if "::" in kind or kind.startswith(KEPT_WHOLE):
        return kind
    if kind in OLD_NAMES:
        return OLD_NAMES[kind]
    if kind in PRIM_WORDS:
        return "prim::" + kind
    return ("onnx::" if kind[:1].isupper() else "aten::") + kind


def _is_absent_argument(value: Value) -> bool:
    """Is the undefined tensor only read by operators, as an absent argument?"""
    return value.has_uses and all(qualified(use.user.kind).startswith("aten::") for use in value.uses)


def _is_absent_tensor(value: Value) -> bool:
    """Is the value a None that only operators read, in place of a tensor?"""
    for use in value.uses:
        schema = schema_of(use.user)
        if schema is None or use.slot >= len(schema.arguments):
            return False
        type = schema.arguments[use.slot].type
        if not is_tensor_like(type.element if isinstance(type, OptionalType) else type):
            return False
    return value.has_uses


def _retagged(text: str, target: Dialect) -> str:
    """The text of a small tensor with the target's type tag: `CPUFloatTensor{2}` is `CPUFloatType{2}` from 2018-07 on."""
    opening = text.find("[ ")
    brace = text.find("{", opening)
    if opening < 0 or brace < 0 or "qscheme" in text or "indices:" in text:
        return text
    word = text[opening + 2:brace].removeprefix("Variable[").removesuffix("]").removesuffix("Type").removesuffix("Tensor")
    if word in ("CPU", "CUDA"):     # torch 1.1 printed `Variable[CPUType]`, without the dtype
        return text
    return text[:opening + 2] + target.tensor_tag.replace("CPU{}", word) + text[brace:]


def _as_floats(value: object) -> object:
    if isinstance(value, list):
        return [_as_floats(each) for each in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1e300 else value


def _same_spelling(value: object, source: Dialect, target: Dialect) -> bool:
    """Do the two dialects print this value alike? Then its text is kept, with all its digits."""
    if isinstance(value, bool):
        return True
    if isinstance(value, (float, complex)):
        return source.float_style == target.float_style
    if isinstance(value, int):
        return True
    if isinstance(value, str):
        return source.string_style == target.string_style
    if isinstance(value, (list, tuple)):
        return all(_same_spelling(each, source, target) for each in value) and (
            source.structured_values == target.structured_values or not any(isinstance(each, bool) for each in value))
    if isinstance(value, dict):
        return all(_same_spelling(each, source, target) for pair in value.items() for each in pair)
    return not isinstance(value, Type)


def _can_say(value: object, target: Dialect) -> bool:
    """Can the target express the types in a value? A check against `Tensor(requires_grad=0)` must not become one against `Tensor`."""
    if isinstance(value, list):
        return all(_can_say(each, target) for each in value)
    return not isinstance(value, Type) or same(spell(value, target), value)


def _is_loosely_written(value: object) -> bool:
    """Is the attribute spelled differently in dialects whose texts otherwise look alike (`1` and `1.`, `[]`)?"""
    if isinstance(value, list):
        return not value or any(isinstance(each, bool) or _is_loosely_written(each) for each in value)
    if isinstance(value, (tuple, dict)):
        return any(map(_is_loosely_written, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (float, complex))


def _is_quoted(text: str, value: object) -> bool:
    """Are the strings in a value quoted, and quotes inside them escaped? They are not in 2018."""
    if isinstance(value, str):
        return text.startswith('"') and skip_string(text, 0, len(text)) == len(text)
    return '"' in text or not isinstance(value, list) or not any(isinstance(each, str) for each in value)


def _reads_back(text: str, value: str) -> bool:
    """Is the text, in an attribute list, read as exactly this string?"""
    if text == value and text.startswith('"'):
        return False
    try:
        return split_attributes(f"value={text}, n=1") == [("value", text), ("n", "1")] and Attribute(text).value == value
    except Error:
        return False
