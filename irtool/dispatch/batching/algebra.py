"""Linear algebra and transforms of signals: matrices take any dimensions in front."""
from __future__ import annotations

import math
from typing import Any

from irtool.dispatch.batched import Batch
from irtool.dispatch.batching import rule, shifted, wrapped_dim
from irtool.dispatch.batching.pointwise import pointwise
from irtool.ops.tensor import Tensor


@rule("""linalg_lu_factor linalg_lu_factor_ex _lu_with_info linalg_lu lu_unpack linalg_ldl_factor_ex linalg_ldl_factor linalg_qr qr geqrf
         linalg_householder_product orgqr linalg_eig linalg_eigvals _linalg_eigvals linalg_eigh _linalg_eigh linalg_eigvalsh linalg_svd
         _linalg_svd linalg_svdvals svd linalg_inv inverse linalg_inv_ex linalg_det det _linalg_det linalg_slogdet slogdet _linalg_slogdet
         logdet
         linalg_pinv linalg_pinv.atol_rtol_float linalg_pinv.atol_rtol_tensor linalg_pinv.rcond_tensor pinverse linalg_matrix_rank
         linalg_matrix_rank.atol_rtol_float linalg_matrix_rank.atol_rtol_tensor linalg_matrix_rank.tol_tensor linalg_matrix_power
         matrix_power
         linalg_matrix_exp matrix_exp linalg_vander linalg_cholesky cholesky linalg_cholesky_ex cholesky_inverse
         linalg_cond linalg_cond.p_str ormqr""")
def matrices(batch: Batch, *args: Any) -> Any:
    """The last dimensions count, whatever stands in front."""
    given = [batch.whole(each) if isinstance(each, Tensor) else each for each in args]
    given = [batch.do("aten::contiguous", each) if isinstance(each, Tensor) else each for each in given]    # how it lies tells factors
    result = batch.same(*given)
    if isinstance(result, tuple):       # linalg_qr without Q gives an empty one
        return tuple([each if each.shape == [0] else batch.box(each) for each in result])
    return batch.box(result)


@rule("scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_flash_attention_for_cpu")
def attention(batch: Batch, *args: Any) -> Any:
    """Queries, keys, values and mask with as many dimensions in front."""
    rank = max(each.ndim for each in args if isinstance(each, Tensor))
    return batch.box(batch.same(*[lined_up(batch, each, rank - each.ndim) if isinstance(each, Tensor) else each for each in args]))


@rule("linalg_solve linalg_solve_ex _linalg_solve_ex linalg_solve_triangular triangular_solve cholesky_solve linalg_lu_solve lu_solve "
      "linalg_ldl_solve linalg_lstsq")
def solve(batch: Batch, *args: Any) -> Any:
    """A right side that is a vector becomes a matrix of one column meanwhile."""
    first, second = [each for each in args if isinstance(each, Tensor)][:2]
    if batch.kind in ("aten::linalg_solve", "aten::linalg_solve_ex", "aten::_linalg_solve_ex") and second.ndim == 1:
        column = [batch.again("aten::unsqueeze", each, -1) if each is second else each for each in args]
        found = solve(batch, *column)
        if isinstance(found, tuple):
            return (batch.again("aten::squeeze", found[0], -1), *found[1:])
        return batch.again("aten::squeeze", found, -1)
    own = {place: value.ndim - (1 if "pivots" in argument.name.lower() else 2)
           for place, (argument, value) in enumerate(zip(batch.schema.arguments, args, strict=True)) if isinstance(value, Tensor)}
    rank = max(own.values())
    return batch.box(batch.same(*[lined_up(batch, each, rank - own[place]) if place in own else each for place, each in enumerate(args)]))


def lined_up(batch: Batch, value: Any, missing: int) -> Any:
    """A matrix, or a stack of them, with the hidden dimension in front of as many others as the largest operand shows."""
    whole = batch.whole(value)
    return batch.do("aten::reshape", whole, [batch.length, *[1] * missing, *value.shape]) if missing else whole


