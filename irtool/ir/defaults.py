"""Default values of a graph's inputs: those of the parameters of a compiled function.

They are in the comment line in front of the graph, by names of inputs: `# graph f: defaults=["n.1", 3, "mode.1", "mean"]`.
"""
from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from irtool.ir.errors import Error
from irtool.ir.graph import Graph

DEFAULTS = "defaults"


def spelled(values: Mapping[str, object]) -> str:
    """The text of `defaults=`: names and values alternate; values without a literal (nan) are left out."""
    parts: list[str] = []
    for name, value in values.items():
        text = _text(value)
        if text is not None:
            parts += [f'"{name}"', text]
    return f"[{', '.join(parts)}]"


def _text(value: object) -> str | None:
    """A literal for a value; None if it has none."""
    if isinstance(value, float | complex):
        return None if value != value else repr(value).replace("inf", "1e999")
    if isinstance(value, str):
        return repr(value).replace("[", "\\x5b").replace("]", "\\x5d")
    if not isinstance(value, tuple | list | dict):
        return repr(value) if value is None or isinstance(value, bool | int) else None
    if isinstance(value, dict):
        pairs = [(_text(key), _text(each)) for key, each in value.items()]
        return None if any(None in pair for pair in pairs) else "{" + ", ".join([f"{key}: {each}" for key, each in pairs]) + "}"
    texts = [_text(each) for each in value]
    if None in texts:
        return None
    inside = ", ".join(filter(None, texts))
    return f"[{inside}]" if isinstance(value, list) else f"({inside},)" if len(value) == 1 else f"({inside})"


def defaults_of(graph: Graph) -> dict[str, Any]:
    """The default values by name of the input. Raises Error for a line that contains anything but names and literals."""
    text = graph.metadata.get(DEFAULTS)
    if text is None:
        return {}
    try:
        parts = ast.literal_eval(text)
        names = parts[::2]
        if not isinstance(parts, list) or len(parts) % 2 or not all(isinstance(name, str) for name in names):
            raise ValueError
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise Error(f"graph '{graph.name}': expected defaults=[\"name\", value, ...], got defaults={text[:60]}", code="E0211") from None
    return dict(zip(names, parts[1::2], strict=True))


@contextmanager
def following_names(graph: Graph) -> Iterator[None]:
    """Inside, inputs get other names: afterwards the defaults are by these. A line that cannot be read stays as it is."""
    try:
        known = defaults_of(graph)
    except Error:
        known = {}
    inputs = [(value, known[value.name]) for value in graph.inputs if value.name in known]
    before = [value.name for value, _ in inputs]
    yield
    if [value.name for value, _ in inputs] != before:
        graph.metadata[DEFAULTS] = spelled({value.name: default for value, default in inputs})


def completed(graph: Graph, inputs: Sequence[Any]) -> Sequence[Any]:
    """The inputs, extended by the defaults of missing last ones; unchanged if one of these has no default."""
    if not isinstance(inputs, list | tuple) or len(inputs) >= len(graph.inputs) or DEFAULTS not in graph.metadata:
        return inputs
    known = defaults_of(graph)
    missing = [value.name for value in graph.inputs[len(inputs):]]
    return [*inputs, *[known[name] for name in missing]] if all(name in known for name in missing) else inputs
