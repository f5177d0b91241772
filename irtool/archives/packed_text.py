"""Packed parameters of quantized layers have no text. They are replaced by calls that pack them, of constants that have a text."""
from __future__ import annotations

from typing import Any

from irtool.archives.freezing import constant_of
from irtool.ir.builder import Builder
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Graph, Value
from irtool.ir.module import Module
from irtool.ir.types import TENSOR
from irtool.ops.arrays import is_array
from irtool.ops.kernels.quantized_packed import LINEAR
from irtool.ops.kernels.quantized_recurrent import CELL, EMBEDDING
from irtool.ops.quantized import Packed, Quantized


def unpack_constants(module: Module) -> None:
    """Replace constants of packed parameters by calls. Raises UnsupportedError for weights of fewer than 8 bits."""
    for graph in module.graphs:
        for node in list(graph.walk()):
            packed = node.attributes["value"].value if node.kind == "prim::Constant" and "value" in node.attributes else None
            if isinstance(packed, Packed):
                node.output.replace_all_uses_with(Packing(graph, Builder(graph).before(node)).packed(packed))
                node.destroy()


class Packing:
    """Makes calls that pack parameters, at one place of a graph."""

    def __init__(self, graph: Graph, build: Builder) -> None:
        self.graph = graph
        self.build = build

    def packed(self, packed: Packed) -> Value:
        """Packed parameters of any class."""
        parts, path, call = packed.parts, str(packed.type), self.build.call
        if path == CELL:
            layers = [self.packed(parts[name]) for name in ("w_ih", "w_hh")]
            if parts["reduce_range"] is None:
                return call("quantized::make_quantized_cell_params_fp16", *layers)
            biases = [self.tensor(parts[name].parts["bias"]) for name in ("w_ih", "w_hh")]
            return call("quantized::make_quantized_cell_params_dynamic", *layers, *biases, bool(parts["reduce_range"]))
        weight = self.tensor(parts["weight"])
        if path == EMBEDDING:
            return call("quantized::embedding_bag_prepack", weight)
        bias = self.tensor(parts["bias"])
        if path == LINEAR:
            return call(f"quantized::linear_prepack{'_fp16' if is_array(parts['weight']) else ''}", weight, bias)
        names = ["stride", "padding", *["output_padding"] * bool(parts["transpose"]), "dilation"]
        moves = [[int(each) for each in parts[name]] for name in names]
        rank = len(moves[0])
        kind = f"conv_transpose{rank}d" if parts["transpose"] else f"conv{rank}d"
        return call(f"quantized::{kind}_prepack", weight, bias, *moves, int(parts["groups"]))

    def tensor(self, value: Any) -> Any:
        """A tensor, a quantized one, or None."""
        if value is None:
            return None
        if not isinstance(value, Quantized):
            return constant_of(self.build, value, TENSOR, False, "a weight")
        if value.name not in ("qint8", "quint8", "qint32"):
            raise UnsupportedError(f"weights of {value.name} have no form in text: not supported", code="E0404")
        ints = constant_of(self.build, value.int_repr(), TENSOR, False, "a weight")
        if value.axis is None:
            return self.build.call("aten::_make_per_tensor_quantized_tensor", ints, float(value.scale), int(value.zero_point))
        scales, zeros = (constant_of(self.build, each, TENSOR, False, "a scale") for each in (value.scale, value.zero_point))
        return self.build.call("aten::_make_per_channel_quantized_tensor", ints, scales, zeros, value.axis)
