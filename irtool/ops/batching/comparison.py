"""Batching rules of comparisons that are not pointwise."""
from __future__ import annotations

from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import untouched
from irtool.ops.kernels.comparison import table


@table.batch("isin.Tensor_Tensor")
def isin(batch: Batch, elements: Any, test: Any, assume_unique: bool, invert: bool) -> Any:
    """elements (..., 1) == test (n), any over the last dimension."""
    is_equal = batch.again("aten::any", batch.again("aten::eq", batch.again("aten::unsqueeze", elements, -1),
                                                 batch.again("aten::reshape", test, [-1])), -1)
    return batch.again("aten::logical_not", is_equal) if invert else is_equal


@table.batch("isin.Tensor_Scalar")
def isin_number(batch: Batch, elements: Any, test: Any, assume_unique: bool, invert: bool) -> Any:
    """elements == test."""
    return batch.again("aten::ne" if invert else "aten::eq", elements, test)


@table.batch("isin.Scalar_Tensor")
def number_isin(batch: Batch, element: Any, test: Any, assume_unique: bool, invert: bool) -> Any:
    """any(test == element) -> ()."""
    is_equal = batch.again("aten::any", batch.again("aten::eq", test, element))
    return batch.again("aten::logical_not", is_equal) if invert else is_equal


@table.batch("_is_all_true")
def is_all_true(batch: Batch, self: Any) -> Any:
    """All elements but the batch dimension -> ()."""
    return batch.again("aten::all", self)


@table.batch("_is_any_true")
def is_any_true(batch: Batch, self: Any) -> Any:
    """Any element but the batch dimension -> ()."""
    return batch.again("aten::any", self)


table.batch("isreal")(untouched)
table.not_batched("it makes a Python number of elements", "is_nonzero equal allclose")
table.not_batched("it looks at the elements of a list", "eq.Tensor_list ne.Tensor_list")
