"""prim:: nodes whose results depend on attributes, types or the number of results, not only on operands.

`STRUCTURE[kind](node, values)` returns one value per result. Control flow is in the interpreter (`irtool.interpret`).
"""
from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from irtool.ir.attribute import Opaque
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.graph import Node
from irtool.ir.schema import Literal, node_arguments
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    ClassType,
    DictType,
    EnumType,
    ListType,
    NamedTupleType,
    OptionalType,
    SimpleType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    dict_of,
    is_subtype,
    list_of,
    tuple_of,
)
from irtool.ops.array_library import np
from irtool.ops.arrays import (
    as_array,
    copy_in_layout,
    current_namespace,
    dtype_named,
    fresh_generator,
    is_array,
    namespace_of,
    to_number,
    wrap_dim,
)
from irtool.ops.call import call_op
from irtool.ops.kernels.dict import as_key
from irtool.ops.kernels.prim import GRAD_MODE, identical, nested_list
from irtool.ops.python_op import run_python_op

Handler = Callable[[Node, list[Any]], Sequence[Any]]

class FunctionName:
    """A function known by name only: `Function = prim::Constant[name="relu"]()`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<Function {self.name}>"


class EnumMember:
    """A member of an enumeration in a graph: its class and its name. The text does not contain its value."""

    __slots__ = ("owner", "name")

    def __init__(self, owner: str, name: str) -> None:
        self.owner = owner
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.owner.rpartition('.')[2]}.{self.name}>"

    def __str__(self) -> str:
        """As torch prints it."""
        return f"Enum{self!r}"

    def __eq__(self, other: object) -> bool:
        """Is the other the same member of a class of the same name? It may be Python's own member, whose module is not the graph's."""
        if isinstance(other, enum.Enum | EnumMember):
            return self.name == other.name and class_word(self) == class_word(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((class_word(self), self.name))


def class_word(member: EnumMember | enum.Enum) -> str:
    """The name of a member's class, without its modules."""
    return (member.owner if isinstance(member, EnumMember) else type(member).__name__).rpartition(".")[2]


def is_member(value: Any, wanted: EnumType) -> bool:
    """Is a value, of a graph or of Python, a member of the enumeration?"""
    return isinstance(value, enum.Enum | EnumMember) and class_word(value) == wanted.name.rpartition(".")[2]


class Attributes(dict[str, Any]):
    """The attributes of an instance. A cache of facts about attributes is valid as long as `last_write` is the same object."""

    last_write = object()
    """another object after each write of an attribute, of any instance"""

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        Attributes.last_write = object()

    def update(self, *args: Any, **kwargs: Any) -> None:
        """As dict.update."""
        super().update(*args, **kwargs)
        Attributes.last_write = object()


class Object:
    """An instance of a TorchScript class: its type and attributes."""

    __slots__ = ("type", "attributes")

    def __init__(self, type: Type) -> None:
        self.type = type
        self.attributes = Attributes()

    def __repr__(self) -> str:
        """As torch prints it."""
        return f"<{self.type} object at {id(self):#x}>"


def _id(node: Node, values: list[Any]) -> Sequence[Any]:
    """A number that no other instance has meanwhile; 0 for None."""
    return (0 if values[0] is None else id(values[0]),)


# -- constants
def _constant(node: Node, values: list[Any]) -> Sequence[Any]:
    attribute = node.attributes.get("value")
    if attribute is None:
        name = node.attributes.get("name")
        return (None if name is None else FunctionName(str(name.value)),)
    type = node.outputs[0].type
    value = attribute.as_type(type)
    if isinstance(value, Opaque) and str(type.key) in ("int", "float", "bool", "complex"):
        raise RunError(f"'{value.text[:40]}' is no {type}")
    return (from_literal(value, type),)


