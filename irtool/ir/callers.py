"""The user's frame on the stack: the line of the user's code that a message or a warning is about."""
from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import FrameType

# as code objects name them: the path of the import, in which a folder may be a symbolic link
_PACKAGES = {Path(__file__).parent.parent, Path(__file__).resolve().parent.parent}
OURS = (*(f"{folder}{os.sep}" for package in _PACKAGES for folder in (package, package.parent / "passes")), "<torch.", "<irtool")
"""How names of irtool's files, and of functions that it makes, begin."""


def users_frame() -> FrameType | None:
    """The innermost frame that is not irtool's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def is_ours(filename: str) -> bool:
    """Is the file part of this package, or of a module of the standard library through which calls go?"""
    return filename.startswith(OURS) or filename.endswith(("contextlib.py", "functools.py"))


def place_in_users_code() -> str:
    """`train.py:12`."""
    frame = users_frame()
    return "?" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def warn_in_users_code(message: str, category: type[Warning]) -> None:
    """A warning that names the user's line."""
    frame = users_frame()
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__"), registry)
