"""Batching rules of questions about tensors."""
from __future__ import annotations

import math
from typing import Any

from irtool.ops.array_library import np
from irtool.ops.arrays import code_of, dtype_of
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import untouched
from irtool.ops.batching.dict import by_kernel
from irtool.ops.kernels.prim import table
from irtool.ops.promotion import result_type as promoted
from irtool.ops.tensor import Tensor


@table.batch("result_type.Tensor result_type.Scalar result_type.Scalar_Tensor")
def result_type(batch: Batch, first: Any, second: Any) -> Any:
    """Of empty arrays of the operands' dtypes and ranks, without the batch dimension."""
    operands = [np.empty((0,) * each.ndim, dtype_of(each.dtype)) if isinstance(each, Tensor) else each for each in (first, second)]
    return code_of(promoted(operands))


@table.batch("prim::nbytes")
def nbytes(batch: Batch, self: Any) -> int:
    """Elements without the batch dimension, times the bytes of one."""
    return int(math.prod(self.shape) * dtype_of(self.dtype).itemsize)


@table.batch("is_floating_point is_complex is_signed prim::dtype prim::device prim::layout prim::itemsize prim::requires_grad "
             "prim::is_cpu prim::is_cuda prim::is_ipu prim::is_maia prim::is_meta prim::is_mkldnn prim::is_mps prim::is_mtia "
             "prim::is_nested prim::is_quantized prim::is_sparse prim::is_sparse_csr prim::is_vulkan prim::is_xla prim::is_xpu prim::name")
def fact(batch: Batch, self: Any) -> Any:
    """The answer for (B, ...), since it does not depend on sizes."""
    return batch.same(batch.front(self))


@table.batch("prim::abs")
def magnitude(batch: Batch, x: Any) -> Any:
    """As aten::abs."""
    return batch.again("aten::abs", x)


table.batch("prim::Guard")(by_kernel)
table.batch("prim::data")(untouched)
table.not_batched("it asks about a tensor, not about its elements", "get_device is_leaf retains_grad")
table.not_batched("there is one record, not one per sample", "profiler::_record_function_exit")
table.not_batched("it makes a Python number of elements", "item _local_scalar_dense Int Float Bool ScalarImplicit IntImplicit "
                  "FloatImplicit ComplexImplicit Complex")
