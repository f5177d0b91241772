"""Batching rules of products, by `matmul`, which takes any dimensions in front."""
from __future__ import annotations

from typing import Any

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.arrays import dtype_of
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import aligned, promoted_dtype, wrapped_dim
from irtool.ops.kernels.matmul import check_factors, table


def product(batch: Batch, a: Any, b: Any) -> Any:
    """matmul of (..., n, k) and (..., k, m), aligned to (B, ..., n, k) and (B, ..., k, m); vectors are rows and columns meanwhile."""
    if not a.ndim or not b.ndim:
        raise RunError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D", code="E0504")
    if not batch.has([a, b]):
        return batch.do("aten::matmul", a, b)
    if a.ndim == 1 and b.ndim == 2 and not batch.has(b):        # rows of one matrix
        return batch.box(batch.do("aten::matmul", batch.front(a), b))
    is_row, is_column = a.ndim == 1, b.ndim == 1
    if is_row:
        a = batch.again("aten::unsqueeze", a, 0)
    if is_column:
        b = batch.again("aten::unsqueeze", b, 1)
    rank = max(a.ndim, b.ndim)
    result = batch.box(batch.do("aten::matmul", aligned(batch, a, rank), aligned(batch, b, rank)))
    if is_column:
        result = batch.again("aten::squeeze", result, -1)
    return batch.again("aten::squeeze", result, -1 if is_column else -2) if is_row else result


def ranked(batch: Batch, tensor: Any, rank: int, what: str) -> None:
    """Raises RunError if a tensor does not have `rank` dimensions."""
    if tensor.ndim != rank:
        raise RunError(f"{batch.kind.removeprefix('aten::')}: Expected {what} to be {rank}-D, but it is {tensor.ndim}-D", code="E0504")


@table.batch("matmul linalg_matmul")
def matmul(batch: Batch, self: Any, other: Any) -> Any:
    """The product."""
    return product(batch, self, other)


@table.batch("mm bmm mv dot")
def of_ranks(batch: Batch, self: Any, other: Any) -> Any:
    """The product of operands of the ranks that the kind wants."""
    first, second = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1)}[batch.kind.removeprefix("aten::")]
    ranked(batch, self, first, "self")
    ranked(batch, other, second, "other")
    return product(batch, self, other)


@table.batch("mm.dtype bmm.dtype")
def in_dtype(batch: Batch, self: Any, other: Any, dtype: int) -> Any:
    """The product of operands converted to dtype."""
    return product(batch, batch.again("aten::to", self, dtype), batch.again("aten::to", other, dtype))


@table.batch("vdot")
def vdot(batch: Batch, self: Any, other: Any) -> Any:
    """The product of conj(self) (n) and other (n)."""
    return product(batch, batch.again("aten::conj", self), other)


@table.batch("inner")
def inner(batch: Batch, self: Any, other: Any) -> Any:
    """(..., k), (..., k) -> (..., ...): sums over the last dimensions."""
    if not self.ndim or not other.ndim:
        return batch.again("aten::mul", self, other)
    return batch.again("aten::tensordot", self, other, [-1], [-1])


@table.batch("outer ger")
def outer(batch: Batch, self: Any, other: Any) -> Any:
    """(n), (m) -> (n, 1) * (m)."""
    ranked(batch, self, 1, "self")
    ranked(batch, other, 1, "vec2")
    return batch.again("aten::mul", batch.again("aten::unsqueeze", self, 1), other)


@table.batch("linear")
def linear(batch: Batch, self: Any, weight: Any, bias: Any) -> Any:
    """self @ weight.T + bias."""
    result = product(batch, self, weight if weight.ndim == 1 else batch.again("aten::t", weight))
    return result if bias is None else batch.again("aten::add", result, bias)


def combined(batch: Batch, self: Any, addend: Any, beta: Any, alpha: Any) -> Any:
    """beta * self + alpha * addend; if beta is 0, self is ignored, even nan. Sums of whole numbers or booleans stay such."""
    kind = dtype_of(promoted_dtype([self, addend])).kind
    if kind in "iub":
        beta, alpha = (bool(each) if kind == "b" else int(each) for each in (beta, alpha))
    if alpha != 1:
        addend = batch.again("aten::mul", addend, alpha)
    if beta == 0:
        return addend
    return batch.again("aten::add", addend, self if beta == 1 else batch.again("aten::mul", self, beta))


@table.batch("addmm addmv baddbmm")
def add_product(batch: Batch, self: Any, first: Any, second: Any, beta: Any, alpha: Any) -> Any:
    """beta * self + alpha * (first @ second)."""
    return combined(batch, self, product(batch, first, second), beta, alpha)


@table.batch("addmm.dtype baddbmm.dtype")
def add_in_dtype(batch: Batch, self: Any, first: Any, second: Any, dtype: int, beta: Any, alpha: Any) -> Any:
    """beta * self + alpha * (first @ second), operands converted to dtype."""
    return combined(batch, batch.again("aten::to", self, dtype), in_dtype(batch, first, second, dtype), beta, alpha)


@table.batch("_addmm_activation")
def addmm_activation(batch: Batch, self: Any, first: Any, second: Any, beta: Any, alpha: Any, use_gelu: bool) -> Any:
    """relu or gelu of add_product."""
    total = combined(batch, self, product(batch, first, second), beta, alpha)
    return batch.again("aten::gelu", total) if use_gelu else batch.again("aten::relu", total)


