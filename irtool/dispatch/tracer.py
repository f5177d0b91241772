"""The tracer: a layer that records operations as nodes of a graph, and also runs them on the layer below.

Each operation on its tensors becomes a node, and so does one that makes a tensor from nothing. Sizes and numbers that the function reads
from tensors become constants of the graph, as in torch.jit.trace. If Python branches on elements of a tensor, the trace follows the branch
of this run, with a warning; branches and loops of a graph stay If and Loop. Types are complete: dtype, sizes, strides, device.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from irtool.analysis.liveness import remove_dead_nodes
from irtool.dispatch.batched import draws
from irtool.dispatch.control_flow import merged, truth
from irtool.dispatch.custom_functions import record_custom
from irtool.dispatch.layer_writes import another, do_write, is_operand, is_view, is_write, remember, reshapes, take_in, with_operands
from irtool.dispatch.loop_tapes import History
from irtool.dispatch.stack import NUMBERS, Boxed, Branch, DispatchError, Layer, current, elements_of, is_floating, pushed
from irtool.dispatch.trees import flatten, unflatten
from irtool.ir.arguments import called, check_list
from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.builder import Builder, plain_constant, type_of_data
from irtool.ir.callers import warn_in_users_code
from irtool.ir.dialect import LATEST
from irtool.ir.effects import STATISTICS
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import Argument, has_variables
from irtool.ir.types import BOOL, INT, ListType, OptionalType, TensorType, Type, tensor_type
from irtool.ops.array_library import np
from irtool.ops.arrays import element_strides, generator
from irtool.ops.call import overload
from irtool.ops.nested_tensors import tensors_in
from irtool.ops.size_facts import DECIDING
from irtool.ops.tensor import Tensor
from irtool.ops.tensor_facts import Dtype, Place

INPUT_NAME = re.compile(r"[\w.]+")


class TraceWarning(UserWarning):
    """The trace holds only for inputs for which Python takes the same branches."""


class Tracer(Layer):
    """Records a graph; the values are computed on the layer below."""

    hides_elements = True
    unrolls = True
    begins_with_gradients = True
    has_stand_ins = False
    """Have the inputs dtypes and sizes, but no elements that mean anything? Then a loop runs one round, to show its results."""

    def __init__(self, inner: Layer, name: str = "") -> None:
        super().__init__(inner, name)
        self.graph = Graph(LATEST)
        self.build = Builder(self.graph)
        self.constants: dict[int, tuple[Any, Value]] = {}
        self.numbers: dict[Any, Value] = {}
        self.noted = True       # the mode of gradients in the graph

    def input(self, value: Tensor, name: str = "") -> Boxed:
        """Add an input to the graph; returns the tensor in a box."""
        return self.added_inputs([value], [name])[0]

    def added_inputs(self, values: Sequence[Tensor], names: Sequence[str]) -> list[Boxed]:
        """The same of several inputs, in linear time. names: '' for one that the graph chooses."""
        wanted = [(name or self.graph.fresh_id(), type_of(value)) for value, name in zip(values, names, strict=True)]
        return [Boxed(self, *each) for each in zip(values, self.graph.block.param_node.add_outputs(wanted), strict=True)]

    def apply(self, name: str, args: list[Any]) -> Any:
        """Run the operation, and record it if an operand is a tensor of the trace, or it makes a tensor from nothing or by chance: each run
        draws anew."""
        is_own = any(self.owns(each) for each in tensors_in(args)) or draws(name, args)
        if args and isinstance(args[0], Tensor) and not self.owns(args[0]) and is_write(name):
            self.constants.clear()      # a write may have changed their elements
            if reshapes(self, name, args):
                return do_write(self, name, self.facts(name).plain, args)
            if is_own:
                take_in(self, args[0])
                if not self.owns(args[0]):
                    raise UnsupportedError(f"trace: {name.partition('.')[0]} writes into a tensor from outside the function, which a graph "
                                           "cannot: make it an argument, or return its new value", code="E0507")
        if is_own:
            self.take_in_statistics(name, args)
        opened = self.opened(args)
        result = self.below.apply(name, opened)
        kind = name.partition(".")[0]
        if is_own and kind in DECIDING:
            warn_in_users_code(f"{kind} of a traced tensor gives a number that is a constant in the graph", TraceWarning)
        results = list(tensors_in([result]))
        if args and type(args[0]) in NUMBERS and isinstance(overload(name).schema.arguments[0].type, TensorType) and not is_own:
            return result       # of `{2}` of 2018, a constant tensor; a node of numbers alone would be another overload
        if not results or not is_own and any(True for _ in tensors_in(args)):
            return remember(self, name, args, result) if results and is_view(name) else result
        return self.record(name, args, result)

    def take_in_statistics(self, name: str, args: list[Any]) -> None:
        """Turn running statistics that were made inside the function into tensors of the trace, before an operator writes into them: later
        the constant would hold what this run wrote."""
        for _, each in written_statistics(name, args):
            take_in(self, each)

    def note_mode(self, is_on: bool) -> None:
        """Turn gradients on or off in the graph, if the nodes so far leave them otherwise."""
        if self.noted != is_on:
            self.noted = is_on
            self.build.node("aten::set_grad_enabled", (self.operand(is_on),), output_types=[])

    def renewed(self, before: Boxed, after: Tensor, inside: Tensor) -> Boxed:
        """A value of the graph with the elements of the new one and, as a write that tapes know nothing of leaves it, the gradient that it
        had: a copy into a clone, where gradients are off."""
        value = self.operand(after)
        if value is before.known or not is_floating(before):
            return Boxed(self, inside, value)
        self.note_mode(True)
        kept = self.build.call("aten::clone", before.known, None, type=type_of(before))
        self.note_mode(False)
        self.build.call("aten::copy_", kept, value, False, type=type_of(before))
        self.note_mode(self.mode)
        return Boxed(self, inside, kept)

    def adopted(self, tensor: Any) -> Boxed:
        """A tensor made inside the function as a tensor of the trace: each run starts with a copy of its elements."""
        return Boxed(self, another(tensor), self.build.call("aten::clone", self.constant(tensor), None, type=type_of(tensor)))

    def custom_vjp(self, forward: Callable[..., Any], backward: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """Record a node with both functions (`irtool.ir.custom`), so that the graph's gradient is that of `backward`."""
        if any(self.owns(each) for each in flatten(list(args))[0]):
            self.note_mode(self.mode)
            return record_custom(self, forward, backward, args)
        with pushed(self):
            output, saved = forward(*args)
        return output, saved

    # -- branches and loops
    def branch(self, condition: Any, then: Branch, otherwise: Branch, args: list[Any]) -> list[Any]:
        """Record an If with a block for each function; both run on this trace's values. A condition from outside the trace is decided."""
        if not self.owns(condition):
            with pushed(self):
                return (then if elements_of(condition) else otherwise)(*args)
        node = self.build.node("prim::If", (self.decided(condition),))
        taken = 0 if elements_of(condition) else 1
        arms = []
        for place, function in enumerate((then, otherwise)):
            with undrawn(place != taken):
                arms.append(self.block_of(node, function, args))
        results = []
        for a, b in zip(*arms, strict=True):
            results.append(merged(a, b, lambda a, b: self.joined(node, (a, b), taken), "a branch"))
        return results

    def block_of(self, node: Node, function: Branch, args: Sequence[Any], inputs: Sequence[tuple[Type, Tensor]] = ()) -> list[Any]:
        """Add a block to a node, and record a function in it. Returns the function's results.

        inputs: for a loop, the carried values, which follow the number of the round; the function's first result is the condition.
        """
        block = node.add_block()
        outer, constants, numbers = self.build, dict(self.constants), dict(self.numbers)
        self.build = Builder(self.graph)
        self.build.at_end(block)
        is_loop, mode = node.kind == "prim::Loop", self.noted
        if is_loop:
            block.add_input(self.graph.fresh_id(), INT)
        carried = [Boxed(self, value, block.add_input(self.graph.fresh_id(), type)) for type, value in inputs]
        with pushed(self):
            results = function(*carried, *args)
            self.note_mode(mode)
        first = [self.decided(results[0])] if is_loop else []
        block.set_outputs([*first, *[self.operand(each) for each in tensors_in(results[len(first):])]])
        self.build, self.constants, self.numbers = outer, constants, numbers
        return results

    def decided(self, condition: Any) -> Value:
        """The value of the graph, of type bool, for a condition."""
        if isinstance(condition, bool):
            return self.operand(condition)
        return self.build.node("aten::Bool", (self.operand(condition),), output_types=[BOOL]).output

    def joined(self, node: Node, values: Sequence[Any], taken: int) -> Boxed:
        """Add a result to a node with blocks, of a type common to `values`, one per block; `values[taken]` is its value in this trace."""
        opened = self.opened(list(values))
        output = node.add_output(self.graph.fresh_id(), common_type(*opened))
        return Boxed(self, opened[taken], output)

    def anywhere(self, condition: Any) -> bool | None:
        """As the layer below; None for a condition of the trace, which stays undecided."""
        return None if self.owns(condition) else self.below.anywhere(condition)

    def repeat(self, limit: int | None, condition: Any, body: Branch, args: list[Any], count: int) -> list[Any]:
        """Record a Loop. Raises UnsupportedError for a carried value that changes and is no tensor."""
        final = self.below.repeat(self.rounds(limit), self.opened(condition), body, self.opened(args), count)
        return self.loop(limit, condition, body, args, final)

    def rounds(self, limit: int | None) -> int | None:
        """How many rounds of a loop run while it is recorded."""
        return limit if not self.has_stand_ins else 1 if limit is None else min(limit, 1)

    def keep(self, limit: int | None, condition: Any, body: Branch, args: list[Any], count: int) -> tuple[list[Any], Any]:
        """As `repeat`, with a history: each round first appends its carried values to lists."""
        final, below = self.below.keep(self.rounds(limit), self.opened(condition), body, self.opened(args), count)
        lists = [self.build.construct_list((), tensor_type()) if isinstance(arg, Tensor) else None for arg in args[:count]]

        def noted(*values: Any) -> list[Any]:
            for whole, value in zip(lists, values, strict=False):
                if whole is not None:
                    self.build.node("aten::append", (whole, self.operand(value)), output_types=[whole.type])
            return body(*values)
        results = self.loop(limit, condition, noted, args, final)
        begun = self.opened(args[:count])
        return results, History(self, (below, lists, begun, [common_type(*each) for each in zip(begun, final, strict=True)]))

    def loop(self, limit: int | Value | None, condition: Any, body: Branch, args: list[Any], final: list[Any]) -> list[Any]:
        """Record a Loop that carries the first len(final) of `args`; returns its results. final: their values after this run's loop."""
        count = len(final)
        moving = [place for place in range(count) if isinstance(args[place], Tensor)]
        opened = self.opened(args)
        first = limit if isinstance(limit, Value) else self.operand(2**63 - 1 if limit is None else limit)
        node = self.build.node("prim::Loop", (first, self.decided(condition), *[self.operand(args[place]) for place in moving]))

        def round(*values: Any) -> list[Any]:
            operands = list(args)
            for place, value in zip(moving, values, strict=False):
                operands[place] = value
            after, *results = body(*operands)
            for place in range(count):
                if place not in moving and results[place] != args[place]:
                    raise UnsupportedError(f"a traced loop carries {type(args[place]).__name__}, which is no tensor, and changes it",
                                           code="E0504")
            return [after if after is True else truth(after, self.apply), *[results[place] for place in moving]]

        with undrawn():         # this run's loop has drawn its random numbers
            self.block_of(node, round, (), [(common_type(opened[place], final[place]), opened[place]) for place in moving])
        results = list(args[:count])
        for place in moving:
            results[place] = self.joined(node, (opened[place], final[place]), 1)
        return results

    def unwind(self, history: Any, step: Branch, state: list[Any], args: list[Any]) -> list[Any]:
        """Record a Loop over the lists of the history, the last round first."""
        if history.layer is not self:
            raise DispatchError(f"a loop of {history.layer} is gone back through in a trace that it is none of")
        below, lists_by_place, samples, types = history.record
        final = self.below.unwind(below, step, self.opened(state), self.opened(args))
        lists = [whole for whole in lists_by_place if whole is not None]
        rounds = self.build.node("aten::len", (lists[0],), output_types=[INT]).output
        last = self.build.call("aten::sub", rounds, 1, type=INT)

        def round(*values: Any) -> list[Any]:
            counter = self.build.block.inputs[0]
            place = self.build.call("aten::sub", last, counter, type=INT)
            carried = [sample if whole is None else
                       Boxed(self, sample, self.build.node("aten::__getitem__", (whole, place), output_types=[type]).output)
                       for whole, sample, type in zip(lists_by_place, samples, types, strict=True)]
            return [True, *step(*carried, *values)]
        results: list[Any] = self.loop(rounds, True, round, [*state, *args], final)
        return results

    def record(self, name: str, args: list[Any], result: Any) -> Any:
        """Record a node; returns its results in boxes."""
        self.note_mode(self.mode)
        schema = overload(name).schema
        operands = [self.operand(arg, argument) for arg, argument in zip(args, schema.arguments, strict=True)]
        if is_write(name):      # others write into statistics or noise, beside their results
            return self.record_write(schema, operands, args, result)
        outputs = result if len(schema.returns) > 1 else (result,)
        node = self.build.node(schema.kind, operands, output_types=[type_of(each, returned.type)
                                                                    for each, returned in zip(outputs, schema.returns, strict=True)])
        traced: Any = args[0] if args else None
        if self.owns(traced) and traced.known.node.owner_block is self.build.block and is_operand(self, name, traced, result):
            traced.known = node.output       # for other dtypes the result may be a new tensor
            return traced
        boxed = [self.boxed(value, each) for value, each in zip(node.outputs, outputs, strict=True)]
        if isinstance(traced, list) and len(boxed) == 1:
            boxed[0] = self.with_operands(name, args, result, boxed[0])
        return tuple(boxed) if len(schema.returns) > 1 else boxed[0]

    def with_operands(self, name: str, args: list[Any], result: Any, boxed: Any) -> Any:
        """The results in boxes; a tensor of the operand's list that is a result itself is the node's from now on: for other sizes the
        result may be a view."""
        results = with_operands(self, name, args, result, boxed)
        for place, (each, box) in enumerate(zip(results, boxed, strict=True) if results is not boxed else ()):
            if each is not box and self.owns(each) and each.known.node.owner_block is self.build.block:
                each.known = box.known
            elif each is not box:
                results[place] = box
        return results

    def record_write(self, schema: Any, operands: list[Value], args: list[Any], result: Any) -> Any:
        """Record an operator that writes into its first operand, whose value is the node's result from then on."""
        node = self.build.node(schema.kind, operands, output_types=[type_of(result, schema.returns[0].type)] if schema.returns else [])
        if self.owns(args[0]) and isinstance(result, Tensor):
            args[0].known = node.outputs[0]
            return args[0]
        return self.boxed(node.outputs[0], result)

    def boxed(self, value: Value, result: Any) -> Any:
        """A result of a node in a box; a list of tensors is unpacked by a node."""
        if isinstance(result, Tensor):
            return Boxed(self, result, value)
        if isinstance(result, list) and result and all(isinstance(each, Tensor) for each in result):
            node = self.build.node("prim::ListUnpack", (value,), output_types=[type_of(each) for each in result])
            return [Boxed(self, each, output) for each, output in zip(result, node.outputs, strict=True)]
        return result

    def operand(self, value: Any, argument: Argument | None = None) -> Value:
        """The value of the graph for an argument: that of a traced tensor, else a constant."""
        if self.owns(value):
            traced: Value = value.known
            return traced
        if value.__class__ is Dtype or value.__class__ is Place:
            value = int(value) if isinstance(value, int) else str(value)
        if isinstance(value, np.generic) and argument is not None and not isinstance(argument.type, TensorType):
            value = value.item()
        if isinstance(value, np.ndarray | np.generic):
            value = Tensor(value)
        if isinstance(value, Tensor):
            return self.constant(value)
        if isinstance(value, list | tuple) and any(isinstance(each, Tensor) for each in value):
            declared = argument.type if argument is not None else None
            element = declared.element if isinstance(declared, ListType) else tensor_type()
            return self.build.construct_list([self.operand(each) for each in value], element)
        declared = argument.type if argument is not None else None
        if isinstance(declared, OptionalType) and value is not None:
            declared = declared.element
        if isinstance(declared, ListType) and not isinstance(value, list | tuple):
            declared = None     # a number in place of a list
        if isinstance(declared, ListType) and has_variables(declared):
            declared = type_of_data(value)      # a constant of type `t[]` has no source
        if isinstance(declared, ListType) and not value:
            return self.build.construct_list([], declared.element)
        if value is None or declared is not None and (declared.key in ("Scalar", "Any") or isinstance(declared, TensorType)):
            declared = None
        value = plain_constant(value)       # whose text says what it is
        key = (value.__class__, repr(value), declared)
        if key not in self.numbers:
            self.numbers[key] = self.build.constant(list(value) if isinstance(value, tuple) else value, declared)
        return self.numbers[key]

    def constant(self, tensor: Tensor) -> Value:
        """A constant with the elements of a tensor from outside. Raises DispatchError for a tensor of another trace or transformation."""
        if isinstance(tensor, Boxed):
            raise DispatchError(f"a value of another trace ({tensor.layer}) is used in this one" if isinstance(tensor.layer, Tracer) else
                                f"incompatible dispatcher trees: a tensor of {tensor.layer} is used in a trace below it")
        entry = self.constants.get(id(tensor))
        if entry is None:
            array = np.array(tensor.array)
            literal = TensorLiteral("<Tensor>", array.dtype.name, array.shape, array)
            node = self.build.node("prim::Constant", (), {"value": Attribute(literal.text, literal)}, [type_of(tensor)])
            entry = self.constants[id(tensor)] = (tensor, node.output)
        return entry[1]

    def finish(self, results: Sequence[Any]) -> Graph:
        """The graph, with its outputs; recording ends."""
        self.graph.block.set_outputs([self.operand(each) for each in results])
        self.is_alive = False
        remove_dead_nodes(self.graph)
        return self.graph


