"""Samples of normalization: in training, with statistics, with and without weights."""
from __future__ import annotations

from irtool.ops.array_library import np
from irtool.ops.kernels.normalization import table
from irtool.ops.samples.draw import call, complexes, exactly, fixed, positive, real

x, w, b = real(3, 2, 2), real(2), real(2)
mean, spread = fixed(real(2)), fixed(positive(2))
EPS = 1e-3
ALL = [True, True, True]

table.sample("batch_norm _batch_norm_impl_index", call(x, w, b, mean, spread, True, 0.1, EPS, False),
             call(x, w, None, mean, spread, False, 0.1, EPS, False),
             call(x, None, None, None, None, True, 0.1, EPS, False))
table.sample("native_batch_norm", call(x, w, b, None, None, True, 0.1, EPS), call(x, w, b, mean, spread, False, 0.1, EPS))
table.sample("_native_batch_norm_legit _native_batch_norm_legit_functional", call(x, w, b, mean, spread, True, 0.1, EPS),
             call(x, None, None, mean, spread, False, 0.1, EPS))
table.sample("_native_batch_norm_legit.no_stats", call(x, w, b, True, 0.1, EPS))
table.sample("_native_batch_norm_legit_no_training _batch_norm_no_update", call(x, w, b, mean, spread, 0.1, EPS))
table.sample("_batch_norm_with_update _batch_norm_with_update_functional", call(x, w, b, mean, spread, 0.1, EPS))
table.sample("layer_norm", call(real(2, 3, 4), [3, 4], real(3, 4), real(3, 4), EPS), call(real(2, 4), [4]))
table.sample("native_layer_norm", call(real(2, 3, 4), [4], real(4), real(4), EPS), call(real(2, 4), [4], None, None, EPS))
table.sample("group_norm", call(real(2, 4, 3), 2, real(4), real(4), EPS), call(real(2, 4, 3), 2))
table.sample("native_group_norm", call(real(2, 4, 3), real(4), real(4), 2, 4, 3, 2, EPS), call(real(2, 4, 3), None, None, 2, 4, 3, 2, EPS))
table.sample("instance_norm", call(real(2, 3, 4), real(3), real(3), None, None, True, 0.1, EPS, False),
             call(real(2, 2, 4), w, b, mean, spread, False, 0.1, EPS, False))
table.sample("rms_norm", call(real(2, 3, 4), [4], real(4)), call(real(2, 4), [4], None, EPS), call(complexes(2, 3), [3], None, EPS))
table.sample("_fused_rms_norm", call(real(2, 3, 4), [4], real(4), EPS), call(real(2, 4), [4], None, None),
             call(complexes(2, 3), [3], None, EPS))
MOVING = "saved statistics count as functions of the input: at order 2 of the forward operator they do move with it"


def statistics(numbers: np.ndarray, axes: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The saved values: the mean, and 1 over the standard deviation."""
    return numbers.mean(axes).reshape(sizes), (numbers.var(axes) + EPS).reshape(sizes) ** -0.5


waves = np.sin(1.7 * np.arange(24) ** 1.3)
numbers, rows, groups = waves[:12].reshape(3, 2, 2), waves[:8].reshape(2, 4), waves.reshape(2, 4, 3)
of_channels, of_rows = statistics(numbers, (0, 2), (2,)), statistics(rows, (1,), (2, 1))
of_groups = statistics(groups.reshape(2, 2, 6), (2,), (2, 2))
grad, none = real(3, 2, 2), np.zeros(0)

table.sample("native_batch_norm_backward", call(grad, x, w, mean, spread, None, None, False, EPS, ALL),
             call(grad, exactly(numbers), w, None, None, *of_channels, True, EPS, ALL).rough(MOVING))
table.sample("batch_norm_backward", call(grad, exactly(numbers), w, None, None, *of_channels, True, EPS, ALL, none).rough(MOVING))
table.sample("_batch_norm_impl_index_backward",
             call(0, exactly(numbers), grad, w, None, None, *of_channels, True, EPS, ALL, none).rough(MOVING))
table.sample("native_layer_norm_backward", call(real(2, 4), exactly(rows), [4], *of_rows, real(4), real(4), ALL).rough(MOVING))
table.sample("native_group_norm_backward", call(real(2, 4, 3), exactly(groups), *of_groups, real(4), 2, 4, 3, 2, ALL).rough(MOVING))
