"""The line above a graph with the arrays of constants that its text rounds or leaves out: `# tensors: c=float32[2]:AACAPwAAAEA=`.

A constant shows as in torch, ` 0.3333  1.0000 [ CPUFloatType{2} ]` or `<Tensor>`; the line has its bits, in base64, under the name of its
value; those of a view, `float32[2,3;0,1]`, are its memory, which strides follow. Only small arrays stand there: the text of a graph with
large ones, such as weights, is not complete without a file beside it.
"""
from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator

from irtool.ir.attribute import Attribute, beyond_text
from irtool.ir.errors import Error
from irtool.ir.graph import Graph, Node
from irtool.ir.tensor_literal import SPELLED, TensorLiteral, view_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

START = "# tensors:"
LINE = re.compile(rf"{START}(?: [^ =\n]+=\w+\[[\d,]*(?:;[\d,]+)?\]:[\w+/]*=*)+\n\Z")
_FIELD = re.compile(r" ([^ =\n]+)=(\w+)\[([\d,]*)(?:;([\d,]+))?\]:([\w+/]*=*)")
KINDS = "biufc"
"""Kinds of NumPy's dtypes whose elements are their bytes."""


def tensor_constants(graph: Graph, prefix: str = "") -> Iterator[tuple[str, Node, str]]:
    """Every tensor constant of a graph and of the subgraphs of its nodes: its key, its node, the name of the attribute."""
    for node in graph.walk():
        if not node.attributes or not node.outputs:
            continue
        key = prefix + node.outputs[0].name
        for name, attribute in node.attributes.items():
            if attribute.text.endswith((">", "]", "}")) and isinstance(attribute.value, TensorLiteral):
                yield (key if name == "value" else f"{key}[{name}]"), node, name
            elif name == "Subgraph" and isinstance(attribute.value, Graph):
                yield from tensor_constants(attribute.value, f"{key}/")


def has_arrays(graph: Graph) -> bool:
    """Has a constant of a graph an array, which the text leaves out or rounds?"""
    known = beyond_text([node.attributes for node in graph.walk() if node.attributes])
    return any(not isinstance(each, Graph) or has_arrays(each) for each in known)


def tensor_line(graph: Graph) -> str:
    """The line of a graph; empty if its constants have no arrays, or if one cannot stand there."""
    if not has_arrays(graph):
        return ""
    fields = []
    for key, node, name in tensor_constants(graph):
        array: Any = node.attributes[name].array
        if array is None:
            continue
        dtype: Any = getattr(array, "dtype", None)
        literal = node.attributes[name].value
        if getattr(dtype, "kind", "") not in KINDS or not hasattr(dtype, "newbyteorder"):       # the latter without NumPy
            return ""
        if array.size > SPELLED or not isinstance(literal, TensorLiteral) or literal.dtype != dtype.name:
            return ""
        strides = literal.strides
        data = base64.b64encode(literal.memory().astype(dtype.newbyteorder("<")).tobytes()).decode()
        fields.append(f" {key}={dtype.name}[{_listed(array.shape)}{f';{_listed(strides)}' if strides else ''}]:{data}")
    return f"{START}{''.join(fields)}\n"


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple([int(number) for number in text.split(",") if number])


def attach_line(graph: Graph, line: str) -> None:
    """Give the constants of a graph the arrays of its line. Raises Error for a line that `tensor_line` would not give."""
    try:
        import numpy as np
    except ImportError:
        raise Error("the line '# tensors:' needs NumPy", code="E0706") from None
    places = {key: (node, name) for key, node, name in tensor_constants(graph)}
    for key, dtype, sizes, steps, text in _FIELD.findall(line):
        if key not in places:
            raise Error(f"'# tensors:' has the constant '{key}', which is not in the graph", code="E0706")
        node, name = places[key]
        shape, strides = _numbers(sizes), _numbers(steps)
        try:
            array = np.frombuffer(base64.b64decode(text, validate=True), np.dtype(dtype).newbyteorder("<")).astype(dtype)
            array = view_of(array, shape, strides) if strides else array.reshape(shape)
        except (ValueError, TypeError, binascii.Error) as error:
            raise Error(f"'# tensors:' does not have the array of '{key}': {error}", code="E0706") from None
        shown = node.attributes[name].text
        node.set_attribute(name, Attribute(shown, TensorLiteral(shown, dtype, shape, array)))
    if tensor_line(graph) != line:
        raise Error("'# tensors:' is not the line that irtool prints for this graph", code="E0706")
