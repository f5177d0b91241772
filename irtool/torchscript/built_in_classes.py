"""Classes of torch that archives name: their methods are operators; here they are source text by module."""
from __future__ import annotations

_UNPACKED = "Tuple[Tensor, Optional[Tensor]]"
_PLACES = ("stride", "padding", "output_padding", "dilation", "groups", "transpose")


def _class(name: str, methods: dict[str, tuple[str, str]]) -> str:
    """The source of a class: methods by name, each with the type of its result and its operator."""
    lines = [f"class {name}:"]
    for method, (result, operator) in methods.items():
        lines += [f"  def {method}(self: __torch__.torch.classes.quantized.{name}) -> {result}:",
                  f"    return ops.quantized.{operator}(self)"]
    return "\n".join([*lines, "" if methods else "  pass"])


def _convolution(rank: int) -> str:
    places = {place: ("int" if place in ("groups", "transpose") else "List[int]", f"conv{rank}d_{place}") for place in _PLACES}
    return _class(f"Conv{rank}dPackedParamsBase", {"unpack": (_UNPACKED, f"conv{rank}d_unpack"), **places})


SOURCES: dict[str, str] = {
    "__torch__.torch.classes.quantized": "\n".join([
        _class("LinearPackedParamsBase", {"unpack": (_UNPACKED, "linear_unpack")}), _convolution(2), _convolution(3),
        _class("EmbeddingPackedParamsBase", {"unpack": ("Tensor", "embedding_bag_unpack")}), ""]),
    "__torch__.torch.classes.rnn": "class CellParamsBase:\n  pass\n",
}
"""Module -> its source text."""
PACKED = {"Linear": "Linear", "LinearPackedParams": "Linear", "LinearReLU": "Linear", "Conv2d": "Conv2d", "ConvReLU2d": "Conv2d",
          "Conv3d": "Conv3d", "ConvReLU3d": "Conv3d", "Conv1d": "Conv2d", "ConvReLU1d": "Conv2d"}
"""Modules of torch.nn.quantized -> the class of their `_packed_params`, for old archives, which declare these as tensors."""


def packed_class(module: str, name: str) -> str | None:
    """The class of the attribute `_packed_params` of a module of torch.nn.quantized, by the module's full name; None for other modules."""
    return f"__torch__.torch.classes.quantized.{PACKED[name]}PackedParamsBase" if ".quantized." in f"{module}." and name in PACKED else None
