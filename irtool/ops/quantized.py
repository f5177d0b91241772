"""Quantized tensors as values: integers, and the numbers that they represent.

    number = (integer - zero_point) * scale

with one scale and zero point for the tensor, or one for each slice along an axis. No kernel takes them but those that say so
(`irtool.ops.kernels.quantized` and its kin; `irtool.ops.on_quantized` for operators of plain tensors): any other operator refuses.
"""
from __future__ import annotations

from typing import Any, NoReturn

from irtool.ir.dtypes import CODES
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.types import Type
from irtool.ops.array_library import np
from irtool.ops.arrays import Array
from irtool.ops.tensor_facts import INTEGERS, Dtype
from irtool.ops.tensor_facts import QUANTIZED as NAMES


def name_of(dtype: int) -> str:
    """The name of a dtype of quantized tensors, by torch's number. Raises RunError for another dtype."""
    if dtype not in NAMES:
        raise RunError(f"expected a dtype of quantized tensors (quint8, qint8, qint32), got dtype number {dtype}", code="E0409")
    return NAMES[dtype]


class Quantized:
    """A quantized tensor.

    ints: an array of uint8, int8 or int32; scale, zero_point: numbers, or with an `axis` arrays, one per slice: float64 and int64, or
    both float32.
    """

    __slots__ = ("ints", "name", "scale", "zero_point", "axis")

    def __init__(self, ints: Array, name: str, scale: Any, zero_point: Any, axis: int | None = None) -> None:
        self.ints = ints
        self.name = name
        self.scale = scale
        self.zero_point = zero_point
        self.axis = axis

    @property
    def dtype(self) -> Dtype:
        """The dtype, as `irtool.torch.quint8`."""
        return Dtype(CODES[self.name])

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.ints.shape
        return shape

    @property
    def ndim(self) -> int:
        return self.ints.ndim

    def int_repr(self) -> Array:
        """The integers, in a new array of uint8, int8 or int32."""
        return self.ints.copy()

    def q_scale(self) -> float:
        """The scale. Raises RunError if each slice has its own."""
        return float(self.whole("q_scale").scale)

    def q_zero_point(self) -> int:
        """The integer that represents 0. Raises RunError if each slice has its own."""
        return int(self.whole("q_zero_point").zero_point)

    def whole(self, what: str) -> Quantized:
        """The tensor itself. Raises RunError if each slice has its own scale."""
        if self.axis is not None:
            raise RunError(f"{what}: expected a tensor quantized per tensor, got one quantized per channel")
        return self

    def sliced(self, what: str) -> Quantized:
        """The tensor itself. Raises RunError if there is one scale for all of it."""
        if self.axis is None:
            raise RunError(f"{what}: expected a tensor quantized per channel, got one quantized per tensor")
        return self

    def along(self, values: Any) -> Any:
        """A scale or zero points; if each slice has its own, with as many dimensions as the tensor."""
        return values if self.axis is None else np.asarray(values).reshape([-1 if k == self.axis else 1 for k in range(self.ndim)])

    def shifted(self) -> Array:
        """The integers minus the zero point, as int64; as float32 if the zero point is a float."""
        is_whole = np.asarray(self.zero_point).dtype.kind != "f"
        shifted: Array = self.ints.astype(np.int64 if is_whole else np.float32) - self.along(self.zero_point)
        return shifted

    def dequantize(self) -> Array:
        """The numbers, as float32 of the same shape."""
        shifted = self.shifted()
        if self.axis is not None:
            shifted = shifted * self.along(self.scale)
        else:
            shifted = shifted.astype(np.float32) * np.float32(self.scale)
        numbers: Array = shifted.astype(np.float32)
        return numbers

    def with_ints(self, ints: Array) -> Quantized:
        """Other integers with the same scale and zero point."""
        return Quantized(ints, self.name, self.scale, self.zero_point, self.axis)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise UnsupportedError("this operator does not take quantized tensors yet: dequantize() gives the numbers", code="E0409")

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "0-d"
        how = f"scale={self.scale}, zero_point={self.zero_point}" if self.axis is None else f"axis={self.axis}"
        return f"<Quantized {self.name} {shape}, {how}>"


