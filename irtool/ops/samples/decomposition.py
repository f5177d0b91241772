"""Samples of decompositions. Eigenvectors of complex matrices are known up to a factor, and have no slope of their own."""
from irtool.ops.array_library import np
from irtool.ops.kernels.decomposition import table
from irtool.ops.samples.draw import call, complexes, definite, real, regular

tall, wide, square, z = real(4, 3), real(2, 4), regular(3, 3), regular(3, 3, is_complex=True)
symmetric, definite_z = definite(3, 3), definite(3, 3, is_complex=True)

table.sample("linalg_lu_factor linalg_lu_factor_ex _lu_with_info linalg_lu", call(square), call(tall), call(wide), call(z))
table.sample("lu_unpack", call(square, np.array([1, 3, 3], np.int32)), call(tall, np.array([1, 3, 3], np.int32)))
table.sample("linalg_qr", call(tall), call(wide), call(square), call(z), call(square, "complete"))
table.sample("linalg_qr", call(square, "r").taking(1))
table.sample("qr", call(tall), call(wide), call(square, False))
table.sample("linalg_householder_product orgqr", call(real(4, 3), real(2)), call(complexes(4, 3), complexes(3)))
table.sample("linalg_eig", call(square).taking(0), call(z).taking(0))
table.sample("linalg_eigvals _linalg_eigvals", call(square), call(z))
table.sample("linalg_eigh _linalg_eigh", call(symmetric), call(definite_z).taking(0), call(symmetric, UPLO="U"))
table.sample("linalg_eigvalsh", call(symmetric), call(definite_z))
table.sample("linalg_svd _linalg_svd", call(tall, False), call(square, False), call(wide, False), call(z, False).taking(1))
table.sample("svd", call(tall), call(square))
table.sample("linalg_svdvals", call(tall), call(z))
table.sample("ormqr", call(real(4, 3), real(3), real(4, 2)), call(real(4, 2), real(2), real(3, 4), False, True))
