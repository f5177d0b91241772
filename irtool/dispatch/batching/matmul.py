"""Products: of vectors, matrices and batches of them, all by `matmul`, which takes leading dimensions as they come."""
from __future__ import annotations

from typing import Any

from irtool.dispatch.batched import Batch
from irtool.dispatch.batching import no_rule, rule, wrapped_dim
from irtool.dispatch.batching.pointwise import aligned
from irtool.ir.errors import RunError


def product(batch: Batch, a: Any, b: Any) -> Any:
    """matmul of what shows; vectors become rows and columns meanwhile."""
    if not a.ndim or not b.ndim:
        raise RunError("both arguments to matmul need to be at least 1D, but they are "
                       f"{a.ndim}D and {b.ndim}D")
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
    found = batch.box(batch.do("aten::matmul", aligned(batch, a, rank), aligned(batch, b, rank)))
    if is_column:
        found = batch.again("aten::squeeze", found, -1)
    return batch.again("aten::squeeze", found, -1 if is_column else -2) if is_row else found


def ranked(batch: Batch, tensor: Any, rank: int, what: str) -> None:
    """Raises RunError for a tensor that shows another number of dimensions."""
    if tensor.ndim != rank:
        raise RunError(f"{batch.kind.removeprefix('aten::')}: Expected {what} to be {rank}-D, but it is {tensor.ndim}-D")


@rule("matmul linalg_matmul")
def matmul(batch: Batch, self: Any, other: Any) -> Any:
    """As ever."""
    return product(batch, self, other)


@rule("mm bmm mv dot")
def of_ranks(batch: Batch, self: Any, other: Any) -> Any:
    """Of operands of certain ranks."""
    first, second = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1)}[batch.kind.removeprefix("aten::")]
    ranked(batch, self, first, "self")
    ranked(batch, other, second, "other")
    return product(batch, self, other)


@rule("mm.dtype bmm.dtype")
def in_dtype(batch: Batch, self: Any, other: Any, dtype: int) -> Any:
    """Summed up in a dtype."""
    return product(batch, batch.again("aten::to", self, dtype), batch.again("aten::to", other, dtype))


@rule("vdot")
def vdot(batch: Batch, self: Any, other: Any) -> Any:
    """The first operand conjugated."""
    return product(batch, batch.again("aten::conj", self), other)


@rule("linalg_vecdot")
def vecdot(batch: Batch, x: Any, y: Any, dim: int) -> Any:
    """The first operand conjugated, along a dimension."""
    return batch.again("aten::sum", batch.again("aten::mul", batch.again("aten::conj", x), y), [dim])


@rule("inner")
def inner(batch: Batch, self: Any, other: Any) -> Any:
    """Over the last dimension of both."""
    if not self.ndim or not other.ndim:
        return batch.again("aten::mul", self, other)
    return batch.again("aten::tensordot", self, other, [-1], [-1])


@rule("outer ger")
def outer(batch: Batch, self: Any, other: Any) -> Any:
    """Of two vectors."""
    ranked(batch, self, 1, "self")
    ranked(batch, other, 1, "vec2")
    return batch.again("aten::mul", batch.again("aten::unsqueeze", self, 1), other)


@rule("linear")
def linear(batch: Batch, self: Any, weight: Any, bias: Any) -> Any:
    """The product with the transposed weight, and the bias."""
    found = product(batch, self, weight if weight.ndim == 1 else batch.again("aten::t", weight))
    return found if bias is None else batch.again("aten::add", found, bias)


def combined(batch: Batch, self: Any, found: Any, beta: Any, alpha: Any) -> Any:
    """beta * self + alpha * found; self does not count (be it nan) when beta is 0."""
    if alpha != 1:
        found = batch.again("aten::mul", found, alpha)
    if beta == 0:
        return found
    return batch.again("aten::add", found, self if beta == 1 else batch.again("aten::mul", self, beta))


@rule("addmm addmv baddbmm")
def add_product(batch: Batch, self: Any, first: Any, second: Any, beta: Any, alpha: Any) -> Any:
    """A product and a sum."""
    return combined(batch, self, product(batch, first, second), beta, alpha)


@rule("addmm.dtype baddbmm.dtype")
def add_in_dtype(batch: Batch, self: Any, first: Any, second: Any, dtype: int, beta: Any, alpha: Any) -> Any:
    """Summed up in a dtype."""
    return combined(batch, batch.again("aten::to", self, dtype), in_dtype(batch, first, second, dtype), beta, alpha)


@rule("_addmm_activation")
def addmm_activation(batch: Batch, self: Any, first: Any, second: Any, beta: Any, alpha: Any, use_gelu: bool) -> Any:
    """And a relu, or a gelu."""
    found = combined(batch, self, product(batch, first, second), beta, alpha)
    return batch.again("aten::gelu", found) if use_gelu else batch.again("aten::relu", found)


