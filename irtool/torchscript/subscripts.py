"""Subscripts: reading, writing and deleting elements of tensors, lists, tuples, dicts and strings."""
from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from irtool.ir import types
from irtool.ir.constants import constant, is_constant, slice_bound
from irtool.ir.graph import Value
from irtool.ir.types import DictType, ListType, OptionalType, TupleType, Type
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.instances import definition_of, is_module_list, special_method
from irtool.torchscript.meanings import SliceValue

Reader = Callable[[Emitter, ast.expr], Value]
LONG = 4
"""torch's number of int64."""


def _value(e: Emitter, node: ast.expr) -> Value:
    from irtool.torchscript.expressions import value_of

    return value_of(e, node)


def load_item(e: Emitter, node: ast.Subscript, held: Value, hint: Type | None = None) -> Value:
    """`held[...]`; `hint` is the expected type."""
    type = held.type
    if isinstance(type, types.TensorType):
        return tensor_item(e, node, held)
    if isinstance(type, OptionalType):
        e.fail(node, f"'{e.type_name(held)}' object is not subscriptable")
    if isinstance(node.slice, ast.Tuple) and not isinstance(type, DictType):
        e.fail(node, f"Unsupported operation: indexing {e.type_name(held)} with several indices")
    index = slice_or_value(e, node.slice)
    e.at(node)
    if isinstance(index, Value) and hint is not None and is_module_list(e, held):
        return e.one("prim::ModuleContainerIndex", (held, index), hint)
    if isinstance(index, Value):
        of_instance = special_method(e, node, "__getitem__", held, [index])
        if of_instance is not None:
            return of_instance
    if isinstance(index, list):
        return sliced(e, node, held, index)
    if isinstance(type, TupleType):
        return tuple_item(e, node, held, index)
    if isinstance(type, ListType | DictType) or type.key == "str":
        return e.operator(node, "aten::__getitem__", [held, index])
    e.fail(node, f"'{e.type_name(held)}' object is not subscriptable")


def tuple_item(e: Emitter, node: ast.Subscript, held: Value, index: Value) -> Value:
    """An element of a tuple, by a constant."""
    if index.type.key != "int":
        e.fail(node, "tuple index must be an integer")
    known = known_number(index, node.slice)
    elements = held.type.elements
    if known is None:
        if elements and all(types.same(each, elements[0]) for each in elements):
            return e.one("prim::TupleIndex", (held, index), elements[0])
        e.fail(node, f"Cannot index into a {e.type_name(held)} with a non-integer literal because we cannot resolve the output type")
    if not -len(elements) <= known < len(elements):
        e.fail(node, f"Tuple index out of range. Tuple is length {len(elements)} and index is {known}")
    if held.node.kind == "prim::TupleConstruct":
        return held.node.inputs[known]
    return e.one("prim::TupleIndex", (held, index), elements[known])


def bounds(e: Emitter, node: ast.Slice) -> list[Value | None]:
    """start, stop, step; None for omitted ones."""
    return [None if part is None else _value(e, part) for part in (node.lower, node.upper, node.step)]


def sliced(e: Emitter, node: ast.Subscript, held: Value, parts: Sequence[Value | None]) -> Value:
    """`held[a:b:c]` of a list, a string or a tuple."""
    if isinstance(held.type, TupleType):
        written = (node.slice.lower, node.slice.upper, node.slice.step) if isinstance(node.slice, ast.Slice) else (None, None, None)
        known = [known_bound(e, node, part, expression) for part, expression in zip(parts, written, strict=True)]
        if known[2] == 0:
            e.fail(node, "slice step cannot be zero")
        return e.tuple_value(e.unpacked(held)[slice_bound(known[0]):slice_bound(known[1]):known[2]])
    if not isinstance(held.type, ListType) and held.type.key != "str":
        e.fail(node, f"'{e.type_name(held)}' object is not subscriptable")
    start, stop, step = parts
    none = e.none()
    return e.operator(node, "aten::slice", [held, start or none, stop or none, step or e.constant(1)])


def known_bound(e: Emitter, node: ast.Subscript, bound: Value | None, expression: ast.expr | None) -> int | None:
    """A bound of a tuple's slice, which must be constant."""
    known = known_number(bound, expression) if bound is not None else None
    if bound is not None and known is None:
        e.fail(node, "tuple slice indices must be integer constants")
    return known


