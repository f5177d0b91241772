"""Names in a printed function: legal in Python, unique, and without another meaning in TorchScript."""
from __future__ import annotations

import builtins
import keyword

from irtool.ir.graph import Value
from irtool.torchscript.python_names import EXCEPTIONS, SPECIALS

RESERVED = frozenset((
    *keyword.kwlist, *keyword.softkwlist, *dir(builtins), *SPECIALS, *EXCEPTIONS,
    "torch", "ops", "aten", "prim", "CONSTANTS", "math", "cmath", "typing", "inf", "nan", "annotate", "unchecked_cast", "uninitialized",
    "Tensor", "List", "Dict", "Tuple", "Optional", "Union", "Any", "Future", "RRef", "Final", "number", "Scalar", "Device", "Generator",
    "Stream", "NoneType", "Capsule", "rangelist", "fork", "awaitable", "device", "layout", "dtype", "Enum", "NamedTuple", "Module",
))


class Names:
    """Chooses a name for each value of a function."""

    def __init__(self, outer: Names | None = None) -> None:
        self.used: set[str] = outer.used if outer is not None else set(RESERVED)
        self._counts: dict[str, int] = outer._counts if outer is not None else {}

    def fresh(self, base: str) -> str:
        """`base`, or if it is taken `base0`, `base1`, ...; temporaries have the base `_` and are `_0`, `_1`, ..."""
        name = base
        while name in self.used or name == "_":
            count = self._counts.get(base, 0)
            self._counts[base] = count + 1
            name = f"{base}{count}"
        self.used.add(name)
        return name

    def of(self, value: Value, otherwise: str = "_") -> str:
        """A new name for a value: its own, made legal, or `otherwise` if its own is a number."""
        return self.fresh(otherwise if value.has_id_name else identifier(value.name, otherwise))


def identifier(name: str, otherwise: str = "_") -> str:
    """The nearest legal identifier: `x.1` is `x`, `a/b` is `a_b`."""
    stem, dot, number = name.rpartition(".")
    if dot and number.isdecimal():
        name = stem
    name = "".join([c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name[:80]])
    if not name.strip("_0123456789"):       # `_1` would look like a temporary
        return otherwise
    return "_" + name if name[0].isdigit() else name
