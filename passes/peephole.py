"""Local simplifications."""
from __future__ import annotations

from collections.abc import Callable, Iterable

from irtool.analysis.alias import Aliases
from irtool.analysis.certain import Certain
from irtool.analysis.liveness import remove_dead_nodes
from irtool.analysis.shape_changes import loose_tensors
from irtool.analysis.undefined_values import may_be_undefined
from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.builder import Builder, type_of
from irtool.ir.constants import CONSTANT_KINDS, NOT_CONSTANT, constant, is_none
from irtool.ir.dtypes import is_complex_dtype, is_float_dtype
from irtool.ir.edits import become_constant
from irtool.ir.effects import node_may_write
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.remarks import count
from irtool.ir.replacing_walk import Sweep
from irtool.ir.schema import Literal, node_argument
from irtool.ir.structure_kinds import UNDEFINED_KINDS
from irtool.ir.type_answers import ANSWERS, answer
from irtool.ir.types import INT, TENSOR, ListType, OptionalType, TensorType, Type, UnionType, is_subtype, list_of, parse_type, same

REACH = 100
"""The largest distance of two nodes between which writes are looked for."""
NONE_TYPES = frozenset((parse_type("NoneType"), parse_type("None")))


def peephole(graph: Graph, no_shapes: bool = False, careful: bool = False) -> bool:
    """Simplify single operators and pairs of them: conversions back and forth, double transposes, comparisons with None, questions that
    types answer, arithmetic without effect; then run `dce`.

    `no-shapes` ignores the shapes, dtypes and devices in tensor types. `careful` keeps questions about tensors whose operator may raise an
    error, if nothing else needs them. `x + 0` stays for floating point (it is 0 if x is -0).

    before:
        graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), %n : int):
          %1 : int = prim::Constant[value=1]()
          %2 : Tensor = aten::mul(%x, %1)
          %3 : Tensor = prim::NumToTensor(%n)
          %4 : int = aten::Int(%3)
          %5 : int = aten::dim(%x)
          %6 : int[] = prim::ListConstruct(%4, %5)
          %7 : Tensor = aten::reshape(%2, %6)
          %8 : Tensor = aten::tanh(%7)
          return (%8)

    after:
        graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), %n : int):
          %5 : int = prim::Constant[value=2]()
          %6 : int[] = prim::ListConstruct(%n, %5)
          %7 : Tensor = aten::reshape(%x, %6)
          %8 : Tensor = aten::tanh(%7)
          return (%8)
    """
    return simplify(graph, [{**rules, **({} if no_shapes else by_shapes)} for rules, by_shapes in STAGES], careful)


peephole.repeats = "sizes can be folded of tensors whose types a removed cast hid, as in torch"       # type: ignore[attr-defined]


def simplify(graph: Graph, stages: Iterable[dict[str, Rule]], careful: bool = False) -> bool:
    """Apply the rules of each stage, by kind, in one walk; then dead code goes. Returns whether anything changed.

    The rules of lists are applied again where the edits may have made a list one that nobody changes; the others once, as in torch.
    """
    stages = list(stages)
    changed = nothing_as_constants(graph)
    while True:
        kinds = {node.kind for node in graph.walk()}
        edited = False
        minds_writes = False
        for rules in stages:
            if not kinds.isdisjoint(rules):
                simplifier = Simplifier(graph, rules, careful)
                edited = simplifier.run() or edited
                minds_writes = minds_writes or simplifier.asked_aliases
        minds_writes = minds_writes and any(map(node_may_write, graph.walk()))
        edited = remove_dead_nodes(graph) or edited
        changed = changed or edited
        if not (edited and minds_writes):       # else a write that prevented an edit may be gone, or may be known not to reach the operands
            return changed
        stages = [LIST_RULES]


