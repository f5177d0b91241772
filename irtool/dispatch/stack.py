"""The stack of layers: the class `Layer`, the class `Boxed` of its tensors, and the layer that operations go to now.

A tensor that a layer handles is in a box of the layer (`Boxed`): the tensor of the layer below, the layer, and the layer's data about it
(its variable on a tape, its batch dimension). Boxes nest as layers do. A tensor without a box of a layer is a constant to that layer. So
each layer opens its boxes, runs operations on the layer below, and boxes the results that it handles.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from typing import Any

from irtool.ir.effects import OF_THE_FIRST, facts_of
from irtool.ir.errors import RunError
from irtool.ir.python_operators import BINARY, COMPARISONS
from irtool.ir.schema import forgets_kinds
from irtool.ir.types import OptionalType
from irtool.ops.array_library import np
from irtool.ops.arrays import dtype_of
from irtool.ops.call import overload
from irtool.ops.nested_tensors import map_tensors
from irtool.ops.tensor import Tensor, calling, choose_again, is_kind, next_birth

Branch = Callable[..., list[Any]]
"""A block as a function of the values it reads."""

NUMBERS = bool, int, float, complex
"""Classes of numbers that may stand for a tensor, as `{2}` does in texts of 2018."""


class DispatchError(RunError):
    """A tensor was used where its layer is not on the stack."""

    code = "E0505"


class Boxed(Tensor):
    """A tensor as a layer sees it. value: the tensor as the layer below sees it; known: the layer's data about it.

    It has the slots of `Tensor`, so that a write can turn a tensor made inside a function into one of the layer's.
    """

    __slots__ = ()
    layer: Layer
    value: Tensor
    known: Any

    def __init__(self, layer: Layer, value: Tensor, known: Any = None) -> None:
        self.layer = layer
        self.value = value
        self.known = known
        self.born = next_birth()
        self.links = None

    @property
    def array(self) -> Any:     # type: ignore[override]
        """Raises DispatchError: inside a transformation a tensor has no array."""
        raise self.refusal("its elements cannot be looked at: take functions of irtool.torch, not NumPy's or Python's")

    def refusal(self, what: str) -> DispatchError:
        """The error that says what is impossible inside a transformation."""
        return DispatchError(f"a tensor inside {self.layer}: {what}" if self.layer.is_alive else
                             f"value escaped its transform: {self.layer} is over")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        """Run Python's operators between an array and a tensor as the tensor's. Raises DispatchError for other functions of NumPy's."""
        operator = OPERATORS.get(ufunc.__name__) if method == "__call__" and not named and len(inputs) == 2 else None
        if operator is None:
            raise self.numpy_refusal(ufunc.__name__)
        first, second = inputs
        return getattr(first, operator[0])(second) if isinstance(first, Tensor) else getattr(second, operator[1])(first)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        """Run NumPy's functions that read sizes. Raises DispatchError for any other."""
        if function is np.shape or function is np.ndim:
            return tuple(self.shape) if function is np.shape else self.ndim
        raise self.numpy_refusal(function.__name__)

    def numpy_refusal(self, name: str) -> DispatchError:
        """The error for a function of NumPy's, which names torch's function to use instead."""
        other = NUMPY_NAMES.get(name, name)
        known = is_kind(f"aten::{other}")
        return self.refusal(f"np.{name} takes arrays; use {f'irtool.torch.{other}' if known else 'functions of irtool.torch'}")

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raises DispatchError: the data of a layer is valid during one call only, and cannot be pickled."""
        raise self.refusal("it cannot be copied or pickled; use x.clone()")

    @property
    def dtype(self) -> int:
        """torch's number for the dtype."""
        return self.value.dtype

    @property
    def shape(self) -> list[int]:
        """The sizes, as the layer shows them."""
        return self.layer.shape(self)

    @property
    def ndim(self) -> int:
        """The number of dimensions, as the layer shows them."""
        return self.layer.ndim(self)

    def tolist(self) -> Any:
        """The elements as numbers, in nested lists, each read through the layer."""
        return [each.tolist() for each in self] if self.ndim else self.item()

    def __repr__(self) -> str:
        return f"Tensor({self.shape}, {self.layer})"


OPERATORS = {each.ufunc: (each.method, f"__{each.swapped}__") for each in BINARY + COMPARISONS if hasattr(Tensor, f"__{each.swapped}__")}
"""ufunc -> the methods of Python's operator for the left and for the right operand."""
NUMPY_NAMES = {"concatenate": "cat", "power": "pow", "absolute": "abs", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
               "arctan2": "atan2", "fabs": "abs", "rint": "round", "expand_dims": "unsqueeze", "split": "tensor_split", "negative": "neg"}
"""NumPy's names of functions -> torch's, where they differ."""


