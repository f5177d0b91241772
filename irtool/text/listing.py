"""The listing of early 2017: let-bindings without a header (`%21 = Linear %20, %1, %3` ... `Ret %21`)."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irtool.ir.graph import Graph
    from irtool.text.parser import GraphFile


def read_listing(file: GraphFile) -> Graph | None:
    """The graph of a listing; None when the text is none."""
    return None