@rule("linalg_matrix_norm linalg_matrix_norm.str_ord")
def matrix_norm(batch: Batch, self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """Both dimensions move up."""
    return batch.box(batch.same(batch.front(self), ord, shifted(list(dim), self), keepdim, dtype))


@rule("linalg_norm linalg_norm.ord_str")
def norm(batch: Batch, self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """Of a vector, a matrix, or (without ord) all that shows."""
    if dim is None and ord is None:
        flat = batch.again("aten::linalg_vector_norm", batch.again("aten::reshape", self, [-1]), 2, [0], False, dtype=dtype)
        return batch.again("aten::reshape", flat, [1] * self.ndim) if keepdim else flat
    dims = list(range(self.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return batch.box(batch.do("aten::linalg_norm", batch.front(self), ord, shifted(dims, self), keepdim, dtype=dtype))


@rule("vander")
def vander(batch: Batch, x: Any, N: Any, increasing: bool) -> Any:
    """By linalg_vander, whose powers increase."""
    found = batch.again("aten::linalg_vander", x, N=x.shape[-1] if N is None else N)
    return found if increasing else batch.again("aten::flip", found, [-1])


@rule("linalg_tensorinv")
def tensorinv(batch: Batch, self: Any, ind: int) -> Any:
    """As the inverse of a matrix."""
    rows = math.prod(self.shape[:ind])
    found = batch.again("aten::linalg_inv", batch.again("aten::reshape", self, [rows, -1]))
    return batch.again("aten::reshape", found, [*self.shape[ind:], *self.shape[:ind]])


@rule("linalg_tensorsolve")
def tensorsolve(batch: Batch, self: Any, other: Any, dims: Any) -> Any:
    """As the solution of linear equations."""
    if dims is not None:
        axes = [wrapped_dim(each, self.ndim) for each in dims]
        self = batch.again("aten::movedim", self, axes, list(range(self.ndim - len(axes), self.ndim)))
    shape = list(self.shape[other.ndim:])
    right = batch.again("aten::reshape", other, [-1, 1])
    left = batch.again("aten::reshape", self, [right.shape[0], -1])
    return batch.again("aten::reshape", batch.again("aten::linalg_solve", left, right), shape)


# ---- Fourier transforms

@rule("fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft")
def fft_of_one(batch: Batch, self: Any, n: Any, dim: int, norm: Any) -> Any:
    """Along one dimension."""
    return batch.box(batch.same(batch.front(self), n, shifted(dim, self), norm))


@rule("fft_fftn fft_fft2 fft_ifftn fft_ifft2 fft_rfftn fft_rfft2 fft_irfftn fft_irfft2 fft_hfftn fft_hfft2 fft_ihfftn fft_ihfft2")
def fft_of_several(batch: Batch, self: Any, s: Any, dim: Any, norm: Any) -> Any:
    """Along dimensions: without any named, the last ones that sizes are given for, or all that show."""
    if dim is None:
        dim = list(range(self.ndim)) if s is None else list(range(self.ndim - len(s), self.ndim))
    return batch.box(batch.same(batch.front(self), s, shifted([dim] if isinstance(dim, int) else list(dim), self), norm))


@rule("fft_fftshift fft_ifftshift")
def fft_shift(batch: Batch, self: Any, dim: Any) -> Any:
    """Along all that show, without any named."""
    dims = list(range(self.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return batch.box(batch.same(batch.front(self), shifted(dims, self)))


@rule("_fft_c2c _fft_r2c _fft_c2r")
def fft_core(batch: Batch, self: Any, dim: Any, *rest: Any) -> Any:
    """Along dimensions."""
    return batch.box(batch.same(batch.front(self), shifted(list(dim), self), *rest))


# ---- pointwise, though their kernels look at shapes

POLYNOMIALS = " ".join(f"special_{name} special_{name}.x_scalar special_{name}.n_scalar" for name in (
    "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w shifted_chebyshev_polynomial_t "
    "shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w hermite_polynomial_h "
    "hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p").split())


@rule(f"{POLYNOMIALS} special_airy_ai polygamma special_polygamma special_zeta special_zeta.self_scalar special_zeta.other_scalar igamma "
      "special_gammainc igammac special_gammaincc complex polar")
def element_by_element(batch: Batch, *args: Any) -> Any:
    """As every pointwise operator."""
    return pointwise(batch, *args)
