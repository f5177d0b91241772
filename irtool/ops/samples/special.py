"""Samples of special functions."""
from irtool.ops.kernels.special import table
from irtool.ops.samples.draw import call, chance, fixed, positive, real, unit

NAMES = ("erf special_erf erfc special_erfc i0 special_i0 special_i0e special_i1 special_i1e special_bessel_j0 special_bessel_j1 "
         "special_ndtr special_log_ndtr special_erfcx special_modified_bessel_i0 special_modified_bessel_i1 special_spherical_bessel_j0")

table.sample(NAMES, call(real(2, 3)))
table.sample("erfinv special_erfinv", call(unit(3)))
table.sample("lgamma digamma special_gammaln special_digamma special_psi special_entr special_bessel_y0 special_bessel_y1 "
             "special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1",
             call(positive(2, 3)))
table.sample("special_ndtri", call(chance(3)))
table.sample("polygamma special_polygamma", call(2, positive(3)), call(1, positive(3)))
table.sample("polygamma_", call(positive(3), 2))
table.sample("mvlgamma special_multigammaln", call(real(3, low=3, high=5), 3))
table.sample("special_zeta", call(fixed(real(3, low=1.5, high=3)), positive(3)))
table.sample("special_zeta.self_scalar", call(2.5, positive(3)))
table.sample("igamma special_gammainc igammac special_gammaincc", call(fixed(positive(2, 3)), positive(3)))