@contextmanager
def undrawn(is_undone: bool = True) -> Iterator[None]:
    """A context after which random numbers go on as if none had been drawn in it, if `is_undone`: what is recorded only draws none."""
    bits = generator().bit_generator
    state = bits.state
    yield
    if is_undone:
        bits.state = state


def written_statistics(name: str, args: list[Any]) -> list[tuple[str, Tensor]]:
    """The running statistics that an operator writes into though its schema does not say so, after the names of these arguments."""
    schema = overload(name).schema
    if schema.kind not in STATISTICS:
        return []
    values = dict(zip([argument.name for argument in schema.arguments], args, strict=True))
    found = [(each, values[each]) for each in ("running_mean", "running_var") if isinstance(values[each], Tensor)]
    return found if values[STATISTICS[schema.kind]] else []


def type_of(value: Any, declared: Type | None = None) -> Type:
    """The complete type of a tensor; for any other value the declared type."""
    if isinstance(value, Tensor):
        array = elements_of(value)
        shape = tuple(value.shape)
        strides = element_strides(array) if shape == array.shape else None
        return tensor_type(array.dtype.name, shape, strides, False, "cpu")
    if declared is None:
        raise RunError(f"a {type(value).__name__} is no result of a trace")
    return declared


def common_type(*values: Any) -> Type:
    """The complete type of tensors if all have the same, else Tensor."""
    types = {type_of(each).text: type_of(each) for each in values} if isinstance(values[0], Tensor) else {}
    return next(iter(types.values())) if len(types) == 1 else tensor_type()


