"""The functions that pickles may call: they make plain and quantized tensors, and small values such as devices."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.archives.pickles import SCHEMES
from irtool.archives.storages import QUANTIZED, strided
from irtool.ir.errors import UnsupportedError
from irtool.ops.array_library import np
from irtool.ops.quantized import Quantized


class PickledValues:
    """The methods of `pickles.World` that do not depend on where storages are."""

    def __init__(self, name: str) -> None:
        """name: of the file, for messages."""
        self.name = name
        self.trainable: dict[int, tuple[Any, bool]] = {}
        """The id of a tensor -> the tensor, and whether it requires gradients."""

    def call(self, what: str, arguments: Sequence[Any]) -> Any:
        """The result of a function that a pickle may call."""
        return getattr(self, f"_{what}")(*arguments)

    def _tensor(self, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, extra: Any = None) -> Any:
        array = strided(storage, offset, size, stride)
        if storage.dtype in QUANTIZED:
            raise UnsupportedError(f"{storage.where}: tensors of {storage.dtype} are not supported yet", code="E0404")
        if isinstance(extra, dict) and extra.get("conj"):
            array = np.conjugate(array)
        self.trainable[id(array)] = array, requires_grad is True
        return array

    def _quantized(self, storage: Any, offset: Any, size: Any, stride: Any, how: Any, *_: Any) -> Quantized:
        array = strided(storage, offset, size, stride)
        if storage.dtype not in QUANTIZED:
            raise TypeError(f"a quantized tensor of {storage.dtype}")
        scheme, scale, zero_point, *axis = how
        if getattr(scheme, "name", None) == "per_tensor_affine" and not axis:
            return Quantized(array, storage.dtype, float(scale), int(zero_point))
        scales, zeros = np.asarray(scale), np.asarray(zero_point)
        if getattr(scheme, "name", None) not in SCHEMES or len(axis) != 1 or not isinstance(axis[0], int) \
                or not 0 <= axis[0] < array.ndim or not scales.shape == zeros.shape == array.shape[axis[0]:][:1] \
                or {scales.dtype.kind, zeros.dtype.kind} - {"f", "i"}:
            raise ValueError("scales and zero points do not fit the tensor")
        return Quantized(array, storage.dtype, scales, zeros, axis[0])

    def _sparse(self, *_: Any) -> Any:
        raise UnsupportedError(f"{self.name}: sparse tensors are not supported yet", code="E0404")

    def _mapping(self) -> dict[Any, Any]:
        return {}

    def _listed(self, items: Any) -> list[Any]:
        if not isinstance(items, list):
            raise TypeError("expected a list")
        return items

    def _tagged(self, value: Any, tag: Any) -> Any:
        return value

    def _row(self, number: Any) -> Any:
        raise TypeError("only archives of torch 1.1 and 1.2 number their tensors")

    def _complex_number(self, real: Any, imaginary: Any) -> complex:
        return complex(float(real), float(imaginary))

    def _device(self, name: Any, index: Any = None) -> str:
        if not isinstance(name, str) or index is not None and not isinstance(index, int):
            raise TypeError("expected a name and a number")
        return name if index is None else f"{name}:{index}"
