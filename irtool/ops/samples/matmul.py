"""Samples of products."""
from irtool.ops.kernels.matmul import table
from irtool.ops.samples.draw import call, complexes, real

SHAPES = (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 3), (4, 3, 2)), ((2, 1, 2, 3),
(3, 3, 2)))
EQUATIONS = (("ij,jk->ik", (2, 3), (3, 4)), ("bij, bkj", (2, 3, 4), (2, 2, 4)), ("...ij,jk->...k", (2, 3, 4), (4, 2)), ("ij->j", (2, 3)),
             ("i,j,ij->", (2,), (3,), (2, 3)), ("ii->i", (3, 3)), ("...ii,i->...", (2, 3, 3), (3,)), ("bqd,bkd->bqk", (1, 2, 3), (2, 4, 3)))

table.sample("mm", call(real(2, 3), real(3, 4)), call(complexes(2, 3), complexes(3, 2)))
table.sample("bmm", call(real(2, 2, 3), real(2, 3, 4)))
table.sample("mv", call(real(2, 3), real(3)))
table.sample("dot vdot inner", call(real(3), real(3)), call(complexes(3), complexes(3)))
table.sample("outer ger", call(real(2), real(3)), call(complexes(2), complexes(3)))
table.sample("matmul linalg_matmul", *[call(real(*a), real(*b)) for a, b in SHAPES], call(complexes(2, 2, 3), complexes(3, 2)))
table.sample("linear", call(real(2, 2, 3), real(4, 3), real(4)), call(real(2, 3), real(4, 3)))
table.sample("addmm", call(real(4), real(2, 3), real(3, 4), beta=0.5, alpha=2), call(complexes(2, 2), complexes(2, 3), complexes(3, 2)))
table.sample("_addmm_activation", call(real(4), real(2, 3), real(3, 4)), call(real(4), real(2, 3), real(3, 4), use_gelu=True))
table.sample("baddbmm", call(real(2, 1, 4), real(2, 2, 3), real(2, 3, 4), beta=0.5, alpha=2))
table.sample("addbmm", call(real(2, 4), real(2, 2, 3), real(2, 3, 4), beta=0.5, alpha=2))
table.sample("addmv", call(real(2), real(2, 3), real(3), beta=2))
table.sample("addr", call(real(2, 3), real(2), real(3), beta=2))
table.sample("tensordot", call(real(2, 3, 4), real(4, 3, 2), [1, 2], [1, 0]), call(complexes(2, 3), complexes(3, 2), [1], [0]))
table.sample("bilinear", call(real(3, 2), real(3, 4), real(5, 2, 4), real(5)), call(real(3, 2), real(3, 4), real(5, 2, 4), None))
table.sample("kron", call(real(2, 2), real(2, 3)), call(complexes(2), complexes(3)))
table.sample("einsum", *[call(equation, [real(*shape) for shape in shapes]) for equation, *shapes in EQUATIONS],
             call("ij,jk->ik", [complexes(2, 3), complexes(3, 2)]))
table.sample("linear_backward", call(real(2, 3), real(2, 4), real(4, 3), [True, True, True]))
table.sample("matmul_backward", call(real(2, 4), real(2, 3), real(3, 4), [True, True]))
table.sample("_trilinear", call(real(2, 3), real(2, 4), real(3, 4), [2], [1], [0], [2]))
table.sample("chain_matmul linalg_multi_dot", call([real(2, 3), real(3, 4), real(4, 2)]))
table.sample("_grouped_mm", call(real(2, 2, 3), real(2, 3, 4)))
table.sample("mm.dtype", call(real(2, 3), real(3, 2), 7))
table.sample("bmm.dtype", call(real(2, 2, 3), real(2, 3, 2), 7))
table.sample("addmm.dtype", call(real(2), real(2, 3), real(3, 2), 7, beta=0.5, alpha=2))
table.sample("baddbmm.dtype", call(real(2, 1, 2), real(2, 2, 3), real(2, 3, 2), 7, beta=0.5, alpha=2))
