"""Batching rules of conversions, copies and filling."""
from __future__ import annotations

from typing import Any

from irtool.ops.array_library import np
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import untouched
from irtool.ops.batching.prim import fact
from irtool.ops.kernels.cast import check_diagonal, table
from irtool.ops.tensor import Tensor


@table.batch("copy_.Tensor copy_.int copy_.float _no_grad_fill_ _no_grad_zero_")
def overwrite(batch: Batch, self: Any, value: Any = 0, *rest: Any) -> Any:
    """value -> self's dtype and shape, which becomes self's new value. Without value: zeros."""
    if batch.name.startswith("aten::copy_.") and not isinstance(value, Tensor):
        value = Tensor(np.asarray(value))       # converted as a tensor is, where a number to fill with must fit
    if isinstance(value, Tensor):
        converted = batch.again("aten::expand", batch.again("aten::to", value, self.dtype), list(self.shape))
        whole = batch.box(batch.layer.whole(converted))
    else:
        whole = batch.box(batch.do("aten::full_like", batch.front(self), value))
    return batch.layer.write_into(self, whole, batch.name)


@table.batch("copy fill zero")
def filled(batch: Batch, self: Any, value: Any = 0, *rest: Any) -> Any:
    """A new tensor of self's shape, dtype and memory order, full of value. Without value: zeros."""
    if not isinstance(value, Tensor):
        return batch.box(batch.do("aten::full_like", batch.front(self), value))
    value = batch.again("aten::expand", batch.again("aten::to", value, self.dtype), list(self.shape))
    return batch.box(batch.do("aten::copy", batch.whole(self), batch.whole(value), False))


@table.batch("to.other type_as")
def to_other(batch: Batch, self: Any, other: Any, *rest: Any) -> Any:
    """self -> other's dtype; other's elements and sizes do not count."""
    return batch.again("aten::to", self, other.dtype, *rest[:2])


table.batch("is_conj is_neg is_inference is_distributed is_coalesced is_pinned element_size")(fact)
table.batch("alias as_tensor detach lift lift_fresh to_dense pin_memory _pin_memory cpu alias_copy to.dtype_layout to.prim_Device "
            "to.prim_dtype to.prim_other _autocast_to_full_precision _autocast_to_reduced_precision data")(untouched)
table.not_batched("only for strided memory", "resize_ resize_as_")


@table.batch("requires_grad_")
def itself(batch: Batch, self: Any, *rest: Any) -> Any:
    """The tensor itself."""
    return self


@table.batch("fill_diagonal_")
def filled_diagonal(batch: Batch, self: Any, value: Any, wrap: bool = False) -> Any:
    """The number where the diagonal of each example is, written into self."""
    check_diagonal(self.shape)
    mask = np.zeros(self.shape, np.bool_)
    np.fill_diagonal(mask, True, wrap)
    whole = batch.again("aten::masked_fill", self, Tensor(mask), value)
    return batch.layer.write_into(self, batch.box(batch.layer.whole(whole)), batch.name)
