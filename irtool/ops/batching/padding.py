"""Batching rules of padding."""
from __future__ import annotations

from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import folded, image, leading, of_ranks, unfolded
from irtool.ops.kernels.padding import table


@table.batch("pad _pad_enum _pad_circular")
def pad(batch: Batch, self: Any, padding: Any, *args: Any) -> Any:
    """Constant padding: (B, ...). The others: (N, C, ...) -> (B * N, C, ...), N optional."""
    if batch.kind == "aten::pad" and args[0] == "constant" or batch.kind == "aten::_pad_enum" and args[0] == 3:
        return of_ranks(len(padding) // 2)(leading)(batch, self, padding, *args)
    rank = len(padding) // 2 + 1
    return unfolded(batch, batch.same(folded(batch, self, rank), padding, *args), self, rank)


table.batch("reflection_pad1d reflection_pad1d_backward replication_pad1d replication_pad1d_backward reflection_pad2d "
            "reflection_pad2d_backward replication_pad2d replication_pad2d_backward reflection_pad3d reflection_pad3d_backward "
            "replication_pad3d replication_pad3d_backward")(image)


@table.batch("constant_pad_nd")
def constant_pad(batch: Batch, self: Any, pad: Any, value: Any) -> Any:
    """(B, ...)."""
    return of_ranks(len(pad) // 2)(leading)(batch, self, pad, value)
