"""All operators: the tables of the families, joined by name. `OPS["aten::add.Tensor"]` is an `Op`; families load on first look-up.

An operator
    op                  the stanza, and the tables of stanzas; facts, size_facts: further facts about an overload
    kernels, gradients, batching, samples   the four facets, modules of one name per family; composed: functions made of operators
    derivative, formula short and whole functions for gradients; batch: the interface of batching rules
    own_operators       `@irtool.operator`; python_op: `^Name`; structure: prim:: nodes; torch_lists: torch's lists of operators
Calling one
    call, node_calls    by name, and for a node; overload: converts arguments and runs the kernel; quick: caches this
    promotion           dtypes of operands; result_dtypes: of results; checks: torch's errors about operands
    out_dtypes, out_overlaps   of out=: its dtypes, and operands that share its memory
    arrays, array_library, device   NumPy or CuPy; symbols: kernels on arrays without elements
    select, powers, contraction   shared by kernels; conjugates: conjugated views; quantized, on_quantized: quantized tensors
    folding             operators on constants, without arrays
Values
    tensor              `irtool.Tensor`; tensor_methods, tensor_facts, tensor_keys: its methods; tensor_text: as torch prints it;
                        tensor_parts: of lists with tensors in them
    signatures          operators as Python functions
    kinds_of_values     classes of values; nested_tensors: tensors in lists; made_inputs: inputs made from types
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from irtool.ir.extensions import import_operator

if TYPE_CHECKING:
    from irtool.ops.op import Op, OpTable

FAMILIES: tuple[str, ...] = (
    "prim", "scalar", "list", "dict", "string",
    "pointwise", "pointwise_binary", "bitwise", "comparison", "cast", "reduction", "statistics", "scan", "sort", "order", "histogram",
    "factory", "window", "random", "special", "polynomial", "fft", "stft",
    "shape", "joining", "diagonal", "padding", "indexing", "scatter", "matmul", "linalg", "matrix_norm", "decomposition", "distance",
    "conv", "pooling", "adaptive_pooling", "normalization", "softmax", "activation", "loss", "classification_loss", "embedding",
    "resample", "grid_sample", "vision", "attention", "recurrent", "fake_quantize",
    "quantized", "quantized_packed", "quantized_pointwise", "quantized_recurrent",
)
"""One module of this package each, with its stanzas in `table`."""


class Ops(Mapping[str, "Op"]):
    """Every operator by qualified name with overload (`aten::div.Tensor`, `aten::relu`); `of_kind("aten::div")` lists overloads."""

    def __init__(self) -> None:
        self._by_name: dict[str, Op] | None = None
        self._by_kind: dict[str, dict[str, Op]] = {}

    def _joined(self) -> dict[str, Op]:
        if self._by_name is None:
            joined: dict[str, Op] = {}
            for family in FAMILIES:
                table: OpTable = import_module(f"irtool.ops.kernels.{family}").table
                for op in table:
                    for name in op.names:
                        joined.setdefault(name, op)     # a test ensures that no name is in two families
                        self._by_kind.setdefault(name.partition(".")[0], {})[name] = op
            self._by_name = joined
        return self._by_name

    def join(self, op: Op) -> None:
        """Add a stanza of a user; its schemas must be declared (`irtool.ir.schema.declare`)."""
        joined = self._joined()
        for name in op.names:
            joined[name] = self._by_kind.setdefault(name.partition(".")[0], {})[name] = op

    def leave(self, op: Op) -> None:
        """The inverse of `join`."""
        joined = self._joined()
        for name in op.names:
            joined.pop(name, None)
            self._by_kind.get(name.partition(".")[0], {}).pop(name, None)

    def __getitem__(self, name: str) -> Op:
        return self._joined()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._joined())

    def __len__(self) -> int:
        return len(self._joined())

    def __repr__(self) -> str:
        return f"<operators of {len(FAMILIES)} families>"

    def of_kind(self, kind: str) -> dict[str, Op]:
        """The overloads of a node kind: qualified name -> Op. Empty if there are none."""
        self._joined()
        known = self._by_kind.get(kind)
        if known is None and "::" in kind and not kind.startswith(("aten::", "prim::")):
            import_operator(kind)       # the package of the operator may be installed
            known = self._by_kind.get(kind)
        return known or {}

    def kinds(self) -> list[str]:
        """The node kinds that have a kernel of their own, sorted."""
        self._joined()
        return sorted(self._by_kind)


OPS = Ops()
