"""Facts about a tensor: its dtype, which is a number, and its sizes, which are a list, both with the attributes that torch's have."""
from __future__ import annotations

from typing import Any

from irtool.ir.dtypes import CODES as IR_CODES
from irtool.ir.errors import RunError, did_you_mean
from irtool.ops.array_library import np
from irtool.ops.arrays import CODES, dtype_of

INTEGERS = {name: np.dtype(name[1:]) for name in ("qint8", "quint8", "qint32")}
"""Dtypes of quantized tensors -> the dtypes of their integers."""
QUANTIZED = {IR_CODES[name]: name for name in INTEGERS}
"""torch's numbers of these dtypes -> their names."""


class Dtype(int):
    """torch's number of a dtype as in graphs, such as 6 for float32."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    __str__ = __repr__

    @property
    def name(self) -> str:
        """torch's name: `float32`."""
        return ALL_CODES[self]

    @property
    def is_floating_point(self) -> bool:
        """Is it a floating-point dtype?"""
        return "float" in self.name

    @property
    def is_complex(self) -> bool:
        """Is it a dtype of complex numbers?"""
        return "complex" in self.name

    @property
    def is_signed(self) -> bool:
        """Has the dtype negative numbers?"""
        return "uint" not in self.name and self.name != "bool"

    @property
    def itemsize(self) -> int:
        """The size of an element in torch, in bytes."""
        if self.name in INTEGERS:
            return INTEGERS[self.name].itemsize
        return {"bfloat16": 2, "complex32": 4}.get(self.name, dtype_of(self).itemsize)


ALL_CODES = {**CODES, **QUANTIZED}
DTYPES = {code: Dtype(code) for code in ALL_CODES}
BY_NAME = {name: DTYPES[code] for code, name in ALL_CODES.items()}
"""`float32` and so on."""


class Place(str):
    """A device by name, `cpu` or `cuda:0`, as in graphs: `torch.device("cuda", 0)`."""

    __slots__ = ()

    def __new__(cls, type: str, index: int | None = None) -> Place:
        """Raises RunError for a name that is no device."""
        if not isinstance(type, str):
            raise RunError(f"device: expected a name such as 'cpu', got {repr(type)[:40]}")
        return super().__new__(cls, type if index is None else f"{type}:{index}")

    @property
    def type(self) -> str:
        """`cuda` of `cuda:0`."""
        return self.partition(":")[0]

    @property
    def index(self) -> Any:
        """0 of `cuda:0`; None if there is none."""
        return int(number) if (number := self.partition(":")[2]) else None


CPU = Place("cpu")


class Size(list[int]):
    """Sizes or strides: a list, as in graphs, but equal to a tuple of the same numbers, with the tuple's hash and sums."""

    __slots__ = ()

    def __hash__(self) -> int:      # type: ignore[override]
        return hash(tuple(self))

    def __eq__(self, other: object) -> bool:
        return list.__eq__(self, list(other) if isinstance(other, tuple) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __add__(self, other: Any) -> Size:      # type: ignore[override]
        return Size([*self, *other]) if isinstance(other, list | tuple) else NotImplemented

    def __radd__(self, other: Any) -> Size:
        return Size([*other, *self]) if isinstance(other, list | tuple) else NotImplemented

    def __getitem__(self, key: Any) -> Any:
        part = list.__getitem__(self, key)
        return Size(part) if type(key) is slice else part

    def numel(self) -> int:
        """The number of elements of a tensor of these sizes."""
        return int(np.prod(self, dtype=np.int64))


class finfo:        # torch's name
    """Properties of a floating-point dtype: `finfo(torch.float32).eps`. Raises RunError for any other dtype."""

    def __init__(self, dtype: int = BY_NAME["float32"]) -> None:
        name = checked(dtype, "finfo", "float complex")
        self.dtype = name
        if name == "bfloat16":
            self.bits, self.eps, self.tiny = 16, 2.0 ** -7, 2.0 ** -126
            self.max = (2 - self.eps) * 2.0 ** 127
            self.min, self.resolution = -self.max, 0.01
        else:
            info: Any = np.finfo(dtype_of(dtype))
            self.bits, self.eps, self.tiny = int(info.bits), float(info.eps), float(info.tiny)
            self.max, self.min, self.resolution = float(info.max), float(info.min), float(info.resolution)
        self.smallest_normal = self.tiny


class iinfo:
    """Properties of an integer dtype: `iinfo(torch.int64).max`. Raises RunError for any other dtype."""

    def __init__(self, dtype: int) -> None:
        self.dtype = checked(dtype, "iinfo", "int")
        info: Any = np.iinfo(dtype_of(dtype))
        self.bits, self.min, self.max = int(info.bits), int(info.min), int(info.max)


def checked(dtype: Any, where: str, kinds: str) -> str:
    """A dtype's name. Raises RunError if it is of none of these kinds."""
    name = CODES.get(dtype) if isinstance(dtype, int) and not isinstance(dtype, bool) else None
    if name is None or not any(kind in name for kind in kinds.split()):
        raise RunError(f"{where}: expected a dtype of {kinds.replace(' ', ' or ')} numbers, got "
                       f"{name or repr(dtype)[:40]}{did_you_mean(str(dtype), BY_NAME)}")
    return name