@table.batch("addr")
def addr(batch: Batch, self: Any, first: Any, second: Any, beta: Any, alpha: Any) -> Any:
    """beta * self + alpha * outer(first, second), all in one dtype."""
    if not self.ndim:
        self = batch.again("aten::unsqueeze", self, 0)      # torch expands it before it promotes
    dtype = promoted_dtype([self, first, second])
    check_factors(dtype_of(dtype).kind, beta=beta, alpha=alpha)     # type: ignore[no-untyped-call]
    self, first, second = (batch.again("aten::to", each, dtype) for each in (self, first, second))
    return combined(batch, self, outer(batch, first, second), beta, alpha)


@table.batch("addbmm")
def addbmm(batch: Batch, self: Any, first: Any, second: Any, beta: Any, alpha: Any) -> Any:
    """first (n, a, b) @ second (n, b, c), summed over n."""
    products = product(batch, first, second)
    return combined(batch, self, batch.again("aten::sum", products, [0], False, dtype=products.dtype), beta, alpha)


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@table.batch("einsum")
def einsum(batch: Batch, equation: str, tensors: Any, path: Any) -> Any:
    """Batched operands and the result get one more letter in front."""
    letter = next((each for each in LETTERS if each not in equation), None)
    if letter is None:
        raise RunError("einsum: there is no letter left for the dimension that vmap hides", code="E0504")
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        once = sorted(each for each in set(left) if each.isalpha() and left.count(each) == 1)
        right = ("..." if "..." in left else "") + "".join(once)
    terms = [letter + term if batch.has(each) else term for term, each in zip(terms, tensors, strict=True)]
    return batch.box(batch.do("aten::einsum", f"{','.join(terms)}->{letter}{right}", [batch.front(each) for each in tensors]))


@table.batch("tensordot")
def tensordot(batch: Batch, self: Any, other: Any, dims_self: Any, dims_other: Any) -> Any:
    """As an einsum."""
    first = list(LETTERS[:self.ndim])
    second = list(LETTERS[self.ndim:self.ndim + other.ndim])
    for a, b in zip(dims_self, dims_other, strict=True):
        second[wrapped_dim(b, other.ndim)] = first[wrapped_dim(a, self.ndim)]
    shared = {first[wrapped_dim(a, self.ndim)] for a in dims_self}
    free = "".join(each for each in (*first, *second) if each not in shared)
    return batch.again("aten::einsum", f"{''.join(first)},{''.join(second)}->{free}", [self, other])


@table.batch("bilinear")
def bilinear(batch: Batch, input1: Any, input2: Any, weight: Any, bias: Any) -> Any:
    """As an einsum."""
    result = batch.again("aten::einsum", "...i,oij,...j->...o", [input1, weight, input2])
    return result if bias is None else batch.again("aten::add", result, bias)


@table.batch("_trilinear")
def trilinear(batch: Batch, i1: Any, i2: Any, i3: Any, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, unroll_dim: int) -> Any:
    """Each operand with dimensions of 1 put in, their product, summed over sumdim."""
    operands = []
    for each, places in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for place in sorted(places):
            each = batch.again("aten::unsqueeze", each, place)
        operands.append(each)
    result = batch.again("aten::mul", batch.again("aten::mul", operands[0], operands[1]), operands[2])
    return batch.again("aten::sum", result, list(sumdim)) if sumdim else result


@table.batch("kron")
def kron(batch: Batch, self: Any, other: Any) -> Any:
    """(a, b) and (c, d) -> (a, 1, b, 1) * (1, c, 1, d) -> (a * c, b * d)."""
    rank = max(self.ndim, other.ndim)
    a, b = [1] * (rank - self.ndim) + list(self.shape), [1] * (rank - other.ndim) + list(other.shape)
    left = batch.again("aten::reshape", self, [x for size in a for x in (size, 1)])
    right = batch.again("aten::reshape", other, [x for size in b for x in (1, size)])
    return batch.again("aten::reshape", batch.again("aten::mul", left, right), [x * y for x, y in zip(a, b, strict=True)])


@table.batch("chain_matmul linalg_multi_dot")
def chain(batch: Batch, tensors: Any) -> Any:
    """tensors[0] @ tensors[1] @ ..."""
    result = tensors[0]
    for each in tensors[1:]:
        result = batch.again("aten::matmul", result, each)
    return result


@table.batch("linear_backward")
def linear_backward(batch: Batch, self: Any, grad_output: Any, weight: Any, mask: Any) -> Any:
    """Gradients of self, weight and bias, those that mask asks for."""
    rows = batch.again("aten::reshape", grad_output, [-1, grad_output.shape[-1]])
    x = batch.again("aten::reshape", self, [-1, self.shape[-1]])
    return (batch.again("aten::matmul", grad_output, weight) if mask[0] else None,
            batch.again("aten::matmul", batch.again("aten::t", rows), x) if mask[1] else None,
            batch.again("aten::sum", rows, [0]) if mask[2] else None)


@table.batch("matmul_backward")
def matmul_backward(batch: Batch, grad: Any, self: Any, other: Any, mask: Any) -> Any:
    """grad @ other.mT and self.mT @ grad, summed to the operands' shapes. Raises UnsupportedError for vectors."""
    if self.ndim < 2 or other.ndim < 2:
        raise UnsupportedError("aten::matmul_backward under vmap is not supported for vectors", code="E0504")
    first = batch.again("aten::sum_to_size", batch.again("aten::matmul", grad, batch.again("aten::mT", other)), list(self.shape))
    second = batch.again("aten::sum_to_size", batch.again("aten::matmul", batch.again("aten::mT", self), grad), list(other.shape))
    return first if mask[0] else None, second if mask[1] else None


table.not_batched("groups of rows of different lengths", "_grouped_mm")
