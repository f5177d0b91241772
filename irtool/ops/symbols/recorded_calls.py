"""Running a kernel on arrays without elements."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irtool.ir.errors import Error
from irtool.ops import arrays
from irtool.ops.array_library import np
from irtool.ops.symbols.array_layout import Meta
from irtool.ops.symbols.array_symbol import Traced
from irtool.ops.symbols.recorder import Recorder, Step, Untraceable, is_traced


class Namespace:
    """The array namespace that traced kernels see: NumPy, with functions that do not dispatch on their argument replaced."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        setattr(self, name, function)
        return function

    @staticmethod
    def asarray(value: Any, *args: Any, **named: Any) -> Any:
        """np.asarray; a row-major traced array is returned unchanged."""
        if not is_traced(value):
            return np.asarray(value, *args, **named)
        if args and np.dtype(args[0]) != value.dtype or named.keys() - {"order"}:
            raise Untraceable("asarray")
        if named.get("order") == "C" and not value.meta.is_contiguous:
            return value.copy()
        return value

    @staticmethod
    def ascontiguousarray(value: Any, *args: Any, **named: Any) -> Any:
        """np.ascontiguousarray, for an array with at least one dimension."""
        if not is_traced(value):
            return np.ascontiguousarray(value, *args, **named)
        if args or named or not value.ndim:
            raise Untraceable("ascontiguousarray")
        return value if value.meta.is_contiguous else value.copy()


NAMESPACE = Namespace()


class Unseeded:
    """Replaces the random generator while a kernel is traced, since random numbers must be drawn in each run."""

    def __getattr__(self, name: str) -> Any:
        raise Untraceable("draws random numbers")


def trace(call: Callable[[list[Any]], Any], operands: Sequence[Any]) -> tuple[Any, list[Step], list[Traced]]:
    """Run `call` on a list of the operands, with a Traced in place of each Meta. Returns its result, the steps, and the Traced in order.

    Raises Untraceable, also if the call fails, since it may fail otherwise with elements.
    """
    recorder = Recorder(Traced)
    traced: list[Traced] = []

    def stand_in(value: Any) -> Any:
        if isinstance(value, Meta):
            traced.append(Traced(recorder, value))
            return traced[-1]
        if type(value) is list:
            return [stand_in(item) for item in value]
        if type(value) is tuple:
            return tuple([stand_in(item) for item in value])
        return value

    values = [stand_in(value) for value in operands]
    token = arrays._random.set(Unseeded())      # type: ignore[arg-type]
    try:
        return call(values), recorder.steps, traced
    except (Error, Exception) as error:
        raise Untraceable(f"{type(error).__name__}: {error}") from None
    finally:
        arrays._random.reset(token)
