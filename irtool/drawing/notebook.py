"""Pictures in notebooks: `%load_ext irtool` draws graphs and modules that a cell ends with."""
from __future__ import annotations

from base64 import b64encode
from typing import Any

from irtool.drawing.escaping import cut, markup
from irtool.drawing.scenes import Scenes
from irtool.drawing.svg import picture
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.module import Module


def register(shell: Any) -> None:
    """Let an IPython shell draw modules and graphs, and show nodes and values as code."""
    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type(Module, drawn)
    formatter.for_type(Graph, lambda graph: drawn(Module([graph])))
    for kind in (Node, Value):
        formatter.for_type(kind, code)


def drawn(module: Module) -> str:
    """The first picture of a module as HTML: an image, in which nothing runs, and whose rules of style hold for itself alone."""
    scenes = Scenes(module)
    if not scenes.roots:
        return markup(repr(module))
    name = scenes.roots[0]
    data = b64encode(picture(scenes.scenes[name]).encode()).decode()
    return f'<img alt="graph {markup(name)}" src="data:image/svg+xml;base64,{data}">'


def code(part: Node | Value) -> str:
    """The line of a node, or a value with its type, as HTML."""
    return f"<code>{markup(cut(repr(part)[1:-1], 400))}</code>"
