"""Gradients of quantiles; operators that search, and that find repetitions, have none."""
from __future__ import annotations

from irtool.ops.kernels.order import table
from irtool.ops.tensor import Tensor, torch


def quantile_back(grad: Tensor, self: Tensor, q: Tensor, dim: int | None, keepdim: bool, interpolation: str,
                  skip_nan: bool) -> tuple[Tensor, Tensor]:
    """Gradients for the elements, and for q if neighbours are interpolated."""
    along = 0
    x = self.reshape([-1])
    if dim is not None:
        along = dim
        x = self.unsqueeze(0) if self.dim() == 0 else self
    rows = x.transpose(along, -1)
    values, order = rows.sort(-1)
    # the results of all q last, along that dimension
    results = grad.unsqueeze(-1) if q.dim() == 0 else grad.movedim(0, -1)
    if not keepdim or dim is None:
        results = results.reshape(rows.size()[:-1] + [q.numel()]) if dim is None else results.unsqueeze(along if along >= 0 else along - 1)
    if dim is not None:
        inner = along if along >= 0 else along - 1
        results = results.transpose(inner, -2).squeeze(-2) if self.dim() > 0 else results.reshape([q.numel()])
    count = (rows == rows).sum([-1], True) if skip_nan else torch.full_like(rows.narrow(-1, 0, 1), rows.size(-1))
    place = (q.reshape([-1]) * (count - 1).to(self.dtype)).clamp_min(0)
    if not skip_nan:        # nan, which is sorted last, is the result of its row
        place = torch.where((rows != rows).any(-1, True), (count - 1).to(self.dtype), place)
    below, above = place.floor(), place.ceil()
    if interpolation == "lower":
        above = below
    if interpolation == "higher":
        below = above
    if interpolation == "nearest":
        below = place.round()
        above = below
    share = (above - below) * 0.5 if interpolation == "midpoint" else (place - below) * (above > below)
    low, high = below.to(torch.int64), above.to(torch.int64)
    sorted_grad = torch.zeros_like(rows).scatter_add(-1, low, results * (1 - share)).scatter_add(-1, high, results * share)
    for_rows = torch.zeros_like(rows).scatter(-1, order, sorted_grad)
    for_q = torch.zeros_like(q)
    if interpolation == "linear":
        for_q = (results * (values.gather(-1, high) - values.gather(-1, low)) * (count - 1)).sum_to_size([q.numel()]).reshape(q.size())
    return for_rows.transpose(along, -1).reshape(self.size()), for_q


table.derivative("aten::quantile",
                 lambda grad, self, q, dim, keepdim, interpolation: quantile_back(grad, self, q, dim, keepdim, interpolation, False))


@table.derivative("quantile.scalar")
def quantile_scalar_gradient(grad, self, q, dim, keepdim, interpolation):
    sizes: list[int] = []
    for_self, _ = quantile_back(grad, self, torch.full(sizes, q, dtype=self.dtype), dim, keepdim, interpolation, False)
    return for_self


table.derivative("aten::nanquantile",
                 lambda grad, self, q, dim, keepdim, interpolation: quantile_back(grad, self, q, dim, keepdim, interpolation, True))


@table.derivative("nanquantile.scalar")
def nanquantile_scalar_gradient(grad, self, q, dim, keepdim, interpolation):
    sizes: list[int] = []
    for_self, _ = quantile_back(grad, self, torch.full(sizes, q, dtype=self.dtype), dim, keepdim, interpolation, True)
    return for_self


table.no_gradient("a place in an order is a whole number", "searchsorted bucketize")
table.unsupported("torch has none for what is left without repetitions",
                  "_unique2 _unique unique_consecutive unique_dim unique_dim_consecutive")