def from_literal(value: Any, type: Type | None) -> Any:
    """An attribute's value as a value of the interpreter: tensors as arrays, or as numbers if they stand for numbers."""
    if isinstance(value, TensorLiteral):
        return tensor_of(value, type)
    if isinstance(value, list):
        element = type.element if isinstance(type, ListType) else None
        return [from_literal(item, element) for item in value]
    if isinstance(value, tuple):
        types: Sequence[Type | None] = type.elements if isinstance(type, TupleType) else [None] * len(value)
        return tuple([from_literal(item, each) for item, each in zip(value, types, strict=True)])
    if isinstance(value, dict):
        element = type.value_type if isinstance(type, DictType) else None
        return {key: from_literal(item, element) for key, item in value.items()}
    if isinstance(type, OptionalType) and value is not None:
        return from_literal(value, type.element)
    if isinstance(value, Opaque | Type) and isinstance(type, EnumType):
        owner, _, name = value.text.removeprefix("Enum<").removesuffix(">").rpartition(".")
        return EnumMember(owner, name)
    if isinstance(value, str) and str(type) == "Generator":
        return fresh_generator(int(value.rstrip(")").rpartition("seed=")[2]))
    if isinstance(value, Opaque) and value.text in ("[<Tensors>]", "[<Tensor>]", "<Tensors>"):
        raise UnsupportedError(f"the text has no data for these tensors ('{value.text}')", code="E0405")
    return value


def own_array(node: Node) -> Any:
    """The very array that a constant holds, which nobody may write into; None for other constants, and for arrays that lie in memory in
    another way than copies do."""
    attribute = node.attributes.get("value")
    data = attribute.value.data if attribute is not None and isinstance(attribute.value, TensorLiteral) else None
    return data if type(data) is np.ndarray and data.flags.forc and data.flags.aligned and data.dtype.isnative else None


def tensor_of(literal: TensorLiteral, type: Type | None = None) -> Any:
    """The array of a constant, or the Python number for which a 0-d constant stands."""
    if isinstance(type, TensorType):
        literal = literal.with_type(type.dtype, type.shape)
    xp = current_namespace()
    if literal.data is not None:
        return xp.array(literal.data) if literal.strides is None else copy_in_layout(xp.asarray(literal.data))
    numbers = literal.numbers()
    if literal.is_number:
        number = numbers[0]
        return float(number.real) if literal.dtype == "float64" else number
    shape = literal.shape or ()
    name = literal.dtype
    dtype = dtype_named(name) if name is not None else None
    if dtype is not None and dtype.kind in "iu":
        return xp.array([int(number.real) & 0xFFFFFFFFFFFFFFFF for number in numbers], np.uint64).astype(dtype).reshape(shape)
    return xp.array(numbers, dtype).reshape(shape)


# -- lists, tuples, dicts
def _unpacked(node: Node, items: Sequence[Any], what: str) -> Sequence[Any]:
    if len(items) != len(node.outputs):
        raise RunError(f"Expected {len(node.outputs)} elements in a {what} but found {len(items)}")
    return items


def _list_unpack(node: Node, values: list[Any]) -> Sequence[Any]:
    return _unpacked(node, list(values[0]), "list")


def _tuple_unpack(node: Node, values: list[Any]) -> Sequence[Any]:
    return _unpacked(node, values[0], "tuple")


def _tuple_index(node: Node, values: list[Any]) -> Sequence[Any]:
    items = values[0]
    index = values[1] if len(values) > 1 else number_attribute(node, "index")
    if not -len(items) <= index < len(items):
        raise RunError("Tuple index out of range", code="E0408")
    return (items[index],)


def _tuple_slice(node: Node, values: list[Any]) -> Sequence[Any]:
    return (tuple(values[0][number_attribute(node, "beg"):number_attribute(node, "end")]),)


def number_attribute(node: Node, name: str) -> int:
    """An int attribute. Raises RunError if it is missing or no int."""
    attribute = node.attributes.get(name)
    value = attribute.value if attribute is not None else None
    if isinstance(value, TensorLiteral):
        value = value.item()
    if not isinstance(value, int):
        raise RunError(f"{node.kind} needs the attribute '{name}'")
    return value


