"""Batching rules of matrix decompositions."""
from irtool.ops.batching.batch_dim import matrices
from irtool.ops.batching.linalg import solve
from irtool.ops.kernels.decomposition import table

table.batch("linalg_lu_factor linalg_lu_factor_ex _lu_with_info linalg_lu lu_unpack linalg_ldl_factor_ex linalg_ldl_factor linalg_qr qr "
            "geqrf linalg_householder_product orgqr linalg_eig linalg_eigvals _linalg_eigvals linalg_eigh _linalg_eigh linalg_eigvalsh "
            "linalg_svd _linalg_svd linalg_svdvals svd ormqr")(matrices)
table.batch("linalg_ldl_solve")(solve)