class OperatorFacts:
    """What layers ask a table of rules about one overload, asked once."""

    def __init__(self, rules: Any, name: str) -> None:
        self.rules = rules
        self.name = name
        self.plain: str | None = rules.without_write(name)
        """For an operator that writes into its first operand, the overload that returns a new tensor; None for others."""
        self.only_writes: bool = rules.only_writes(name)
        self.is_view: bool = rules.is_view(name)
        self.of_the_first: bool = name.partition(".")[0] in OF_THE_FIRST
        self.is_random = facts_of(name.partition(".")[0]).is_random

    @cached_property
    def numbers(self) -> dict[int, str]:
        """The arguments that are numbers, in whose place a tensor of one element may be given: their names by position."""
        if not self.rules.is_library:
            return {}
        arguments = overload(self.name).schema.arguments
        types = [each.type.element if isinstance(each.type, OptionalType) else each.type for each in arguments]
        return {place: arguments[place].name for place, type in enumerate(types) if type.key in ("Scalar", "float", "complex")}

    @cached_property
    def lacks(self) -> str:
        """The refusal for who asks for the gradient of an operator that has none by declaration; "" for others."""
        return str(self.rules.lacks(self.name)) if self.rules.is_library else ""

    @cached_property
    def takes_out(self) -> bool:
        """Does it write its results to `out=`, whose gradients torch does not compute?"""
        return self.rules.is_library and overload(self.name).mode == "out"

    @cached_property
    def is_pointwise(self) -> bool:
        """Has it the common batching rule of pointwise operators? Asked for batches only: the first question imports all rules."""
        return self.rules.is_library and not self.is_view and self.rules.is_pointwise(self.name)


_facts: dict[tuple[Any, str], OperatorFacts] = forgets_kinds({})


