"""Samples of inverses, determinants, solutions and powers of matrices."""
from irtool.ops.array_library import np
from irtool.ops.kernels.linalg import table
from irtool.ops.samples.draw import call, complexes, definite, real, regular, triangle

a, z, square = regular(3, 3), regular(3, 3, is_complex=True), regular(2, 3, 3)
lu, pivots = triangle(3, 3), np.array([1, 3, 3], np.int32)

table.sample("linalg_inv inverse linalg_inv_ex matrix_exp linalg_matrix_exp linalg_det det _linalg_det linalg_slogdet slogdet "
             "_linalg_slogdet",
             call(a), call(z), call(square))
table.sample("logdet", call(definite(3, 3)))
table.sample("linalg_solve linalg_solve_ex _linalg_solve_ex", call(a, real(3)), call(a, real(2, 3), left=False), call(z, complexes(3, 2)))
table.sample("linalg_solve_triangular", call(triangle(3, 3), real(3, 2), upper=False),
             call(triangle(3, 3), real(2, 3), upper=False, left=False, unitriangular=True))
table.sample("triangular_solve", call(real(3, 2), triangle(3, 3), False), call(real(3, 2), triangle(3, 3), False, True))
table.sample("cholesky_solve", call(real(3, 2), triangle(3, 3)))
table.sample("cholesky_inverse", call(triangle(3, 3)))
table.sample("linalg_lu_solve", call(a, pivots, real(3, 2)), call(a, pivots, real(2, 3), left=False, adjoint=True))
table.sample("lu_solve", call(real(3, 2), a, pivots))
table.sample("linalg_cholesky cholesky linalg_cholesky_ex", call(definite(3, 3)), call(definite(3, 3), upper=True),
             call(definite(3, 3, is_complex=True)))
table.sample("pinverse", call(real(4, 3)))
table.sample("linalg_pinv", call(real(2, 3), 1e-12), call(definite(3, 3), 1e-12, hermitian=True))
table.sample("linalg_pinv.atol_rtol_float", call(real(4, 3), rtol=1e-12), call(complexes(2, 3)))
table.sample("linalg_pinv.atol_rtol_tensor", call(real(4, 3), rtol=np.array(1e-12)))
table.sample("linalg_pinv.rcond_tensor", call(real(4, 3), np.array(1e-12)))
table.sample("linalg_lstsq", call(real(4, 3), real(4, 2), driver="gelsd").taking(0))
table.sample("linalg_matrix_power matrix_power", call(a, 3), call(a, -2), call(z, 2), call(a, 0))
table.sample("vander linalg_vander", call(real(3)))
table.sample("linalg_vecdot", call(real(2, 3), real(2, 3)), call(complexes(2, 3), complexes(3)),
             call(real(2, 3, 4), real(2, 3, 4), dim=1), call(real(3), real(3), dim=1), call(complexes(3), complexes(3), dim=-2))
table.sample("linalg_tensorinv", call(real(2, 2, 4), 2))
table.sample("cross linalg_cross", call(real(2, 3), real(2, 3)), call(complexes(2, 3), complexes(2, 3)))
table.sample("linalg_tensorsolve", call(real(2, 2, 4), real(2, 2)))