def nothing_as_constants(graph: Graph) -> bool:
    """Let the readers of results of type None read a constant. Returns whether there are any."""
    values = [value for node in graph.walk() if node.kind not in CONSTANT_KINDS and node.kind != "prim::Closure"
              for value in node.outputs if value.type in NONE_TYPES and value.uses]
    for value in values:
        value.replace_all_uses_with(Builder(graph).before(value.node).constant(None))
    return bool(values)


class Simplifier:
    """The walk over the graph, and the two edits that rules make: `replace` a result by a value, `fold` a node to a constant."""

    def __init__(self, graph: Graph, rules: dict[str, Rule], careful: bool = False) -> None:
        self.graph = graph
        self.careful = careful
        self.sweep = Sweep(graph)
        self.changed = False
        self.rules = rules
        self._aliases: Aliases | None = None
        self._loose: set[Value] | None = None
        self._certain: Certain | None = None
        self._places: dict[Node, dict[int | float | str, int | None]] = {}

    @property
    def asked_aliases(self) -> bool:
        """Did a rule ask which values are written?"""
        return self._aliases is not None

    @property
    def loose(self) -> set[Value]:
        """The tensors whose shapes change in place, so that their types may be out of date."""
        if self._loose is None:
            self._loose = loose_tensors(self.graph)
        return self._loose

    def needs_answer(self, value: Value, node: Node) -> bool:
        """Must a question of a node about a tensor stay, since the tensor may be an error that nothing else raises?"""
        if not self.careful:
            return False
        if self._certain is None:
            self._certain = Certain(self.graph)
        return not self._certain.is_certain(value, node)

    @property
    def aliases(self) -> Aliases:
        """The alias analysis of the graph as it was at the start, with the replacements that asked it."""
        if self._aliases is None:
            self._aliases = Aliases(self.graph)
        return self._aliases

    def places_of_keys(self, construct: Node) -> dict[int | float | str, int | None]:
        """For a constructed dict of constant keys: key -> the position of the operand that is its value; None for a repeated key."""
        if construct not in self._places:
            places: dict[int | float | str, int | None] = {}
            for slot, value in enumerate(construct.inputs[::2]):
                key = constant(value)
                if not isinstance(key, (int, float, str)):
                    return {}
                places[key] = None if key in places else 2 * slot + 1
            self._places[construct] = places
        return self._places[construct]

    def run(self) -> bool:
        """Visit all nodes. Returns whether anything changed."""
        rules = self.rules.get
        for node in self.sweep:
            rule = rules(node.kind)
            if rule is not None and node.inputs and node.outputs:
                rule(self, node)
        return self.changed

    def replace(self, old: Value, new: Value) -> None:
        """Let users of `old` read `new`."""
        self.sweep.replace(old, new)
        count("values replaced")
        self.changed = True

    def fold(self, node: Node, value: object, type: Type | None = None) -> None:
        """Replace a node by a constant."""
        type = type or type_of(value)
        become_constant(node, Attribute.of(value, self.graph.dialect, type), type)
        self.changed = True


Rule = Callable[[Simplifier, Node], None]


# ---------------------------------------------------------------- without shapes
def _conversion(at: Simplifier, node: Node) -> None:
    """Int(NumToTensor(n)) is n, for an int n."""
    source = node.inputs[0].node if node.inputs else node
    if source.kind == "prim::NumToTensor" and is_subtype(source.inputs[0].type, node.output.type):
        at.replace(node.output, source.inputs[0])


def _transpose(at: Simplifier, node: Node) -> None:
    """t(t(x)) is x."""
    source = node.inputs[0].node
    if source.kind == "aten::t" and node.output not in at.loose:
        at.replace(node.output, source.inputs[0])


def _sum_to_size(at: Simplifier, node: Node) -> None:
    """Summing to size None does nothing; of two sums in a row the last one suffices."""
    if len(node.inputs) != 2:
        return
    if is_none(node.inputs[1]):
        at.replace(node.output, node.inputs[0])
        return
    source = node.inputs[0].node
    if source.kind == node.kind and len(source.inputs) == 2:
        node.replace_input(0, source.inputs[0])
        at.changed = True


