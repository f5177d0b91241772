"""Batching rules of sampling on a grid."""
from __future__ import annotations

from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import folded, unfolded, with_batch
from irtool.ops.kernels.grid_sample import table


@table.batch("affine_grid_generator affine_grid_generator_backward")
def affine_grid(batch: Batch, theta: Any, size: Any, align_corners: bool) -> Any:
    """theta (N, ...) -> (B * N, ...), and N of `size` likewise."""
    return unfolded(batch, batch.same(folded(batch, theta, 0), [batch.length * size[0], *size[1:]], align_corners), theta, 0)


table.batch("grid_sampler grid_sampler_2d grid_sampler_3d _grid_sampler_2d_cpu_fallback")(with_batch)
