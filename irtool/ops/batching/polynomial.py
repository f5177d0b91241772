"""Batching rules of orthogonal polynomials."""
from irtool.ops.batching.batch_dim import element_by_element
from irtool.ops.kernels.polynomial import table

table.batch("special_chebyshev_polynomial_t special_chebyshev_polynomial_t.x_scalar special_chebyshev_polynomial_t.n_scalar "
            "special_chebyshev_polynomial_u special_chebyshev_polynomial_u.x_scalar special_chebyshev_polynomial_u.n_scalar "
            "special_chebyshev_polynomial_v special_chebyshev_polynomial_v.x_scalar special_chebyshev_polynomial_v.n_scalar "
            "special_chebyshev_polynomial_w special_chebyshev_polynomial_w.x_scalar special_chebyshev_polynomial_w.n_scalar "
            "special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_t.x_scalar "
            "special_shifted_chebyshev_polynomial_t.n_scalar special_shifted_chebyshev_polynomial_u "
            "special_shifted_chebyshev_polynomial_u.x_scalar special_shifted_chebyshev_polynomial_u.n_scalar "
            "special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_v.x_scalar "
            "special_shifted_chebyshev_polynomial_v.n_scalar special_shifted_chebyshev_polynomial_w "
            "special_shifted_chebyshev_polynomial_w.x_scalar special_shifted_chebyshev_polynomial_w.n_scalar special_hermite_polynomial_h "
            "special_hermite_polynomial_h.x_scalar special_hermite_polynomial_h.n_scalar special_hermite_polynomial_he "
            "special_hermite_polynomial_he.x_scalar special_hermite_polynomial_he.n_scalar special_laguerre_polynomial_l "
            "special_laguerre_polynomial_l.x_scalar special_laguerre_polynomial_l.n_scalar special_legendre_polynomial_p "
            "special_legendre_polynomial_p.x_scalar special_legendre_polynomial_p.n_scalar")(element_by_element)