def trace(function: Callable[..., Any], args: Sequence[Any], names: Sequence[str] = ()) -> Graph:
    """The graph of the operations that a function runs on its arguments, with types of dtype, sizes, strides and device.

    Arrays and tensors among the arguments, in lists, tuples and dicts too, are inputs, called `names`; all other arguments are constants.
    Outputs are the tensors in the result, in order. Raises RunError for a function that returns no tensor, and for equal names.
    """
    from irtool.dispatch.callables import as_function
    from irtool.dispatch.transforms import tensors

    function = as_function("trace", function)
    check_list("trace", "arguments", args, "one per parameter of the function")
    check_list("trace", "names", names, "one per tensor among the arguments, '' for none")
    leaves, shape = flatten([tensors(arg) for arg in args])
    check_names(leaves, names)
    return record(function, leaves, shape, names)[0]


def check_names(leaves: Sequence[Any], names: Sequence[str]) -> None:
    """Raises RunError for names that the grammar does not allow, that are equal, or that are more than there are values."""
    for name in names:
        if not isinstance(name, str) or name and not INPUT_NAME.fullmatch(name):
            raise RunError(f"trace: {str(name)[:40]!r} is no name of an input; expected letters, digits, '_' and '.'")
    if len(set(filter(None, names))) != len(list(filter(None, names))):
        raise RunError(f"trace: names are {list(names)}, expected different ones")
    if len(names) > len(leaves):
        raise RunError(f"trace: {len(names)} names for {len(leaves)} values among the arguments: {', '.join(names[len(leaves):])} too many")


