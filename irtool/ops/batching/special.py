"""Batching rules of special functions that no fact declares pointwise."""
from __future__ import annotations

from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import element_by_element, untouched
from irtool.ops.kernels.special import table


@table.batch("polygamma_")
def polygamma(batch: Batch, self: Any, n: int) -> Any:
    """The in-place form, whose arguments are swapped: self's new value is polygamma(n, self)."""
    return batch.layer.write_into(self, batch.again("aten::polygamma", n, self), batch.name)


table.batch("special_airy_ai polygamma special_polygamma special_zeta special_zeta.self_scalar special_zeta.other_scalar igamma "
            "special_gammainc igammac special_gammaincc")(element_by_element)
table.batch("mvlgamma special_multigammaln")(untouched)
