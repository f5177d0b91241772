"""The gradient of an operator: a `GradOf` region of df that holds the backward half of the operator's formula."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from irtool.autodiff.captures import ANY_DTYPE
from irtool.autodiff.formula_graphs import Formula
from irtool.autodiff.gradients import Gradients
from irtool.autodiff.list_zeros import filled
from irtool.autodiff.reach import FLOATING, holds_tensors
from irtool.autodiff.refusals import at_node
from irtool.autodiff.saved_values import context_of, results_of, take_apart
from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.dtypes import dtype_code
from irtool.ir.effects import ONE_BY_ONE
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.graph import Node, Value, counted
from irtool.ir.kinds import not_supported
from irtool.ir.schema import Literal, Schema, node_arguments, schema_of, schemas
from irtool.ir.types import INT, ListType, OptionalType, TensorType, TupleType, Type
from irtool.ops.formula import refused_arguments
from irtool.partial.items import NONE, Item, Items, Known, elements, item_of


def reverse_operator(grads: Gradients, node: Node) -> Sequence[Node]:
    """Differentiate an operator: pass the gradients of its results on to its operands.

    Returns the nodes by which f replaces the operator, if its formula is composed of other operators: those are differentiated next.
    """
    schema, arguments = arguments_of(grads, node)
    formula = grads.formula_of(schema)
    if formula is None:
        return ()
    refuse_arguments(grads, node, schema.name, arguments)
    if formula.is_composed():
        return take_apart(grads, node, formula, arguments)
    if len(arguments) != len(formula.graph.inputs):
        raise not_supported(node.kind, f"{node.kind} takes {len(formula.graph.inputs)} arguments, found {len(arguments)}", "E0209")
    results = results_of(node, schema)
    if len(results) != len(formula.results):
        raise not_supported(node.kind, f"{node.kind} gives {counted(len(formula.results), 'result')}, found {len(results)}", "E0902")
    context = context_of(grads, node, formula, arguments, results)
    count = len(formula.backward.inputs) - 1
    incoming = [gradient_of_result(grads, item) for item in results[:count]]
    if all(item == NONE for item in incoming):      # declared as ints, or not to require gradients
        return ()
    if schema.kind not in grads.names:
        grads.names[schema.kind] = {"name": Attribute.of(schema.kind, grads.df.dialect)}
    region = grads.build.node("prim::GradOf", [value for item in incoming for value in _values(item)], grads.names[schema.kind])
    grads.continue_in(region.add_block())
    is_conjugated = formula.is_conjugated and not all(_is_complex(value.type) is False for item in (*arguments, *results)
                                                      for value in _values(item) if _is_tensor(value))
    given = incoming
    incoming = [filled(grads, item, result) for item, result in zip(incoming, results, strict=False)]
    if is_conjugated:
        incoming = [conjugate(grads, item, count == 1) for item in incoming]
    answer = run_backward(grads, formula, [context, *incoming])
    slots: Sequence[Item] | None = [answer]
    if isinstance(formula.backward.outputs[0].type, TupleType):
        slots = elements(answer) or unpacked(grads, answer)
    if slots is None or len(slots) != len(arguments):
        raise Error(f"the formula of {schema.name} does not give a gradient for each of {len(arguments)} arguments", code="E0509")
    if schema.kind in ONE_BY_ONE:
        slots = [one_by_one(grads, slots[0], given[0]), *slots[1:]]
    collect(grads, region, arguments, [conjugate(grads, slot, True) for slot in slots] if is_conjugated else slots)
    return ()


def one_by_one(grads: Gradients, slot: Item, given: Item) -> Item:
    """The gradients of a list of tensors, each of which has one result: undefined where that of the result is, `given`."""
    if not isinstance(slot, Items) or not isinstance(given, Items | Value):
        return slot
    if isinstance(given, Items) and len(slot.items) != len(given.items):
        return slot
    before = given.items if isinstance(given, Items) else \
        [grads.build.call("aten::__getitem__", given, place, type=grads.tensor) for place in range(len(slot.items))]
    is_defined = isinstance(given, Items) and len({item for item in before if item != NONE}) == 1
    items = [NONE if known == NONE else item if is_defined or not isinstance(item, Value) or not isinstance(known, Value) else
             grads.where_defined(known, False, lambda _, item=item: item)       # type: ignore[misc]
             for item, known in zip(slot.items, before, strict=True)]
    return Items(items, slot.is_tuple, slot.type)


def refuse_arguments(grads: Gradients, node: Node, name: str, arguments: Sequence[Item]) -> None:
    """Raises UnsupportedError for an argument that needs a gradient if the operator's formula has none for it and declares that."""
    for place, message in refused_arguments(name).items():
        for value in _values(arguments[place]) if place < len(arguments) else ():
            if value in grads.excused:
                grads.left_out.setdefault(value, at_node(grads.f, UnsupportedError(message, code="E0501"), node))
            elif value in grads.needs:
                raise UnsupportedError(message, code="E0501")


