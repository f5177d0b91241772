"""The states of instances of torch's own classes (`__torch__.torch.classes...`) in archives.

Source: aten/src/ATen/native/quantized/cpu (conv_serialization.h, fbgemm_utils.cpp, qembeddingbag_prepack.cpp) and native/RNN.cpp.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from irtool.ir.errors import UnsupportedError
from irtool.ir.types import Type, parse_type
from irtool.ops.array_library import np
from irtool.ops.arrays import is_array
from irtool.ops.kernels import quantized_packed, quantized_recurrent
from irtool.ops.kernels.quantized_packed import CONV2D, CONV3D, LINEAR
from irtool.ops.kernels.quantized_recurrent import CELL, EMBEDDING
from irtool.ops.quantized import Packed, Quantized

pack_linear: Callable[..., Packed] = quantized_packed.pack_linear
pack_half: Callable[..., Packed] = quantized_packed.pack_half
pack_conv: Callable[..., Packed] = quantized_packed.pack_conv
pack_cell: Callable[..., Packed] = quantized_recurrent.pack_cell
pack_embedding: Callable[..., Packed] = quantized_recurrent.pack_embedding
NO_FORM = "the state of the instance has no form that is known"


def expect(condition: bool) -> None:
    """Raises ValueError if the state does not have the expected form."""
    if not condition:
        raise ValueError(NO_FORM)


def _weight_and_bias(weight: Any, bias: Any) -> None:
    expect(isinstance(weight, Quantized) or is_array(weight))
    expect(bias is None or is_array(bias) and bias.ndim == 1)


def _linear(state: Any) -> Packed:
    expect(isinstance(state, tuple) and len(state) == 2)
    _weight_and_bias(*state)
    return pack_linear(*state) if isinstance(state[0], Quantized) else pack_half(*state)


def _convolution(rank: int) -> Callable[[Any], Packed]:
    def read(state: Any) -> Packed:
        expect(isinstance(state, tuple) and len(state) >= 3)
        if is_array(state[0]) or isinstance(state[0], Quantized):
            return _first_convolution(rank, state)
        if state[0] == 3:       # (3, [numbers], [None, weight, bias])
            _, numbers, tensors = state[:3]
            expect(isinstance(tensors, list) and len(tensors) == 3)
            weight, bias = tensors[1:]
        else:                   # ("2", [numbers as int16, weight], [bias])
            expect(state[0] == "2" and isinstance(state[1], list) and isinstance(state[2], list))
            expect(len(state[1]) == 2 and len(state[2]) == 1 and is_array(state[1][0]))
            numbers, weight, bias = state[1][0].tolist(), state[1][1], state[2][0]
        expect(isinstance(numbers, list) and len(numbers) == 4 * rank + 3 and numbers[0] == rank)
        _weight_and_bias(weight, bias)
        places = [numbers[1 + rank * k:1 + rank * (k + 1)] for k in range(4)]
        return pack_conv(rank, weight, bias, *places[:3], numbers[-2], places[3], bool(numbers[-1] & 1))
    return read


def _first_convolution(rank: int, state: Any) -> Packed:
    """(weight, bias, [stride], [padding], [dilation], groups), every number as a tensor of one element."""
    weight, bias, *lists = state[:5]
    _weight_and_bias(weight, bias)
    expect(len(state) >= 6 and all(isinstance(each, list) and all(is_array(item) and item.size == 1 for item in each) for each in lists))
    expect(is_array(state[5]) and state[5].size == 1)
    return pack_conv(rank, weight, bias, *[[int(item.item()) for item in each] for each in lists], int(state[5].item()))


def _embedding(state: Any) -> Packed:
    expect(isinstance(state, tuple) and len(state) >= 2 and isinstance(state[1], list) and len(state[1]) == 1)
    expect(isinstance(state[1][0], Quantized))
    return pack_embedding(state[1][0])


def _cell(state: Any) -> Packed:
    expect(isinstance(state, tuple) and len(state) == 5 and isinstance(state[3], list) and isinstance(state[4], list))
    kind, _, _, numbers, layers = state
    if kind not in ("quantized_dynamic", "quantized_fp16"):
        raise UnsupportedError(f"cells of recurrent layers of the kind '{str(kind)[:40]}' are not supported", code="E0404")
    expect(len(layers) == 2 and all(isinstance(each, Packed) and "bias" in each.parts for each in layers))
    return pack_cell(*layers, bool(numbers and numbers[0]) if kind == "quantized_dynamic" else None)


STATES: Mapping[str, Callable[[Any], Packed]] = {
    LINEAR: _linear, CONV2D: _convolution(2), CONV3D: _convolution(3), EMBEDDING: _embedding, CELL: _cell}
"""Class -> the function that reads its state. Raises ValueError for a state of another form, Error for weights that do not fit."""


def packed_state(packed: Packed) -> tuple[Any, Type]:
    """The state of an instance, in the form that torch 2.13 writes, and its type."""
    parts, path = packed.parts, str(packed.type)
    if path == LINEAR:
        return (parts["weight"], parts["bias"]), parse_type("(Tensor, Tensor?)")
    if path == EMBEDDING:
        bits = 4 if parts["weight"].name == "quint4x2" else 8
        return (1, [parts["weight"]], [], [bits]), parse_type("(int, Tensor[], float[], int[])")
    if path == CELL:
        layers = [parts["w_ih"], parts["w_hh"]]
        declared = parse_type(f"(str, Tensor[], float[], int[], {LINEAR}[])")
        if parts["reduce_range"] is None:
            return ("quantized_fp16", [], [], [], layers), declared
        return ("quantized_dynamic", [each.parts["bias"] for each in layers], [], [int(parts["reduce_range"])], layers), declared
    moves = [*parts["stride"], *parts["padding"], *parts["dilation"], *parts["output_padding"]]
    numbers = np.array([len(parts["stride"]), *moves, parts["groups"], parts["transpose"]], np.int16)
    return ("2", [numbers, parts["weight"]], [parts["bias"]]), parse_type("(str, Tensor[], Tensor?[])")
