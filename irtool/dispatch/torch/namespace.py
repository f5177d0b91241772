"""`irtool.torch`: torch's operators by torch's names, as functions of tensors, for code that is written for torch.

    from irtool import torch
    torch.nn.functional.cross_entropy(torch.linalg.solve(a, b), target)

`torch.linalg`, `torch.fft` and `torch.special` are the operators with these prefixes. `torch.nn.functional` contains the functions that
TorchScript source calls by these names (`irtool.torchscript.nn_functional`), run as Python; other names in it are operators.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from string import ascii_letters
from typing import Any

from irtool.dispatch.torch.torch_functional import functions
from irtool.dispatch.torch.torch_names import ABSENT, NAMES, without_gradient
from irtool.dispatch.traced_numbers import Number
from irtool.ir.errors import NameMissing, RunError
from irtool.ops.array_library import np
from irtool.ops.arrays import dtype_of
from irtool.ops.checks import check_device
from irtool.ops.size_facts import FACTORIES
from irtool.ops.tensor import Functions, Tensor, call, calling_kind, is_kind, next_birth, operator_names
from irtool.ops.tensor_methods import refuse_gradient
from irtool.ops.tensor_parts import has_tensors, of_parts, refuse_others

PREFIXES = ("linalg", "fft", "special")
VARIADIC = ("broadcast_tensors", "block_diag", "cartesian_prod", "chain_matmul", "meshgrid")
"""Operators on a list of tensors whose torch functions take the tensors one by one."""


class Torch(Functions):
    """The namespace `irtool.torch`."""

    def __getattr__(self, name: str) -> Any:
        if name in ABSENT:
            raise NameMissing(f"irtool.torch has no {name}: {ABSENT[name]}")
        function: Any = NAMES[name] if name in NAMES else Prefixed(f"{name}_") if name in PREFIXES else super().__getattr__(name)
        if name in VARIADIC:
            function = taking_one_by_one(function)
        elif name in FACTORIES:
            function = without_gradient(name, function)
        setattr(self, name, function)
        return function

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *NAMES, *PREFIXES})

    @property
    def nn(self) -> Any:
        """torch.nn: only `functional`."""
        return NN

    @property
    def jit(self) -> Any:
        """torch.jit: only `annotate`, which returns the value."""
        return JIT

    def tensor(self, data: Any, dtype: int | None = None, device: str | None = None, requires_grad: bool = False) -> Any:
        """A tensor of numbers, or of nested lists of numbers. Without `dtype` Python's floats become float32, complex numbers complex64.
        Tensors, also in lists, it copies, and no gradient goes back to them. Raises RunError for other data."""
        refuse_gradient(requires_grad, "tensor")
        check_device(device)
        if type(data) is Number:
            if dtype is not None and dtype_of(dtype).kind in "iu":
                return data.tensor(dtype_of(dtype).name)        # which raises where it does not fit
            known, dtype = data.tensor(), self.float32 if type(data.value) is float and dtype is None else dtype
            return known if dtype is None else known.to(dtype)
        if isinstance(data, Tensor):
            known = data.detach()       # as in torch: of a tensor it takes the numbers, and no gradient
            return known.clone() if dtype is None else known.to(dtype, copy=True)
        if has_tensors(data):
            return of_parts(data, dtype)
        try:
            tensor = Tensor(np.array(data))
            tensor.born = next_birth()        # nobody else refers to its elements
        except ValueError as error:
            raise RunError(f"tensor: expected numbers, or lists of them of equal length, got {str(data)[:40]}") from error
        if tensor.array.dtype.kind not in "bifc" and tensor.array.dtype.name != "uint8":
            raise RunError(f"tensor: expected numbers of at most 64 bits, got {str(data)[:40]}")
        if dtype is None and is_of_python(data):
            dtype = {"f": self.float32, "c": self.complex64}.get(tensor.array.dtype.kind)
        elif dtype is not None and not isinstance(data, np.ndarray):
            refuse_others(tensor.array, dtype_of(dtype))
        return tensor if dtype is None else tensor.to(dtype)

    def asarray(self, data: Any, *, dtype: int | None = None, device: str | None = None, copy: bool | None = None) -> Any:
        """A tensor that shares the memory of an array, or a copy of it; for numbers as `tensor`."""
        check_device(device)
        if isinstance(data, Tensor):
            return data.clone() if copy and dtype is None else data if dtype is None else data.to(dtype, copy=bool(copy))
        if copy or not isinstance(data, np.ndarray):
            return self.tensor(data, dtype)
        tensor = Tensor(data)
        return tensor if dtype is None else tensor.to(dtype)

    def as_tensor(self, data: Any, dtype: int | None = None, device: str | None = None) -> Any:
        """A tensor itself, a tensor that shares the memory of an array, or what `tensor` makes of numbers; in another dtype a copy."""
        return self.asarray(data, dtype=dtype, device=device)

    def from_numpy(self, array: Any) -> Any:
        """A tensor that shares the memory of an array. Raises RunError for any other value."""
        if not isinstance(array, np.ndarray):
            raise RunError(f"from_numpy: expected a NumPy array, got {type(array).__name__}")
        return Tensor(array)

    def einsum(self, equation: Any, *operands: Any) -> Any:
        """A sum of products in Einstein's notation: einsum("ij,jk->ik", a, b), or einsum(a, [0, 1], b, [1, 2], [0, 2])."""
        if not isinstance(equation, str):
            operands = (equation, *operands)
            terms = ["".join(map(letter_of, each)) for each in operands[1::2]] + [f"->{''.join(map(letter_of, each))}" for each in
                                                                                 operands[-1:] if len(operands) % 2]
            equation, operands = ",".join(terms).replace(",->", "->"), operands[:len(operands) // 2 * 2:2]
        return call("aten::einsum", (equation, tensors_of(operands)), {})

    def tensordot(self, a: Any, b: Any, dims: Any = 2) -> Any:
        """A sum of products over the last `dims` dimensions of a and the first of b, or over those that two lists name."""
        a, b = self.asarray(a), self.asarray(b)
        if isinstance(dims, int) and not 0 <= dims <= min(a.dim(), b.dim()):
            raise RunError(f"tensordot expects dims of at least 0 and at most the dimensions of a and b, but got dims={dims}")
        summed, others = (list(range(a.dim() - dims, a.dim())), list(range(dims))) if isinstance(dims, int) else dims
        return a.tensordot(b, list(summed), list(others))


def letter_of(place: Any) -> str:
    """The letter of a dimension by its number, from 0 to 51, or the text of `...`. Raises RunError for other numbers."""
    if place is Ellipsis:
        return "..."
    if not 0 <= place < 52:
        raise RunError(f"einsum: subscripts must be in range [0, 52), got {place}")
    return ascii_letters[place - 26]        # the capitals first


def is_of_python(data: Any) -> bool:
    """Are all numbers in nested lists Python's, and none NumPy's?"""
    return all(map(is_of_python, data)) if isinstance(data, list | tuple) else data.__class__ in (bool, int, float, complex)


def tensors_of(args: Sequence[Any]) -> list[Any]:
    """The tensors of arguments: the arguments, or the only argument if that is a list."""
    return list(args[0]) if len(args) == 1 and isinstance(args[0], list | tuple) else list(args)


def taking_one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a list of tensors as a function that takes them one by one."""
    @wraps(function)
    def variadic(*args: Any, **named: Any) -> Any:
        return function(tensors_of(args), **named)
    return variadic


class Space:
    """A namespace in irtool.torch."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of irtool.torch>"


class Modules(Space):
    """torch.nn. Raises NameMissing for modules, since irtool has none."""

    def __getattr__(self, name: str) -> Any:
        if name == "functional":
            return FUNCTIONAL
        raise NameMissing(f"irtool.torch.nn has no {name}: parameters are arguments of functions, which torch.nn.functional has")

    def __dir__(self) -> list[str]:
        return ["functional"]


class Jit(Space):
    """torch.jit. Raises NameMissing for `script` and `trace`, which names irtool's functions for that."""

    def annotate(self, type: Any, value: Any) -> Any:
        """The value."""
        return value

    def __getattr__(self, name: str) -> Any:
        raise NameMissing(f"irtool.torch.jit has no {name}: see irtool.trace, irtool.from_script and irtool.jit")


class Prefixed(Space):
    """Operators with a common prefix: `torch.linalg.solve` is aten::linalg_solve."""

    _prefix = ""        # for a copy that Python makes without `__init__`

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        kind = f"aten::{self._prefix}{name}"
        if not is_kind(kind):
            raise NameMissing(f"there is no operator {kind}", name, lambda: [each.removeprefix(self._prefix) for each in operator_names()
                                                                             if each.startswith(self._prefix)])
        function = calling_kind(kind)
        setattr(self, name, function)
        return function

    def __dir__(self) -> list[str]:
        return [each.removeprefix(self._prefix) for each in operator_names() if each.startswith(self._prefix)]


class Functional(Space):
    """torch.nn.functional."""

    def __getattr__(self, name: str) -> Any:
        from irtool.torchscript.nn_functional import OPERATORS

        function: Any = functions().get(name)
        if function is None:
            operator = OPERATORS.get(name, name).removeprefix("aten::")
            if not is_kind(f"aten::{operator}"):
                raise NameMissing(f"torch.nn.functional has no '{name}'", name, lambda: [*functions(), *operator_names()])
            function = getattr(torch, operator)
        setattr(self, name, function)
        return function

    def __dir__(self) -> list[str]:
        from irtool.torchscript.nn_functional import OPERATORS

        return sorted({*functions(), *OPERATORS, *operator_names()})


torch = Torch()
NN, JIT = Modules(), Jit()
FUNCTIONAL = Functional()
