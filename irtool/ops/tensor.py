"""`irtool.Tensor`: a handle around an array, with operators and torch's method names, so that TorchScript source runs as Python.

    x = Tensor(numpy_array)
    y = (x * 2).sum(1)          # aten::mul.Scalar, aten::sum.dim_IntList; y.array is the NumPy array
    z = torch.where(x > 0, x, y)

Every operation goes through one function, `call(kind, args, named)`, which `calling` replaces by a layer. The lowest layer chooses the
overload in torch's order of candidates, and runs its kernel. Python's operators are the operations to which the compiler compiles them:
`1 - x` is a negation and a sum, so that a formula run here and its compiled form compute the same bits.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import count
from operator import itemgetter
from typing import Any

from irtool.ir.displayed import Displayed
from irtool.ir.effects import ITEMS_THEMSELVES, OPERAND_ITSELF, RESHAPES
from irtool.ir.errors import NameMissing, RunError, UnsupportedError
from irtool.ir.schema import Argument, Schema, forgets_kinds, parse_schema, schemas
from irtool.ir.types import TENSOR, OptionalType
from irtool.ops.array_library import np
from irtool.ops.arrays import CODES, code_of, is_array
from irtool.ops.tensor_facts import BY_NAME, CPU, DTYPES, Dtype, Place, Size

number = Any
"""TorchScript's name for a number of any kind, in annotations of formulas."""
Device = str
"""TorchScript's name for a device, in annotations of formulas."""
Generator = np.random.Generator
"""TorchScript's name for a source of random numbers, in annotations of formulas."""
Call = Callable[[str, Sequence[Any], Mapping[str, Any]], Any]
next_birth = count(1).__next__
"""Counts the handles that operations under layers make."""


def _operators(names: str) -> Iterator[Callable[[Any, Any], Any]]:
    def of(kind: str) -> Callable[[Any, Any], Any]:
        return lambda self, other: _current.get()(kind, (self, other), {})
    return (of(f"aten::{name}") for name in names.split())


def _has_elements(value: Any) -> bool:
    """Is a value a tensor, an array or a number, which a tensor is compared with element by element?"""
    return isinstance(value, Tensor | bool | int | float | complex | np.generic) or is_array(value)


