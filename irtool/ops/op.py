"""The stanza: everything known about one operator, in one place.

    @table.op("aten::div.Tensor(Tensor self, Tensor other) -> Tensor", promote=TO_FLOAT)
    def div(xp, self, other):
        \"\"\"Elementwise true quotient, with broadcasting and torch's type promotion.\"\"\"
        return xp.divide(self, other)

A kernel gets the array namespace `xp` (NumPy or CuPy), then the schema's arguments in order, all of them, defaults filled in:

- `Tensor`: an array (0-d ones too); `Tensor?`: array or None; `Tensor[]`: a list of arrays;
- with a `promote` rule (`irtool.ops.rules`), tensors and `Scalar`s arrive already converted to the common dtype, and the result is
  converted as the rule says; without one (`None`), everything arrives as it is: arrays in their own dtype, `Scalar`s as Python numbers;
- `int`, `float`, `bool`, `str`, `int[]`, ...: Python values; `ScalarType`: torch's integer code (`irtool.ops.arrays.dtype_of`);
  `Device`: a string; `Generator`, `Layout`, `MemoryFormat`: whatever the graph says, mostly None or ints.

It gives an array, or a tuple of them for several results (a list for a `Tensor[]` result), or plain Python values. It never writes
into an argument unless its schema says `(a!)`, and gives a NumPy *view* of its argument exactly where torch gives a view (schema
`(a)`). In-place kinds (`aten::add_`) and out= overloads are derived from the plain op (`irtool.ops.call`): no stanza for them.
Kernels raise `irtool.RunError` with torch's message when torch would raise.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Kernel = Callable[..., Any]


class Op:
    """One kernel with the schemas (overloads) it serves, and its facets. A facet that is None has not been stated."""

    __slots__ = ("schemas", "kernel", "promote", "types", "samples", "batch", "gradient_formula", "family", "doc")

    def __init__(self, schemas: tuple[str, ...], kernel: Kernel, promote: Any, types: Any, samples: Any, batch: Any, family: str) -> None:
        self.schemas = schemas
        self.kernel = kernel
        self.promote = promote
        self.types = types
        self.samples = samples
        self.batch = batch
        self.gradient_formula: Any = None
        self.family = family
        self.doc = (kernel.__doc__ or "").strip()

    @property
    def names(self) -> tuple[str, ...]:
        """Qualified names with overload: `aten::div.Tensor`."""
        return tuple(schema.partition("(")[0] for schema in self.schemas)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Node kinds it serves, without overload, each once."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.names))

    def gradient(self, formula: Kernel) -> Kernel:
        """Decorator: the gradient formula, TorchScript source (compiled when differentiation arrives)."""
        self.gradient_formula = formula
        return formula

    def __repr__(self) -> str:
        return f"<Op {', '.join(self.names)}>"


class OpTable:
    """The stanzas of one family, in order of definition."""

    def __init__(self, family: str) -> None:
        self.family = family
        self.ops: list[Op] = []

    def op(self, *schemas: str, promote: Any = None, types: Any = None, samples: Any = None, batch: Any = None) -> Callable[[Kernel], Op]:
        """Decorator: makes the kernel below it an `Op` of this family, serving each of `schemas`."""
        def define(kernel: Kernel) -> Op:
            op = Op(schemas, kernel, promote, types, samples, batch, self.family)
            self.ops.append(op)
            return op
        return define

    def define(self, schemas: str | Iterable[str], kernel: Kernel, promote: Any = None, doc: str = "", types: Any = None,
               samples: Any = None, batch: Any = None) -> Op:
        """The same without a decorator, for combinators and tables of look-alikes."""
        op = Op((schemas,) if isinstance(schemas, str) else tuple(schemas), kernel, promote, types, samples, batch, self.family)
        op.doc = doc or op.doc
        self.ops.append(op)
        return op

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)
