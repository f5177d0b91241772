"""`raise`: prim::RaiseException with the message and the name of the class."""
from __future__ import annotations

import ast
import builtins

from irtool.torchscript.emitter import Emitter
from irtool.torchscript.meanings import ExceptionClass
from irtool.torchscript.python_names import EXCEPTIONS


def raise_exception(e: Emitter, statement: ast.Raise) -> None:
    """`raise ValueError("...")`, `raise ValueError`."""
    from irtool.torchscript.expressions import meaning_of

    assert statement.exc is not None        # check_syntax
    raised = meaning_of(e, statement.exc)
    e.at(statement)
    if not isinstance(raised, ExceptionClass):
        e.fail(statement.exc, "exceptions must derive from BaseException")
    message = raised.message if raised.message is not None else e.constant("")
    name = f"builtins.{getattr(builtins, raised.name).__name__}" if raised.name in EXCEPTIONS else raised.name      # IOError is OSError
    e.node("prim::RaiseException", (message, e.constant(name)), ())
