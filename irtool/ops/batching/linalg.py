"""Batching rules of linear algebra: matrices take any dimensions in front."""
from __future__ import annotations

import math
from typing import Any

from irtool.ir.errors import RunError
from irtool.ops.arrays import code_of, dtype_of
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import lined_up, matrices, wrapped_dim
from irtool.ops.kernels.linalg import table
from irtool.ops.tensor import Tensor


@table.batch("linalg_solve linalg_solve_ex _linalg_solve_ex linalg_solve_triangular triangular_solve cholesky_solve linalg_lu_solve "
             "lu_solve linalg_lstsq")
def solve(batch: Batch, *args: Any) -> Any:
    """Left (..., n, n) and right (..., n, m), both (B, 1, ..., n, m) of one rank. A right side (n) is (n, 1) meanwhile."""
    first, second = [each for each in args if isinstance(each, Tensor)][:2]
    if batch.kind in ("aten::linalg_solve", "aten::linalg_solve_ex", "aten::_linalg_solve_ex") and second.ndim == 1:
        column = [batch.again("aten::unsqueeze", each, -1) if each is second else each for each in args]
        solution = solve(batch, *column)
        if isinstance(solution, tuple):
            return (batch.again("aten::squeeze", solution[0], -1), *solution[1:])
        return batch.again("aten::squeeze", solution, -1)
    leading = {place: value.ndim - (1 if "pivots" in argument.name.lower() else 2)
           for place, (argument, value) in enumerate(zip(batch.schema.arguments, args, strict=True)) if isinstance(value, Tensor)}
    rank = max(leading.values())
    results = batch.same(*[lined_up(batch, each, rank - leading[place]) if place in leading else each for place, each in enumerate(args)])
    if batch.kind in ("aten::linalg_solve_ex", "aten::_linalg_solve_ex"):        # the report and the factors have the dimensions of A alone
        extra = rank - leading[0]
        rest = [batch.do("aten::reshape", each, [each.shape[0], *each.shape[1 + extra:]]) for each in results[1:]]
        return batch.box((results[0], *rest))
    if batch.kind == "aten::linalg_lstsq":      # what its driver does not compute has no elements, and no dimension for the batch
        return tuple([each if each.shape == (0,) else batch.box(each) for each in results])
    return batch.box(results)


@table.batch("linalg_pinv.atol_rtol_tensor linalg_pinv.rcond_tensor linalg_matrix_rank.atol_rtol_tensor linalg_matrix_rank.tol_tensor")
def with_tolerances(batch: Batch, self: Any, *rest: Any) -> Any:
    """Matrices (..., n, m) and tolerances (...), all (B, 1, ..., ...) with the same number of dimensions before the matrices."""
    rank = max([self.ndim - 2, *[each.ndim for each in rest if isinstance(each, Tensor)]])
    return batch.box(batch.same(lined_up(batch, self, rank - self.ndim + 2),
                                *[lined_up(batch, each, rank - each.ndim) if isinstance(each, Tensor) else each for each in rest]))


@table.batch("linalg_vander")
def linalg_vander(batch: Batch, x: Any, N: Any) -> Any:
    """(..., n) -> (..., n, N); a 0-d tensor is one of a single element."""
    return batch.again("aten::linalg_vander", batch.again("aten::reshape", x, [1]), N=N) if x.ndim == 0 else matrices(batch, x, N)


@table.batch("vander")
def vander(batch: Batch, x: Any, N: Any, increasing: bool) -> Any:
    """By linalg_vander, whose powers increase; flipped if they are to decrease."""
    count = x.shape[-1] if N is None else N
    if dtype_of(x.dtype).kind == "b":
        x = batch.again("aten::to", x, code_of("int64"))
    powers = batch.again("aten::slice", batch.again("aten::linalg_vander", x, N=max(count, 2)), -1, 0, count)
    return powers if increasing else batch.again("aten::flip", powers, [-1])


@table.batch("linalg_tensorinv")
def tensorinv(batch: Batch, self: Any, ind: int) -> Any:
    """(a, b, c, d) -> (a * b, c * d), its inverse -> (c, d, a, b)."""
    rows = math.prod(self.shape[:ind])
    inverse = batch.again("aten::linalg_inv", batch.again("aten::reshape", self, [rows, -1]))
    return batch.again("aten::reshape", inverse, [*self.shape[ind:], *self.shape[:ind]])


@table.batch("linalg_tensorsolve")
def tensorsolve(batch: Batch, self: Any, other: Any, dims: Any) -> Any:
    """self -> (n, n), other -> (n, 1): linalg_solve, reshaped."""
    if dims is not None:
        axes = [wrapped_dim(each, self.ndim) for each in dims]
        self = batch.again("aten::movedim", self, axes, list(range(self.ndim - len(axes), self.ndim)))
    shape = list(self.shape[other.ndim:])
    right = batch.again("aten::reshape", other, [-1, 1])
    left = batch.again("aten::reshape", self, [right.shape[0], -1])
    return batch.again("aten::reshape", batch.again("aten::linalg_solve", left, right), shape)


@table.batch("linalg_vecdot")
def vecdot(batch: Batch, x: Any, y: Any, dim: int) -> Any:
    """sum(conj(x) * y) along dim; of vectors torch takes the product, and does not look at dim."""
    if x.ndim == y.ndim == 1:
        return batch.again("aten::vdot", x, y)
    return batch.again("aten::sum", batch.again("aten::mul", batch.again("aten::conj", x), y), [dim])


@table.batch("linalg_cross cross")
def cross(batch: Batch, self: Any, other: Any, dim: Any) -> Any:
    """(B, ...), dim counted from the end; without dim the first dimension of extent 3."""
    if dim is None:
        dim = next((place for place, extent in enumerate(self.shape) if extent == 3), None)
        if dim is None:
            raise RunError("no dimension of size 3 in input", code="E0504")
    rank = max(self.ndim, other.ndim)
    return batch.box(batch.do("aten::linalg_cross", batch.whole(self), batch.whole(other), dim=dim % rank - rank))


@table.batch("_linalg_check_errors")
def check_errors(batch: Batch, info: Any, *rest: Any) -> Any:
    """info (B, ...): an error at one place of the batch is an error of the call."""
    return batch.same(batch.whole(info), *rest)


table.batch("linalg_inv inverse linalg_inv_ex linalg_det det _linalg_det linalg_slogdet slogdet _linalg_slogdet logdet "
            "linalg_pinv.atol_rtol_float linalg_pinv pinverse linalg_matrix_rank.atol_rtol_float linalg_matrix_rank "
            "linalg_matrix_power matrix_power linalg_matrix_exp matrix_exp linalg_cholesky cholesky linalg_cholesky_ex "
            "cholesky_inverse")(matrices)
