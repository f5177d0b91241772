"""HTML for notebooks: `graph._repr_html_()` is `html(graph)`. Pictures are images, in which no script runs; texts go through `markup`."""
from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Any

from irtool.drawing.escaping import cut, lines_markup, markup
from irtool.drawing.scenes import Scenes
from irtool.drawing.svg import picture
from irtool.ir.graph import Graph, Node, Value, counted
from irtool.ir.module import Module
from irtool.ir.pair import pairs

LONGEST = 20_000
"""Letters of a text; the rest is cut."""
MOST_ROWS, MOST_COLUMNS = 10, 12
"""Of a tensor that is shown as a table."""
Row = Iterable[object]


def html(thing: Any) -> str:
    """HTML of an object, by the first of its classes that SHOWN names."""
    return next(SHOWN[each.__name__] for each in type(thing).__mro__ if each.__name__ in SHOWN)(thing)


# -- graphs
def drawn(module: Module) -> str:
    """Pictures of the graphs of a module, and its text, folded."""
    scenes = Scenes(module)
    in_pairs = [name for pair in pairs(module) for name in (pair.f.name, pair.df.name)]
    pictures = [image(f"graph {name}", picture(scenes.scenes[name])) for name in scenes.roots if name not in in_pairs]
    return "".join(pictures) + folded("text", str(module)) if pictures else code(module)


def drawn_graph(graph: Graph) -> str:
    """The same for one graph."""
    return drawn(Module([graph]))


def image(words: str, svg: str) -> str:
    """SVG as an image, so that its style rules do not affect the notebook."""
    return f'<img alt="{markup(words)}" src="data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}">'


def code(part: Node | Value | Module) -> str:
    """The text of `repr`: the line of a node, or a value with its type."""
    return f"<code>{markup(cut(repr(part)[1:-1], 400))}</code>"


# -- runs
def drawn_executor(executor: Any) -> str:
    """The plans of an executor, its counters, and the picture of its graph."""
    plans = [(spec, sum(1 for _ in plan.shown.walk())) for spec, plan in [*executor.plans.items()]]
    counters = table(("counter", ""), executor.stats.items())
    return code(executor) + table(("plan for", "nodes"), plans) + counters + drawn_graph(executor.graph)


def drawn_plan(plan: Any) -> str:
    """The graph that a plan runs, and the source of the function made of it, if it has been made."""
    source = getattr(plan.code.plan, "source", "")
    return code(plan) + drawn_graph(plan.shown) + (folded("source", source) if source else "")


def drawn_report(report: Any) -> str:
    """The comparisons of a check, and its summary."""
    rows = [(row.order, row.name, f"{row.gradient:.8g}", f"{row.difference:.8g}", f"{row.off:.2g}", f"{row.allowed:.2g}", row.state)
            for row in report.rows]
    return block(str(report)) + table(("order", "input", "gradient", "difference", "off by", "allowed", ""), rows)


# -- tensors
def drawn_tensor(tensor: Any) -> str:
    """Dtype, shape and elements: a table for one or two dimensions, the corners if it is large; else text."""
    array = tensor.array
    head = f"<code>Tensor {markup(str(array.dtype))} {tuple(array.shape)}</code>"
    if array.ndim not in (1, 2):
        return head + block(str(array))
    rows = array.reshape(1, -1) if array.ndim == 1 else array
    down, across = places(rows.shape[0], MOST_ROWS), places(rows.shape[1], MOST_COLUMNS)
    return head + table((), [[shown(rows[i, j]) if i is not None and j is not None else "\u2026" for j in across] for i in down])


def places(size: int, most: int) -> list[int | None]:
    """The indices to show; None stands for omitted ones."""
    half = most // 2
    return list(range(size)) if size <= most else [*range(half), None, *range(size - half, size)]


def shown(element: Any) -> str:
    """One element in few digits."""
    return f"{element:.5g}" if element.dtype.kind in "fc" else str(element)


def boxed(tensor: Any) -> str:
    """A tensor under a layer, which hides its elements."""
    return f"<code>{markup(repr(tensor))}</code>"


# -- HTML
def table(heads: Iterable[str], rows: Iterable[Row]) -> str:
    """A table; empty if there are no rows."""
    lines = ["".join([f"<td>{markup(cut(str(each), 400))}</td>" for each in row]) for row in rows]
    head = "".join([f"<th>{markup(each)}</th>" for each in heads])
    return "<table>" + "".join([f"<tr>{line}</tr>" for line in ([head] if head else []) + lines]) + "</table>" if lines else ""


def block(text: str) -> str:
    """Text in a `<pre>`, cut if it is too long."""
    return f"<pre>{lines_markup(cut(text, LONGEST))}</pre>"


def folded(words: str, text: str) -> str:
    """Text that a click opens."""
    return f"<details><summary>{markup(words)}, {counted(text.count(chr(10)), 'line')}</summary>{block(text)}</details>"


SHOWN: dict[str, Callable[[Any], str]] = {
    "Module": drawn, "Graph": drawn_graph, "Node": code, "Value": code, "Executor": drawn_executor, "ExecutionPlan": drawn_plan,
    "Report": drawn_report, "Tensor": drawn_tensor, "Boxed": boxed,
}
"""By name of a class, which need not be imported to show another."""
