"""Samples of losses of classes."""
from irtool.ops.array_library import np
from irtool.ops.kernels.classification_loss import table
from irtool.ops.samples.draw import call, chance, fixed, ints, logs, positive, real

x, targets, weight = real(4, 3), ints(0, 2, -100, 1), np.array([0.5, 1.0, 2.0])
image, image_targets = real(2, 3, 2, 2), ints([[[0, 2], [1, -100]], [[2, 2], [0, 1]]])

table.sample("nll_loss nll_loss_nd", call(x, targets, weight), call(x, targets, reduction=0), call(x, targets, reduction=2))
table.sample("nll_loss_forward", call(x, targets, weight, 1, -100))
table.sample("nll_loss_backward", call(real(), x, targets, weight, 1, -100, np.array(3.5)),
             call(real(4), x, targets, None, 0, -100, fixed(positive())))
table.sample("nll_loss2d nll_loss_nd", call(image, image_targets, weight))
table.sample("nll_loss2d_forward", call(image, image_targets, weight, 1, -100))
table.sample("nll_loss2d_backward", call(real(), image, image_targets, weight, 1, -100, np.array(9.0)))
table.sample("cross_entropy_loss", call(x, targets, weight, label_smoothing=0.2), call(x, targets),
             call(x, chance(4, 3), positive(3), label_smoothing=0.2), call(x, chance(4, 3), positive(3), 0),
             call(x, chance(4, 3), None, 2))
table.sample("multi_margin_loss", call(x, ints(0, 2, 1, 0)), call(x, ints(0, 2, 1, 0), 2, 0.7, weight))
table.sample("multi_margin_loss_backward", call(real(), x, ints(0, 2, 1, 0), 2, 0.7, weight),
             call(real(4), x, ints(0, 2, 1, 0), 1, 0.7, None, 0))
table.sample("multilabel_margin_loss", call(real(2, 3), ints([[2, 0, -1], [1, -1, 0]])))
table.sample("multilabel_margin_loss_forward", call(real(2, 3), ints([[2, 0, -1], [1, -1, 0]]), 1))
table.sample("multilabel_margin_loss_backward",
             call(real(), real(2, 3), ints([[2, 0, -1], [1, -1, 0]]), 1, np.array([[1.0, 0, 1], [0, 1, 0]])))
log_probs, spoken = logs(4, 2, 3), ints([[1, 2], [2, 2]])
lengths, spoken_lengths = ints(4, 3), ints(2, 1)

table.sample("ctc_loss.IntList", call(log_probs, spoken, [4, 3], [2, 1]), call(log_probs, spoken, [4, 3], [2, 1], reduction=2))
table.sample("ctc_loss.Tensor", call(log_probs, spoken, lengths, spoken_lengths, reduction=0))
table.sample("_ctc_loss", call(log_probs, spoken, [4, 3], [2, 1]))
table.sample("_ctc_loss.Tensor", call(log_probs, spoken, lengths, spoken_lengths))
GIVEN = "the losses it is given belong to its other operands: at order 2 of the loss they do"
table.sample("aten::_ctc_loss_backward",
             call(real(2), logs(4, 2, 3), spoken, [4, 3], [2, 1], fixed(positive(2)), fixed(real(2, 4, 5)), 0).rough(GIVEN))
table.sample("_ctc_loss_backward.Tensor",
             call(real(2), logs(4, 2, 3), spoken, lengths, spoken_lengths, fixed(positive(2)), fixed(real(2, 4, 5)), 0).rough(GIVEN))