def _dict(node: Node, values: list[Any]) -> Sequence[Any]:
    return ({as_key(key): value for key, value in zip(values[::2], values[1::2], strict=True)},)


# -- types
def is_instance(value: Any, type: Type) -> bool:
    """isinstance() of TorchScript. Empty lists and dicts fit any element type."""
    if isinstance(type, OptionalType):
        return value is None or is_instance(value, type.element)
    if isinstance(type, UnionType):
        return any(is_instance(value, element) for element in type.elements)
    if isinstance(type, TensorType):
        return is_array(value)
    if isinstance(type, ListType):
        return isinstance(value, list) and all(is_instance(item, type.element) for item in value)
    if isinstance(type, TupleType):
        return (isinstance(value, tuple) and len(value) == len(type.elements)
                and all(is_instance(item, each) for item, each in zip(value, type.elements, strict=True)))
    if isinstance(type, DictType):
        return isinstance(value, dict) and all(is_instance(k, type.key_type) and is_instance(v, type.value_type) for k, v in value.items())
    if isinstance(type, EnumType):
        return is_member(value, type)
    if isinstance(type, ClassType):
        return isinstance(value, Object) and value.type.key == type.key
    if str(type.key) == "Tensor":
        return is_array(value)
    kinds = SIMPLE_KINDS.get(str(type.key))
    if kinds is None:
        raise UnsupportedError(f"prim::isinstance of {type.text} is not supported yet")
    return isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds)


SIMPLE_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float,), "bool": (bool,), "complex": (complex,), "str": (str,), "None": (type(None),), "Device": (str,),
    "Scalar": (int, float, bool, complex), "list": (list,), "tuple": (tuple,), "Any": (object,),
}
SIMPLE_TYPES = {type(None): NONE, bool: BOOL, int: INT, float: FLOAT, complex: COMPLEX, str: STR}


def _own_type(value: Any, static: Type | None) -> Type | None:
    """The type of a list or dict, as torch records it where the value is made: by the type of what holds it, else by all its items.

    None if neither tells, as of an empty list in an `Any`.
    """
    if isinstance(static, OptionalType):
        return _own_type(value, static.element)
    if isinstance(static, UnionType):
        return next((each for each in static.elements if isinstance(each, ListType | DictType) and is_instance(value, each)), None)
    if isinstance(static, ListType | DictType):
        return static
    if isinstance(value, list):
        element = _common_type(value)
        return element and list_of(element)
    key, element = _common_type(value), _common_type(value.values())
    return key and element and dict_of(key, element)


def _common_type(items: Iterable[Any]) -> Type | None:
    """The type of all the items, or None if there is none, or several."""
    found = {each and each.key: each for each in map(_type_of, items)}
    return next(iter(found.values())) if len(found) == 1 else None


def _type_of(value: Any) -> Type | None:
    """The type torch infers of a value without one, None of an object, or of a list that does not tell its elements."""
    if isinstance(value, list | dict):
        return _own_type(value, None)
    if isinstance(value, tuple):
        elements = [_type_of(item) for item in value]
        return tuple_of([each for each in elements if each]) if all(elements) else None
    if is_array(value):
        return TENSOR
    return SIMPLE_TYPES.get(type(value))


def is_exactly(value: Any, type: Type, static: Type | None) -> bool:
    """is_instance() as a program asks it: lists and dicts are of their own type alone, so an `int[]` is no `int?[]`."""
    if isinstance(type, OptionalType | UnionType):
        return any(is_exactly(value, each, static) for each in type.elements) or value is None and is_instance(value, type)
    if isinstance(type, ListType | DictType) and isinstance(value, list | dict):
        own = _own_type(value, static)
        return is_instance(value, type) if own is None else is_subtype(own, type)
    if isinstance(type, TupleType) and isinstance(value, tuple) and len(value) == len(type.elements):
        known = static.elements if isinstance(static, TupleType) and len(static.elements) == len(value) else [None] * len(value)
        return all(map(is_exactly, value, type.elements, known))
    return is_instance(value, type)


