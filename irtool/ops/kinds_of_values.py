"""The kind of a value, in torch's words."""
from __future__ import annotations

from typing import Any

from irtool.ops.arrays import is_array

_TAGS: dict[type, str] = {bool: "Bool", int: "Int", float: "Double", complex: "ComplexDouble", str: "String", tuple: "Tuple",
                          list: "GenericList", dict: "GenericDict", type(None): "None"}


def tag(value: Any) -> str:
    """torch's name for the kind of a value: `Double`, `Tensor`, `GenericList`."""
    return _TAGS.get(type(value), "Tensor" if is_array(value) else type(value).__name__)
