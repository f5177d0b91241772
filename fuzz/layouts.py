"""How results of a call lie in memory: as torch's, since a view or a copy of a result hangs on that."""
from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import Any

import irtool
from fuzz import oracle
from fuzz.case import Case
from fuzz.judge import Wrong, outcome
from fuzz.programs import compile_source, input_sets

OTHERWISE = re.compile(r"aten\.(index|_unsafe_index|adjoint|conj|mH|matrix_H|copy|chain_matmul|einsum|kron|\w*_loss|rot90|diff)\(")
"""Calls whose results may lie otherwise: what an index names, conjugates with gaps, losses of several steps, dimensions of one element."""


def check(case: Case, tally: Counter[str]) -> None:
    """The reference against eager torch, also on other memory. Raises Wrong; what torch refuses is compared elsewhere."""
    if oracle.library() is None or OTHERWISE.search(case.text):
        return
    module, function = compile_source(case.text, tally), oracle.eager(case.text)
    sets = input_sets(case)
    for which, values in (("", sets[0]), (" on other memory", sets[2])):
        try:
            want = laid(function(*[oracle.to_torch(each) for each in values]))
        except Exception:       # whatever torch says of the operands
            continue
        kind, results = outcome(partial(irtool.run, module, values, interpret=True))
        got = laid(tuple(results) if kind == "value" and len(results) > 1 else results[0] if kind == "value" else None)
        if str(got) != str(want) and sizes(got) == sizes(want):
            tally["layouts"] += 1
            raise Wrong(f"memory layout{which}", f"strides {got}, expected {want}")


def laid(value: Any) -> Any:
    """The sizes and strides in elements, irtool's and torch's alike, of the dimensions of more than one element."""
    if isinstance(value, list | tuple):
        return [laid(each) for each in value]
    if not hasattr(value, "shape"):
        return None
    steps = value.stride() if hasattr(value, "stride") else [step // value.itemsize for step in value.strides]
    return {place: (size, step) for place, (size, step) in enumerate(zip(value.shape, steps)) if size > 1 and 0 not in value.shape}


def sizes(laid_out: Any) -> Any:
    """The sizes alone."""
    if isinstance(laid_out, list):
        return [sizes(each) for each in laid_out]
    return laid_out and {place: size for place, (size, _) in laid_out.items()}
