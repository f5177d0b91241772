"""Samples of losses: each reduction."""
from irtool.ops.kernels.loss import table
from irtool.ops.samples.draw import call, chance, fixed, ints, positive, real

x, y = real(2, 3), real(2, 3)
signs = ints([[1, -1, 1], [-1, -1, 1]])

table.sample("mse_loss l1_loss", *[call(x, y, reduction) for reduction in (0, 1, 2)])
table.sample("mse_loss_backward", call(real(), x, y, 1), call(x, x, y, 0))
table.sample("smooth_l1_loss huber_loss", call(x, y, 1, 0.5), call(x, y, 0, 0.7))
table.sample("smooth_l1_loss_backward huber_loss_backward", call(real(), x, y, 1, 0.5), call(x, x, y, 0, 0.7))
table.sample("soft_margin_loss", call(x, signs), call(x, fixed(real(2, 3)), 2))
table.sample("soft_margin_loss_backward", call(real(), x, fixed(real(2, 3)), 1))
table.sample("kl_div", call(x, positive(2, 3)), call(x, positive(3)), call(real(3), positive(2, 1)), call(x, y, 2, log_target=True))
table.sample("binary_cross_entropy", call(chance(4), chance(4)), call(chance(4), chance(4), fixed(chance(4)), 2))
table.sample("binary_cross_entropy_backward", call(real(4), chance(4), chance(4), fixed(chance(4)), 0), call(real(), chance(4), chance(4)))
table.sample("binary_cross_entropy_with_logits", call(x, chance(2, 3)), call(x, chance(2, 3), chance(3), positive(3), 2))
table.sample("poisson_nll_loss", call(chance(4), positive(4), False, True, 1e-6, 1), call(real(4), positive(4), True, False, 1e-6, 2))
table.sample("margin_ranking_loss", call(real(5), real(5), ints(1, -1, 1, 1, -1), 0.3))
table.sample("hinge_embedding_loss", call(real(4), ints(1, -1, 1, -1)))
table.sample("cosine_embedding_loss", call(real(3, 4), real(3, 4), ints(1, -1, 1), 0.1))
table.sample("triplet_margin_loss", call(real(4, 3), real(4, 3), real(4, 3)), call(real(4, 3), real(4, 3), real(4, 3), 1.0, 3.0, swap=True))
