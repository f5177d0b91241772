"""Batching rules of dicts whose keys are tensors."""
from __future__ import annotations

from typing import Any

from irtool.ops.arrays import xp
from irtool.ops.batch import Batch
from irtool.ops.call import overload
from irtool.ops.kernels.dict import table


@table.batch("__getitem__.Dict_Tensor _set_item.Tensor __contains__.Tensor Delete.Dict_Tensor pop.Dict_Tensor pop.Dict_default_Tensor "
             "popitem.Tensor get.Tensor get.default_Tensor setdefault.Tensor update.Tensor clear.Tensor copy.Dict_Tensor dict.Dict_Tensor "
             "dict.Tensor len.Dict_Tensor keys.Tensor values.Tensor items.Tensor")
def by_kernel(batch: Batch, *args: Any) -> Any:
    """Keys are compared by identity, so batched tensors are keys like others: the kernel runs on them as they are."""
    return overload(batch.name).op.kernel(xp, *args)