def _is_none(at: Simplifier, node: Node) -> None:
    """Comparing None with a value that cannot be None, or must be."""
    if len(node.inputs) != 2:
        return
    a, b = node.inputs
    if must_be_none(a) and cannot_be_none(b) or must_be_none(b) and cannot_be_none(a):
        at.fold(node, node.kind == "aten::__isnot__")


def must_be_none(value: Value) -> bool:
    """Is a value None in every run? An undefined tensor is."""
    return value.type in NONE_TYPES or is_none(value) or value.node.kind in UNDEFINED_KINDS and isinstance(value.type, TensorType)


def cannot_be_none(value: Value) -> bool:
    """Does the type of a value rule out None?"""
    type = value.type
    if may_be_undefined(value) or type in NONE_TYPES or isinstance(type, OptionalType) or type.key == "Any":
        return False
    choices = type.elements if isinstance(type, UnionType) else ()
    return not any(choice.key == "None" or isinstance(choice, OptionalType) for choice in choices)


def _unwrap(at: Simplifier, node: Node) -> None:
    """Unwrapping a value that is no optional."""
    if len(node.inputs) == 1 and cannot_be_none(node.inputs[0]):
        at.replace(node.output, node.inputs[0])


def _unchecked_cast(at: Simplifier, node: Node) -> None:
    """A cast to the type that the value has already."""
    if len(node.outputs) != 1:      # of a tuple that was eliminated
        return
    actual, wanted = node.inputs[0].type, node.output.type
    if same(actual, wanted) or isinstance(actual, TensorType) and isinstance(wanted, TensorType) or is_subtype(actual, wanted):
        at.replace(node.output, node.inputs[0])


def _branch(at: Simplifier, node: Node) -> None:
    """`True if c else False` is c; a result that is None in no branch is no optional."""
    if len(node.blocks) != 2:
        return
    for value, yes, no in zip(node.outputs, node.blocks[0].outputs, node.blocks[1].outputs, strict=False):
        if value.type.key == "bool" and constant(yes) is True and constant(no) is False:
            at.replace(value, node.inputs[0])
        elif isinstance(value.type, OptionalType) and cannot_be_none(yes) and cannot_be_none(no):
            value.type = value.type.element
            at.changed = True


def _integers(at: Simplifier, node: Node) -> int | None:
    """The constant operand of integer arithmetic, put second where the operator commutes."""
    if len(node.inputs) != 2 or node.inputs[0].type.key != "int" or node.inputs[1].type.key != "int":
        return None
    if node.kind in ("aten::mul", "aten::add"):
        first = constant(node.inputs[0])
        if type(first) is int:
            node.set_inputs((node.inputs[1], node.inputs[0]))
            # torch swaps two constants too, and later rules depend on the order. This does not count as a change: it would never end
            at.changed = at.changed or type(constant(node.inputs[0])) is not int
            return first
    second = constant(node.inputs[1])
    return second if type(second) is int else None


def _integer_sum(at: Simplifier, node: Node) -> None:
    """n + 0 is n; constants of two sums in a row are added."""
    number = _integers(at, node)
    if number is None:
        return
    if number == 0:
        at.replace(node.output, node.inputs[0])
        return
    source = node.inputs[0].node
    if source.kind not in ("aten::add", "aten::sub") or len(source.inputs) != 2:
        return
    inner = _integers(at, source)
    if inner is None:
        return
    merged = number + inner if source.kind == node.kind else number - inner
    if merged == 0:
        at.replace(node.output, source.inputs[0])
    elif -(1 << 63) <= merged < 1 << 63:
        node.set_inputs((source.inputs[0], Builder(at.graph).before(node).constant(merged)))
        at.changed = True


def _integer_product(at: Simplifier, node: Node) -> None:
    """n * 1 and n // 1 are n."""
    if _integers(at, node) == 1:
        at.replace(node.output, node.inputs[0])


