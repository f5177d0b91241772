"""`irtool.torch`: torch's operators by torch's names, as functions of tensors, for code that is written for torch.

    from irtool import torch
    torch.nn.functional.cross_entropy(torch.linalg.solve(a, b), target)

`torch.linalg`, `torch.fft` and `torch.special` are the operators with these prefixes. `torch.nn.functional` are the functions that
TorchScript source calls by that name (`irtool.script.functional`), run as Python, and operators where there is none.
"""
from __future__ import annotations
import __future__

import math
from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from irtool.ir.errors import RunError
from irtool.ops.tensor import Functions, Tensor, call, calling_kind, is_kind

PREFIXES = ("linalg", "fft", "special")
MODES = {"nearest": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)}
"""How many dimensions each mode of `interpolate` resizes."""
VARIADIC = ("broadcast_tensors", "block_diag", "cartesian_prod", "chain_matmul", "meshgrid")
"""Operators on a list of tensors that torch's functions take one by one."""


class Torch(Functions):
    """What `torch.` means."""

    def __getattr__(self, name: str) -> Any:
        made: Any = Prefixed(f"{name}_") if name in PREFIXES else super().__getattr__(name)
        if name in VARIADIC:
            made = taking_one_by_one(made)
        setattr(self, name, made)
        return made

    @property
    def nn(self) -> Any:
        """torch.nn: only `functional`."""
        return SimpleNamespace(functional=FUNCTIONAL)

    @property
    def ops(self) -> Any:
        """torch.ops: only `aten`, the operators."""
        return SimpleNamespace(aten=self)

    @property
    def jit(self) -> Any:
        """torch.jit: only `annotate`, which gives the value."""
        return SimpleNamespace(annotate=lambda _, value: value)

    def tensor(self, data: Any, dtype: int | None = None, device: str | None = None) -> Any:
        """A tensor of numbers, or of lists of them: Python's are float32 and complex64. Raises RunError for what is not made of numbers."""
        try:
            made = Tensor(np.array(data))
        except ValueError as error:
            raise RunError(f"tensor: expected numbers, or lists of them of equal length, got {str(data)[:40]}") from error
        if made.array.dtype.kind not in "bifc" and made.array.dtype.name != "uint8":
            raise RunError(f"tensor: expected numbers of at most 64 bits, got {str(data)[:40]}")
        if dtype is None and is_of_python(data):
            dtype = {"f": self.float32, "c": self.complex64}.get(made.array.dtype.kind)
        return made if dtype is None else made.to(dtype)

    def from_numpy(self, array: Any) -> Any:
        """A tensor on an array's own elements."""
        return Tensor(array)

    def einsum(self, equation: str, *operands: Any) -> Any:
        """A sum of products, as Einstein wrote it: einsum("ij,jk->ik", a, b)."""
        return call("aten::einsum", (equation, tensors_of(operands)), {})

    def tensordot(self, a: Any, b: Any, dims: Any = 2) -> Any:
        """Sum over the last `dims` dimensions of a and the first of b, or over those that two lists name."""
        own, others = (list(range(a.dim() - dims, a.dim())), list(range(dims))) if isinstance(dims, int) else dims
        return a.tensordot(b, list(own), list(others))


def is_of_python(data: Any) -> bool:
    """Are the numbers in (lists of) them Python's own, not NumPy's?"""
    return all(map(is_of_python, data)) if isinstance(data, list | tuple) else type(data) in (bool, int, float, complex)


def tensors_of(args: Sequence[Any]) -> list[Any]:
    """Tensors that are given one by one, or as one list."""
    return list(args[0]) if len(args) == 1 and isinstance(args[0], list | tuple) else list(args)


def taking_one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a list of tensors as one of tensors."""
    return lambda *args, **named: function(tensors_of(args), **named)


class Prefixed:
    """Operators whose names begin alike: `torch.linalg.solve` is aten::linalg_solve."""

    _prefix = ""        # of a copy that is still to be filled, which Python asks for its methods

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        kind = f"aten::{self._prefix}{name}"
        if not is_kind(kind):
            raise AttributeError(f"there is no operator {kind}")
        made = calling_kind(kind)
        setattr(self, name, made)
        return made


class Functional:
    """torch.nn.functional."""

    def interpolate(self, input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                    align_corners: bool | None = None) -> Any:
        """Resize the dimensions behind the first two. mode: nearest, linear, bilinear, bicubic or trilinear."""
        count = input.dim() - 2
        if mode not in MODES:
            raise RunError(f"interpolate: mode is '{mode}', expected nearest, linear, bilinear, bicubic or trilinear")
        if count not in MODES[mode]:
            raise RunError(f"interpolate: an input of {count + 2} dimensions is not for mode {mode}")
        sizes = [size] * count if isinstance(size, int) else size
        scales = [float(scale_factor)] * count if isinstance(scale_factor, int | float) else scale_factor
        corners = () if mode == "nearest" else (bool(align_corners),)
        return getattr(torch, f"upsample_{mode}{count}d")(input, sizes, *corners, scales)

    def __getattr__(self, name: str) -> Any:
        from irtool.script.functional import OPERATORS

        made: Any = functions().get(name)
        if made is None:
            made = getattr(torch, OPERATORS.get(name, name).removeprefix("aten::"))
        setattr(self, name, made)
        return made


@cache
def functions() -> dict[str, Callable[..., Any]]:
    """The functions of torch.nn.functional that TorchScript source is given, as Python functions."""
    from irtool.script.functional import SOURCE

    space: dict[str, Any] = {"Tensor": Tensor, "torch": torch, "math": math, "List": list}
    code = compile(SOURCE, "<torch.nn.functional>", "exec", __future__.annotations.compiler_flag, dont_inherit=True)
    exec(code, space)       # noqa: S102  text of our own
    return {name: each for name, each in space.items() if callable(each) and name != "Tensor"}


torch = Torch()
FUNCTIONAL = Functional()

__all__ = ["torch"]
