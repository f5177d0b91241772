"""Samples of conversions, copies and fills. torch's numbers of dtypes: 7 float64, 10 complex128."""
from irtool.ops.kernels.cast import table
from irtool.ops.samples.draw import call, complexes, fixed, real

x, z, like = real(2, 3), complexes(2), fixed(real(3))

table.sample("to.dtype", call(x, 7), call(x, 10))
table.sample("to.device", call(x, "cpu", 7))
table.sample("to.dtype_layout _to_copy", call(x, dtype=7), call(x))
table.sample("to.other type_as", call(x, like))
table.sample("as_tensor", call(x), call(x, dtype=7), call(x, dtype=10))
table.sample("to.prim_Device", call(x, "cpu"))
table.sample("to.prim_dtype", call(x, 7))
table.sample("_cast_Double clone alias_copy lift lift_fresh_copy _lazy_clone alias lift_fresh cpu to.prim_other", call(x), call(z))
table.sample("_cast_Float _cast_Half", call(x).rough("single precision has no differences to take"))
table.sample("copy_ copy_.Tensor copy", call(x, real(3)), call(x, real()))
table.sample("fill_.Scalar fill.Scalar", call(x, 2.0))
table.sample("fill_.Tensor fill.Tensor", call(x, real()))
table.sample("zero_ zero", call(x))
table.sample("requires_grad_", call(x, False))
table.sample("fill_diagonal_", call(x, 2.0), call(real(4, 2), 2.0, True), call(real(2, 2, 2), 1))
table.sample("to_dense", call(real(2, 3)))
table.sample("_autocast_to_full_precision", call(real(2, 3), False, True))
table.sample("_autocast_to_reduced_precision", call(real(2, 3), False, True, 5, 15))
