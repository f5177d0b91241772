"""Specs, the keys of plans: the dtype, rank and device of each input tensor, and whether it is defined and needs a gradient.

Not in a spec: sizes, strides, values, numbers, strings. The types of the graph's inputs decide which values a spec covers. They are
compiled once into a short list of instructions, so that making a spec costs one loop over the inputs. Tensors in inputs of other types,
such as dicts, have no record; the spec then says which of these inputs need gradients.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from irtool.ir.errors import RunError
from irtool.ir.graph import Graph
from irtool.ir.types import (
    UNDEFINED,
    ListType,
    NamedTupleType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    contiguous_strides,
    named_tuple_of,
    spell,
    tensor_type,
    tuple_of,
)
from irtool.ops.array_library import np
from irtool.ops.arrays import CODES, dtype_named

SKIP, TENSOR, PRESENCE, ENTER, LEAVE = range(5)
"""Instructions, one per value: skip it; record the tensor; record whether it is None; enter a tuple, leave it."""
WORDS = ("Skip", "SpecializeTensor", "SpecializeOptional", "EnterTuple", "Leave")
MAX_ELEMENTS = 1_000_000
"""The largest tensor that `samples` makes for a type."""
MAX_DEPTH = 128
"""Tuples in tuples deeper than this are skipped as a whole."""

UNDEFINED_RECORD, OTHER_RECORD = 0, 1
"""Records of an undefined tensor, and of a value that is no tensor (texts of 2018 give every value the type Tensor)."""
_GRADIENT, _RANK, _DEVICE, _DTYPE = 2, 4, 1 << 10, 1 << 18
_CODE = {dtype_named(name): code for code, name in reversed(CODES.items()) if name not in ("bfloat16", "complex32")}


class ArgumentSpec:
    """The key of a plan. Immutable; its hash is computed once."""

    __slots__ = ("records", "present", "wanted", "_hash")

    def __init__(self, records: tuple[int, ...], present: tuple[bool, ...], wanted: tuple[int, ...] = ()) -> None:
        """wanted: the positions of inputs that need gradients, of those whose records cannot say so."""
        self.records = records
        self.present = present
        self.wanted = wanted
        self._hash = hash((len(records), len(present), records, present, wanted))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArgumentSpec) and (self.records, self.present, self.wanted) == (other.records, other.present, other.wanted)

    def __str__(self) -> str:
        """The records as types: `Float(*, *, requires_grad=1, device=cpu), Tensor[AutogradZero]`; then which optional ones are there."""
        words = [type_of_record(record).text for record in self.records] + ["present" if flag else "None" for flag in self.present]
        words += [f"gradient of input {place}" for place in self.wanted]
        return ", ".join(words) or "nothing"

    def __repr__(self) -> str:
        return f"<ArgumentSpec {self}>"

    @property
    def key(self) -> str:
        """The hash key as it is printed: the records in hexadecimal, then a bit per optional argument, then which inputs without records
        need gradients. The same in every process."""
        return ".".join([*(f"{record:07x}" for record in self.records), *("01"[flag] for flag in self.present),
                         *(f"g{place}" for place in self.wanted)]) or "-"

    @property
    def requires_gradient(self) -> bool:
        """Does any tensor need a gradient?"""
        return bool(self.wanted) or any(record & _GRADIENT for record in self.records)


class SpecMaker:
    """Makes the specs of one graph's inputs."""

    __slots__ = ("types", "instructions", "is_flat", "unrecorded")

    def __init__(self, graph: Graph) -> None:
        self.types = [value.type for value in graph.inputs]
        self.instructions: list[int] = []
        self.unrecorded: list[bool] = []        # for each input: has a part of it no record?
        for type in self.types:
            at = len(self.instructions)
            self._compile(type, 0)
            self.unrecorded.append(not {SKIP, PRESENCE}.isdisjoint(self.instructions[at:]))
        self.is_flat = ENTER not in self.instructions

    def _compile(self, type: Type, depth: int) -> None:
        """Append the instructions for an input of this type."""
        at = len(self.instructions)
        if is_noted(type):
            self.instructions.append(TENSOR)
        elif isinstance(type, OptionalType):
            self.instructions.append(PRESENCE)
        elif isinstance(type, TupleType) and depth < MAX_DEPTH:
            self.instructions.append(ENTER)
            for element in type.elements:
                self._compile(element, depth + 1)
            self.instructions.append(LEAVE)
            if not {TENSOR, PRESENCE} & set(self.instructions[at:]):
                self.instructions[at:] = [SKIP]     # a tuple without anything to record
        else:
            self.instructions.append(SKIP)

    def __str__(self) -> str:
        return " ".join(WORDS[each] for each in self.instructions)

    def make(self, values: Sequence[Any], requires_grad: Sequence[bool] = ()) -> ArgumentSpec:
        """The spec of these inputs. `requires_grad` has a flag per input (empty: no input needs a gradient); the flag of a tuple holds for
        all tensors in it. Raises RunError if an input should be a tuple and is not.
        """
        if self.is_flat and not requires_grad:
            present = tuple([value is not None for value, what in zip(values, self.instructions, strict=True) if what == PRESENCE])
            return ArgumentSpec(tuple([record_of(value, 0) for value, what in zip(values, self.instructions, strict=True)
                                       if what == TENSOR]), present)
        records: list[int] = []
        presence: list[bool] = []
        for what, value, flag in self.noted(values, requires_grad):
            if what == TENSOR:
                records.append(record_of(value, flag))
            else:
                presence.append(value is not None)
        return ArgumentSpec(tuple(records), tuple(presence), self.wanted(requires_grad))

    def wanted(self, requires_grad: Sequence[bool]) -> tuple[int, ...]:
        """The positions of inputs that need gradients, of those whose records cannot say so."""
        return tuple([place for place, flag in enumerate(requires_grad) if flag and self.unrecorded[place]])

    def noted(self, values: Sequence[Any], requires_grad: Sequence[bool] = ()) -> Iterator[tuple[int, Any, int]]:
        """The recorded values in order: TENSOR or PRESENCE, the value, and 2 if it needs a gradient (else 0)."""
        flags = [_GRADIENT if flag else 0 for flag in requires_grad] or [0] * len(values)
        steps = iter(self.instructions)
        for value, flag in zip(values, flags, strict=True):
            yield from self._visit(value, flag, steps, next(steps))

    def _visit(self, value: Any, flag: int, steps: Iterator[int], what: int) -> Iterator[tuple[int, Any, int]]:
        """The recorded values in one input; `what` is its instruction, `steps` yields those of the parts of a tuple."""
        if what in (TENSOR, PRESENCE):
            yield what, value, flag
        elif what == ENTER:
            elements = iter(value if isinstance(value, tuple) else ())
            for what in steps:
                if what == LEAVE:
                    return
                element = next(elements, steps)
                if element is steps:
                    raise RunError("a tuple among the inputs has too few elements")
                yield from self._visit(element, flag, steps, what)