@rule("addr")
def addr(batch: Batch, self: Any, first: Any, second: Any, beta: Any, alpha: Any) -> Any:
    """An outer product and a sum."""
    return combined(batch, self, outer(batch, first, second), beta, alpha)


@rule("addbmm")
def addbmm(batch: Batch, self: Any, first: Any, second: Any, beta: Any, alpha: Any) -> Any:
    """Products summed over their first dimension."""
    return combined(batch, self, batch.again("aten::sum", product(batch, first, second), [0]), beta, alpha)


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@rule("einsum")
def einsum(batch: Batch, equation: str, tensors: Any, path: Any) -> Any:
    """One more letter, where there is a hidden dimension, and in the result."""
    letter = next((each for each in LETTERS if each not in equation), None)
    if letter is None:
        raise RunError("einsum: there is no letter left for the dimension that vmap hides")
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        once = sorted(each for each in set(left) if each.isalpha() and left.count(each) == 1)
        right = ("..." if "..." in left else "") + "".join(once)
    terms = [letter + term if batch.has(each) else term for term, each in zip(terms, tensors, strict=True)]
    return batch.box(batch.do("aten::einsum", f"{','.join(terms)}->{letter}{right}", [batch.front(each) for each in tensors]))


@rule("tensordot")
def tensordot(batch: Batch, self: Any, other: Any, dims_self: Any, dims_other: Any) -> Any:
    """As an einsum."""
    first = list(LETTERS[:self.ndim])
    second = list(LETTERS[self.ndim:self.ndim + other.ndim])
    for a, b in zip(dims_self, dims_other, strict=True):
        second[wrapped_dim(b, other.ndim)] = first[wrapped_dim(a, self.ndim)]
    shared = {first[wrapped_dim(a, self.ndim)] for a in dims_self}
    kept = "".join(each for each in (*first, *second) if each not in shared)
    return batch.again("aten::einsum", f"{''.join(first)},{''.join(second)}->{kept}", [self, other])


@rule("bilinear")
def bilinear(batch: Batch, input1: Any, input2: Any, weight: Any, bias: Any) -> Any:
    """As an einsum."""
    found = batch.again("aten::einsum", "...i,oij,...j->...o", [input1, weight, input2])
    return found if bias is None else batch.again("aten::add", found, bias)


@rule("_trilinear")
def trilinear(batch: Batch, i1: Any, i2: Any, i3: Any, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, unroll_dim: int) -> Any:
    """Dimensions put in, a product of three, a sum."""
    given = []
    for each, places in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for place in sorted(places):
            each = batch.again("aten::unsqueeze", each, place)
        given.append(each)
    found = batch.again("aten::mul", batch.again("aten::mul", given[0], given[1]), given[2])
    return batch.again("aten::sum", found, list(sumdim)) if sumdim else found


@rule("kron")
def kron(batch: Batch, self: Any, other: Any) -> Any:
    """An outer product whose dimensions are put together two by two."""
    rank = max(self.ndim, other.ndim)
    a, b = [1] * (rank - self.ndim) + list(self.shape), [1] * (rank - other.ndim) + list(other.shape)
    left = batch.again("aten::reshape", self, [x for size in a for x in (size, 1)])
    right = batch.again("aten::reshape", other, [x for size in b for x in (1, size)])
    return batch.again("aten::reshape", batch.again("aten::mul", left, right), [x * y for x, y in zip(a, b, strict=True)])


@rule("chain_matmul linalg_multi_dot")
def chain(batch: Batch, tensors: Any) -> Any:
    """One product after another."""
    found = tensors[0]
    for each in tensors[1:]:
        found = batch.again("aten::matmul", found, each)
    return found


@rule("linear_backward")
def linear_backward(batch: Batch, self: Any, grad_output: Any, weight: Any, mask: Any) -> Any:
    """By its parts."""
    rows = batch.again("aten::reshape", grad_output, [-1, grad_output.shape[-1]])
    x = batch.again("aten::reshape", self, [-1, self.shape[-1]])
    return (batch.again("aten::matmul", grad_output, weight) if mask[0] else None,
            batch.again("aten::matmul", batch.again("aten::t", rows), x) if mask[1] else None,
            batch.again("aten::sum", rows, [0]) if mask[2] else None)


@rule("linalg_cross cross")
def cross(batch: Batch, self: Any, other: Any, dim: Any) -> Any:
    """Along the first dimension of extent 3 that shows, when none is named."""
    if dim is None:
        dim = next((place for place, extent in enumerate(self.shape) if extent == 3), None)
        if dim is None:
            raise RunError("no dimension of size 3 in input")
    rank = max(self.ndim, other.ndim)
    return batch.box(batch.do("aten::linalg_cross", batch.whole(self), batch.whole(other), dim=dim % rank - rank))


no_rule("groups of rows of different lengths", "_grouped_mm")