def run_backward(grads: Gradients, formula: Formula, operands: Sequence[Item]) -> Item:
    """The backward half of a formula as nodes of df; `operands` are its context and the gradients of the operator's results."""
    env: dict[Value, Item] = dict(zip(formula.backward.inputs, operands, strict=True))
    incoming = operands[1:]
    if len(incoming) == 1 and isinstance(incoming[0], Value) and incoming[0] not in grads.facts:
        grads.facts[incoming[0]] = types.TENSOR     # a region with one gradient runs only if that is defined
        (answer,) = grads.into_df.run(formula.backward.block, env)
        del grads.facts[incoming[0]]
    else:
        grads.into_df.unsure = {value for item in incoming for value in _values(item)} if len(incoming) > 1 else set()
        (answer,) = grads.into_df.run(formula.backward.block, env)
        grads.into_df.unsure = set()
    return answer


def unpacked(grads: Gradients, answer: Item) -> list[Item] | None:
    """The elements of a tuple that is the result of a branch."""
    if not isinstance(answer, Value) or not isinstance(answer.type, TupleType):
        return None
    unpack = grads.build.node("prim::TupleUnpack", (answer,), output_types=answer.type.elements)
    return [NONE if value.type.key == types.NONE.key else value for value in unpack.outputs]


def conjugate(grads: Gradients, item: Item, is_defined: bool) -> Item:
    """The conjugate of a gradient, or of a list of gradients; an undefined gradient stays undefined."""
    if isinstance(item, Items):
        return Items([conjugate(grads, each, is_defined) for each in item.items], item.is_tuple, item.type)
    if not isinstance(item, Value) or item.node.kind == grads.df.dialect.undefined_kind or not holds_tensors(item.type):
        return item
    conj = partial(grads.build.call, "aten::conj", type=grads.tensor)
    conjugated = grads.where_defined(item, is_defined and _is_tensor(item), conj)
    if item in grads.facts:
        grads.facts[conjugated] = grads.facts[item]
    return conjugated


def may_be_complex(grads: Gradients, value: Value) -> bool:
    """Is a value a complex tensor, or a tensor of unknown dtype in a graph that contains complex tensors?"""
    is_complex = _is_complex(value.type)
    if is_complex is not None or not _is_tensor(value):
        return is_complex is True
    if grads.has_complex is None:
        grads.has_complex = any(_is_complex(each.type) for each in grads.f.values())
    return grads.has_complex


def conversion(grads: Gradients, target: Value, region: Node, mixed: bool) -> tuple[bool, str | None]:
    """How to convert the gradient of `target`: take the real part? And to which dtype (None: no conversion, since all gradients that the
    region takes have the dtype already)?

    mixed: one of the operator's arguments may be complex.
    """
    is_real = mixed and _is_complex(target.type) is False       # the gradient of a real tensor is real
    wanted = grads.dtypes.get(target)
    others = {grads.dtypes.get(value) for value in region.inputs} - {None, None if wanted == ANY_DTYPE else wanted}
    if wanted not in (*FLOATING, ANY_DTYPE) or not others:
        return is_real, None
    if wanted == ANY_DTYPE:     # the conversion takes the real part, unless the run has complex numbers
        return is_real, wanted
    return is_real or not wanted.startswith("complex") and any(str(name).startswith("complex") for name in others), wanted


def converted(grads: Gradients, gradient: Value, target: Value, is_real: bool, wanted: str | None) -> Value:
    """A gradient converted as `conversion` says; for ANY_DTYPE, to the dtype that the target has in the run."""
    if is_real:
        gradient = grads.build.call("aten::real", gradient, type=grads.tensor if _is_complex(gradient.type) else gradient.type)
    if wanted == ANY_DTYPE:
        like, convert = grads.captures.take(target), partial(grads.build.call, "aten::type_as", gradient, type=grads.tensor)
        gradient = grads.where_defined(like, False, convert, lambda: gradient)
    elif wanted is not None:
        gradient = grads.build.call("aten::to", gradient, dtype_code(wanted), False, False, None, type=grads.tensor)
    return gradient


