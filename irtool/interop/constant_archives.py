"""Tensor constants beside the text: `<Tensor>` has no digits and ` 0.2598  0.3666 [ .. ]` only 4, so an npz contains the arrays.

The key of a constant is its value's name without `%` (`weight`), followed by the attribute unless that is `value`
(`weight[values]`); in a file of several graphs the graph's name and a slash stand in front (`graph0/weight`), in a subgraph the key of
its owner. So print -> parse loses nothing as long as the two files stay together:

    archive = collect(module);  save str(module) and encode(archive)
    module = parse(text);  attach(module, archive)
"""
from __future__ import annotations

from collections.abc import Iterator

from irtool.interop.npz import Archive
from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.errors import Error
from irtool.ir.graph import Node
from irtool.ir.module import Module
from irtool.ir.source import Diagnostic
from irtool.ir.types import TensorType
from irtool.text.tensor_line import tensor_constants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.interop.npz import Array


def attach(module: Module, archive: Archive) -> list[str]:
    """Set the array of each tensor constant that the archive has; returns the keys that no constant has.

    Raises Error at the constant whose declared dtype or shape differs from the array's.
    """
    unused = dict.fromkeys(archive.arrays)
    for key, node, name in places(module):
        if key not in archive.arrays:
            continue
        unused.pop(key, None)
        array = archive.arrays[key]
        dtype = "bfloat16" if key in archive.bfloat16 else array.dtype.name
        declared = node.outputs[0].type if name == "value" else None
        if isinstance(declared, TensorType):
            check(declared, dtype, array, key, node)
        text = node.attributes[name].text
        node.set_attribute(name, Attribute(text, TensorLiteral(text, dtype, array.shape, array)))
    return list(unused)


def check(declared: TensorType, dtype: str, array: Array, key: str, node: Node) -> None:
    """Raises Error if the array has not the dtype and shape of the constant's type."""
    sizes = declared.sizes
    fits = sizes is None or len(sizes) == array.ndim and all(size in (None, have) for size, have in zip(sizes, array.shape, strict=True))
    if fits and declared.dtype in (None, dtype.replace("bool_", "bool")):
        return
    graph = node.graph
    raise Error(diagnostics=[Diagnostic("error", f"constant '{key}': expected {declared}, the npz has {dtype} {array.shape}",
                                        graph.source if graph is not None else None, node.line)], code="E0705")


def collect(module: Module) -> Archive:
    """The arrays of all constants that have one, whether their text is `<Tensor>` or rounded numbers."""
    archive = Archive()
    for key, node, name in places(module):
        literal = node.attributes[name].value
        if isinstance(literal, TensorLiteral) and literal.data is not None:
            archive.put(key, literal.data, is_bfloat16=literal.dtype == "bfloat16")
    return archive


def missing(module: Module) -> list[str]:
    """Keys of the constants whose numbers are neither in the text nor in an array."""
    keys = []
    for key, node, name in places(module):
        literal = node.attributes[name].value
        if not isinstance(literal, TensorLiteral) or not literal.has_data:
            keys.append(key)
    return keys


def places(module: Module) -> Iterator[tuple[str, Node, str]]:
    """Every tensor constant: its key, its node, the name of the attribute."""
    graphs = module.graphs
    for name, graph in zip(module.names(), graphs, strict=True):
        yield from tensor_constants(graph, f"{name}/" if len(graphs) > 1 else "")