# ---------------------------------------------------------------- lists and dicts
def _elements(at: Simplifier, value: Value) -> tuple[Value, ...] | None:
    """The elements of a list that the graph constructs and nobody changes."""
    if value.node.kind != "prim::ListConstruct" or at.aliases.has_writes and at.aliases.is_written_itself(value):
        return None
    return value.node.inputs


def _length(at: Simplifier, node: Node) -> None:
    """len([a, b]) is 2."""
    source = node.inputs[0].node
    elements = _elements(at, node.inputs[0])
    if elements is not None:
        at.fold(node, len(elements))
    elif source.kind == "prim::DictConstruct" and not at.aliases.is_written_itself(node.inputs[0]):
        keys = [constant(key) for key in source.inputs[::2]]
        if all(isinstance(key, (int, float, str)) and key == key for key in keys):     # each nan is a key of its own
            at.fold(node, len(set(keys)))


def _rank(at: Simplifier, node: Node) -> None:
    """len(x.size()) is the number of dimensions, if the list has no aliases."""
    source = node.inputs[0].node
    type = _tensor(at, source)
    if source.kind == "aten::size" and len(source.inputs) == 1 and type is not None and type.rank is not None and (
            not at.aliases.is_written_itself(node.inputs[0])) and (
            len(node.inputs[0].uses) == 1) and not at.needs_answer(source.inputs[0], node):
        at.fold(node, type.rank)


def _element(at: Simplifier, node: Node) -> None:
    """[a, b][1] is b; {"k": v}["k"] is v."""
    if len(node.inputs) != 2:
        return
    held, index = node.inputs
    key = constant(index)
    elements = _elements(at, held)
    if elements is not None:
        if type(key) is int and -len(elements) <= key < len(elements):
            at.replace(node.output, elements[key])
        return
    source = held.node
    if source.kind == "prim::DictConstruct" and isinstance(key, (int, float, str)) and (
            key == key) and not at.aliases.is_written_itself(held):        # nan is never found
        place = at.places_of_keys(source).get(key)
        if place is not None:
            at.replace(node.output, source.inputs[place])


def _unpack(at: Simplifier, node: Node) -> None:
    """a, b = [x, y]."""
    elements = _elements(at, node.inputs[0])
    if elements is not None and len(elements) == len(node.outputs):
        for value, element in zip(node.outputs, elements, strict=True):
            at.replace(value, element)


def _join_lists(at: Simplifier, node: Node) -> None:
    """[a] + [b] is [a, b]."""
    if len(node.inputs) != 2 or at.aliases.has_writes and at.aliases.is_written_itself(node.output):
        return
    first, second = _elements(at, node.inputs[0]), _elements(at, node.inputs[1])
    type = node.output.type
    if first is not None and second is not None and isinstance(type, ListType):
        at.replace(node.output, Builder(at.graph).before(node).construct_list((*first, *second), type.element))


def _join_cats(at: Simplifier, node: Node) -> None:
    """cat([a, cat([b, c])]) is cat([a, b, c]), if b and c have the same dtype: else they might be rounded on the way to the common one.

    A cat that is a part of a later one is left to that one, so that a chain of them takes linear time.
    """
    held = _only_reader(node)
    if held is not None and held.kind == "prim::ListConstruct" and held.owner is node.owner:
        reader = _only_reader(held)
        if reader is not None and reader.kind == node.kind:
            return
    left = [node]
    while left:
        outer = left.pop()
        if len(outer.inputs) != 2 or outer.inputs[0].use_count != 1:
            continue
        flat: list[Value] = []
        waiting = list(_elements(at, outer.inputs[0]) or ())[::-1]
        while waiting:
            value = waiting.pop()
            inner = value.node
            is_part = inner.kind == node.kind and value.use_count == 1 and len(inner.inputs) == 2 and inner.owner is node.owner
            parts = _elements(at, inner.inputs[0]) if is_part else None
            if parts and _same_number(inner.inputs[1], outer.inputs[1]) and _common_dtype(parts) and (
                    not _written_between(at, inner, outer, parts)):
                waiting += parts[::-1]
                continue
            flat.append(value)
            if is_part:
                left.append(inner)
        if len(flat) > len(outer.inputs[0].node.inputs):
            outer.replace_input(0, Builder(at.graph).before(outer).construct_list(flat, TENSOR))
            at.changed = True


