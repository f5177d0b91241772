"""The stanza: all knowledge about one operator, in one place.

    @table.op("aten::div.Tensor(Tensor self, Tensor other) -> Tensor", promote=TO_FLOAT)
    def div(xp, self, other):
        \"\"\"Elementwise true quotient, with broadcasting and torch's type promotion.\"\"\"
        return xp.divide(self, other)

A kernel takes the array namespace `xp` (NumPy or CuPy), then all arguments of the schema in order, with defaults filled in:

- `Tensor`: an array (also without dimensions); `Tensor?`: array or None; `Tensor[]`: a list of arrays;
- with a `promote` rule (`irtool.ops.promotion`), tensors and `Scalar`s are converted to the common dtype before the kernel, and the result
  after it as the rule says; without a rule, arrays have the dtypes of the call, and `Scalar`s are Python numbers;
- `int`, `float`, `bool`, `str`, `int[]`, ...: Python values; `ScalarType`: torch's integer code (`irtool.ops.arrays.dtype_of`);
  `Device`: a string; `Generator`, `Layout`, `MemoryFormat`: the value in the graph, mostly None or an int.

It returns an array, a tuple of arrays for several results (a list for a `Tensor[]` result), or plain Python values. It never writes into
an argument unless its schema says `(a!)`, and returns a NumPy *view* of an argument exactly where torch returns a view (schema `(a)`).
In-place kinds (`aten::add_`) and `out=` overloads are derived from the plain operator (`irtool.ops.call`) and have no stanza. Where torch
raises, a kernel raises `irtool.RunError` with torch's message.

`fits="value"` names numbers that torch converts to the dtype in which it computes; a number that this dtype cannot represent is refused
(`irtool.ops.checks.fit`). `fits="value+"`: float16 is computed in float32.

If torch supports fewer dtypes than the kernel, the family states them by letter (`irtool.ops.checks.letter`):

    table.takes("uilhf", "topk kthvalue")           # the first tensor's dtype; with a promotion rule, the common dtype
    table.takes("hf+", "elu_backward")              # the common dtype of tensors, without a promotion rule
    table.takes("fc=", "ormqr")                     # the dtype of all tensors, which must be the same

If torch's results have another memory layout than NumPy's, the family states it, a letter per result: `C` row-major, `F` matrices in
column-major order, `K` as the first tensor, `-` as the kernel returns it. `view` and `reshape` of results depend on the layout.

    table.laid_out("CC", "cummax cummin")

Each overload states its gradient too, in a module per family of `irtool.ops.gradients`, which loads when the first gradient is needed: a
derivative, from which the formula is generated; or a formula; or that there is no gradient, and why; or why the formula is missing.

    table.slope("mul.Tensor mul.Scalar", lambda self, other: (other, self))     # times `grad`, summed to the operands' shapes
    table.pointwise("add.Tensor add.Scalar", lambda grad, alpha: (grad, grad * alpha))                      # summed to their shapes
    table.derivative("view reshape", lambda grad, self_size: grad.reshape(self_size))                       # not summed
    table.backward("gelu silu")                                                         # gelu_backward(grad, self, approximate=approximate)
    table.transposed("reflection_pad1d")                                                # and the derivative of its backward is the operator

A derivative returns the gradients of the tensor arguments of the first overload; other overloads may have numbers in their place. Its
parameters are `grad`, the gradient of the first result (any other name that is no argument or result, such as `again`, means the same;
several are the gradients of the first results), and by name: arguments, results (`result`; `result0`, `result1`, ... if the schema does
not name them) and facts of tensors (`self_size`, `tensors_size`, `bias_present`: `irtool.ops.derivative.FACTS`). A derivative with
statements is a function under `@table.derivative(names)`, with its only `return` at the end. It returns a tuple, parts of which may be
unpacked from a call (`*call(...), None`), or one call. `through="nll_loss_forward"` computes the results by that operator, whose other
results the derivative may read. A whole formula is needed to save other values:

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
    table.no_gradient_for("weight", "torch has none either", "nll_loss nll_loss2d")     # refused if `weight` needs a gradient

A formula is TorchScript source, and Python can run it on `irtool.Tensor`. Its parameters are the schema's arguments in order. It returns
the results and, last, `backward`, which takes one gradient for each of the first results (those that can have one), and returns one
gradient per argument, None for an argument that is no tensor. If it has several parameters, some may be None: those results take no part.
The values of the formula that `backward` reads are saved, so formulas read sizes where sizes are enough. Gradients have the shapes of the
arguments; if promotion converted an argument, the caller converts its gradient back. Formulas multiply by the derivative itself, of
complex tensors too; torch's gradient is the conjugate of the result of a chain of formulas for the conjugate cotangent.

Each overload states its batching rule, by which `vmap` runs it, in a module per family of `irtool.ops.batching`, which loads when the first
rule is needed:

    @table.batch("sum.dim_IntList mean.dim")
    def along_dims(batch, self, dim, keepdim, dtype):
        return batch.box(batch.same(batch.front(self), shifted(dim, self), keepdim, dtype))

    table.not_batched("its sizes depend on the values", "nonzero argwhere")

A rule takes a `Batch` (`irtool.ops.batch`) and the schema's arguments in order. It runs operations on the layer below, whose tensors have
the batch dimension, and hides that dimension in the results. Pointwise overloads (`irtool.ops.facts`) share one rule, and need none.
In-place forms use the rule of the operator that returns a new tensor.

Small sample calls, on which all tests run an operator, are in `irtool.ops.samples`, a module per family too; every formula has at least
one.

    table.sample("div.Tensor divide.Tensor", call(real(2, 3), positive(3)), call(complexes(2), complexes(2)))
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from irtool.ir.schema import parse_schema
from irtool.ops.derivative import Derivative, calling

if TYPE_CHECKING:
    from irtool.ops.samples.draw import Call

Kernel = Callable[..., Any]
Formula = Callable[..., Any]
Rule = Callable[..., Any]


class Op:
    """One kernel with the schemas (overloads) it serves, and its facets. A facet that is None has not been stated."""

    __slots__ = ("schemas", "kernel", "promote", "fits", "takes", "layout", "_formulas", "_no_gradient", "_unsupported",
                 "_refused", "_samples", "_batch_rules", "_not_batched", "family", "doc")

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
        self._refused: dict[str, dict[str, str]] = {}
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
        """Gradient formulas by qualified name of the overload; `formula` completes those stated as derivatives."""
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
        """The declared reason why an overload has no gradient, by qualified name."""
        import_module("irtool.ops.gradients")
        return self._no_gradient

    @property
    def unsupported(self) -> dict[str, str]:
        """The declared reason why the gradient of an overload is not stated, by qualified name of the overload."""
        import_module("irtool.ops.gradients")
        return self._unsupported

    @property
    def refused(self) -> dict[str, dict[str, str]]:
        """The arguments for which a formula has no gradient though one exists, and the declared reason, by qualified name of the
        overload."""
        import_module("irtool.ops.gradients")
        return self._refused

    @property
    def batch_rules(self) -> dict[str, Rule]:
        """Batching rules by qualified name of the overload; pointwise overloads need none."""
        import_module("irtool.ops.batching")
        return self._batch_rules

    @property
    def not_batched(self) -> dict[str, str]:
        """The declared reason why an overload has no batching rule, by qualified name."""
        import_module("irtool.ops.batching")
        return self._not_batched

    @property
    def samples(self) -> dict[str, list[Call]]:
        """Sample calls of an overload, by its qualified name."""
        import_module("irtool.ops.samples")
        return self._samples

    def inherit(self, other: Op, *facets: str) -> None:
        """Take over the facets of `other`'s overloads for one's own, in order, where none are stated."""
        for facet in facets:
            stated, known = getattr(self, facet), getattr(other, facet)
            for ours, name in zip(self.names, other.names, strict=False):
                if name in known:
                    stated.setdefault(ours, known[name])

    def __repr__(self) -> str:
        return f"<Op {', '.join(self.names)}>"


class OpTable:
    """The stanzas of one family, in order of definition."""

    def __init__(self, family: str) -> None:
        self.family = family
        self.ops: list[Op] = []
        self._indexed = 0           # how many stanzas the next two tables contain
        self._owner: dict[str, Op] = {}
        self._by_kind: dict[str, list[str]] = {}

    def op(self, *schemas: str, promote: Any = None, fits: str = "") -> Callable[[Kernel], Op]:
        """A decorator: makes a kernel an `Op` of this family that serves each of `schemas`."""
        def define(kernel: Kernel) -> Op:
            op = Op(schemas, kernel, promote, self.family, fits)
            self.ops.append(op)
            return op
        return define

    def define(self, schemas: str | Iterable[str], kernel: Kernel, promote: Any = None, doc: str = "", fits: str = "") -> Op:
        """As `op`, but a call, for kernels made by functions and for tables of similar operators."""
        op = Op((schemas,) if isinstance(schemas, str) else tuple(schemas), kernel, promote, self.family, fits)
        op.doc = doc or op.doc
        self.ops.append(op)
        return op

    def gradient(self, names: str) -> Callable[[Formula], Formula]:
        """A decorator: states the gradient formula of overloads, named without `aten::`. Raises KeyError for one not in this table."""
        def state(formula: Formula) -> Formula:
            for name, op in self._named(names):
                op._formulas[name] = formula
            return formula
        return state

    def derivative(self, names: str, rule: Formula | None = None, *, sums: bool = False,
                   is_slope: bool = False, through: str = "") -> Callable[[Formula], Formula]:
        """A decorator, or a call with a lambda: states the derivative from which formulas are generated (`irtool.ops.derivative`)."""
        def state(rule: Formula) -> Formula:
            pairs = self._named(names)
            name, op = pairs[0]
            derivative = Derivative(rule, [each for each, _ in pairs], op.schemas[op.names.index(name)], sums, is_slope, through=through)
            for name, op in pairs:
                op._formulas[name] = derivative
            return rule
        if rule is not None:
            state(rule)
        return state

    def pointwise(self, names: str, rule: Formula | None = None) -> Callable[[Formula], Formula]:
        """As `derivative`, for pointwise operators: the gradient of each operand is summed to the operand's shape."""
        return self.derivative(names, rule, sums=True)

    def slope(self, names: str, rule: Formula | None = None) -> Callable[[Formula], Formula]:
        """As `pointwise`, for operators whose gradient for each operand is `grad` times the value that the rule returns."""
        return self.derivative(names, rule, sums=True, is_slope=True)

    def backward(self, names: str) -> None:
        """State that the derivative of each overload NAME is the operator NAME_backward on `grad` and the arguments of the same names."""
        for name in names.split():
            self.derivative(name, calling(f"{name}_backward", name))

    def transposed(self, names: str) -> None:
        """As `backward`, for linear operators: the derivative of NAME_backward is NAME."""
        self.backward(names)
        for name in names.split():
            self.derivative(f"{name}_backward", calling(name, f"{name}_backward"))

    def linear(self, names: str) -> None:
        """State that the derivative of pointwise overloads is the same operator on `grad`; only the first argument has a gradient."""
        for name in names.split():
            self.pointwise(name, calling(name, name))

    def batch(self, names: str) -> Callable[[Rule], Rule]:
        """A decorator: states the batching rule of overloads, named without `aten::`. Raises KeyError for one that has another rule."""
        def state(rule: Rule) -> Rule:
            for name, op in self._named(names):
                if op._batch_rules.setdefault(name, rule) is not rule:
                    raise KeyError(f"{name} has two batching rules")
            return rule
        return state

    def none_batched(self, reason: str, but: str = "") -> None:
        """State for all overloads so far, except those named, that they have no batching rule."""
        names = [name for op in self.ops for name in op.names]
        self.not_batched(reason, " ".join(name for name in names if name.removeprefix("aten::") not in but.split()))

    def not_batched(self, reason: str, names: str) -> None:
        """State that overloads, named without `aten::`, have no batching rule: `vmap` refuses them with the reason."""
        for name, op in self._named(names):
            op._not_batched[name] = reason

    def takes(self, letters: str, names: str) -> None:
        """State the dtypes of tensors that the stanzas of overloads, named without `aten::`, support."""
        for word in names.split():
            for _, op in self._named(word, whole_kind=True):
                op.takes = letters

    def laid_out(self, letters: str, names: str) -> None:
        """State the memory layout of the results of overloads, named without `aten::`, a letter per result."""
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
        """State why overloads, named without `aten::` or by kind, lack a formula though they have a gradient; its use is then an error."""
        for word in names.split():
            for name, op in self._named(word, whole_kind=True):
                if name not in op._formulas and name not in op._no_gradient:
                    op._unsupported.setdefault(name, reason)

    def no_gradient_for(self, arguments: str, reason: str, names: str) -> None:
        """State why the formulas of overloads, named without `aten::`, give no gradient for these arguments; it is an error if one of them
        needs a gradient. Raises KeyError for an argument that an overload does not have."""
        for name, op in self._named(names):
            known = [argument.name for argument in parse_schema(op.schemas[op.names.index(name)]).arguments]
            for argument in arguments.split():
                if argument not in known:
                    raise KeyError(f"{name} has no argument {argument}")
                op._refused.setdefault(name, {})[argument] = reason

    def sample(self, names: str, *calls: Call) -> None:
        """State sample calls of overloads, named without `aten::`. Raises KeyError for a name that is not in the table."""
        for name, op in self._named(names):
            op._samples.setdefault(name, []).extend(calls)

    def _index(self) -> tuple[dict[str, Op], dict[str, list[str]]]:
        """Name of an overload -> its stanza, and kind -> names; both are computed again after stanzas were added."""
        if self._indexed != len(self.ops):
            self._owner = {name: op for op in self.ops for name in op.names}
            self._by_kind = {}
            for name in self._owner:
                self._by_kind.setdefault(name.partition(".")[0], []).append(name)
            self._indexed = len(self.ops)
        return self._owner, self._by_kind

    def _named(self, names: str, whole_kind: bool = False) -> list[tuple[str, Op]]:
        """Overloads by name; a kind stands for its overload without a name, or for all its overloads if there is none or `whole_kind` is
        set."""
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
