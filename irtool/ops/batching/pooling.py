"""Batching rules of pooling."""
from irtool.ops.batching.batch_dim import image
from irtool.ops.kernels.pooling import table

table.batch("max_pool1d max_pool1d_with_indices avg_pool1d max_pool2d max_pool2d_with_indices avg_pool2d max_pool3d "
            "max_pool3d_with_indices avg_pool3d max_pool2d_with_indices_backward avg_pool2d_backward fractional_max_pool2d "
            "fractional_max_pool2d_backward max_pool3d_with_indices_backward avg_pool3d_backward fractional_max_pool3d "
            "fractional_max_pool3d_backward max_pool2d_backward max_unpool2d max_unpool3d")(image)