def _isinstance(node: Node, values: list[Any]) -> Sequence[Any]:
    source = node.inputs[0]
    wanted = node.attributes["types"].types
    if wanted is None:
        raise RunError("prim::isinstance needs the attribute 'types', a list of types")
    value = as_array(values[0]) if isinstance(source.type, TensorType) and isinstance(values[0], int | float | complex) else values[0]
    while source.type.key == "Any" and source.node.kind == "prim::unchecked_cast":       # `y: Any = x` leaves a list of x its type
        source = source.node.inputs[0]
    return (any(is_exactly(value, each, source.type) for each in wanted),)


def _enum_name(node: Node, values: list[Any]) -> Sequence[Any]:
    return (values[0].name,)


def _enum_value(node: Node, values: list[Any]) -> Sequence[Any]:
    if isinstance(values[0], EnumMember):
        raise UnsupportedError(f"the value of {values[0]!r} is not in the text: pass the member as an input", code="E0417")
    return (values[0].value,)


def _tolist(node: Node, values: list[Any]) -> Sequence[Any]:
    type, dims = node.outputs[0].type, 0
    while isinstance(type, ListType):
        type, dims = type.element, dims + 1
    return (nested_list(as_array(values[0]), dims, str(type.key)),)


def _type_check(node: Node, values: list[Any]) -> Sequence[Any]:
    """The tensors, and whether all have the dtype, sizes and strides of the attribute's types."""
    attribute = node.attributes.get("types")
    wanted = attribute.value if attribute is not None and isinstance(attribute.value, list) else []
    return (*values, all(has_type(value, type) for value, type in zip(values, wanted, strict=False)))


def has_type(value: Any, type: Any) -> bool:
    """Is a value a tensor of this type, as far as the type has dtype, sizes and strides? (None is an undefined tensor.)"""
    if not isinstance(type, TensorType) or type.undefined or not is_array(value):
        return value is None and isinstance(type, TensorType) and bool(type.undefined)
    if type.dtype is not None and dtype_named(type.dtype) != value.dtype:
        return False
    if type.sizes is not None and (len(type.sizes) != value.ndim
                                   or any(n is not None and n != m for n, m in zip(type.sizes, value.shape, strict=True))):
        return False
    return type.strides is None or all(s * value.itemsize == t or n < 2 for s, t, n in
                                       zip(type.strides, value.strides, value.shape, strict=True))


