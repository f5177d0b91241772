"""torch.nn.modules.utils: a number as often as a list needs it, or the list itself. torch's compiler knows a list for each result."""
from __future__ import annotations

from typing import List

from irtool.ops.composed.script_types import BroadcastingList1, BroadcastingList2, BroadcastingList3, BroadcastingList4, annotate


def single_of_ints(x: BroadcastingList1[int]) -> List[int]:
    return annotate(List[int], x)


def single_of_floats(x: BroadcastingList1[float]) -> List[float]:
    return annotate(List[float], x)


def pair_of_ints(x: BroadcastingList2[int]) -> List[int]:
    return annotate(List[int], x)


def pair_of_floats(x: BroadcastingList2[float]) -> List[float]:
    return annotate(List[float], x)


def triple_of_ints(x: BroadcastingList3[int]) -> List[int]:
    return annotate(List[int], x)


def triple_of_floats(x: BroadcastingList3[float]) -> List[float]:
    return annotate(List[float], x)


def quadruple_of_ints(x: BroadcastingList4[int]) -> List[int]:
    return annotate(List[int], x)


def quadruple_of_floats(x: BroadcastingList4[float]) -> List[float]:
    return annotate(List[float], x)
