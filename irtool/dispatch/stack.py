"""The stack of layers: what a layer is, what a tensor looks like to one, and which layer operations go to.

A tensor that a layer has something to say about is `Boxed`: the tensor of the layer below, the layer, and what the layer knows of it (its
place on a tape, where its batch dimension is). Boxes nest as layers do. A tensor without a box of a layer is a constant to it, so
nothing is ever lifted: each layer takes off its own boxes, asks the layer below, and puts boxes on what it has something to say about.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np

from irtool.ir.errors import RunError
from irtool.ir.python_operators import BINARY, COMPARISONS
from irtool.ops.arrays import dtype_of
from irtool.ops.nested_tensors import map_tensors
from irtool.ops.tensor import Tensor, calling, choose_again, is_kind, next_birth

Branch = Callable[..., list[Any]]
"""A block as a function of the values it reads."""


class DispatchError(RunError):
    """A tensor was used where its layer is not."""

    code = "E0505"


class Boxed(Tensor):
    """A tensor as a layer sees it. value: the same as the layer below sees it; data: what the layer knows of it.

    It has the slots of a tensor, so that one that was made inside of a layer can become the layer's by a write.
    """

    __slots__ = ()
    layer: Layer
    value: Tensor
    data: Any = Tensor.__dict__["known"]

    def __init__(self, layer: Layer, value: Tensor, data: Any = None) -> None:
        self.layer = layer
        self.value = value
        self.data = data
        self.born = next_birth()
        self.links = None

    @property
    def array(self) -> Any:     # type: ignore[override]
        """There are no elements to be had inside a transformation."""
        raise self.refusal("its elements cannot be looked at: take functions of irtool.torch, not NumPy's or Python's")

    def refusal(self, what: str) -> DispatchError:
        """An error that says what cannot be done inside a transformation."""
        return DispatchError(f"a tensor inside {self.layer}: {what}" if self.layer.is_alive else
                             f"value escaped its transform: {self.layer} is over")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        """An operator between an array and a tensor is the tensor's. Raises DispatchError for any other function of NumPy's."""
        operator = OPERATORS.get(ufunc.__name__) if method == "__call__" and not named and len(inputs) == 2 else None
        if operator is None:
            raise self.numpy_refusal(ufunc.__name__)
        first, second = inputs
        return getattr(first, operator[0])(second) if isinstance(first, Tensor) else getattr(second, operator[1])(first)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        """Sizes can be asked for. Raises DispatchError for any other function of NumPy's."""
        if function is np.shape or function is np.ndim:
            return tuple(self.shape) if function is np.shape else self.ndim
        raise self.numpy_refusal(function.__name__)

    def numpy_refusal(self, name: str) -> DispatchError:
        """The error that says which of torch's functions to take."""
        other = NUMPY_NAMES.get(name, name)
        known = is_kind(f"aten::{other}")
        return self.refusal(f"np.{name} takes arrays; use {f'irtool.torch.{other}' if known else 'functions of irtool.torch'}")

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raises DispatchError: what a layer knows of a tensor is of one call."""
        raise self.refusal("it cannot be copied or pickled; use x.clone()")

    @property
    def dtype(self) -> int:
        """torch's number of the dtype."""
        return self.value.dtype

    @property
    def shape(self) -> list[int]:
        """The sizes the layer shows."""
        return self.layer.shape(self)

    @property
    def ndim(self) -> int:
        """Number of dimensions the layer shows."""
        return self.layer.ndim(self)

    def __len__(self) -> int:
        return self.shape[0]

    def tolist(self) -> Any:
        """The elements as numbers, in lists: those that the layer gives for each."""
        return [each.tolist() for each in self] if self.ndim else self.item()

    def __repr__(self) -> str:
        return f"Tensor({self.shape}, {self.layer})"


OPERATORS = {each.ufunc: (each.method, f"__{each.swapped}__") for each in BINARY + COMPARISONS if hasattr(Tensor, f"__{each.swapped}__")}
"""What NumPy calls what an operator does, to the methods of what stands on its left and on its right."""
NUMPY_NAMES = {"concatenate": "cat", "power": "pow", "absolute": "abs", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
               "arctan2": "atan2", "fabs": "abs", "rint": "round", "expand_dims": "unsqueeze", "split": "tensor_split", "negative": "neg"}
"""NumPy's names of what torch calls otherwise."""


