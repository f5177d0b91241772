"""Batching rules of resampling."""
from __future__ import annotations

from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import folded, unfolded, with_batch
from irtool.ops.kernels.resample import table


@table.batch("upsample_nearest1d_backward _upsample_nearest_exact1d_backward upsample_nearest2d_backward "
             "_upsample_nearest_exact2d_backward upsample_nearest3d_backward _upsample_nearest_exact3d_backward "
             "upsample_linear1d_backward upsample_bilinear2d_backward upsample_trilinear3d_backward upsample_bicubic2d_backward "
             "_upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward _upsample_lanczos2d_aa_backward")
def resample_backward(batch: Batch, grad: Any, output_size: Any, input_size: Any, *rest: Any) -> Any:
    """grad (N, C, ...) -> (B * N, C, ...), and N of input_size likewise."""
    sizes = [batch.length * input_size[0], *input_size[1:]]
    return unfolded(batch, batch.same(folded(batch, grad, 0), output_size, sizes, *rest), grad, 0)


table.batch("upsample_nearest1d upsample_nearest1d.vec _upsample_nearest_exact1d _upsample_nearest_exact1d.vec upsample_nearest2d "
            "upsample_nearest2d.vec _upsample_nearest_exact2d _upsample_nearest_exact2d.vec upsample_nearest3d upsample_nearest3d.vec "
            "_upsample_nearest_exact3d _upsample_nearest_exact3d.vec upsample_linear1d upsample_linear1d.vec upsample_bilinear2d "
            "upsample_bilinear2d.vec upsample_trilinear3d upsample_trilinear3d.vec upsample_bicubic2d upsample_bicubic2d.vec "
            "_upsample_bilinear2d_aa _upsample_bilinear2d_aa.vec _upsample_bicubic2d_aa _upsample_bicubic2d_aa.vec _upsample_lanczos2d_aa "
            "_upsample_lanczos2d_aa.vec")(with_batch)
