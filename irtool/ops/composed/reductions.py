"""Words, numbers and old flags for reductions, converted into one another."""
from typing import Optional

from irtool.ops.composed.script_types import is_scripting, number_of


def legacy_reduction(size_average: Optional[bool], reduce: Optional[bool], reduction: str) -> str:
    """The word for what two flags of torch's first years say, where they say anything."""
    word = reduction
    if size_average is not None or reduce is not None:
        averages = True if size_average is None else size_average
        reduces = True if reduce is None else reduce
        if not reduces:
            word = "none"
        elif averages:
            word = "mean"
        else:
            word = "sum"
    return word


def reduction_number(reduction: str) -> int:
    """The number by which operators mean a reduction. Python's error suggests a word."""
    if not is_scripting():
        return number_of("reduction", reduction, {"none": 0, "mean": 1, "sum": 2})
    if reduction == "none":
        number = 0
    elif reduction == "mean":
        number = 1
    elif reduction == "sum":
        number = 2
    else:
        raise ValueError("{} is not a valid value for reduction".format(reduction))
    return number


def legacy_number(size_average: Optional[bool], reduce: Optional[bool], reduction: str) -> int:
    """The same as a number."""
    return reduction_number(legacy_reduction(size_average, reduce, reduction))
