"""Functions that occur only in the code of archives and of `irtool decompile`: `unchecked_cast(T, x)`, `uninitialized(T)`."""
from __future__ import annotations

import ast

from irtool.ir.graph import Value
from irtool.ir.types import Type
from irtool.torchscript.annotations import annotation
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.meanings import Special


def unchecked_cast(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`unchecked_cast(T, x)`: x as a T, which it is known to be."""
    from irtool.torchscript.expressions import value_of

    if len(node.args) != 2 or node.keywords:
        e.fail(node, "unchecked_cast expected exactly 2 arguments")
    wanted = annotation(node.args[0], e.place)
    value = value_of(e, node.args[1])
    e.at(node)
    return e.cast(value, wanted)


def uninitialized(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`uninitialized(T)`: a value that is never read."""
    if len(node.args) != 1 or node.keywords:
        e.fail(node, "uninitialized expected exactly 1 argument")
    wanted = annotation(node.args[0], e.place)
    e.at(node)
    return e.uninitialized(wanted)