# -- pieces of tensors
def _chunk(node: Node, values: list[Any]) -> Sequence[Any]:
    x = as_array(values[0])
    chunks, dim = number_attribute(node, "chunks"), wrap_dim(number_attribute(node, "dim"), x.ndim)
    if chunks < 1:
        raise RunError("prim::ConstantChunk expects 'chunks' to be greater than 0")
    size = x.shape[dim]
    step = -(-size // chunks) if size else 0
    pieces = []
    for start in range(0, size, step) if step else [0] * chunks:
        at = [slice(None)] * x.ndim
        at[dim] = slice(start, start + step)
        pieces.append(x[tuple(at)])
    if len(pieces) != len(node.outputs):
        raise RunError(f"Expected chunk to return {len(node.outputs)} outputs, but got {len(pieces)}")
    return pieces


def _fused_concat(node: Node, values: list[Any]) -> Sequence[Any]:
    return (call_op("aten::cat", [values, number_attribute(node, "dim")]),)


def _sum_to_size(node: Node, values: list[Any]) -> Sequence[Any]:
    size = values[1] if len(values) > 1 else getattr(node.attributes.get("size"), "value", None)
    return (call_op("aten::sum_to_size", [values[0], size]) if size is not None else values[0],)


# -- objects
def _create(node: Node, values: list[Any]) -> Sequence[Any]:
    return (Object(node.outputs[0].type),)


def attribute_name(node: Node) -> str:
    """The name of the attribute that `prim::GetAttr` or `prim::SetAttr` accesses."""
    attribute = node.attributes.get("name")
    return str(attribute.value) if attribute is not None else ""


def _get_attr(node: Node, values: list[Any]) -> Sequence[Any]:
    name, value, type = attribute_name(node), values[0], node.inputs[0].type
    if isinstance(type, NamedTupleType) and isinstance(value, tuple) and name in type.names:
        return (value[type.names.index(name)],)
    if isinstance(value, Object) and name in value.attributes:
        return (value.attributes[name],)
    raise UnsupportedError(f"prim::GetAttr '{name}' of {type.text} is not supported: give it as an input of the graph")


def _set_attr(node: Node, values: list[Any]) -> Sequence[Any]:
    if not isinstance(values[0], Object):
        raise UnsupportedError(f"prim::SetAttr of {node.inputs[0].type.text} is not supported")
    values[0].attributes[attribute_name(node)] = values[1]
    return ()


# -- identity
def _is(node: Node, values: list[Any]) -> Sequence[Any]:
    if len(values) < 2:
        operands = iter(values)
        values = [from_literal(each.value, None) if isinstance(each, Literal) else next(operands) for each in node_arguments(node)]
    a, b = values
    if all(value.type.key == "Device" for value in node.inputs):            # strings here
        return (a == b,)
    return (identical(a, b, len(node.inputs) == 2 and node.inputs[0] is node.inputs[1]),)


def _is_not(node: Node, values: list[Any]) -> Sequence[Any]:
    return (not _is(node, values)[0],)


AMP = "__torch__.torch.amp.autocast_mode.autocast"
CONTEXTS = {"no_grad": False, "inference_mode": False, "enable_grad": True, "set_grad_enabled": None, "record_function": None,
            "profile": None, "strict_fusion": None, "autocast": None}
"""Context managers whose only effect here is on what `aten::is_grad_enabled` gives -> that; None: it stays, or `mode` says it."""


def _context(node: Node, values: list[Any]) -> Sequence[Any]:
    name, held = node.inputs[0].type.text.rpartition(".")[2], values[0]
    if name not in CONTEXTS:
        raise UnsupportedError(f"{node.kind} of {node.inputs[0].type.text} is not supported")
    if name == "autocast":
        return (_autocast(held),) * len(node.outputs)
    if isinstance(held, Object):
        mode = CONTEXTS[name] if name != "set_grad_enabled" else held.attributes.get("mode")
        if node.kind == "prim::Exit":
            GRAD_MODE.is_on = held.attributes.get("_before", GRAD_MODE.is_on)
        elif mode is not None:
            held.attributes["_before"] = GRAD_MODE.is_on
            GRAD_MODE.is_on = mode
    return (None,) * len(node.outputs)


def _autocast(held: Any) -> Any:
    """An `autocast` that is entered or left: one that is off has no effect."""
    if not isinstance(held, Object) or held.attributes.get("_enabled") is not False:
        raise UnsupportedError("autocast that is on is not supported: what is inside would be computed in a lower precision")
    return held


def _call_function(node: Node, values: list[Any]) -> Sequence[Any]:
    from irtool.ops.composed import autodiff_functions
    from irtool.ops.tensor import Tensor, unwrapped

    name = values[0].name if values and isinstance(values[0], FunctionName) else "?"
    function = getattr(autodiff_functions, name, None) if name.startswith("AD_") else None
    if function is None:
        way = "Print inlined_graph, or put" if not _is_in_fork(node) else "torch leaves it in inlined_graph. Put"
        raise UnsupportedError(f"prim::CallFunction of '{name}' is not supported: its body is not in the text. {way} the graph of '{name}' "
                               f"into the file (# graph {name}:) and run the pass inline", code="E0417")
    return (unwrapped(function(*[Tensor(each) if is_array(each) else each for each in values[1:]])),)


def _call_method(node: Node, values: list[Any]) -> Sequence[Any]:
    """A call of a constructor of a context without effect. The text does not contain other methods."""
    type, method = node.inputs[0].type.text, attribute_name(node)
    if method == "__init__" and type.rpartition(".")[2] in CONTEXTS:
        if type.endswith(".autocast") and isinstance(values[0], Object):       # of torch.amp the device is given first, and a dtype
            values[0].attributes["_enabled"] = values[3 if type == AMP else 1]
        return (None,) * len(node.outputs)
    raise UnsupportedError(f"prim::CallMethod of '{method}' of {type} is not supported: its body is not in the text. "
                           + ("Print inlined_graph" if not _is_in_fork(node) else "Save the module, and run the archive"), code="E0417")


def _is_in_fork(node: Node) -> bool:
    """Is the node in the graph of a fork or an awaitable in the text? torch inlines no calls there."""
    source = node.graph.source if node.graph is not None else None
    lines = [source.line(number) for number in range(node.line, 0, -1)] if source is not None else []
    return next((line for line in lines if "graph(" in line), "").startswith(("with prim::fork_", "with prim::awaitable_"))


def _grad(node: Node, values: list[Any]) -> Sequence[Any]:
    """None, an undefined tensor: arrays carry no gradient."""
    return (None,) * len(node.outputs)


# -- products
def _batched_products(node: Node, values: list[Any]) -> Sequence[Any]:
    """The product of one matrix with each of the others, which are on its right (`side=0`) or left.

    On a device this is one product, if shapes allow. NumPy is faster without: BLAS needs no larger products, and copies take time.
    """
    shared, *others = values
    is_left = number_attribute(node, "side") == 0
    xp = namespace_of(shared)
    if xp is np or any(other.shape != others[0].shape or other.ndim != 2 for other in others):
        return [xp.matmul(shared, other) if is_left else xp.matmul(other, shared) for other in others]
    whole = xp.concatenate(others, 1 if is_left else 0)
    parts: list[Any] = xp.split(xp.matmul(shared, whole) if is_left else xp.matmul(whole, shared), len(others), 1 if is_left else 0)
    return parts


# -- values that are passed on unchanged
def _same(node: Node, values: list[Any]) -> Sequence[Any]:
    return values[:len(node.outputs)]


def _waited(node: Node, values: list[Any]) -> Sequence[Any]:
    if len(values) != 1 or len(node.outputs) != 1:
        raise RunError(f"{node.kind} takes one value and gives one, found {len(values)} and {len(node.outputs)}")
    return values       # a tensor that is not copied


def _checked(node: Node, values: list[Any]) -> Sequence[Any]:
    return (*values, True)


def _bail_out(node: Node, values: list[Any]) -> Sequence[Any]:
    return values[1:2]


def _last(node: Node, values: list[Any]) -> Sequence[Any]:
    return (True,)


def _future(node: Node, values: list[Any]) -> Sequence[Any]:
    raise UnsupportedError(f"{node.kind} is not supported")


def _old_cast(convert: Callable[[Any], Any]) -> Handler:
    """`prim::TensorToNum` and its kin of 2018, whose result type determines the kind of number."""
    def handler(node: Node, values: list[Any]) -> Sequence[Any]:
        value = to_number(values[0])
        kinds: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "bool": bool}
        type = node.outputs[0].type
        return (kinds.get(str(type.key), convert)(value) if isinstance(type, SimpleType) else convert(value),)
    return handler