def known_number(value: Value, expression: ast.expr | None) -> int | None:
    """The number that an expression always is. That of a variable is not known, as in torch, whatever was assigned to it."""
    if value.type.key != "int" or not is_constant(value) or isinstance(expression, ast.Name):
        return None
    known = constant(value)
    return known if isinstance(known, int) else None


# ---------------------------------------------------------------- tensors
def tensor_item(e: Emitter, node: ast.Subscript, held: Value) -> Value:
    """`x[...]`: select, slice or unsqueeze for each part; then one aten::index for all tensors among them."""
    view, indices = viewed(e, node, held)
    return e.operator(node, "aten::index", [view, index_list(e, indices)]) if indices else view


def index_list(e: Emitter, indices: Sequence[Value | None]) -> Value:
    """The `Tensor?[]` operand of index and index_put_."""
    none = e.none()
    return e.list_value([none if index is None else index for index in indices], types.optional(types.TENSOR))


def viewed(e: Emitter, node: ast.Subscript, held: Value, is_written: bool = False) -> tuple[Value, list[Value | None]]:
    """The view that ints, slices, None and `...` make; and a tensor (or None) per remaining dimension, up to the last indexed one."""
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    ellipsis = [i for i, part in enumerate(parts) if isinstance(part, ast.Constant) and part.value is Ellipsis]
    if not parts:
        e.fail(node, "Unsupported operation: indexing tensor with unsupported index type 'Tuple[()]'. Only ints, slices, lists and tensors "
                     "are supported")
    if ellipsis and not isinstance(node.slice, ast.Tuple) and not is_written:
        e.fail(node.slice, "Cannot emit expr for: (dots)")
    if len(ellipsis) > 1:
        e.fail(node, "An index can only have a single ellipsis ('...')")
    view = held
    tensors: dict[int, Value] = {}
    dim = 0
    behind = False
    compiled = [compiled_index(e, part) for part in parts]
    e.at(node)
    for i, (part, index) in enumerate(zip(parts, compiled, strict=True)):
        if ellipsis and i == ellipsis[0]:
            behind = True
            dim = -sum(consumes(other) for other in compiled[i + 1:])
            continue
        if isinstance(index, list):
            none = e.none()
            view = e.operator(node, "aten::slice", [view, e.constant(dim), index[0] or none, index[1] or none, index[2] or e.constant(1)])
            dim += 1
            continue
        assert index is not None
        if index.type.key == "None":
            view = e.operator(node, "aten::unsqueeze", [view, e.constant(dim if not behind else dim - 1)])
            dim += not behind
        elif index.type.key == "int":
            view = e.operator(node, "aten::select", [view, e.constant(dim), index])
            dim += behind
        else:
            tensors[dim] = as_index_tensor(e, part, index)
            dim += 1
    if not tensors:
        return view, []
    if min(tensors) < 0:
        e.fail(node, "Ellipses followed by tensor indexing is currently not supported")
    return view, [tensors.get(i) for i in range(max(tensors) + 1)]


def compiled_index(e: Emitter, part: ast.expr) -> Value | list[Value | None] | None:
    """One part of a subscript."""
    if isinstance(part, ast.Slice):
        return bounds(e, part)
    if isinstance(part, ast.Constant) and part.value is Ellipsis:
        return None
    return slice_or_value(e, part)


def slice_or_value(e: Emitter, part: ast.expr) -> Value | list[Value | None]:
    """An index; for a slice, in the source or in a variable, its bounds."""
    from irtool.torchscript.expressions import meaning_of

    if isinstance(part, ast.Slice):
        return bounds(e, part)
    meaning = meaning_of(e, part)
    return meaning.bounds if isinstance(meaning, SliceValue) else e.as_value(meaning, part)


def consumes(index: Value | list[Value | None] | None) -> int:
    """The number of dimensions of the tensor that a part indexes."""
    return 0 if isinstance(index, Value) and index.type.key == "None" else 1


def as_index_tensor(e: Emitter, part: ast.expr, index: Value) -> Value:
    """An index as a tensor; a list of numbers is converted to one."""
    if isinstance(index.type, types.TensorType):
        return index
    if isinstance(index.type, OptionalType) and isinstance(index.type.element, types.TensorType):
        return index
    if isinstance(index.type, ListType):        # also bools and floats, as in torch
        return e.operator(part, "aten::tensor", [index], {"dtype": e.constant(LONG)})
    e.fail(part, f"Unsupported operation: indexing tensor with unsupported index type '{e.type_name(index)}'. Only ints, slices, lists "
                 "and tensors are supported")