class Layer:
    """One layer. `apply` does an operation; the others have sensible defaults."""

    hides_elements = False
    """Is a tensor in its boxes one that nobody can decide by?"""
    follows = False
    """Does it note what is decided by, to ask it again (`irtool.jit`)?"""

    def __init__(self, inner: Layer | None, name: str = "", rules: Any = None) -> None:
        self.inner = inner
        self.name = name or type(self).__name__
        self.is_alive = True
        self.start = next_birth()       # handles with larger numbers are made inside
        self._rules = rules

    @property
    def rules(self) -> Any:
        """What is known of the operators: the table it was given, else that of the layer below, at the bottom the library's."""
        if self._rules is None:
            if self.inner is not None:
                self._rules = self.inner.rules
            else:
                from irtool.dispatch.operator_rules import LIBRARY

                self._rules = LIBRARY
        return self._rules

    @property
    def below(self) -> Layer:
        """The layer below. The backend has none."""
        assert self.inner is not None
        return self.inner

    def apply(self, name: str, args: list[Any]) -> Any:
        """Do the operation `aten::add.Tensor` on one value per argument of its schema; give its result, a tuple for several."""
        raise NotImplementedError

    def custom_vjp(self, forward: Callable[..., Any], backward: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """Run `forward(*args)`, which gives (output, saved), on this layer, with `backward(grad, saved)` for its gradients."""
        raise NotImplementedError

    def branch(self, condition: Any, then: Branch, otherwise: Branch, args: list[Any]) -> list[Any]:
        """What one of two functions of `args` gives, chosen by a 0-d bool tensor that may be undecided. They run on this layer."""
        return self.below.branch(condition, self.over(then), self.over(otherwise), args)

    def repeat(self, limit: int | None, condition: Any, body: Branch, args: list[Any], count: int) -> list[Any]:
        """The first `count` of `args` after rounds of `body(*args)`, which gives (condition, those `count`), while the condition holds."""
        return self.below.repeat(limit, condition, self.over(body), args, count)

    def anywhere(self, condition: Any) -> bool | None:
        """Does a condition, a 0-d bool tensor, hold at any place of a batch? None where nobody can say."""
        return self.below.anywhere(self.opened(condition))

    def keep(self, limit: int | None, condition: Any, body: Branch, args: list[Any], count: int) -> tuple[list[Any], Any]:
        """What `repeat` gives, and a History of its rounds (`irtool.dispatch.loop_tapes`)."""
        return self.below.keep(limit, condition, self.over(body), args, count)

    def unwind(self, history: Any, step: Branch, state: list[Any], args: list[Any]) -> list[Any]:
        """`state = step(*carried, *state, *args)` for each round of a History, the last one first; gives the state at the end."""
        return self.below.unwind(history, self.over(step), state, args)

    def over(self, function: Branch) -> Branch:
        """A function that runs on a layer such as this one, above whatever is on top then."""
        def run(*args: Any) -> list[Any]:
            with pushed(self.again(current())):
                return function(*args)
        return run

    def again(self, inner: Layer) -> Layer:
        """A layer such as this one above another."""
        raise NotImplementedError

    def shape(self, tensor: Boxed) -> list[int]:
        """The sizes of one of its tensors."""
        return tensor.value.shape

    def ndim(self, tensor: Boxed) -> int:
        """The number of dimensions of one of its tensors."""
        return tensor.value.ndim

    def look(self, tensor: Boxed) -> Any:
        """The elements of one of its tensors, for a decision that holds for what the layer does with them."""
        return look_at(tensor.value)

    def silent_tapes(self, is_detached: bool) -> list[Any]:
        """The tapes, from this layer down, that writes tell nothing of. is_detached: they go through a detached tensor."""
        return [] if self.inner is None else self.inner.silent_tapes(is_detached)

    def laid_out(self, tensor: Tensor, other: Boxed) -> Any:
        """A tensor as the layer below sees it, in the layout that another has there."""
        return self.opened(tensor)

    def adopted(self, tensor: Tensor) -> Boxed:
        """A tensor that was made inside of the layer, and by which it knows nothing, in one of its boxes."""
        raise NotImplementedError

    def owns(self, value: Any) -> bool:
        """Is it a tensor in one of the layer's boxes?"""
        return isinstance(value, Boxed) and value.layer is self

    def opened(self, value: Any) -> Any:
        """A value without this layer's boxes, through lists and tuples."""
        return map_tensors(lambda each: each.value if self.owns(each) else each, value)

    def contains(self, layer: Layer) -> bool:
        """Is a layer this one, or below it?"""
        candidate: Layer | None = self
        while candidate is not None and candidate is not layer:
            candidate = candidate.inner
        return candidate is not None

    def call(self, kind: str, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Do `aten::add`, whose overload is still to be chosen."""
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
    """The layer on top of the stack; a backend when there is none."""
    layer = _top.get()
    return _backend() if layer is None else layer


@cache
def _backend() -> Layer:
    from irtool.dispatch.backend import BACKEND

    return BACKEND


@contextmanager
def pushed(layer: Layer) -> Iterator[Any]:
    """Within the block, operations on tensors go to `layer`."""
    token = _top.set(layer)
    try:
        with calling(layer.call), np.errstate(all="ignore"):
            yield layer
    finally:
        _top.reset(token)


def is_floating(value: Any) -> bool:
    """Is it a tensor that can have a gradient?"""
    return isinstance(value, Tensor) and dtype_of(value.dtype).kind in "fc"


def stand_in(value: Any) -> Any:
    """What the choice of an overload looks at: an array for a tensor, 0-d or not."""
    if isinstance(value, Tensor):
        return _NUMBER if value.ndim == 0 else _ARRAY
    if isinstance(value, list | tuple):
        return type(value)([stand_in(each) for each in value])
    return value


_NUMBER, _ARRAY = np.zeros(()), np.zeros(1)


def choose_overload(kind: str, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The overload that takes the operands, and one value per argument."""
    return choose_again(kind, args, named, stand_in)


def elements_of(value: Any) -> Any:
    """The arrays at the bottom of tensors, whatever layers they are in; nothing may be done with them but look."""
    while isinstance(value, Boxed):
        value = value.value
    return value.array if isinstance(value, Tensor) else value


def look_at(value: Any) -> Any:
    """The array at the bottom of a tensor, to decide by: a trace that follows decisions notes it."""
    return value.layer.look(value) if isinstance(value, Boxed) else value.array if isinstance(value, Tensor) else value