def _identity(value: Any) -> Any:
    return value


def _transpose(node: Node, values: list[Any]) -> Sequence[Any]:
    """Transpose of 2017 and of ONNX: `perm` is the order of the dimensions; by default it is reversed."""
    attribute = node.attributes.get("perm")
    x = as_array(values[0])
    return (x.T if attribute is None else x.transpose([int(dim) for dim in as_ints(attribute.value)]),)


def as_ints(value: Any) -> list[int]:
    """A list of ints. Raises RunError for anything else."""
    if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
        raise RunError("expected a list of ints")
    return value


def _length(node: Node, values: list[Any]) -> Sequence[Any]:
    return (len(values[0]),)


def _replace_if_undefined(node: Node, values: list[Any]) -> Sequence[Any]:
    return (values[1] if values[0] is None else values[0],)


def _python_op(node: Node, values: list[Any]) -> Sequence[Any]:
    result = run_python_op(node.kind, node.attributes, values)
    if len(node.outputs) == 1 and not (isinstance(result, tuple) and not isinstance(node.outputs[0].type, TupleType)):
        return (_plain(result),)
    results = [_plain(item) for item in result] if isinstance(result, tuple | list) else []
    if len(results) != len(node.outputs):
        raise RunError(f"{node.kind} gave {len(results)} results, expected {len(node.outputs)}")
    return results


