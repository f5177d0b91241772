"""Batching rules of adaptive pooling."""
from irtool.ops.batching.batch_dim import image
from irtool.ops.kernels.adaptive_pooling import table

table.batch("adaptive_avg_pool1d adaptive_max_pool1d adaptive_avg_pool2d adaptive_max_pool2d adaptive_avg_pool3d adaptive_max_pool3d "
            "_adaptive_avg_pool2d_backward adaptive_max_pool2d_backward _adaptive_avg_pool3d_backward adaptive_max_pool3d_backward "
            "_adaptive_avg_pool2d _adaptive_avg_pool3d")(image)