def record(function: Callable[..., Any], leaves: Sequence[Any], shape: Any, names: Sequence[str] = (),
           where: str = "trace", stand_ins: bool = False) -> tuple[Graph, Any]:
    """As `trace`, for arguments flattened into `leaves` and `shape`, of which tensors are inputs. Also returns the shape of the result.

    stand_ins: tensors have the right dtypes and sizes, but no elements that mean anything.
    """
    layer = Tracer(current())
    layer.has_stand_ins = stand_ins
    # the function may write into a tensor
    copies = [Tensor(leaf.array.copy("K")) if type(leaf) is Tensor else leaf for leaf in leaves]
    places = [place for place, leaf in enumerate(copies) if isinstance(leaf, Tensor)]
    operands = list(copies)
    boxes = layer.added_inputs([copies[place] for place in places], [names[place] if place < len(names) else "" for place in places])
    for place, box in zip(places, boxes, strict=True):
        operands[place] = box
    with pushed(layer):
        result = called(where, function, unflatten(shape, operands))
    results, result_shape = flatten(result)
    wrong = [each for each in results if not isinstance(each, Tensor)]
    if wrong or not results:
        raise RunError(f"{where}: the function must give tensors, it gave {type(wrong[0] if wrong else result).__name__}")
    return layer.finish(results), result_shape
