"""Unknown kinds: the operator that the text most likely means."""
from __future__ import annotations

from functools import lru_cache

from irtool.ir.effects import TABLED, is_known_prim
from irtool.ir.errors import UnsupportedError, nearest
from irtool.ir.schema import declared_kinds, forgets_kinds, schemas

SPACES = ("aten", "prim")
LONGEST = 80
"""No suggestion is made for longer words."""


def not_supported(kind: str, message: str, code: str = "E0404") -> UnsupportedError:
    """The error for a kind: `unknown operator 'aten::nge' (did you mean 'aten::neg'?)` if it is misspelt, else the caller's message."""
    misspelt = unknown_operator(kind)
    return UnsupportedError(misspelt or message, code="E0103" if misspelt else code)


def unknown_operator(kind: str) -> str:
    """`unknown operator 'aten::nge' (did you mean 'aten::neg'?)`; empty for a declared kind, and for a kind that is near no declared
    one."""
    space, colons, _ = kind.partition("::")
    if not colons or space in SPACES and (schemas(kind) or is_known_prim(kind)):
        return ""
    hint = nearest_kind(kind)
    return f"unknown operator '{kind}' (did you mean '{hint}'?)" if hint else ""


@forgets_kinds
@lru_cache(maxsize=256)
def nearest_kind(kind: str) -> str:
    """The declared kind nearest to this one (`aten::neg` for `atn::nge`), or empty. Takes milliseconds."""
    space, _, name = kind.partition("::")
    if space not in SPACES and len(space) <= LONGEST:
        space = nearest(space, SPACES) or ""
    if not space or len(name) > LONGEST:
        return ""
    prefix = space + "::"
    names = _names(prefix)
    same = name if name in names else next((each for each in names if each.lower() == name.lower()), None)
    suggestion = same or nearest(name, names)
    return prefix + suggestion if suggestion else ""


@forgets_kinds
@lru_cache(maxsize=2)
def _names(prefix: str) -> tuple[str, ...]:
    kinds = [*declared_kinds(), *(TABLED if prefix == "prim::" else ())]
    return tuple([kind.removeprefix(prefix) for kind in kinds if kind.startswith(prefix)])