class Layer:
    """One layer. A subclass defines `apply`; the other methods have defaults."""

    is_tape = False
    """Does it record operations for their gradients (`irtool.dispatch.autograd`)?"""
    is_for_tangents = False
    """Is it a tape that `jvp` uses, below a second one?"""
    is_of_tangents = False
    """Is it one of the two tapes that `jvp` uses?"""
    hides_elements = False
    """Are the elements of its tensors hidden, so that Python cannot decide by them?"""
    follows = False
    """Does it note decisions, to compare them in later runs (`irtool.jit`)?"""
    begins_with_gradients = False
    """Are gradients on in the function that it runs, where they are off around it, too?"""
    mode = was_on = True
    """Are gradients on now, and were they when the layer was made?"""

    def __init__(self, inner: Layer | None, name: str = "", rules: Any = None) -> None:
        self.inner = inner
        self.name = name or type(self).__name__
        self.is_alive = True
        self.start = next_birth()       # tensors with larger numbers are made inside
        if inner is not None:
            self.was_on = inner.mode
            self.mode = self.was_on or self.begins_with_gradients
        self._rules = rules

    @property
    def rules(self) -> Any:
        """The table of facts about operators: the layer's own, else that of the layer below, at the bottom the library's."""
        if self._rules is None:
            if self.inner is not None:
                self._rules = self.inner.rules
            else:
                from irtool.dispatch.operator_rules import LIBRARY

                self._rules = LIBRARY
        return self._rules

    def facts(self, name: str) -> OperatorFacts:
        """The facts about an overload."""
        place = self.rules, name
        facts = _facts.get(place)
        if facts is None:
            facts = _facts[place] = OperatorFacts(self.rules, name)
        return facts

    def set_mode(self, is_on: bool) -> None:
        """Turn gradients on or off for the operations that come (`irtool.dispatch.gradients_off`)."""
        self.mode = is_on

    @property
    def unrolls(self) -> bool:
        """Does it, or a layer below, write down the rounds of a loop one by one?"""
        return self.inner is not None and self.inner.unrolls

    @property
    def below(self) -> Layer:
        """The layer below. The backend has none."""
        assert self.inner is not None
        return self.inner

    def apply(self, name: str, args: list[Any]) -> Any:
        """Run the operation `aten::add.Tensor` on one value per argument of its schema; returns its result, a tuple of several."""
        raise NotImplementedError

    def custom_vjp(self, forward: Callable[..., Any], backward: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """Run `forward(*args)`, which returns (output, saved), on this layer; its gradient is `backward(grad, saved)`."""
        raise NotImplementedError

    def branch(self, condition: Any, then: Branch, otherwise: Branch, args: list[Any]) -> list[Any]:
        """The results of `then(*args)` or `otherwise(*args)`, chosen by a 0-d bool tensor that may be undecided. They run on this layer."""
        return self.below.branch(condition, self.over(then), self.over(otherwise), args)

    def repeat(self, limit: int | None, condition: Any, body: Branch, args: list[Any], count: int) -> list[Any]:
        """The first `count` of `args`, the carried values, after rounds of `body(*args)`, which returns the condition and the next ones."""
        return self.below.repeat(limit, condition, self.over(body), args, count)

    def anywhere(self, condition: Any) -> bool | None:
        """Does a condition, a 0-d bool tensor, hold at any place of a batch? None: undecided."""
        return self.below.anywhere(self.opened(condition))

    def keep(self, limit: int | None, condition: Any, body: Branch, args: list[Any], count: int) -> tuple[list[Any], Any]:
        """The results of `repeat`, and a History of the rounds (`irtool.dispatch.loop_tapes`)."""
        return self.below.keep(limit, condition, self.over(body), args, count)

    def unwind(self, history: Any, step: Branch, state: list[Any], args: list[Any]) -> list[Any]:
        """`state = step(*carried, *state, *args)` for each round of a History, the last one first; returns the final state."""
        return self.below.unwind(history, self.over(step), state, args)

    def over(self, function: Branch) -> Branch:
        """A function that runs `function` on a copy of this layer, pushed on the layer that is on top then."""
        def run(*args: Any) -> list[Any]:
            with pushed(self.again(current())):
                return function(*args)
        return run

    def again(self, inner: Layer) -> Layer:
        """A copy of this layer above another one."""
        raise NotImplementedError

    def shape(self, tensor: Boxed) -> list[int]:
        """The sizes of one of its tensors."""
        return tensor.value.shape

    def ndim(self, tensor: Boxed) -> int:
        """The number of dimensions of one of its tensors."""
        return tensor.value.ndim

    def look(self, tensor: Boxed) -> Any:
        """The elements of one of its tensors, for a decision."""
        return look_at(tensor.value)

    def variable_of(self, tensor: Boxed) -> Any:
        """What gradients see of one of its tensors: the variable of a tape; None: a constant, as torch has tensors of `jvp` and `vmap`."""
        inside = tensor.value
        return inside.layer.variable_of(inside) if isinstance(inside, Boxed) else None

    def silent_tapes(self, is_detached: bool) -> list[Any]:
        """The tapes, from this layer down, that must not record a write. is_detached: the write is through a detached tensor."""
        return [] if self.inner is None else self.inner.silent_tapes(is_detached)

    def laid_out(self, tensor: Tensor, other: Boxed) -> Any:
        """A tensor as the layer below sees it, in the layout that `other` has there (the same batch dimension)."""
        return self.opened(tensor)

    def renewed(self, before: Boxed, after: Tensor, inside: Tensor) -> Tensor:
        """The new value `after` of `before`, as this layer sees it. inside: as the layer below sees it, in the layout of `before`."""
        return Boxed(self, inside, before.known)

    def adopted(self, tensor: Tensor) -> Boxed:
        """A tensor made inside the function, without a box of the layer, in a box."""
        raise NotImplementedError

    def owns(self, value: Any) -> bool:
        """Is a value a tensor in a box of this layer?"""
        return isinstance(value, Boxed) and value.layer is self

    def opened(self, value: Any) -> Any:
        """A value with this layer's boxes opened, in lists and tuples too."""
        return map_tensors(lambda each: each.value if self.owns(each) else each, value)

    def contains(self, layer: Layer) -> bool:
        """Is a layer this one, or below it?"""
        candidate: Layer | None = self
        while candidate is not None and candidate is not layer:
            candidate = candidate.inner
        return candidate is not None

    def call(self, kind: str, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Run an operation by its kind, `aten::add`: chooses the overload."""
        name, values = self.rules.choose(kind, args, named)
        return self.apply(name, values)

    def __enter__(self) -> Any:
        self._manager = pushed(self)
        return self._manager.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._manager.__exit__(*error)

    def __repr__(self) -> str:
        return self.name


_top: ContextVar[Layer | None] = ContextVar("irtool_layer", default=None)


def current() -> Layer:
    """The layer on top of the stack; a backend if the stack is empty."""
    layer = _top.get()
    return _backend() if layer is None else layer


def layers_from(layer: Layer | None) -> Iterator[Layer]:
    """A layer and those below it."""
    while layer is not None:
        yield layer
        layer = layer.inner


@cache
def _backend() -> Layer:
    from irtool.dispatch.backend import BACKEND

    return BACKEND


@contextmanager
def pushed(layer: Layer) -> Iterator[Any]:
    """A context in which operations on tensors go to `layer`."""
    token = _top.set(layer)
    try:
        with calling(layer.call), np.errstate(all="ignore"):
            yield layer
    finally:
        _top.reset(token)


def is_floating(value: Any) -> bool:
    """Is a value a floating-point or complex tensor?"""
    return isinstance(value, Tensor) and dtype_of(value.dtype).kind in "fc"


def stand_in(value: Any) -> Any:
    """A value by which to choose an overload: for a tensor an array, 0-d if the tensor is."""
    if isinstance(value, Tensor):
        return _NUMBER if value.ndim == 0 else _ARRAY
    if isinstance(value, list | tuple):
        return type(value)([stand_in(each) for each in value])
    return value


_NUMBER, _ARRAY = np.zeros(()), np.zeros(1)


def choose_overload(kind: str, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The name of the overload that accepts the operands, and one value per argument of its schema."""
    return choose_again(kind, args, named, stand_in)


def elements_of(value: Any) -> Any:
    """The arrays at the bottom of tensors below all boxes, only to be read: no layer sees what is done with them."""
    while isinstance(value, Boxed):
        value = value.value
    return value.array if isinstance(value, Tensor) else value


def look_at(value: Any) -> Any:
    """The array at the bottom of a tensor, to decide by: a trace that follows decisions notes the decision."""
    return value.layer.look(value) if isinstance(value, Boxed) else value.array if isinstance(value, Tensor) else value