def is_noted(type: Type) -> bool:
    """Does a value of this type get a record: a tensor, or a (nested) list of tensors? The record of a list says only whether it is None
    and whether it needs gradients.

    An absent tensor and an undefined one are both None here.
    """
    while isinstance(type, OptionalType | ListType):
        type = type.element
    return isinstance(type, TensorType)


def arrays_key(values: Sequence[Any]) -> Any:
    """The key under which a process caches the function for such inputs; None if an input is neither array nor bool nor None."""
    key: list[Any] = []
    for each in values:
        if type(each) is np.ndarray:
            key.append((each.dtype, each.shape, each.strides))
        elif each is None or type(each) is bool:
            key.append(each)
        else:
            return None
    return tuple(key)


def record_of(value: Any, flag: int = 0) -> int:
    """The record of a tensor, a number; `flag` is 2 if it needs a gradient, and is ignored unless it is floating-point or complex."""
    if value is None:
        return UNDEFINED_RECORD
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return OTHER_RECORD | flag if isinstance(value, list) else OTHER_RECORD
    if flag and dtype.kind not in "fc":
        flag = 0
    device = 0 if isinstance(value, np.ndarray | np.generic) else _DEVICE
    rank: int = value.ndim
    return OTHER_RECORD | flag | (rank + 1) * _RANK | device | _CODE[dtype] * _DTYPE


def record_of_type(type: TensorType | None, flag: int) -> int:
    """The record of tensors of a type (None: of any type); they need a gradient if `flag` is 2."""
    if type is None or type.dtype is None or type.sizes is None:
        return UNDEFINED_RECORD if type is not None and type.undefined else OTHER_RECORD | flag
    device = 0 if type.device == "cpu" else _DEVICE
    return OTHER_RECORD | flag | (len(type.sizes) + 1) * _RANK | device | _CODE[dtype_named(type.dtype)] * _DTYPE


