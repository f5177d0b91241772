"""Type promotion, outside the kernels: torch's rules, not NumPy's (torch.result_type; c10/core/ScalarType).

Three priority groups: tensors with dimensions > 0-dim tensors > numbers. The category (bool < int < float < complex) is taken over
all operands; the dtype comes from the highest-priority group that reaches it. A number brings only its category (float: the
default dtype, float32). A rule is what an op stanza names as `promote=`.
"""
from __future__ import annotations


class Rule:
    """How operands are converted before a kernel and its result after it."""

    __slots__ = ("name", "compute", "result")

    def __init__(self, name: str, compute: str, result: str) -> None:
        self.name = name
        self.compute = compute      # "common": torch.result_type of all; "float": the same, ints and bools become the default dtype
        self.result = result        # "compute": as computed; "bool": converted to bool; "kernel": whatever the kernel gives

    def __repr__(self) -> str:
        return self.name


PROMOTE = Rule("PROMOTE", "common", "compute")         # add, mul, where, maximum: result in the common dtype
TO_FLOAT = Rule("TO_FLOAT", "float", "compute")        # div, sin, sigmoid: integers become the default float dtype
COMPARE = Rule("COMPARE", "common", "bool")            # eq, lt, logical_and: computed in the common dtype, result bool
PROMOTE_IN = Rule("PROMOTE_IN", "common", "kernel")    # operands converted, the kernel decides the result's dtype
