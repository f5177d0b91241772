"""Calls of torch's own functions that a printed graph contains by name only: `%f : Function = prim::Constant[name="relu"]()`.

irtool has its own bodies for them, in TorchScript. A call in a printed graph has an argument for every parameter, in order. So a function
is taken for torch's only if the number of arguments, their types and the type of the result are those of torch's function.
"""
from __future__ import annotations

import ast
from collections.abc import Sequence

from irtool.ir import types
from irtool.ir.callers import warn_in_users_code
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.edits import clone_graph, inline_graph, replace_node
from irtool.ir.errors import Error
from irtool.ir.graph import Graph, Node
from irtool.ir.types import Type

CALL = "prim::CallFunction"
NAMES = {
    **{f"_max_pool{n}d": f"max_pool{n}d" for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": f"max_pool{n}d_with_indices" for n in (1, 2, 3)},
    **{f"_adaptive_max_pool{n}d": f"adaptive_max_pool{n}d" for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d_with_indices": f"adaptive_max_pool{n}d_with_indices" for n in (1, 2, 3)},
    "_unique_impl": "unique_with_all", "_return_output": "unique_alone", "_return_inverse": "unique_with_inverse",
    "_return_counts": "unique_with_counts", "_return_inverse_and_counts": "unique_with_all",
    "_unique_consecutive_impl": "consecutive_with_all", "_consecutive_return_inverse_and_counts": "consecutive_with_all",
    "_consecutive_return_output": "consecutive_alone", "_consecutive_return_inverse": "consecutive_with_inverse",
    "_consecutive_return_counts": "consecutive_with_counts", "_threshold": "threshold",
    "_lu_with_infos": "lu_with_infos", "_lu_no_infos": "lu_alone",
}
"""torch's names of functions of which a flag chooses one -> their names here."""
OUT = {"norm": 4, "tensordot": 3, "normalize": 4, "_lu_with_infos": 3, "_lu_no_infos": 3}
"""Functions with a parameter `out`, which is None -> its position."""
_bodies: dict[tuple[str, tuple[str, ...], str], Graph | None] = {}


class LibraryWarning(UserWarning):
    """A graph contains only the name of a function, and it is taken for torch's function of that name."""


def called_name(node: Node) -> str | None:
    """The name of the function that a `prim::CallFunction` calls."""
    source = node.inputs[0].node if node.inputs else None
    name = source.attributes.get("name") if source is not None and source.kind in CONSTANT_KINDS else None
    return str(name.value) if name is not None else None


def library_body(node: Node) -> Graph | None:
    """The graph of torch's function that a node calls; None if it calls another one, or with other arguments."""
    name = called_name(node) if node.kind == CALL and len(node.outputs) == 1 else None
    if name is None:
        return None
    operand_types = [value.type for value in node.inputs[1:]]
    key = name, tuple([type.text for type in operand_types]), node.output.type.text
    if key not in _bodies:
        _bodies[key] = _body(name, operand_types, node.output.type)
    return _bodies[key]


def _body(name: str, operand_types: Sequence[Type], result: Type) -> Graph | None:
    from irtool.torchscript.annotations import signature
    from irtool.torchscript.calls import call_meaning
    from irtool.torchscript.emitter import Emitter
    from irtool.torchscript.front import Compilation, finish
    from irtool.torchscript.meanings import Called, Overloads
    from irtool.torchscript.nn_functional import defined, function, torch_function
    from irtool.torchscript.source_text import Function, read

    chosen = defined(NAMES.get(name, ""))
    meaning: object = Called(chosen) if chosen is not None else function(name) or torch_function(name)
    out = OUT.get(name)
    if not isinstance(meaning, Called | Overloads) or out is not None and (len(operand_types) <= out or operand_types[out].key != "None"):
        return None
    count = len(operand_types) - (out is not None)
    if isinstance(meaning, Called) and isinstance(meaning.function, Function) and len(signature(meaning.function).names) != count:
        return None
    (template,) = read(f"def {name}():\n    pass\n", f"torch.{name}").functions.values()
    e = Emitter(template, Compilation())
    values = [e.graph.block.add_input(e.graph.fresh_id(), types.spell(type, e.graph.dialect)) for type in operand_types]
    arguments = [value for place, value in enumerate(values) if place != out]
    try:
        output = call_meaning(e, ast.Pass(), meaning, arguments, {})
    except Error:
        return None
    if not types.is_subtype(output.type, result):
        return None
    e.graph.block.add_output(output)
    finish(e.graph)
    return e.graph


def opened(graph: Graph) -> Graph:
    """A copy in which calls of torch's functions are inlined, with a warning that names them; the graph itself if there are none."""
    if not any(library_body(node) is not None for node in graph.walk() if node.kind == CALL):
        return graph
    copy = clone_graph(graph)
    names: dict[str, None] = {}
    for node in [node for node in copy.walk() if node.kind == CALL]:
        body = library_body(node)
        if body is not None:
            names[str(called_name(node))] = None
            replace_node(node, inline_graph(body, node, node.inputs[1:]))
    words = ", ".join(names)
    warn_in_users_code(f"the graph has only the names of functions that it calls, assumed to be torch's: {words}", LibraryWarning)
    return copy
