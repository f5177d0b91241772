"""The bottom layer of every stack: it runs operations on arrays."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from irtool.dispatch.loop_tapes import History
from irtool.dispatch.stack import Boxed, Branch, DispatchError, Layer, pushed
from irtool.ops.array_library import np
from irtool.ops.nested_tensors import tensors_in
from irtool.ops.quick import run_quickly
from irtool.ops.tensor import Tensor, next_birth, run_chosen

_mode: ContextVar[bool] = ContextVar("irtool_gradients_are_on", default=True)


class Backend(Layer):
    """Runs operations on NumPy arrays."""

    def __init__(self, name: str = "", rules: Any = None) -> None:
        super().__init__(None, name, rules)
        self.is_quick = rules is None or rules.is_library

    @property
    def mode(self) -> bool:
        """Are gradients on outside of all transformations? Nothing is recorded there, but a function can ask."""
        return _mode.get()

    @mode.setter
    def mode(self, is_on: bool) -> None:
        if is_on != _mode.get():
            _mode.set(is_on)

    def call(self, kind: str, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Run an operator by its kind, by its shortcut if it has one."""
        if self.is_quick:
            result = None if named else run_quickly(kind, args)
            if result is not None:
                result.born = next_birth()
                return result
            if not any([isinstance(value, Boxed) for value in args]):
                return numbered(run_chosen(kind, args, named), (*args, *named.values()) if named else args)
        return super().call(kind, args, named)

    def apply(self, name: str, args: list[Any]) -> Any:
        """Run the kernel. Raises DispatchError for a tensor of a layer that is not on this stack."""
        if self.is_quick:
            with np.errstate(all="ignore"):
                result = run_quickly(name, args, is_chosen=True)
            if result is not None:
                result.born = next_birth()
                return result
        for value in tensors_in(args):
            if isinstance(value, Boxed):
                raise DispatchError(NOT_HERE.format(value.layer) if value.layer.is_alive else
                                    f"value escaped its transform: {value.layer} is over")
        return numbered(self.rules.run(name, args), args)

    def branch(self, condition: Any, then: Branch, otherwise: Branch, args: list[Any]) -> list[Any]:
        """Run the function that the condition chooses."""
        with pushed(self):
            return (then if condition.array else otherwise)(*args)

    def repeat(self, limit: int | None, condition: Any, body: Branch, args: list[Any], count: int) -> list[Any]:
        """Run the loop."""
        carried, done = args[:count], 0
        with pushed(self):
            while condition.array if isinstance(condition, Tensor) else condition:
                if limit is not None and done >= limit:
                    break
                condition, *carried = body(*carried, *args[count:])
                done += 1
        return carried

    def anywhere(self, condition: Any) -> bool | None:
        """The condition as a bool."""
        return bool(condition.array)

    def keep(self, limit: int | None, condition: Any, body: Branch, args: list[Any], count: int) -> tuple[list[Any], Any]:
        """Run the loop, and record the carried values at the start of each round."""
        starts: list[list[Any]] = []

        def noted(*values: Any) -> list[Any]:
            starts.append(list(values[:count]))
            return body(*values)
        return self.repeat(limit, condition, noted, args, count), History(self, starts)

    def unwind(self, history: Any, step: Branch, state: list[Any], args: list[Any]) -> list[Any]:
        """Run `step` for each recorded round, the last one first."""
        with pushed(self):
            for carried in reversed(history.record):
                state = step(*carried, *state, *args)
        return state

    def custom_vjp(self, forward: Callable[..., Any], backward: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """Run `forward`; no layer differentiates here."""
        with pushed(self):
            output, saved = forward(*args)
        return output, saved


def numbered(result: Any, args: Sequence[Any]) -> Any:
    """The results of an operation, numbered as new handles, except operands that are returned: written into, given as `out`, or those of a
    list that stay what they are."""
    for each in tensors_in(result if isinstance(result, list | tuple) else (result,)):
        if not any([each is arg or isinstance(arg, list | tuple) and any([each is item for item in arg]) for arg in args]):
            each.born = next_birth()
    return result


NOT_HERE = ("incompatible dispatcher trees: a tensor of {} is used where that layer is not; if a function of cond, while_loop, scan, map "
            "or custom_vjp reads it from a global variable, give it as an argument")

BACKEND = Backend()
"""The layer that operations go to outside of all transformations."""