def _only_reader(node: Node) -> Node | None:
    return next(iter(node.output.uses)).user if node.output.use_count == 1 else None


def _same_number(a: Value, b: Value) -> bool:
    number = constant(a)
    return a is b or isinstance(number, int) and number == constant(b)


def _common_dtype(values: Iterable[Value]) -> bool:
    dtypes = {value.type.dtype if isinstance(value.type, TensorType) else None for value in values}
    return len(dtypes) == 1 and None not in dtypes


def _written_between(at: Simplifier, first: Node, last: Node, values: Iterable[Value]) -> bool:
    """May a node between two nodes of a block write into one of the values? True if they are far apart."""
    if not at.aliases.has_writes:
        return False
    node = first.next
    for _ in range(REACH):
        if node is last:
            return False
        if at.aliases.writes_into(node, values):
            return True
        node = node.next
    return True


def _slice_list(at: Simplifier, node: Node) -> None:
    """[a, b, c][1:] is [b, c]."""
    if len(node.inputs) != 4 or not isinstance(node.output.type, ListType):
        return
    elements = _elements(at, node.inputs[0])
    bounds = [constant(value) for value in node.inputs[1:]]
    if elements is None or any(value is NOT_CONSTANT for value in bounds) or bounds[2] in (0, None):
        return
    if at.aliases.has_writes and at.aliases.is_written_itself(node.output):
        return
    start, end, step = (value if isinstance(value, int) else None for value in bounds)
    at.replace(node.output, Builder(at.graph).before(node).construct_list(elements[start:end:step], node.output.type.element))


# ---------------------------------------------------------------- by tensor types
def _tensor(at: Simplifier, node: Node) -> TensorType | None:
    value = node.inputs[0] if node.inputs else None
    return value.type if value is not None and isinstance(value.type, TensorType) and value not in at.loose else None


def _answered(at: Simplifier, node: Node) -> None:
    """What the type of a tensor says about it: `dim()`, `size()`, `dtype`, ..."""
    type = _tensor(at, node)
    value = NOT_CONSTANT if type is None else answer(node, type)
    if value is not NOT_CONSTANT and not (isinstance(value, list) and at.aliases.is_written_itself(node.output)) \
            and not at.needs_answer(node.inputs[0], node):
        at.fold(node, value, list_of(INT) if isinstance(value, list) else node.output.type if isinstance(value, str) else None)


_CONVOLUTIONS = {"aten::conv1d": 3, "aten::conv2d": 4, "aten::conv3d": 5}


def _convolution_dimensions(at: Simplifier, node: Node) -> None:
    """The number of dimensions of a convolution's result, by its name; None if the result is resized in place."""
    rank = _CONVOLUTIONS.get(node.inputs[0].node.kind) if node.inputs else None
    if rank is not None and not at.aliases.is_written(node.inputs[0]) and not at.needs_answer(node.inputs[0], node):
        at.fold(node, rank)


def _expand(at: Simplifier, node: Node) -> None:
    """Expanding a tensor to its shape."""
    type = _tensor(at, node)
    argument = node_argument(node, "size")
    sizes = argument.value if isinstance(argument, Literal) else _known_list(argument) if isinstance(argument, Value) else None
    if type is not None and type.shape is not None and isinstance(sizes, list) and sizes == list(type.shape) and not (
            isinstance(argument, Value) and at.aliases.is_written_itself(argument)):
        at.replace(node.output, node.inputs[0])


def _known_list(value: Value) -> object:
    if value.node.kind == "prim::ListConstruct":
        return [constant(each) for each in value.node.inputs]
    return constant(value)


