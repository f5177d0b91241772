"""Gradients of norms, distances and reductions of rows with nan, infinities, zeros and ties.

`python tests/extreme_rows.py` (with torch) records results and gradients in tests/data/extreme_rows.json, by expression, a list for each
pair of rows.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).parent / "data" / "extreme_rows.json"
NAN, INF = np.nan, np.inf
PAIRS = (([NAN, 1, 2], [1, 1, 0]), ([1, 1, NAN], [1, NAN, 0]), ([1, 1, 2], [1, 1, 2]), ([INF, 1, 2], [1, 1, 2]), ([3, 1, 2], [1, 3, 2]),
         ([INF, 1, 2], [INF, 1, 4]), ([INF, -INF, 2], [0, 1, 4]), ([0, 0, 0], [0, -0.0, 0]), ([-3, 3, -3], [2, 2, -2]),
         ([0.5, 0, -2], [0, 1, 0.25]))
ORDERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, INF, -INF)
OF_ORDER = ("torch.cdist(x, y, p={})", "torch.pdist(torch.cat([x, y]), {})", "torch.nn.functional.pairwise_distance(x, y, {})",
            "torch.linalg.vector_norm(x, {}, -1)", "torch.norm(y, {})", "torch.renorm(x, {}, 0, 1.0)",
            "torch.nn.functional.normalize(y, {})")
OF_ROWS = """
torch.softmax(x, 1)|torch.log_softmax(x, 1)|torch.logsumexp(x, 1)|torch.logcumsumexp(x, 1)|torch.cumsum(x, 1)|torch.cumprod(y[:, :2], 1)
torch.sum(x, 1)|torch.mean(x, 1)|torch.std(x, 1)|torch.var(y, 1)|torch.amax(x, 1)|torch.amin(y, 1)|torch.max(x, 1)[0]|torch.min(y, 1)[0]
torch.max(x)|torch.min(y)|torch.median(x)|torch.median(y, 1)[0]|torch.nanmedian(x, 1)[0]|torch.nansum(x, 1)|torch.nanmean(x, 1)
torch.cummax(x, 1)[0]|torch.cummin(y, 1)[0]|torch.nn.functional.cosine_similarity(x, y, 1)|torch.nn.functional.cross_entropy(x, y)
torch.nn.functional.kl_div(x, y)|torch.nn.functional.layer_norm(x, [3])|torch.nn.functional.max_pool1d(x, 2, 1)|torch.sort(x, 1)[0]
torch.topk(y, 2, 1)[0]|torch.quantile(x, 0.5, 1)|torch.nanquantile(y, 0.25, 1)|torch.aminmax(x)[0]|torch.mm(x, y.t())|torch.diff(x)
torch.trapezoid(x, y)|torch.outer(x[0], y[0])|torch.cross(x, y, dim=1)|torch.linalg.vecdot(x, y)|torch.dot(x[0], y[0])
torch.nn.functional.glu(torch.cat([x, y], 1), 1)|torch.nn.functional.softmin(x, 1)|torch.nn.functional.group_norm(x, 1)
torch.nn.functional.adaptive_max_pool1d(x, 2)|torch.nn.functional.avg_pool1d(y, 2)|torch.nn.functional.lp_pool1d(x.abs(), 2.0, 2)
torch.where(x > y, x, y).sum()|torch.addmm(x, x, torch.outer(y[0], y[0]))|torch.std_mean(x, 1)[0]
torch.nn.functional.multi_margin_loss(x, torch.zeros([1], dtype=torch.long))|torch.nn.functional.poisson_nll_loss(x, y)
torch.nn.functional.gaussian_nll_loss(x, y, y.abs())|torch.nn.functional.soft_margin_loss(x, y)
torch.nn.functional.margin_ranking_loss(x, y, y)|torch.nn.functional.triplet_margin_loss(x, y, y.flip(1))
torch.nn.functional.hinge_embedding_loss(x, y)|torch.prod(x)|torch.prod(y, 1)|torch.mode(x, 1)[0]|torch.mode(y)[0]|torch.logit(x)
torch.nn.functional.rrelu(x)|torch.nn.functional.rrelu(y, 0.1, 0.1)|torch.dist(x, y, float('inf'))|torch.dist(x, y, -float('inf'))
torch.dist(x, y, 0.5)|torch.prod(x * 1e200)|torch.logcumsumexp(x * 1e300, 1)|torch.logcumsumexp(-x * 1e300, 1)|torch.logdet(x.t() @ y)
"""


def expressions() -> list[str]:
    """All of them, of the rows x and y, each of shape (1, 3)."""
    of_order = [text.format(f"{order}".replace("inf", "float('inf')")) for text in OF_ORDER for order in ORDERS]
    return of_order + OF_ROWS.strip().replace("\n", "|").split("|")


def function(expression: str) -> str:
    """The expression as TorchScript."""
    return f"def f(x: Tensor, y: Tensor):\n    return {expression}\n"


def rows(pair: tuple[list[float], list[float]]) -> list[Any]:
    """The tensors of a pair."""
    return [np.array([row], np.float64) for row in pair]


def by_torch(expression: str) -> list[list[list[float]] | None]:
    """torch's result and gradients for each pair; None where it raises."""
    import torch

    space: dict[str, Any] = {"torch": torch, "Tensor": torch.Tensor}
    exec(function(expression), space)
    found: list[list[list[float]] | None] = []
    for pair in PAIRS:
        leaves = [torch.from_numpy(row).requires_grad_() for row in rows(pair)]
        try:
            result = space["f"](*leaves)
            gradients: Any = (None, None)
            if result.requires_grad:
                gradients = torch.autograd.grad(result, leaves, torch.ones_like(result), allow_unused=True)
        except (IndexError, RuntimeError):
            found.append(None)
            continue
        parts = [result.detach(), *[torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, gradients, strict=True)]]
        found.append([[float(f"{number:.9g}") for number in part.reshape(-1).tolist()] for part in parts])
    return found


if __name__ == "__main__":
    lines = [f"{json.dumps(text)}:{json.dumps(by_torch(text), separators=(',', ':'))}" for text in expressions()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
