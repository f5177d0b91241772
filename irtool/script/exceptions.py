"""`raise`: prim::RaiseException with the message and the class's name."""
from __future__ import annotations

import ast

from irtool.script.emitter import Emitter
from irtool.script.names import EXCEPTIONS
from irtool.script.values import ExceptionClass


def raise_exception(e: Emitter, statement: ast.Raise) -> None:
    """`raise ValueError("...")`, `raise ValueError`."""
    from irtool.script.expressions import meaning_of

    if statement.exc is None:
        e.fail(statement, "raise without an exception is not supported", len("raise"))
    raised = meaning_of(e, statement.exc)
    e.at(statement)
    if not isinstance(raised, ExceptionClass):
        e.fail(statement.exc, "exceptions must derive from BaseException")
    message = raised.message if raised.message is not None else e.constant("")
    e.node("prim::RaiseException", (message, e.constant(f"builtins.{raised.name}" if raised.name in EXCEPTIONS else raised.name)), ())