def _type_as(at: Simplifier, node: Node) -> None:
    """x.type_as(y) is x, if both have the same dtype and device."""
    if len(node.inputs) != 2:
        return
    mine, yours = node.inputs[0].type, node.inputs[1].type
    if (isinstance(mine, TensorType) and isinstance(yours, TensorType) and mine.dtype is not None and mine.dtype == yours.dtype
            and mine.device is not None and mine.device == yours.device):
        at.replace(node.output, node.inputs[0])


def _neutral(*neutral: tuple[str, float]) -> Rule:
    """x * 1, x / 1, x - 0 are x, if the result has x's dtype and nobody writes into either."""
    def rule(at: Simplifier, node: Node) -> None:
        type = _tensor(at, node)
        if type is None or type.dtype is None:
            return
        for name, number in neutral:
            operand = _number(node, name)
            if operand is None or operand != number or isinstance(operand, bool):
                return
            if isinstance(operand, float) and not (is_float_dtype(type.dtype) or is_complex_dtype(type.dtype)):
                return
        if node.kind == "aten::div" and not (is_float_dtype(type.dtype) or is_complex_dtype(type.dtype)) or type.dtype == "bool":
            return
        if node.kind == "aten::add" and (is_float_dtype(type.dtype) or is_complex_dtype(type.dtype)):
            return      # -0. + 0 is 0.
        if at.aliases.can_replace(node.output, node.inputs[0]):
            at.aliases.note_replaced(node.outputs, node.inputs[:1])
            at.replace(node.output, node.inputs[0])
    return rule


def _number(node: Node, name: str) -> int | float | None:
    """The number that a node has as an argument, by a constant operand or an attribute; None for tensors and unknown values."""
    argument = node_argument(node, name)
    value = argument.value if isinstance(argument, Literal) else None
    if isinstance(argument, Value):
        if isinstance(argument.type, TensorType):
            return None
        value = constant(argument)
    if isinstance(value, TensorLiteral) and value.text.startswith("{"):
        value = value.item()
    return value if isinstance(value, (int, float)) else None



LIST_RULES: dict[str, Rule] = {
    "aten::len": _length,
    "aten::__getitem__": _element,
    "prim::ListUnpack": _unpack,
    "aten::slice": _slice_list,
    "aten::add": _join_lists,
}
"""Simplifications of lists and dicts, by kind."""

STAGES: tuple[tuple[dict[str, Rule], dict[str, Rule]], ...] = (
    ({
        **dict.fromkeys(("aten::Float", "aten::Int", "aten::FloatImplicit", "aten::IntImplicit", "aten::ScalarImplicit",
                         "prim::TensorToNum"), _conversion),
        "aten::t": _transpose,
        "aten::_grad_sum_to_size": _sum_to_size,
    }, {
        "aten::len": _rank,
        **dict.fromkeys(ANSWERS, _answered),
        "aten::expand": _expand,
        "aten::type_as": _type_as,
    }),
    (LIST_RULES, {}),
    ({"aten::dim": _convolution_dimensions}, {
        "aten::mul": _neutral(("other", 1)),
        "aten::div": _neutral(("other", 1)),
        "aten::sub": _neutral(("other", 0), ("alpha", 1)),
        "aten::add": _neutral(("other", 0), ("alpha", 1)),
        "aten::cat": _join_cats,
    }),
    ({
        "aten::__is__": _is_none,
        "aten::__isnot__": _is_none,
        "prim::unchecked_unwrap_optional": _unwrap,
        "aten::_unwrap_optional": _unwrap,
        "prim::unchecked_cast": _unchecked_cast,
        "prim::If": _branch,
        "aten::add": _integer_sum,
        "aten::sub": _integer_sum,
        "aten::mul": _integer_product,
        "aten::floordiv": _integer_product,
    }, {}),
)
"""Rules by kind, and rules that rely on what tensor types say, in the order of torch's walks: tensors, lists, memory, scalars."""