def _plain(value: Any) -> Any:
    return current_namespace().asarray(value) if isinstance(value, np.generic) else value


def python_op(node: Node, values: list[Any]) -> Sequence[Any]:
    """`^Name(scalars)(operands)`: runs the function that is registered under the name."""
    return _python_op(node, values)


STRUCTURE: dict[str, Handler] = {
    "aten::__is__": _is, "aten::__isnot__": _is_not,
    "prim::Constant": _constant, "onnx::Constant": _constant, "Transpose": _transpose, "onnx::Transpose": _transpose,
    "prim::None": lambda node, values: (None,) * len(node.outputs), "prim::Undefined": lambda node, values: (None,) * len(node.outputs),
    "prim::AutogradZero": lambda node, values: (None,) * len(node.outputs), "prim::Closure": lambda node, values: (None,),
    "prim::AnyDefined": lambda node, values: (as_array(int(any(value is not None for value in values)), np.int64),),
    "prim::ListConstruct": lambda node, values: (values,), "prim::TupleConstruct": lambda node, values: (tuple(values),),
    "prim::NamedTupleConstruct": lambda node, values: (tuple(values),),
    "prim::DictConstruct": _dict, "prim::ListUnpack": _list_unpack, "prim::TupleUnpack": _tuple_unpack,
    "prim::TupleIndex": _tuple_index, "prim::TupleSlice": _tuple_slice,
    "prim::isinstance": _isinstance, "prim::tolist": _tolist, "prim::EnumName": _enum_name, "prim::EnumValue": _enum_value,
    "prim::TypeCheck": _type_check, "prim::RequiresGradCheck": _checked, "prim::TensorExprDynamicGuard": _last,
    "prim::ConstantChunk": _chunk, "prim::FusedChunk": _chunk, "prim::FusedConcat": _fused_concat, "prim::SumToSize": _sum_to_size,
    "prim::CreateObject": _create, "prim::GetAttr": _get_attr, "prim::SetAttr": _set_attr, "prim::Enter": _context, "prim::Exit": _context,
    "prim::CallFunction": _call_function, "prim::CallMethod": _call_method, "prim::grad": _grad, "prim::id": _id,
    "prim::profile": _same, "prim::profile_ivalue": _same, "prim::BailOut": _bail_out, "prim::unchecked_cast": _same,
    "aten::wait": _waited, "prim::awaitable_wait": _waited, "prim::awaitable_nowait": _waited,
    "prim::rpc_async": _future, "prim::rpc_sync": _future, "prim::rpc_remote": _future,
    "prim::TensorToNum": _old_cast(_identity), "prim::ImplicitTensorToNum": _old_cast(_identity), "prim::TensorToBool": _old_cast(bool),
    "prim::Int": _old_cast(int), "prim::Float": _old_cast(float), "prim::Bool": _old_cast(bool),
    "prim::IntToFloat": _old_cast(float), "prim::FloatToInt": _old_cast(int), "prim::StringToFloat": _old_cast(float),
    "prim::BoolToTensor": lambda node, values: (as_array(values[0]),), "prim::ReplaceIfUndef": _replace_if_undefined,
    "prim::MMBatchSide": _batched_products, "prim::ListLen": _length, "prim::TupleLen": _length,
}
"""Kind -> the function that runs its nodes."""


def handler_of(kind: str) -> Handler | None:
    """The function that runs nodes of a structural kind; old texts leave out `prim::`."""
    return STRUCTURE.get(kind) or (STRUCTURE.get("prim::" + kind) if "::" not in kind else None)