# ---------------------------------------------------------------- writing
def store_item(e: Emitter, target: ast.Subscript, value: Value) -> None:
    """`held[...] = value`."""
    held = _value(e, target.value)
    if isinstance(held.type, types.TensorType):
        store_in_tensor(e, target, held, value)
        return
    if isinstance(held.type, TupleType):
        e.fail(target, f"{e.type_name(held)} does not support subscripted assignment")
    index = slice_or_value(e, target.slice)
    if isinstance(index, list):
        e.fail(target, "Sliced expression not yet supported for subscripted assignment. File a bug if you want this")
    e.at(target)
    if special_method(e, target, "__setitem__", held, [index, value]) is None:
        e.operator(target, "aten::_set_item", [held, index, value])


def store_in_tensor(e: Emitter, target: ast.Subscript, held: Value, value: Value) -> None:
    """`x[...] = v`: copy_ into the view, or index_put_."""
    view, indices = viewed(e, target, held, True)
    tensor = value
    if value.type.key in ("int", "float", "complex", "bool", "Scalar"):
        tensor = e.operator(target, "aten::tensor", [value], {"dtype": dtype_of(e, view), "device": device_of(e, view)})
    if indices:
        e.operator(target, "aten::index_put_", [view, index_list(e, indices), tensor, e.constant(False)])
    else:
        e.operator(target, "aten::copy_", [view, tensor, e.constant(False)])


def dtype_of(e: Emitter, tensor: Value) -> Value:
    return e.one("prim::dtype", (tensor,), types.INT)


def device_of(e: Emitter, tensor: Value) -> Value:
    return e.one("prim::device", (tensor,), types.DEVICE)


def add_in_place(e: Emitter, target: ast.Subscript, statement: ast.AugAssign) -> None:
    """`x[i] += v`: in place on the view of a tensor, and on what a list holds; else read, add, write."""
    from irtool.torchscript.assignment import NOT_IN_PLACE, augmented_kind, combined, combined_anew

    held = _value(e, target.value)
    if not isinstance(held.type, types.TensorType):
        load = ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
        if isinstance(held.type, TupleType) or held.type.key == "str":
            e.fail(target, f"{e.type_name(held)} does not support augmented assignment.")
        index = slice_or_value(e, target.slice)
        if isinstance(index, list):
            e.fail(target, "Sliced expression not yet supported for augmented assignment")
        e.at(statement)
        old = e.operator(load, "aten::__getitem__", [held, index])
        if isinstance(held.type, DictType):     # other than in a list, what a dict holds is not written into
            e.operator(target, "aten::_set_item", [held, index, combined_anew(e, statement, old, _value(e, statement.value))])
            return
        new = combined(e, statement, old, _value(e, statement.value))
        if not isinstance(old.type, types.TensorType) or type(statement.op) in NOT_IN_PLACE:
            e.operator(target, "aten::_set_item", [held, index, new])
        return
    kind = augmented_kind(type(statement.op))
    view, indices = viewed(e, target, held, True)
    if not indices:
        value = _value(e, statement.value)
        e.at(statement)
        e.operator(statement, kind, [view, value])
        return
    chosen = index_list(e, indices)
    old = e.operator(target, "aten::index", [view, chosen])
    value = _value(e, statement.value)
    e.at(statement)
    new = e.operator(statement, kind, [old, value])
    e.operator(target, "aten::index_put_", [view, chosen, new, e.constant(False)])


def delete_item(e: Emitter, target: ast.Subscript) -> None:
    """`del l[i]`; of an instance, its method `__delitem__`."""
    held = _value(e, target.value)
    if isinstance(target.slice, ast.Slice):
        e.fail(target, "del statements only support deletion at a single index, slicing is not supported (see "
                       "https://github.com/pytorch/pytorch/issues/31430)")
    index = _value(e, target.slice)
    definition = definition_of(e, held.type)
    if definition is not None and "__delitem__" not in definition.methods:
        e.fail(target, "Class does not define __delitem__")
    if special_method(e, target, "__delitem__", held, [index]) is None:
        if isinstance(held.type, TupleType):        # as an argument it would become a list, which is new
            e.fail(target, f"'{e.type_name(held)}' object doesn't support item deletion")
        e.operator(target, "aten::Delete", [held, index])
