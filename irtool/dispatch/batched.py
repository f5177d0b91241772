"""The layer of `vmap`: it hides one dimension, and runs each operation for all places of that dimension at once.

A box says which dimension of the tensor below is hidden. A tensor without a box is the same for all places, and is expanded only if
necessary. The batching rule of an operator (`irtool.ops.batching`) computes it by operations on the layer below.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irtool.dispatch.control_flow import either, truth
from irtool.dispatch.first_place import check_first_place, refuse_as_at_first_place, refuse_what_is_taken_alone
from irtool.dispatch.layer_writes import do_write, is_inside, remember, reshapes, root_of, write
from irtool.dispatch.loop_tapes import History
from irtool.dispatch.stack import Boxed, Branch, DispatchError, Layer, current, elements_of, look_at, pushed
from irtool.dispatch.trees import flatten, unflatten
from irtool.ir.effects import facts_of
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.batch import Batch
from irtool.ops.call import overload
from irtool.ops.nested_tensors import map_tensors, tensors_in
from irtool.ops.tensor import Tensor
from irtool.ops.tensor_facts import Size

NOTHING: Mapping[int, Any] = {}
RANDOMNESS = ("error", "same", "different")


def draws(name: str, args: Sequence[Any]) -> bool:
    """Does an operator draw random numbers, with these arguments? Dropout does only in training, and with a probability that is not 0."""
    if not facts_of(name.partition(".")[0]).is_random:
        return False
    operands = dict(zip([argument.name for argument in overload(name).schema.arguments], args, strict=False))
    if operands.get("train") is False or operands.get("training") is False:
        return False
    return not any(operands.get(key) == 0 for key in ("dropout", "dropout_p") if isinstance(operands.get(key), int | float)) \
        and not ("dropout" in name and isinstance(operands.get("p"), int | float) and operands["p"] == 0)


class Batched(Layer):
    """Hides a dimension of extent `length`. randomness: random operators raise (`error`), or draw the `same` numbers for all places, or
    `different` ones."""

    hides_elements = True

    def __init__(self, inner: Layer, length: int, name: str = "", randomness: str = "error") -> None:
        super().__init__(inner, name)
        if randomness not in RANDOMNESS:
            raise RunError(f"randomness is '{randomness}', expected one of {', '.join(RANDOMNESS)}")
        self.length = length
        self.randomness = randomness

    def box(self, value: Any, dim: int = 0) -> Boxed:
        """A tensor of the layer below with its dimension `dim` hidden. Raises RunError if the dimension has another extent."""
        shape = value.shape
        if not -len(shape) <= dim < len(shape):
            raise RunError(f"there is no dimension {dim} to hide in a tensor of shape {shape}")
        if shape[dim] != self.length:
            raise RunError(f"the dimension to hide has extent {shape[dim]}, expected {self.length}")
        return Boxed(self, value, dim % len(shape))

    def shape(self, tensor: Boxed) -> list[int]:
        """The sizes without the hidden dimension."""
        sizes = Size(tensor.value.shape)
        del sizes[tensor.known]
        return sizes

    def variable_of(self, tensor: Boxed) -> Any:
        """None: as in torch, a batch does not say what the layers below it record."""

    def ndim(self, tensor: Boxed) -> int:
        """The number of dimensions without the hidden one."""
        return tensor.value.ndim - 1

    def apply(self, name: str, args: list[Any]) -> Any:
        """Run the operation for all places at once. Raises UnsupportedError, with the reason, for an operator without a batching rule."""
        facts = self.facts(name)
        if facts.is_pointwise and not facts.is_random:
            try:
                result = self.element_by_element(name, args)
            except RunError:
                self.refuse_numbers(name, args)
                raise
            if result is not None:
                return result
        is_batched = facts.is_random and self.must_differ(name, args) or any(map(self.owns, tensors_in(args)))
        if not is_batched:
            if reshapes(self, name, args):
                return do_write(self, name, facts.plain, args)
            result = self.below.apply(name, args)
            return remember(self, name, args, result) if facts.is_view else result
        if facts.plain is not None:
            self.check_target(args[0], name)
            return do_write(self, name, facts.plain, args)
        try:
            result = self.rules.batch(name)(Batch(self, name), *args)
        except (AttributeError, LookupError, TypeError, ValueError) as error:       # rules check neither ranks nor types
            refuse_as_at_first_place(self, name, args, error)
        except RunError as error:
            self.refuse_numbers(name, args)
            if not (facts.is_random and draws(name, args)):
                refuse_what_is_taken_alone(self, self.length, name, args, error)
            raise
        if self.length and not facts.is_pointwise and name.startswith("aten::") and not (facts.is_random and draws(name, args)):
            check_first_place(self, name, args, result)
        return remember(self, name, args, result) if facts.is_view else result

    def element_by_element(self, name: str, args: Sequence[Any]) -> Any:
        """The result of a pointwise operator on whole batches (B, ...) of one rank and dtype; None if the operands are not like that."""
        values = list(args)
        rank = dtype = None
        for place, arg in enumerate(args):
            if arg.__class__ is Boxed and arg.layer is self and arg.known == 0:
                values[place] = arg = arg.value
                if rank is None:
                    rank, dtype = arg.ndim, arg.dtype
                elif arg.ndim != rank or arg.dtype != dtype:
                    return None
            elif isinstance(arg, Tensor | list | tuple):
                return None
        result = None if rank is None else self.below.apply(name, values)
        return Boxed(self, result, 0) if isinstance(result, Tensor) and result.ndim == rank else None

    def must_differ(self, name: str, args: Sequence[Any]) -> bool:
        """Must a random operator draw different numbers for each place? Raises RunError if `randomness` is "error"."""
        if not draws(name, args):
            return False
        if self.randomness == "error":
            raise RunError(f"{name.partition('.')[0]} draws random numbers inside vmap: say randomness='same' or 'different'")
        return self.randomness == "different"

    def refuse_numbers(self, name: str, args: Sequence[Any]) -> None:
        """Raises UnsupportedError for a batched tensor in place of a number, such as an index that `select` takes."""
        arguments = overload(name).schema.arguments if name.startswith("aten::") else []
        for argument, value in zip(arguments, args, strict=False):
            if "Tensor" not in argument.type_text and self.owns(value):
                raise UnsupportedError(f"{name} under vmap is not supported with a batched tensor as '{argument.name}': it makes a Python "
                                       "number of elements", code="E0504")

    def check_target(self, target: Any, name: str) -> None:
        """Raises DispatchError, in torch's words, for a write of batched values into a tensor from outside that is not batched."""
        if not is_inside(self, root_of(target)):
            kind = name.partition(".")[0]
            raise DispatchError(f"vmap: {kind}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
                                "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not "
                                f"being vmapped over in a vmap. Please try to use out-of-place operators instead of {kind}.")

    def write_into(self, target: Any, result: Any, name: str) -> Any:
        """Store the new value of a tensor that was written into. Raises DispatchError for a tensor from outside that is not batched."""
        self.check_target(target, name)
        return write(self, name, target, result)

    def laid_out(self, tensor: Any, other: Any) -> Any:
        """A tensor of the layer below, with the hidden dimension at the position that it has in `other`."""
        whole = self.whole(tensor)
        return whole if other.known == 0 else self.below.call("aten::movedim", (whole, 0, other.known), {})

    def custom_vjp(self, forward: Callable[..., Any], backward: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """As the layer below, with both functions converted to functions of whole batches."""
        if not any(self.owns(value) for value in tensors_in(list(args))):
            return self.below.custom_vjp(forward, backward, args)
        fronts = [map_tensors(self.whole, arg) for arg in args]
        output, saved = self.below.custom_vjp(self.for_batches(forward), self.for_batches(backward), fronts)
        boxed = self.boxed(output)
        known = zip(tensors_in([output, fronts]), tensors_in([boxed, list(args)]), strict=True)     # operands win over equal results
        return boxed, self.boxed(saved, {id(below): box for below, box in known})

    # -- branches and loops
    def branch(self, condition: Any, then: Branch, otherwise: Branch, args: list[Any]) -> list[Any]:
        """If the condition is batched, both functions run, and each place takes the results of the one that its condition chooses."""
        if not self.owns(condition):
            dims = self.dims_of(args)
            results = self.below.branch(condition, self.batchwise(then, dims), self.batchwise(otherwise, dims), self.opened(args))
            return [self.boxed(each) for each in results]
        with pushed(self):
            return either(self, condition, then(*args), otherwise(*args))

    def repeat(self, limit: int | None, condition: Any, body: Branch, args: list[Any], count: int) -> list[Any]:
        """Run rounds while the condition holds at any place; a place where it does not hold keeps its values."""
        condition, below, opened = self.in_rounds(condition, body, args, count)
        return [self.boxed(each) for each in self.below.repeat(limit, condition, below, opened, count + 1)[1:]]

    def keep(self, limit: int | None, condition: Any, body: Branch, args: list[Any], count: int) -> tuple[list[Any], Any]:
        """As `repeat`, with a history. The loop on the layer below carries the condition as its first value."""
        condition, below, opened = self.in_rounds(condition, body, args, count)
        finals, history = self.below.keep(limit, condition, below, opened, count + 1)
        return [self.boxed(each) for each in finals[1:]], History(self, history)

    def unwind(self, history: Any, step: Branch, state: list[Any], args: list[Any]) -> list[Any]:
        """A place where the condition did not hold keeps its state in that round. A history of a layer below holds for all places."""
        is_own = history.layer is self

        def rounds(*values: Any) -> list[Any]:
            carried, rest = values[:len(values) - len(state) - len(args)], values[len(values) - len(state) - len(args):]
            stepped = step(*carried[is_own:], *rest)
            return either(current(), carried[0], stepped, rest[:len(state)]) if is_own else stepped

        fronts = [self.front(each) for each in state]
        dims = [*[0] * len(flatten(fronts)[0]), *self.dims_of(args)]
        results = self.below.unwind(history.record if is_own else history, self.batchwise(rounds, dims, 0 if is_own else None),
                                  fronts, self.opened(args))
        return [self.boxed(each) for each in results]

    def anywhere(self, condition: Any) -> bool | None:
        """Does the condition hold at any place?"""
        return self.below.anywhere(self.below.call("aten::any", (condition.value,), {}) if self.owns(condition) else condition)

    def in_rounds(self, condition: Any, body: Branch, args: list[Any], count: int) -> tuple[Any, Branch, list[Any]]:
        """A loop's condition, body and arguments for the layer below, where the first carried value is the condition of each place."""
        def rounds(condition: Any, *args: Any) -> list[Any]:
            layer = current()
            after, *results = body(*args)
            results = either(layer, condition, results, list(args[:count]))
            return [layer.call("aten::logical_and", (condition, truth(after, layer.apply)), {}), *results]

        def below(*values: Any) -> list[Any]:
            results = inner(*values)
            return [current().call("aten::any", (results[0],), {}), *results]

        whole_args = [self.boxed(self.whole(condition)), *[self.boxed(self.front(arg)) for arg in args[:count]], *args[count:]]
        inner = self.batchwise(rounds, self.dims_of(whole_args))
        opened = self.opened(whole_args)
        return self.below.call("aten::any", (opened[0],), {}), below, opened

    def elements(self, value: Any) -> Any:
        """The array at the bottom, only for checks that raise or pass: a trace does not note them as decisions."""
        return elements_of(value)

    def numbers(self, value: Any) -> Any:
        """The elements of a tensor as Python numbers, to decide by: a trace that follows decisions notes the decision."""
        return look_at(value).tolist()

    def front(self, value: Any) -> Any:
        """Tensors, in lists and tuples too, with the hidden dimension first."""
        return map_tensors(self.whole, value)

    def dims_of(self, args: Sequence[Any]) -> list[int | None]:
        """The position of the hidden dimension in each tensor, in lists and tuples too; None for those without one."""
        return [each.known if self.owns(each) else None for each in flatten(list(args))[0]]

    def batchwise(self, function: Branch, dims: Sequence[int | None], more: int | None = None) -> Branch:
        """A function of batched tensors as a function of tensors of the layer below. dims: the position of the hidden dimension in each of
        the last arguments; more: that in all arguments before those."""
        def run(*values: Any) -> list[Any]:
            layer = Batched(current(), self.length, self.name, self.randomness)
            leaves, shape = flatten(list(values))
            places = [*[more if isinstance(each, Tensor) else None for each in leaves[:len(leaves) - len(dims)]], *dims]
            boxed = [each if dim is None else layer.box(each, dim) for each, dim in zip(leaves, places, strict=True)]
            with pushed(layer):
                results = function(*unflatten(shape, boxed))
            return [layer.front(each) for each in results]
        return run

    def for_batches(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of one place as a function of whole batches, which runs on the layer that is on top then."""
        def new_fn(*args: Any) -> Any:
            layer = Batched(current(), self.length, self.name, self.randomness)
            with pushed(layer):
                result = function(*[layer.boxed(arg) for arg in args])
            return map_tensors(layer.whole, result)
        return new_fn

    def boxed(self, value: Any, known: Mapping[int, Any] = NOTHING) -> Any:
        """Box tensors, in lists and tuples too, whose first dimension is the hidden one. known: existing boxes, by id of the tensor."""
        return map_tensors(lambda each: known[id(each)] if id(each) in known else self.box(each), value)

    def whole(self, value: Any) -> Any:
        """A tensor as the layer below sees it, with the hidden dimension first; expanded if it has none."""
        if self.owns(value):
            return value.value if value.known == 0 else self.below.call("aten::movedim", (value.value, value.known, 0), {})
        return self.rules.expanded(value, self.length, self.below.apply)
