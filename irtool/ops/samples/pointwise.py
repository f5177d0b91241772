"""Samples of functions of one tensor."""
from irtool.ops.kernels.pointwise import table
from irtool.ops.samples.draw import call, chance, complexes, positive, real, unit

table.sample("sin cos tanh exp exp2 expm1 sigmoid sinc deg2rad rad2deg neg abs square sinh cosh atan asinh tan frac positive sgn ceil "
             "floor trunc fix round sign angle nan_to_num absolute negative arctan arcsinh special_exp2 special_expm1 special_expit "
             "special_sinc conj _conj conj_physical _conj_physical _conj_copy resolve_conj resolve_neg real", call(real(2, 3)),
             call(real()))
table.sample("log log2 log10 log1p special_log1p sqrt rsqrt reciprocal", call(positive(2, 3)), call(positive()))
table.sample("asin arcsin acos arccos atanh arctanh", call(unit(2, 3)))
table.sample("acosh arccosh", call(real(2, 3, low=1.2, high=3)))
table.sample("sin cos tanh exp exp2 expm1 sigmoid special_expit sinc neg abs absolute square sinh cosh atan arctan asinh arcsinh tan "
             "positive sgn angle log log2 log10 log1p sqrt rsqrt reciprocal asin arcsin acos arccos atanh arctanh acosh arccosh conj _conj "
             "conj_physical _conj_physical _conj_copy resolve_conj resolve_neg real imag", call(complexes(2, 3)))
table.sample("logit special_logit", call(chance(3)), call(chance(3), 0.3))
table.sample("nan_to_num", call(real(3), 0.5, 1.0, -1.0))
table.sample("round.decimals special_round", call(real(3), decimals=1))
table.sample("frexp.Tensor", call(real(2, 3)))