def type_of(value: Any, flag: int) -> Type | None:
    """The complete type of a tensor; None for any other value. Strides of dimensions of size 1 or 0 are given as if it were contiguous."""
    if value is None:
        return UNDEFINED
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return None
    shape, size = tuple(value.shape), value.itemsize
    plain = contiguous_strides(shape)
    strides = tuple([usual if n < 2 else stride // size for n, stride, usual in zip(shape, value.strides, plain, strict=True)])
    device = "cpu" if isinstance(value, np.ndarray | np.generic) else "cuda:0"
    return tensor_type(CODES[_CODE[dtype]], shape, strides, bool(flag) and dtype.kind in "fc", device)


def type_of_record(record: int) -> Type:
    """The type that a record describes."""
    rank = (record // _RANK & 0xFF) - 1
    if record == UNDEFINED_RECORD:
        return UNDEFINED
    if rank < 0:
        return tensor_type(requires_grad=bool(record & _GRADIENT))
    device = "cuda:0" if record & _DEVICE else "cpu"
    return tensor_type(CODES[record // _DTYPE], (None,) * rank, None, bool(record & _GRADIENT), device)


def samples(graph: Graph, types: Sequence[Type]) -> list[Any]:
    """Inputs of these types; unknown sizes are 1. Raises RunError for a tensor of unknown dtype or rank."""
    if len(types) != len(graph.inputs):
        raise RunError(f"the spec has {len(types)} types, the graph takes {len(graph.inputs)} inputs", code="E0805")
    return [_sample(type) for type in types]


def _sample(type: Type) -> Any:
    """The smallest value of a type."""
    if isinstance(type, TensorType):
        if type.undefined:
            return None
        if type.dtype is None or type.sizes is None:
            raise RunError(f"a spec needs dtype and rank of each tensor, such as Float(*, *), not {type}", code="E0805")
        sizes = [1 if size is None else size for size in type.sizes]
        if math.prod(sizes) > MAX_ELEMENTS:
            raise RunError(f"{type} has more than {MAX_ELEMENTS} elements; sizes are not in a spec, write * for each of them", code="E0805")
        return np.ones(sizes, dtype_named(type.dtype))
    if isinstance(type, TupleType):
        return tuple(map(_sample, type.elements))
    if isinstance(type, ListType):
        return [_sample(type.element)]
    return {"int": 1, "float": 1.0, "bool": True, "str": "", "complex": 1j, "Scalar": 1}.get(str(type.key))


def specialize_inputs(graph: Graph, spec: ArgumentSpec, types: Sequence[TensorType | None] = ()) -> list[bool]:
    """Write a spec into the types of a graph's inputs; an absent optional input is replaced by None in all its uses.

    types: by record, types with more facts, such as sizes. Returns for each input whether it is defined. The number of inputs does not
    change: an absent input is still an input.
    """
    records, present = iter(zip(spec.records, types or [None] * len(spec.records), strict=True)), iter(spec.present)
    defined: list[bool] = []
    absent = []
    for value in graph.inputs:
        old = value.type
        new, is_there = _specialized(old, records, present)
        defined.append(is_there)
        if isinstance(old, OptionalType) and not is_there:
            absent.append(value)
        elif new is not old:
            value.type = spell(new, graph.dialect)
    if absent:
        from irtool.ir.builder import Builder

        none = Builder(graph).at_start(graph.block).constant(None)
        for value in absent:
            value.replace_all_uses_with(none)
    return defined


def _specialized(type: Type, records: Iterator[tuple[int, TensorType | None]], present: Iterator[bool],
                 depth: int = 0) -> tuple[Type, bool]:
    """The type of an input by its records, and whether it is present."""
    if is_noted(type):
        record, more = next(records)
        inner = type.element if isinstance(type, OptionalType) else type
        if record == UNDEFINED_RECORD:
            return UNDEFINED if isinstance(type, TensorType) else type, False
        if not isinstance(inner, TensorType) or record & ~_GRADIENT == OTHER_RECORD:
            return inner, True
        return more or type_of_record(record), True
    if isinstance(type, OptionalType):
        is_there = next(present)
        return type.element if is_there else type, is_there
    if isinstance(type, TupleType) and depth < MAX_DEPTH:
        parts = [_specialized(element, records, present, depth + 1)[0] for element in type.elements]
        if all(new is old for new, old in zip(parts, type.elements, strict=True)):
            return type, True
        return named_tuple_of(type.names, parts) if isinstance(type, NamedTupleType) else tuple_of(parts), True
    return type, True
