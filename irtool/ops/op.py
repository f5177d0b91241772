"""The stanza: everything known about one operator, in one place.

    @table.op("aten::div.Tensor(Tensor self, Tensor other) -> Tensor", promote=TO_FLOAT)
    def div(xp, self, other):
        \"\"\"Elementwise true quotient, with broadcasting and torch's type promotion.\"\"\"
        return xp.divide(self, other)

A kernel gets the array namespace `xp` (NumPy or CuPy), then the schema's arguments in order, all of them, defaults filled in:

- `Tensor`: an array (0-d ones too); `Tensor?`: array or None; `Tensor[]`: a list of arrays;
- with a `promote` rule (`irtool.ops.promotion`), tensors and `Scalar`s arrive already converted to the common dtype, and the result is
  converted as the rule says; without one (`None`), everything arrives as it is: arrays in their own dtype, `Scalar`s as Python numbers;
- `int`, `float`, `bool`, `str`, `int[]`, ...: Python values; `ScalarType`: torch's integer code (`irtool.ops.arrays.dtype_of`);
  `Device`: a string; `Generator`, `Layout`, `MemoryFormat`: whatever the graph says, mostly None or ints.

`fits="value"` names the numbers that torch converts to the dtype computed in: one that this cannot hold is refused
(`irtool.ops.checks.fit`); `fits="value+"`, where float16 is computed in float32.

What dtypes torch serves where the kernel would serve more is stated below the stanzas of a family, by letter (`irtool.ops.checks.letter`):

    table.takes("uilhf", "topk kthvalue")           # what the first tensor may be; with a promotion rule, the common dtype
    table.takes("hf+", "elu_backward")              # what the common dtype may be of tensors that arrive as they are

How torch lays results out in memory, where that is not as NumPy does, is stated there, too, a letter per result: `C` row by row, `F` by
columns of matrices, `K` as the first tensor, `-` as the kernel gives it. `view` and `reshape` of results depend on it.

    table.laid_out("CC", "cummax cummin")

It gives an array, or a tuple of them for several results (a list for a `Tensor[]` result), or plain Python values. It never writes
into an argument unless its schema says `(a!)`, and gives a NumPy *view* of its argument exactly where torch gives a view (schema
`(a)`). In-place kinds (`aten::add_`) and out= overloads are derived from the plain op (`irtool.ops.call`): no stanza for them.
Kernels raise `irtool.RunError` with torch's message when torch would raise.

The gradient of each overload is stated too, in `irtool.ops.gradients`, a module per family that loads when the first gradient is
asked for (running a graph needs none): a derivative, from which the formula is written, or a formula, or that there is none and why, or
why one is missing.

    table.slope("mul.Tensor mul.Scalar", lambda self, other: (other, self))     # times grad, summed down to the operands' shapes
    table.pointwise("add.Tensor add.Scalar", lambda grad, alpha: (grad, grad * alpha))                      # summed down
    table.derivative("view reshape", lambda grad, self_size: grad.reshape(self_size))                       # as it is

A derivative returns gradients of the tensors among the arguments of the first overload; in the others, numbers may stand in their place.
It takes `grad`, the gradient of the first result (or several, by other names, of the first results), and what else it names: arguments,
results (`result`; `result0` and so on where the schema does not name them), facts of tensors (`self_size`, `tensors_size`, `bias_present`:
`irtool.ops.derivative.FACTS`). Where it takes statements, it is a function under `@table.derivative(names)` with its only return at the
end. It returns a tuple, parts of which may be unpacked from a call (`*call(...), None`), or one call. Formulas are for what is saved
otherwise:

    @table.gradient("div.Tensor divide.Tensor true_divide.Tensor")
    def div_gradient(self: Tensor, other: Tensor):
        quotient = self / other
        self_size, other_size = self.size(), other.size()

        def backward(grad: Tensor):
            scaled = grad / other
            return scaled.sum_to_size(self_size), (-scaled * quotient).sum_to_size(other_size)

        return quotient, backward

    table.no_gradient("indices are whole numbers", "argmax argmin")     # kinds, or overloads
    table.unsupported("tensors are not followed into dicts", "dict.str")

A formula is TorchScript source and also runs as it is on `irtool.Tensor`. Its parameters are the schema's arguments in order; it
returns the results and, last, `backward`, which takes one gradient for each of the first results (those that can have one) and
returns one gradient per argument, None for what is no tensor. With several parameters, some may be None: those results take no part.
What `backward` names is saved between the two, so formulas name sizes where sizes are enough. Gradients have the shape of their
arguments; where promotion changed the dtype, whoever uses the gradient converts it back. Formulas multiply by the plain derivative, of
complex tensors too; torch's gradient is the conjugate of what a chain of them makes of the conjugate cotangent.

The batching rule of each overload, what `vmap` does with it, is stated in `irtool.ops.batching`, a module per family that loads when the
first rule is asked for.

    @table.batch("sum.dim_IntList mean.dim")
    def along_dims(batch, self, dim, keepdim, dtype):
        return batch.box(batch.same(batch.front(self), shifted(dim, self), keepdim, dtype))

    table.not_batched("its sizes depend on the values", "nonzero argwhere")

A rule takes a `Batch` (`irtool.ops.batch`) and the schema's arguments in order. It does operations on the layer below, whose tensors show
the batch dimension, and hides that dimension in the results. Pointwise overloads (`irtool.ops.facts`) need no rule: one serves them all.
In-place forms take the rule of the operator that gives a new tensor.

Small calls on which an operator is tried stand in `irtool.ops.samples`, a module per family too; every formula has at least one.

    table.sample("div.Tensor divide.Tensor", call(real(2, 3), positive(3)), call(complexes(2), complexes(2)))
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from irtool.ops.derivative import Derivative

if TYPE_CHECKING:
    from irtool.ops.samples.draw import Call

Kernel = Callable[..., Any]
Formula = Callable[..., Any]
Rule = Callable[..., Any]


class Op:
    """One kernel with the schemas (overloads) it serves, and its facets. A facet that is None has not been stated."""

    __slots__ = ("schemas", "kernel", "promote", "fits", "takes", "layout", "_formulas", "_no_gradient", "_unsupported", "_samples",
                 "_batch_rules", "_not_batched", "family", "doc")

    def __init__(self, schemas: tuple[str, ...], kernel: Kernel, promote: Any, family: str, fits: str = "") -> None:
        self.schemas = schemas
        self.kernel = kernel
        self.promote = promote
        self.fits = fits
        self.takes = ""
        self.layout = ""
        self._formulas: dict[str, Formula | Derivative] = {}
        self._no_gradient: dict[str, str] = {}
        self._unsupported: dict[str, str] = {}
        self._samples: dict[str, list[Call]] = {}
        self._batch_rules: dict[str, Rule] = {}
        self._not_batched: dict[str, str] = {}
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

    @property
    def formulas(self) -> dict[str, Formula | Derivative]:
        """Gradient formulas by qualified name of the overload; `formula` completes those that are said in short."""
        import_module("irtool.ops.gradients")
        return self._formulas

    def formula(self, name: str) -> Formula | None:
        """The gradient formula of one overload."""
        stated = self.formulas.get(name)
        if not isinstance(stated, Derivative):
            return stated
        return stated.formula(name, self.schemas)

    @property
    def no_gradient(self) -> dict[str, str]:
        """Why an overload is declared to have no gradient, by qualified name."""
        import_module("irtool.ops.gradients")
        return self._no_gradient

    @property
    def unsupported(self) -> dict[str, str]:
        """Why the gradient that an overload has is not stated, by qualified name of the overload."""
        import_module("irtool.ops.gradients")
        return self._unsupported

    @property
    def batch_rules(self) -> dict[str, Rule]:
        """Batching rules by qualified name of the overload; pointwise overloads need none."""
        import_module("irtool.ops.batching")
        return self._batch_rules

    @property
    def not_batched(self) -> dict[str, str]:
        """Why an overload is declared to have no batching rule, by qualified name."""
        import_module("irtool.ops.batching")
        return self._not_batched

    @property
    def samples(self) -> dict[str, list[Call]]:
        """Calls on which an overload is tried, by qualified name of the overload."""
        import_module("irtool.ops.samples")
        return self._samples

    def __repr__(self) -> str:
        return f"<Op {', '.join(self.names)}>"


class OpTable:
    """The stanzas of one family, in order of definition."""

    def __init__(self, family: str) -> None:
        self.family = family
        self.ops: list[Op] = []
        self._indexed = 0           # how many of them the next two know
        self._owner: dict[str, Op] = {}
        self._by_kind: dict[str, list[str]] = {}

    def op(self, *schemas: str, promote: Any = None, fits: str = "") -> Callable[[Kernel], Op]:
        """Decorator: makes the kernel below it an `Op` of this family, serving each of `schemas`."""
        def define(kernel: Kernel) -> Op:
            op = Op(schemas, kernel, promote, self.family, fits)
            self.ops.append(op)
            return op
        return define

    def define(self, schemas: str | Iterable[str], kernel: Kernel, promote: Any = None, doc: str = "",
               fits: str = "") -> Op:
        """As `op`, without a decorator: for combinators and tables of look-alikes."""
        op = Op((schemas,) if isinstance(schemas, str) else tuple(schemas), kernel, promote, self.family, fits)
        op.doc = doc or op.doc
        self.ops.append(op)
        return op

    def gradient(self, names: str) -> Callable[[Formula], Formula]:
        """Decorator: the gradient formula of overloads named without `aten::`. Raises KeyError for one that is not in this table."""
        def state(formula: Formula) -> Formula:
            for name, op in self._named(names):
                op._formulas[name] = formula
            return formula
        return state

    def derivative(self, names: str, rule: Formula | None = None, *, sums: bool = False,
                   is_slope: bool = False) -> Callable[[Formula], Formula]:
        """Decorator, or call with a lambda: what the formulas of overloads are written from (`irtool.ops.derivative`)."""
        def state(rule: Formula) -> Formula:
            pairs = self._named(names)
            name, op = pairs[0]
            derivative = Derivative(rule, [each for each, _ in pairs], op.schemas[op.names.index(name)], sums, is_slope)
            for name, op in pairs:
                op._formulas[name] = derivative
            return rule
        if rule is not None:
            state(rule)
        return state

    def pointwise(self, names: str, rule: Formula | None = None) -> Callable[[Formula], Formula]:
        """The same of pointwise operators: the gradient of each operand is summed down to its shape."""
        return self.derivative(names, rule, sums=True)

    def slope(self, names: str, rule: Formula | None = None) -> Callable[[Formula], Formula]:
        """The same, where the gradient of each operand is `grad` times what the rule returns for it."""
        return self.derivative(names, rule, sums=True, is_slope=True)

    def batch(self, names: str) -> Callable[[Rule], Rule]:
        """Decorator: the batching rule of overloads named without `aten::`. Raises KeyError for one that has another rule."""
        def state(rule: Rule) -> Rule:
            for name, op in self._named(names):
                if op._batch_rules.setdefault(name, rule) is not rule:
                    raise KeyError(f"{name} has two batching rules")
            return rule
        return state

    def none_batched(self, reason: str, but: str = "") -> None:
        """State this of all overloads so far, but of those named."""
        names = [name for op in self.ops for name in op.names]
        self.not_batched(reason, " ".join(name for name in names if name.removeprefix("aten::") not in but.split()))

    def not_batched(self, reason: str, names: str) -> None:
        """State that overloads, named without `aten::`, have no batching rule: `vmap` refuses them and gives the reason."""
        for name, op in self._named(names):
            op._not_batched[name] = reason

    def takes(self, letters: str, names: str) -> None:
        """State which dtypes tensors may have in the stanzas of overloads named without `aten::`."""
        for word in names.split():
            for _, op in self._named(word, whole_kind=True):
                op.takes = letters

    def laid_out(self, letters: str, names: str) -> None:
        """State how the results of overloads named without `aten::` lie in memory, a letter for each."""
        for word in names.split():
            for _, op in self._named(word, whole_kind=True):
                op.layout = letters

    def no_gradient(self, reason: str, names: str | None = None) -> None:
        """State that overloads, named without `aten::` or by kind, have no gradient; without names, all that have no formula."""
        if names is None:
            pairs = [(name, op) for op in self.ops for name in op.names if name not in op._formulas]
        else:
            pairs = [one for word in names.split() for one in self._named(word, whole_kind=True) if one[0] not in one[1]._formulas]
        for name, op in pairs:
            op._no_gradient.setdefault(name, reason)

    def unsupported(self, reason: str, names: str) -> None:
        """State why overloads, named without `aten::` or by kind, that do have a gradient get none: asking for it is an error saying so."""
        for word in names.split():
            for name, op in self._named(word, whole_kind=True):
                if name not in op._formulas and name not in op._no_gradient:
                    op._unsupported.setdefault(name, reason)

    def sample(self, names: str, *calls: Call) -> None:
        """State calls on which overloads named without `aten::` are tried. Raises KeyError for a name that is not in this table."""
        for name, op in self._named(names):
            op._samples.setdefault(name, []).extend(calls)

    def _index(self) -> tuple[dict[str, Op], dict[str, list[str]]]:
        """The stanzas by the names of their overloads, and these by kind; made anew when stanzas have been added."""
        if self._indexed != len(self.ops):
            self._owner = {name: op for op in self.ops for name in op.names}
            self._by_kind = {}
            for name in self._owner:
                self._by_kind.setdefault(name.partition(".")[0], []).append(name)
            self._indexed = len(self.ops)
        return self._owner, self._by_kind

    def _named(self, names: str, whole_kind: bool = False) -> list[tuple[str, Op]]:
        """Overloads by name; a kind stands for its overload without a name, or for all when there is none or all are meant."""
        owner, by_kind = self._index()
        pairs: list[tuple[str, Op]] = []
        for word in names.split():
            name = word if "::" in word else f"aten::{word}"
            exact = name in owner and ("." in name or not whole_kind)
            meant = [name] if exact else by_kind.get(name, [])
            if not meant:
                raise KeyError(f"{name} is not in the family {self.family}")
            pairs += [(each, owner[each]) for each in meant]
        return pairs

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)
