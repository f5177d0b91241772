"""Samples of arithmetic, powers, minimum and maximum, choice: operands that broadcast, 0-d ones, numbers."""
from irtool.ops.kernels.pointwise_binary import table
from irtool.ops.samples.draw import apart, call, complexes, fixed, flags, positive, real, unit

BROADCAST = ((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((2,), ())

table.sample("add.Tensor sub.Tensor subtract.Tensor rsub.Tensor _add_relu.Tensor",
             *[call(real(*a), positive(*b), alpha=2) for a, b in BROADCAST], call(real(3), real(3)))
table.sample("mul.Tensor multiply.Tensor div.Tensor divide.Tensor true_divide.Tensor",
             *[call(real(*a), positive(*b)) for a, b in BROADCAST])
table.sample("mul.Tensor multiply.Tensor div.Tensor divide.Tensor true_divide.Tensor add.Tensor sub.Tensor rsub.Tensor",
             call(complexes(2, 3), complexes(3)), call(real(2, 3), complexes(3)), call(complexes(2, 1), real(3)))
table.sample("add.Scalar sub.Scalar subtract.Scalar rsub.Scalar _add_relu.Scalar", call(real(2, 3), 2.5, 2))
table.sample("mul.Scalar multiply.Scalar div.Scalar divide.Scalar true_divide.Scalar remainder.Scalar fmod.Scalar copysign.Scalar",
             call(real(2, 3), 2.5))
table.sample("mul.Scalar div.Scalar", call(complexes(2), 2.5), call(complexes(2), 1 + 2j))
table.sample("div.Tensor_mode divide.Tensor_mode", call(real(3), positive(2, 3), rounding_mode=None),
             call(real(3), positive(3), rounding_mode="floor"))
table.sample("div.Scalar_mode divide.Scalar_mode", call(real(3), 2.0, rounding_mode="trunc"), call(real(3), 2.0, rounding_mode=None))
table.sample("remainder.Tensor fmod.Tensor", call(real(2, 3), positive(3)))
table.sample("remainder.Scalar_Tensor", call(2.5, positive(3)))
table.sample("copysign.Tensor atan2 arctan2 hypot logaddexp logaddexp2 maximum minimum fmax fmin max.other min.other nextafter",
             call(real(2, 3), real(3)), call(real(), real(2)))
table.sample("pow.Tensor_Tensor float_power.Tensor_Tensor", call(positive(2, 3), real(3)), call(complexes(3), complexes(2, 3)))
table.sample("pow.Tensor_Scalar float_power.Tensor_Scalar", call(real(3), 3), call(real(3), 0), call(real(3), 1), call(positive(3), -1.5),
             call(complexes(3), 2), call(complexes(3), 0.5))
table.sample("pow.Scalar float_power.Scalar", call(2.5, real(3)), call(2.5, complexes(3)))
table.sample("xlogy.Tensor special_xlogy special_xlog1py", call(real(2, 3), positive(3)))
table.sample("xlogy.Scalar_Self special_xlogy.self_scalar special_xlog1py.self_scalar", call(2.0, positive(3)))
table.sample("xlogy.Scalar_Other special_xlogy.other_scalar special_xlog1py.other_scalar", call(real(3), 2.0))
table.sample("ldexp.Tensor", call(real(2, 3), fixed(real(3))))
table.sample("clamp clip", call(apart(7), -0.5, 0.5), call(apart(7), None, 0.5), call(apart(7), -0.5))
table.sample("clamp.Tensor clip.Tensor", call(real(2, 5), unit(5), positive(5)), call(real(2, 5), None, positive(5)),
             call(real(2, 5), unit(5)))
table.sample("clamp_min clamp_max", call(apart(5), 0.1))
table.sample("clamp_min.Tensor clamp_max.Tensor", call(real(2, 5), unit(5)))
table.sample("where.self", call(flags(True, False, True), real(2, 3), real(3)), call(flags(True, False), complexes(2), real(2)))
table.sample("where.ScalarOther", call(flags(True, False), real(3, 2), 1.0))
table.sample("where.ScalarSelf", call(flags(True, False), 1.0, real(3, 2)))
table.sample("lerp.Scalar", call(real(2, 3), real(3), 0.3), call(complexes(2), complexes(2), 0.3))
table.sample("lerp.Tensor", call(real(2, 3), real(3), real(2, 1)), call(complexes(2), complexes(2), complexes(2)))
table.sample("addcmul", call(real(2, 3), real(3), real(2, 1), value=0.5), call(complexes(2), complexes(2), complexes(2)))
table.sample("addcdiv", call(real(2, 3), real(3), positive(2, 1), value=0.5), call(complexes(2), complexes(2), complexes(2)))
table.sample("complex polar", call(positive(2, 3), real(3)))