def collect(grads: Gradients, region: Node, arguments: Sequence[Item], slots: Sequence[Item]) -> None:
    """Make the gradients that operands need results of the region, and add them to the operands' gradients.

    arguments: of the operator; slots: the gradient that the formula gave for each.
    """
    body = region.blocks[0]
    targets: list[Value] = []
    gradients: list[Value] = []
    names: list[str] = []
    mixed = any(isinstance(item, Known) and isinstance(item.value, complex) or any(map(partial(may_be_complex, grads), _values(item)))
                for item in arguments)
    for argument, slot in zip(arguments, slots, strict=True):
        for target, piece in pieces(grads, argument, slot):
            if isinstance(target, Value) and piece != NONE and (wants(grads, target) or not grads.modern and _is_tensor(target)):
                value = grads.into_df.value(piece, target.type)
                if isinstance(target.type, TensorType) and isinstance(value.type, ListType):
                    raise UnsupportedError(f"the gradient of an operator that takes a list of tensors where %{target.name} is a tensor",
                                           code="E0501")
                is_real, wanted = conversion(grads, target, region, mixed)
                if is_real or wanted is not None:
                    convert = partial(converted, grads, target=target, is_real=is_real, wanted=wanted)
                    value = grads.where_defined(value, _is_tensor(value) and value not in grads.maybe_undefined, convert)
                if isinstance(value.type, OptionalType) and isinstance(value.type.element, TensorType):
                    # None is the undefined gradient of a tensor
                    value = grads.build.node("prim::unchecked_cast", (value,), output_types=(grads.tensor,)).output
                targets.append(target)
                gradients.append(value)
                names.append(grads.df.fresh_id())
    body.set_outputs([*body.outputs, *gradients])
    outputs = region.add_outputs(zip(names, [value.type for value in gradients], strict=True))
    grads.build.at_end(grads.block)
    if not targets:
        region.destroy()
    for target, output in zip(targets, outputs, strict=True):
        grads.captures.note(output, target)
    for target, output in zip(targets, outputs, strict=True):
        grads.add(target, output)
        if target in grads.copies:
            grads.add(grads.copies[target], output)


def pieces(grads: Gradients, argument: Item, slot: Item) -> list[tuple[Item, Item]]:
    """(operand, gradient) of an argument; for a list that the graph constructs, one pair per element."""
    if slot == NONE or isinstance(argument, Known):
        return []
    if not isinstance(argument, Items):
        return [(argument, slot)]
    gradients: Sequence[Item] | None = elements(slot)
    if gradients is None:
        assert isinstance(slot, Value)
        if not any(wants(grads, each) for each in argument.items):
            return []
        gradients = grads.build.node("prim::ListUnpack", (grads.captures.take(slot),),
                                     output_types=[grads.tensor] * len(argument.items)).outputs
    if len(gradients) != len(argument.items):
        raise Error(f"the formula gives {len(gradients)} gradients for a list of {len(argument.items)} tensors", code="E0509")
    return list(zip(argument.items, gradients, strict=True))


def wants(grads: Gradients, item: Item) -> bool:
    """Is an item a value that needs a gradient?"""
    return isinstance(item, Value) and item in grads.needs


def arguments_of(grads: Gradients, node: Node) -> tuple[Schema, list[Item]]:
    """The schema of a node's overload, and an item for each argument. Raises UnsupportedError for an operator without a schema."""
    if node.kind == "prim::ConstantChunk":
        (schema,) = schemas("aten::chunk")
        return schema, [item_of(node.inputs[0]), Known(node.attributes["chunks"].value), Known(node.attributes["dim"].value)]
    schema = overload_of(node)
    items: list[Item] = []
    for operand, argument in zip(node_arguments(node, schema), schema.arguments, strict=False):
        if isinstance(operand, Value) and argument.fixed_size and operand.type.key == INT.key:      # `stride=1` for `int[2] stride`
            items.append(Items([item_of(operand)] * argument.fixed_size, False, types.list_of(INT)))
        elif isinstance(operand, Value):
            items.append(steady(grads, operand, node))
        elif isinstance(operand, Literal):
            items.append(Known(operand.value))
        else:
            items.append(Items([item_of(value) for value in operand], False, argument.type))
    return schema, items


def overload_of(node: Node) -> Schema:
    """The schema of a node's overload. Raises UnsupportedError if none takes the operands, which texts of old dialects may say."""
    schema = schema_of(node)
    if schema is None:
        raise not_supported(node.kind, f"the gradient of {node.kind} is not supported yet", "E0501")
    return schema


def steady(grads: Gradients, value: Value, node: Node) -> Item:
    """The item for an operand. If it is a list that changes, f copies the list in front of the node: the copy can be saved."""
    if not grads.changes.is_changed(value):
        return item_of(value)
    copy = Builder(grads.f).before(node).node("aten::list", (value,), output_types=(value.type,)).output
    grads.copies[copy] = value
    if value in grads.needs:
        grads.needs.add(copy)
    return copy


def gradient_of_result(grads: Gradients, item: Item) -> Item:
    """The gradient of one result of the schema; a list result that the node has as several outputs has a list of gradients."""
    if isinstance(item, Items):
        values = [each for each in item.items if isinstance(each, Value)]
        return Items([grads.current.get(value, NONE) for value in values], False, item.type)
    assert isinstance(item, Value)
    return grads.of(item) if item in grads.needs else NONE


def _values(item: Item) -> list[Value]:
    if isinstance(item, Value):
        return [item]
    return [value for each in item.items for value in _values(each)] if isinstance(item, Items) else []


def _is_tensor(value: Value) -> bool:
    return isinstance(value.type, TensorType)


def _is_complex(type: Type) -> bool | None:
    """Is a type that of a complex tensor? None: the type does not say the dtype."""
    return type.dtype.startswith("complex") if isinstance(type, TensorType) and type.dtype is not None else None