class Tensor(Displayed):
    """A tensor value. `array` has the elements; methods and operators are torch's.

    born: the number of the handle, so that a layer can tell which existed before it; 0 for handles of users' arrays and of results without
    layers. links: the tensors that share its memory, as layers record them (`irtool.dispatch.layer_writes`). layer, value, known: see
    `irtool.dispatch.stack.Boxed`, which a handle may become.
    """

    __slots__ = ("array", "label", "born", "links", "layer", "value", "known", "__weakref__")
    label: str
    layer: Any
    value: Any
    known: Any
    __hash__ = object.__hash__
    __array_priority__ = 1000       # so that NumPy leaves `array * tensor` to the tensor

    def __init__(self, array: Any) -> None:
        self.array = array if array.__class__ is np.ndarray else elements(array)
        self.born = 0
        self.links: Any = None

    def __reduce__(self) -> Any:
        return type(self), (self.array,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.array) if dtype is None else np.asarray(self.array, dtype)

    def __repr__(self) -> str:
        return f"Tensor({self.array!r})"

    # -- facts about the tensor
    @property
    def dtype(self) -> int:
        """torch's number of the dtype."""
        return DTYPES[code_of(self.array.dtype)]

    @property
    def device(self) -> str:
        """Always the CPU."""
        return CPU

    @property
    def shape(self) -> list[int]:
        """Sizes, as size() gives them."""
        return Size(self.array.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.array.ndim

    @property
    def real(self) -> Any:
        """The real parts, a view; assigning to it writes them."""
        return _do("aten::real", self)

    @real.setter
    def real(self, value: Any) -> None:
        _do("aten::copy_", self.real, value)

    @property
    def imag(self) -> Any:
        """The imaginary parts, a view; assigning to it writes them."""
        return _do("aten::imag", self)

    @imag.setter
    def imag(self, value: Any) -> None:
        _do("aten::copy_", self.imag, value)

    def __getattr__(self, name: str) -> Any:
        if name in ("T", "mT", "H", "mH"):
            return _do({"T": "aten::numpy_T", "H": "aten::matrix_H"}.get(name, f"aten::{name}"), self)
        if name[:2] == "__":        # names that Python itself looks up
            raise AttributeError(name)
        from irtool.ops.tensor_methods import ATTRIBUTES, METHODS

        if name in ATTRIBUTES:
            setattr(Tensor, name, property(ATTRIBUTES[name]))
            return getattr(self, name)
        kind = f"aten::{name}"
        if name in METHODS:
            setattr(Tensor, name, METHODS[name])
            return getattr(self, name)
        if not is_kind(kind):
            raise NameMissing(f"a Tensor has no method '{name}'", name, lambda: [*METHODS, *ATTRIBUTES, *operator_names()])

        def method(self: Tensor, *args: Any, **named: Any) -> Any:
            result = _current.get()(kind, (self, *args), by_own_names(kind, named) if named else named)
            return shown(kind, result)
        from irtool.ops.signatures import documented

        setattr(Tensor, name, documented(method, kind, True))       # the next look-up finds it at once
        return getattr(self, name)

    def __dir__(self) -> list[str]:
        from irtool.ops.tensor_methods import ATTRIBUTES, METHODS

        return sorted({*object.__dir__(self), *METHODS, *ATTRIBUTES, *operator_names()})

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(_do("aten::Bool", self))

    def __int__(self) -> int:
        return int(_do("aten::Int", self))

    def __float__(self) -> float:
        return float(_do("aten::Float", self))

    def __index__(self) -> int:
        if CODES[self.dtype] not in ("bool", "uint8", "int8", "int16", "int32", "int64"):
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self)

    def __format__(self, form: str) -> str:
        if form and self.ndim:
            raise RunError(f"the format '{form}' is for a number, not for a tensor of shape {self.shape}")
        return format(self.tolist() if form and not self.ndim else str(self), form)

    def __getitem__(self, key: Any) -> Any:
        from irtool.ops.tensor_keys import subscript

        return subscript(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from irtool.ops.tensor_keys import assign

        assign(self, key, value)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(_do("aten::unbind", self, 0))

    def __reversed__(self) -> Any:
        return _do("aten::flip", self, [0]) if self.ndim else self

    def __contains__(self, element: Any) -> bool:
        return bool((self == element).any())

    # -- methods that are no operators, or several
    def norm(self, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: int | None = None) -> Any:
        """The norm of all elements, or over dimensions; p: a number, "fro" or "nuc"."""
        if p == "nuc":
            pair = list(range(self.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
            return _do("aten::linalg_matrix_norm", self, "nuc", pair, keepdim, dtype)
        if dim is None and not keepdim and dtype is None:
            return _do("aten::norm", self, 2 if p in ("fro", None) else p)
        dims = dim if dim is None or isinstance(dim, list) else [dim] if isinstance(dim, int) else list(dim)
        return _do("aten::linalg_vector_norm", self, 2 if p in ("fro", None) else p, dims, keepdim, dtype)

    def view(self, *size: Any, dtype: int | None = None) -> Any:
        """The same elements with other sizes, `view(2, -1)` or `view([2, -1])`; with a dtype, the same bytes."""
        if len(size) == 1 and type(size[0]) is Dtype:
            dtype = size[0]
        if dtype is not None:
            return _do("aten::view", self, dtype)
        return _do("aten::view", self, list(size[0]) if len(size) == 1 and isinstance(size[0], list | tuple) else list(size))

    def tolist(self) -> Any:
        """The elements as Python numbers, in lists."""
        return self.array.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """The NumPy array. force: torch's parameter that allows a copy."""
        return self.array

    # -- operators, compiled by torchscript to the same operations
    def __neg__(self) -> Any:
        return _do("aten::neg", self)

    def __abs__(self) -> Any:
        return _do("aten::abs", self)

    def __invert__(self) -> Any:
        return _do("aten::bitwise_not", self)

    __add__, __sub__, __mul__, __truediv__, __floordiv__, __mod__, __pow__, __matmul__, __lshift__, __rshift__ = _operators(
        "add sub mul div floor_divide remainder pow matmul __lshift__ __rshift__")
    __and__, __or__, __xor__, __lt__, __le__, __gt__, __ge__ = _operators("__and__ __or__ __xor__ lt le gt ge")
    __radd__, __rand__, __ror__, __rxor__ = __add__, __and__, __or__, __xor__

    def __eq__(self, other: Any) -> Any:
        return _do("aten::eq", self, other) if _has_elements(other) else NotImplemented      # `x == None` is Python's False, as in torch

    def __ne__(self, other: Any) -> Any:
        return _do("aten::ne", self, other) if _has_elements(other) else NotImplemented

    def __pos__(self) -> Any:
        return self

    def __rlshift__(self, other: Any) -> Any:
        return _do("aten::bitwise_left_shift", other, self)

    def __rrshift__(self, other: Any) -> Any:
        return _do("aten::bitwise_right_shift", other, self)

    def __rmul__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, str | list | tuple) else self * other      # which are repeated

    def __rsub__(self, other: Any) -> Any:
        return _do("aten::rsub", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _do("aten::mul", _do("aten::reciprocal", self), other)

    def __rpow__(self, other: Any) -> Any:
        return _do("aten::pow", other, self)

    def __rfloordiv__(self, other: Any) -> Any:
        return _do("aten::floor_divide", _do("aten::add", _do("aten::zeros_like", self), other), self)

    def __rmod__(self, other: Any) -> Any:
        return _do("aten::remainder", other, self)

    def __rmatmul__(self, other: Any) -> Any:
        return _do("aten::matmul", other, self)


CASTS = {"bool": 11, "byte": 0, "char": 1, "short": 2, "int": 3, "long": 4, "half": 5, "float": 6, "double": 7, "bfloat16": 15}
"""torch's numbers of the dtypes that methods convert to."""


def _cast(name: str, code: int) -> Callable[[Tensor], Any]:
    def method(self: Tensor, memory_format: int | None = None) -> Any:
        return _do("aten::to", self, code) if memory_format is None else _do("aten::to", self, code, False, False, memory_format)
    method.__name__, method.__doc__ = name, f"The elements as {CODES[code]}."
    return method


for _name, _code in CASTS.items():
    setattr(Tensor, _name, _cast(_name, _code))


def _in_place(operator: str, kind: str) -> Callable[[Tensor, Any], Any]:
    def method(self: Tensor, other: Any) -> Any:
        return _do(kind, self, other)
    method.__name__, method.__doc__ = operator, f"{kind}, as TorchScript compiles it: views of the tensor see it."
    return method


for _name, _kind in {"add": "add_", "sub": "sub_", "mul": "mul_", "truediv": "div_", "floordiv": "floor_divide_", "mod": "remainder_",
                     "pow": "pow_", "and": "__iand__", "or": "__ior__", "xor": "__ixor__", "lshift": "__ilshift__",
                     "rshift": "__irshift__"}.items():
    setattr(Tensor, f"__i{_name}__", _in_place(f"__i{_name}__", f"aten::{_kind}"))


class Spaces:
    """The namespace `torch.ops`: `torch.ops.my.gelu(...)` is my::gelu. `torch.ops.aten` has no functions of torch that are called otherwise
    than their operators."""

    def __getattr__(self, name: str) -> Functions:
        functions = Functions(name)
        if name == "aten":
            setattr(self, name, functions)      # the next look-up finds its operators at once
        return functions


class Functions:
    """The namespace `torch` in a formula: `torch.where(...)` is aten::where, `torch.float32` the number of a dtype."""

    def __init__(self, space: str = "aten") -> None:
        self._space = space

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: operators {self._space}::*>"

    @property
    def ops(self) -> Any:
        """The operators by namespace: `aten`, and those of users (`irtool.operator`)."""
        return SPACES

    def __getattr__(self, name: str) -> Any:
        if name in BY_NAME and self._space == "aten":
            return BY_NAME[name]
        kind = f"{self._space}::{name}"
        if not is_kind(kind):
            raise NameMissing(f"there is no operator {kind}", name, operator_names)

        function = calling_kind(kind)
        setattr(self, name, function)       # the next look-up finds it at once
        return function

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *BY_NAME, *operator_names()})


SPACES = Spaces()


def calling_kind(kind: str) -> Callable[..., Any]:
    """The function that calls an operator of this kind."""
    def function(*args: Any, **named: Any) -> Any:
        result = _current.get()(kind, args, by_own_names(kind, named) if named else named)
        return shown(kind, result)
    from irtool.ops.signatures import documented

    return documented(function, kind)


def shown(kind: str, result: Any) -> Any:
    """The result of an operator as in torch: several have names, tensors of a list are in a tuple, and the number of a dtype is a dtype."""
    of = type(result)
    if of is tuple:
        return with_names(kind, tuple([shown(kind, each) for each in result]) if list in map(type, result) else result)
    if of is list and result and isinstance(result[0], Tensor):
        return tuple(result)
    return DTYPES[result] if of is int and kind in ("aten::result_type", "aten::promote_types") else result


def with_names(kind: str, results: tuple[Any, ...]) -> tuple[Any, ...]:
    """Several results as a tuple; with names if the operator's schema has names: `x.max(1).values`."""
    named_tuple = _named_tuple(kind, len(results))
    return results if named_tuple is None else named_tuple(results)


@forgets_kinds
@cache
def _named_tuple(kind: str, count: int) -> Any:
    """The class of named tuples for the results of an operator; None if its schemas do not name them."""
    declared = ([each.name for each in schema.returns] for schema in schemas(kind))
    names = next((each for each in declared if len(each) == count and all(each)), None)
    if names is None:
        return None
    return type(kind.removeprefix("aten::"), (tuple,), {name: property(itemgetter(place)) for place, name in enumerate(names)})


def by_own_names(kind: str, named: dict[str, Any]) -> dict[str, Any]:
    """Arguments by the names in the operator's schemas, if Python named them `input`, or as NumPy does."""
    names = _argument_names(kind)
    return {name if name in names else OTHER_NAMES.get(name, name): value for name, value in named.items()}


OTHER_NAMES = {"input": "self", "x": "self", "axis": "dim", "keepdims": "keepdim"}


@forgets_kinds
@cache
def _argument_names(kind: str) -> frozenset[str]:
    return frozenset(argument.name for schema in schemas(kind) for argument in schema.arguments)


torch = Functions()
"""`torch` in formulas, which are TorchScript. PyTorch itself is never imported."""


@forgets_kinds
@cache
def is_kind(kind: str) -> bool:
    """Is there an operator of this name?"""
    from irtool.ops import OPS

    return bool(schemas(kind) or OPS.of_kind(kind))


def operator_names() -> list[str]:
    """Names of operators, for hints."""
    from irtool.ir.schema import declared_kinds

    return [kind.removeprefix("aten::") for kind in declared_kinds() if kind.startswith("aten::")]


def elements(data: Any) -> Any:
    """Numbers, or lists of them, as an array. Raises RunError for other values."""
    if is_array(data):      # of another namespace
        return data
    try:
        array = np.asarray(data)
    except (TypeError, ValueError):
        array = None
    if array is None or array.dtype.kind in "OUSMm":
        shown = f"{type(data).__name__} {str(data)[:40]}"
        raise RunError(f"a tensor is made of an array, of numbers, or of lists of equal length of them, not of {shown}")
    return array


# -- calls
def run_kernel(kind: str, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The lowest layer: choose the overload, and run it on the arrays. Raises UnsupportedError if no overload accepts the operands."""
    from irtool.ops.quick import run_quickly

    with np.errstate(all="ignore"):
        result = None if named else run_quickly(kind, args)
        return run_chosen(kind, args, named) if result is None else result


def run_chosen(kind: str, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """As `run_kernel`, without shortcuts; the caller has entered an `np.errstate`."""
    from irtool.ops.call import overload

    name, values = choose_again(kind, args, named)
    return run_overload(overload(name), values)


def run_overload(overload: Any, args: Sequence[Any]) -> Any:
    """Run an overload on handles. If it writes into its first operand, or has nothing to do, it returns that very handle; if it changes
    the shape of the operand, it changes that of the handle."""
    kind = overload.schema.kind
    unboxed = [unwrapped(value) for value in args]
    if kind in ITEMS_THEMSELVES and isinstance(args[0], list):
        return [item if each is array else wrapped(each) for item, array, each in zip(args[0], unboxed[0], overload(unboxed), strict=True)]
    if kind[-1] != "_" and kind not in OPERAND_ITSELF or not isinstance(args[0], Tensor):
        return wrapped(overload(unboxed))
    target = args[0]
    if overload.mode == "inplace" and kind in RESHAPES:        # other values may refer to the array
        target.array = elements(type(overload)(overload.schema, overload.op)(unboxed))
        return target
    result = overload(unboxed)
    return target if result is unboxed[0] else wrapped(result)


_chosen: dict[Any, Any] = {}
_SIMPLE = frozenset((int, float, bool, str, Dtype, Place))


def choose_again(kind: str, args: Sequence[Any], named: Mapping[str, Any],
                 plain: Callable[[Any], Any] | None = None) -> tuple[str, list[Any]]:
    """As `choose`, cached by the kinds of the operands."""
    from irtool.ops.call import overload
    from irtool.ops.checks import bind

    key = (kind, *named, *map(_kind_of, args), *map(_kind_of, named.values()))
    schema = _chosen.get(key)
    if schema is None:
        name, values = choose(kind, args, named, plain)
        chosen = overload(name).schema
        if None not in key[1:] and len(values) == len(chosen.arguments) and len(args) + len(named) <= len(values):
            again = _repeated(chosen, bind(chosen, args, named))
            if all(a is b or type(a) is list and type(b) is list and a[:1] == b[:1] for a, b in zip(again, values, strict=True)):
                _chosen[key] = chosen
        return name, values
    return schema.name, _repeated(schema, bind(schema, args, named))


def _kind_of(value: Any) -> Any:
    """The facts about a value on which the choice of an overload depends; None if it depends on more."""
    if isinstance(value, Tensor):
        return 0 if value.ndim == 0 else 1
    if type(value) is int and not -2**63 <= value < 2**64:
        return None
    return value.__class__ if value.__class__ in _SIMPLE else None


def choose(kind: str, args: Sequence[Any], named: Mapping[str, Any], plain: Callable[[Any], Any] | None = None) -> tuple[str, list[Any]]:
    """The first overload, in torch's order, that accepts the operands: without conversions, else with. Raises UnsupportedError.

    Returns its name and one value per argument, in which tensors are still handles. plain: returns the value to be examined for an operand:
    for a handle, its array.
    """
    plain = plain or unwrapped
    from irtool.ops import OPS
    from irtool.ops.call import fits
    from irtool.ops.checks import bind

    args = [_plain(each) for each in args]
    named = {name: _plain(each) for name, each in named.items()}
    candidates = list(schemas(kind)) or [parse_schema(text) for op in dict.fromkeys(OPS.of_kind(kind).values()) for text in op.schemas]
    for by_name, lenient in ((True, False), (True, True), (False, False), (False, True)):   # first as in Python: `*, dtype` by name
        of_numbers = None       # an overload that takes a number for a tensor: the last choice, since `x.quantile(1)` means the float
        for schema in candidates:
            positional = _packed(schema, args, lenient)
            if by_name and len(positional) > sum(not argument.keyword_only for argument in schema.arguments):
                continue
            try:
                values = bind(schema, positional, named)
            except RunError:
                continue
            if all(fits(argument, plain(value), lenient and not _is_number_for_none(argument, value))
                   or bool(argument.fixed_size) and isinstance(value, int)
                   for argument, value in zip(schema.arguments, values, strict=False)):
                if not lenient or not any(argument.type is TENSOR and isinstance(value, int)
                                          for argument, value in zip(schema.arguments, values, strict=False)):
                    return schema.name, _repeated(schema, values)
                of_numbers = of_numbers or (schema.name, _repeated(schema, values))
        if of_numbers is not None:
            return of_numbers
    described = ", ".join("Tensor" if isinstance(arg, Tensor) else type(arg).__name__ for arg in [*args, *named.values()])
    raise UnsupportedError(f"{kind} on ({described}) is not supported{_misfit(candidates, args, named, plain)}")


def _is_number_for_none(argument: Argument, value: Any) -> bool:
    """Is a number given for a tensor that may be left out? torch takes numbers only for tensors that must be there."""
    return isinstance(argument.type, OptionalType) and argument.type.element is TENSOR and isinstance(value, int | float | complex)


def _misfit(candidates: Sequence[Schema], args: Sequence[Any], named: Mapping[str, Any], plain: Callable[[Any], Any]) -> str:
    """`; the argument 'dtype' takes a dtype, such as torch.float32, not str`: of the first overload that has as many arguments.

    Without one, what the first overload says: `; aten::linspace() is missing value for argument 'steps'`.
    """
    from irtool.ops.call import fits
    from irtool.ops.checks import bind

    unbound = ""
    for schema in candidates:
        if any(argument.name == "out" for argument in schema.arguments) and "out" not in named:
            continue
        try:
            values = bind(schema, _packed(schema, args, True), named)
        except RunError as error:
            unbound = unbound or f"; {error.message}"
            continue
        for argument, value in zip(schema.arguments, values, strict=False):
            if not fits(argument, plain(value), True) and not (argument.fixed_size and isinstance(value, int)):
                wanted = argument.type_text.replace("SymInt", "int")
                wanted = "a dtype, such as torch.float32" if wanted.startswith("ScalarType") else wanted
                found = ", ".join(sorted({type(each).__name__ for each in value})) if isinstance(value, list) else ""
                return f"; the argument '{argument.name}' takes {wanted}, not {type(value).__name__}{found and f' of {found}'}"
    return unbound


def _plain(value: Any) -> Any:
    """A list for a tuple, and a Python number for NumPy's. Raises RunError for a number that no tensor can contain."""
    if type(value) is int and not -2**63 <= value < 2**64:
        raise RunError(f"{value if abs(value) < 10**30 else 'a number'} is too big for an integer of 64 bits")
    return list(value) if type(value) is tuple else value.item() if isinstance(value, np.generic) else value


def _repeated(schema: Any, values: list[Any]) -> list[Any]:
    """A list of a number, if the schema has a list of a fixed size, `int[2] stride`."""
    if not any(argument.fixed_size for argument in schema.arguments):
        return values
    return [[value] * argument.fixed_size if argument.fixed_size and isinstance(value, int) and type(value) is not bool else value
            for argument, value in zip(schema.arguments, values, strict=False)]


def _packed(schema: Any, args: Sequence[Any], lenient: bool) -> Sequence[Any]:
    """`x.view(2, 3)`: the last positional argument, a list, takes the remaining numbers, which may be tensors of one whole number."""
    positional = [argument for argument in schema.arguments if not argument.keyword_only]
    if not lenient or not positional or len(args) < len(positional) or not positional[-1].type.text.endswith("[]"):
        return args
    rest = args[len(positional) - 1:]
    is_of_numbers = positional[-1].type.text == "int[]"
    if all(isinstance(item, int) or is_of_numbers and is_whole_number(item) for item in rest):
        return [*args[:len(positional) - 1], list(rest)]
    return args


def is_whole_number(value: Any) -> bool:
    """Is a value a tensor of one whole number, without dimensions?"""
    return isinstance(value, Tensor) and value.ndim == 0 and CODES[value.dtype] in ("uint8", "int8", "int16", "int32", "int64")


_current: ContextVar[Call] = ContextVar("irtool_call", default=run_kernel)


def call(kind: str, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Run one operation, `aten::add` without an overload, on the top layer."""
    return _current.get()(kind, args, named)


def has_layers() -> bool:
    """Do operations go to a layer, rather than to the kernels?"""
    return _current.get() is not run_kernel


@contextmanager
def calling(layer: Call) -> Iterator[Call]:
    """A context in which operations on tensors go to `layer`; its value is the layer below, for calls from `layer`."""
    below = _current.get()
    token = _current.set(layer)
    try:
        yield below
    finally:
        _current.reset(token)


def _do(kind: str, *args: Any) -> Any:
    return _current.get()(kind, args, {})


def unwrapped(value: Any) -> Any:
    """A value with arrays for handles, also in lists and tuples."""
    if isinstance(value, Tensor):
        return value.array
    if isinstance(value, list | tuple):
        return type(value)([unwrapped(item) for item in value])
    return value


def wrapped(value: Any) -> Any:
    """A value with handles for arrays, also in lists and tuples."""
    if isinstance(value, np.ndarray | np.generic) or is_array(value):
        return Tensor(value)
    if isinstance(value, list | tuple):
        return type(value)([wrapped(item) for item in value])
    return value