class Packed:
    """An instance of one of torch's own classes for parameters, such as `__torch__.torch.classes.quantized.LinearPackedParamsBase`.

    parts: the values that the operators of the class need, by name. Never changed.
    """

    __slots__ = ("type", "parts")

    def __init__(self, type: Type, **parts: Any) -> None:
        self.type = type
        self.parts = parts

    def __repr__(self) -> str:
        return f"<{self.type}>"


HELD = frozenset((Quantized, Packed))
"""The types of values of this module."""


MAKERS = frozenset(("aten::quantize_per_tensor", "aten::quantize_per_channel", "aten::quantize_per_tensor_dynamic",
                    "aten::_make_per_tensor_quantized_tensor", "aten::_make_per_channel_quantized_tensor", "aten::quantized_lstm",
                    "aten::quantized_gru"))


def makes_quantized(kind: str) -> bool:
    """May nodes of a kind return, or take, quantized tensors or packed parameters?"""
    return kind in MAKERS or kind.startswith("quantized::")


def holds_quantized(values: Any) -> bool:
    """Is a quantized tensor, or a value that contains one, among values, or in lists or tuples among them?"""
    for value in values:
        if type(value) in HELD or isinstance(value, list | tuple) and holds_quantized(value):
            return True
    return False


def limits(name: str) -> tuple[int, int]:
    """The least and the largest integer of a dtype."""
    info = np.iinfo(INTEGERS[name])
    return int(info.min), int(info.max)


def rounded(values: Any, zero_point: Any, name: str, low: int | None = None) -> Array:
    """Multiples of the scale as integers of a dtype: rounded half to even, plus the zero point, clipped to the limits.

    low: a higher lower limit, as for a relu.
    """
    least, most = limits(name)
    wide = np.nan_to_num(np.rint(values).astype(np.float64), nan=np.inf) + zero_point
    ints: Array = np.clip(wide, least if low is None else max(low, least), most).astype(INTEGERS[name])
    return ints


def quantized(numbers: Any, scale: Any, zero_point: Any, name: str, axis: int | None = None) -> Quantized:
    """Numbers (float32) quantized: integers of `numbers / scale`, computed in float32 as in torch."""
    numbers = np.asarray(numbers, np.float32)
    kind = Quantized(numbers, name, scale, zero_point, axis)
    inverse = np.float32(1) / np.asarray(scale, np.float32)
    steps = numbers * kind.along(inverse) + kind.along(np.asarray(zero_point, np.float32))
    return kind.with_ints(rounded(steps, 0, name))


SMALL = 6.1e-5
"""The least scale that torch chooses."""


def chosen(numbers: Array, low: int, high: int) -> tuple[float, int]:
    """The scale and the zero point that torch chooses for numbers, so that integers from `low` to `high` represent them."""
    least = min(float(numbers.min()), 0.0) if numbers.size else 0.0
    most = max(float(numbers.max()), 0.0) if numbers.size else 0.0
    scale = (most - least) / (high - low)
    if np.float32(scale) == 0 or np.isinf(np.float32(1) / np.float32(scale)):
        scale = 0.1
    if scale < np.float32(SMALL):
        factor = np.float32(SMALL) / np.float32(scale)
        scale = float(np.float32(SMALL))
        if least == 0:
            most = float(np.float32(SMALL) * np.float32(high - low))
        elif most == 0:
            least = -float(np.float32(SMALL) * np.float32(high - low))
        else:
            least, most = float(np.float32(least) * factor), float(np.float32(most) * factor)
    is_low = abs(low) + abs(least / scale) < abs(high) + abs(most / scale)
    zero = low - least / scale if is_low else high - most / scale
    return scale, int(min(max(np.rint(zero), low), high))


def chosen_for(numbers: Array, name: str, reduce_range: bool) -> tuple[float, int]:
    """The scale and zero point that torch chooses for numbers in a dtype; reduce_range: for half of its integers."""
    low, high = limits(name)
    return chosen(numbers, int(low / 2) if reduce_range else low, int(high / 2) if reduce_range else high)
