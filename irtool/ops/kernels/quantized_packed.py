"""Linear and convolution on quantized tensors: parameters packed into instances of torch's classes, sums of integers, rounded once.

Sums of products of integers are exact in float64 (below 2**53), which is what BLAS multiplies fast.
"""
import math

from irtool.ir.errors import RunError
from irtool.ir.types import parse_type
from irtool.ops.array_library import np
from irtool.ops.kernels import conv
from irtool.ops.kernels.quantized import floats, quantized_of
from irtool.ops.op import OpTable
from irtool.ops.quantized import Packed, Quantized, chosen, quantized, rounded

table = OpTable("quantized_packed")

CLASSES = "__torch__.torch.classes.quantized."
LINEAR, CONV2D, CONV3D = [CLASSES + name for name in ("LinearPackedParamsBase", "Conv2dPackedParamsBase", "Conv3dPackedParamsBase")]
LINEAR_TYPE = parse_type(LINEAR)
CONV_TYPES = {2: parse_type(CONV2D), 3: parse_type(CONV3D)}


# ---- shared by linear layers and convolutions
def factors(input_scale, weight):
    """Per output channel, the number that a step of 1 in the sums of products represents, as float32."""
    return np.float32(input_scale) * np.asarray(weight.scale, np.float32)


def requantized(sums, factor, bias, scale, zero_point, name, has_relu):
    """Sums (channels last, exact) plus a bias, as a quantized tensor."""
    steps = sums.astype(np.float32)
    if bias is not None:
        steps = steps + (bias / factor).astype(np.float32)
    steps = steps * (factor / np.float32(scale))
    return Quantized(rounded(steps, zero_point, name, zero_point if has_relu else None), name, float(scale), int(zero_point))


def relued(x, has_relu):
    """The larger of each number and 0, if there is a relu."""
    return np.maximum(x, np.float32(0)) if has_relu else x


def dynamic_input(x, reduce_range, name):
    """Floats as quint8, by a scale and zero point that fit all of them; with 7 bits if `reduce_range`."""
    x = floats(x, name)
    return quantized(x, *chosen(x, 0, 127 if reduce_range else 255), "quint8")


# ---- linear
def pack_linear(weight, bias):
    """A quantized weight (out, in), and a bias of floats or None."""
    if quantized_of(weight).ndim != 2:
        raise RunError("The weight tensor for quantized::linear_prepack (fbgemm) should be 2-dimensional.")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise RunError(f"bias should have N elements: {weight.shape[0]}")
    return Packed(LINEAR_TYPE, weight=weight, bias=bias)


def pack_half(weight, bias):
    """A weight (out, in) rounded to float16, and a bias of floats or None."""
    with np.errstate(over="ignore"):
        half = np.clip(weight, -65504, 65504).astype(np.float16).astype(np.float32)
    return Packed(LINEAR_TYPE, weight=half, bias=bias)


def sums_of(x, weight):
    """(x - its zero point) times (weight - its zero points), summed over the features: exact, in float64."""
    if x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        raise RunError("The number of columns in the input tensor must match the number of rows in the weight", code="E0407")
    return x.shifted().astype(np.float64) @ weight.shifted().astype(np.float64).T


def weight_of(packed, is_half=False):
    """The weight that was packed. Raises RunError if it is of the other kind."""
    weight = packed.parts["weight"]
    if isinstance(weight, Quantized) is is_half:
        raise RunError(f"expected packed weights of {'float16' if is_half else 'qint8'}")
    return weight


def linear_dynamic_of(x, packed, reduce_range, has_relu=False):
    """A linear layer on floats, which are quantized for it."""
    weight, bias = weight_of(packed), packed.parts["bias"]
    whole = dynamic_input(x, reduce_range, "quantized::linear_dynamic")
    result = sums_of(whole, weight).astype(np.float32) * factors(whole.scale, weight)
    return relued(result if bias is None else result + bias, has_relu)


def linear_half_of(x, packed, has_relu=False):
    """A linear layer on floats, with weights rounded to float16."""
    weight, bias = weight_of(packed, True), packed.parts["bias"]
    result = floats(x, "quantized::linear_dynamic_fp16") @ weight.T
    return relued(result if bias is None else result + bias, has_relu)


table.define(f"quantized::linear_prepack(Tensor W, Tensor? B=None) -> {LINEAR} W_prepack", lambda xp, W, B: pack_linear(W, B),
             doc="A quantized weight and a bias, for the quantized linear layers.")
table.define(f"quantized::linear_prepack_fp16(Tensor W, Tensor? B=None) -> {LINEAR} W_prepack", lambda xp, W, B: pack_half(W, B),
             doc="A weight rounded to float16 and a bias, for `linear_dynamic_fp16`.")
table.define((f"quantized::linear_unpack({LINEAR} W_prepack) -> (Tensor W_origin, Tensor? B_origin)",
              f"quantized::linear_unpack_fp16({LINEAR} W_prepack) -> (Tensor W_origin, Tensor? B_origin)"),
             lambda xp, packed: (packed.parts["weight"], packed.parts["bias"]), doc="The weight and the bias that were packed.")


def _linear(has_relu):
    def kernel(xp, X, packed, scale, zero_point):
        x, weight = quantized_of(X).whole("quantized::linear"), weight_of(packed)
        return requantized(sums_of(x, weight), factors(x.scale, weight), packed.parts["bias"], scale, zero_point, x.name, has_relu)
    return kernel


for _name, _has_relu in (("linear", False), ("linear_relu", True)):
    table.define(f"quantized::{_name}(Tensor X, {LINEAR} W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor Y", _linear(_has_relu),
                 doc="A linear layer on a quantized tensor.")
for _name, _has_relu in (("linear_dynamic", False), ("linear_relu_dynamic", True)):
    table.define(f"quantized::{_name}(Tensor X, {LINEAR} W_prepack, bool reduce_range=False) -> Tensor Y",
                 lambda xp, X, packed, reduce_range, has_relu=_has_relu: linear_dynamic_of(X, packed, reduce_range, has_relu),
                 doc="A linear layer on floats, which are quantized for it.")
for _name, _has_relu in (("linear_dynamic_fp16", False), ("linear_relu_dynamic_fp16", True)):
    table.define(f"quantized::{_name}(Tensor X, {LINEAR} W_prepack) -> Tensor Y",
                 lambda xp, X, packed, has_relu=_has_relu: linear_half_of(X, packed, has_relu),
                 doc="A linear layer on floats, with weights rounded to float16.")


# ---- convolution
def pack_conv(rank, weight, bias, stride, padding, dilation, groups, output_padding=None, is_transposed=False):
    """A quantized weight, a bias of floats or None, and how the kernel moves. Raises RunError for a wrong number of any."""
    output_padding = [0] * rank if output_padding is None else output_padding
    if quantized_of(weight).ndim != rank + 2:
        raise RunError(f"Weights are expected to have {rank + 2} dimensions")
    for name, values in (("stride", stride), ("padding", padding), ("dilation", dilation), ("output_padding", output_padding)):
        if len(values) != rank:
            raise RunError(f"{name} should contain {rank} elements for {rank}D convolution.")
    return Packed(CONV_TYPES[rank], weight=weight, bias=bias, stride=list(stride), padding=list(padding), dilation=list(dilation),
                  output_padding=list(output_padding), groups=int(groups), transpose=int(is_transposed))


def convolved(x, packed):
    """The sums of a convolution, channels last (exact, in float64), and the weight with its scales along the channels of the result."""
    parts = packed.parts
    weight, rank = parts["weight"], len(parts["stride"])
    if x.ndim != rank + 2:
        raise RunError(f"Expected activation data to have {rank + 2} dimensions.", code="E0407")
    channels = weight.shape[0] if parts["transpose"] else weight.shape[1] * parts["groups"]
    if x.shape[1] != channels:
        raise RunError(f"[QConv{rank}D] each dimension of output tensor should be greater than 0 and the input should have {channels} "
                       f"channels, got {x.shape[1]}", code="E0407")
    wide, filters = x.shifted().astype(np.float64), weight.shifted().astype(np.float64)
    where = parts["stride"], parts["padding"]
    if parts["transpose"]:
        sums = conv.transposed(np, wide, filters, *where, parts["output_padding"], parts["dilation"], parts["groups"])
    else:
        sums = conv.forward(np, wide, filters, *where, parts["padding"], parts["dilation"], parts["groups"])
    if not math.prod(sums.shape):
        raise RunError(f"[QConv{rank}D] each dimension of output tensor should be greater than 0")
    return np.moveaxis(sums, 1, -1), weight


def channels_second(x):
    """The tensor with its last dimension as the second one, as torch lays such results out: channels last in memory."""
    return np.moveaxis(x, -1, 1)


def conv_of(x, packed, scale, zero_point, has_relu):
    """A convolution of a quantized tensor."""
    x = quantized_of(x).whole("quantized::conv")
    sums, weight = convolved(x, packed)
    result = requantized(sums, factors(x.scale, weight), packed.parts["bias"], scale, zero_point, x.name, has_relu)
    return result.with_ints(channels_second(result.ints))


def conv_dynamic_of(x, packed, reduce_range):
    """A convolution of floats, which are quantized for it; its results are rounded to steps of the same scale, as torch does."""
    whole = dynamic_input(x, reduce_range, "quantized::conv_dynamic")
    return conv_of(whole, packed, whole.scale, whole.zero_point, False).dequantize()


def with_row(x):
    """A tensor of one spatial dimension, with one in front of that."""
    return x.with_ints(np.expand_dims(x.ints, -2)) if isinstance(x, Quantized) else np.expand_dims(x, -2)


def without_row(x):
    """A tensor without its last but one dimension, which has size 1."""
    return x.with_ints(x.ints.squeeze(-2)) if isinstance(x, Quantized) else x.squeeze(-2)


def _prepack(rank, is_transposed):
    if is_transposed:
        return lambda xp, weight, bias, stride, padding, output_padding, dilation, groups: pack_conv(
            rank, weight, bias, stride, padding, dilation, groups, output_padding, True)
    return lambda xp, weight, bias, stride, padding, dilation, groups: pack_conv(rank, weight, bias, stride, padding, dilation, groups)


def _row_prepack(is_transposed):
    def kernel(xp, weight, bias, stride, padding, *rest):
        *output_padding, dilation, groups = rest
        return pack_conv(2, with_row(quantized_of(weight)), bias, [1, *stride], [0, *padding], [1, *dilation], groups,
                         [0, *output_padding[0]] if output_padding else None, is_transposed)
    return kernel


def _conv(rank, has_relu):
    if rank == 1:
        return lambda xp, x, packed, scale, zero_point: without_row(conv_of(with_row(x), packed, scale, zero_point, has_relu))
    return lambda xp, x, packed, scale, zero_point: conv_of(x, packed, scale, zero_point, has_relu)


def _conv_with_places(has_relu):
    def kernel(xp, x, packed, stride, padding, dilation, groups, scale, zero_point):
        return conv_of(x, packed, scale, zero_point, has_relu)      # as in torch, these come from the packed parameters, too
    return kernel


def _conv_dynamic(rank):
    if rank == 1:
        return lambda xp, x, packed, reduce_range: without_row(conv_dynamic_of(with_row(x), packed, reduce_range))
    return lambda xp, x, packed, reduce_range: conv_dynamic_of(x, packed, reduce_range)


def _unpacked(rank):
    def kernel(xp, packed):
        weight = packed.parts["weight"]
        return without_row(weight) if rank == 1 else weight, packed.parts["bias"]
    return kernel


PLACES = "int[] stride, int[] padding, int[] dilation, int groups"
for _rank, _type in ((1, CONV2D), (2, CONV2D), (3, CONV3D)):
    for _kind, _is_transposed in ((f"conv{_rank}d", False), (f"conv_transpose{_rank}d", True)):
        _more = "int[] stride, int[] padding, int[] output_padding, int[] dilation, int groups" if _is_transposed else PLACES
        table.define(f"quantized::{_kind}_prepack(Tensor weight, Tensor? bias, {_more}) -> {_type}",
                     _row_prepack(_is_transposed) if _rank == 1 else _prepack(_rank, _is_transposed),
                     doc="A quantized weight and a bias, with how the kernel moves.")
        table.define(f"quantized::{_kind}_unpack({_type} packed_weights) -> (Tensor unpacked_weights, Tensor? B_origin)",
                     _unpacked(_rank), doc="The weight and the bias that were packed.")
        table.define(f"quantized::{_kind}_dynamic(Tensor qx, {_type} packed_weight, bool reduce_range=False) -> Tensor",
                     _conv_dynamic(_rank), doc="A convolution of floats, which are quantized for it.")
        if _rank > 1:
            for _part in ("stride", "padding", "output_padding", "dilation", "groups", "transpose"):
                _result = "int" if _part in ("groups", "transpose") else "int[]"
                table.define(f"quantized::{_kind}_{_part}({_type} packed_weights) -> {_result}",
                             lambda xp, packed, part=_part: packed.parts[part], doc=f"The {_part} that was packed.")
        for _relu in ("", "_relu") if not _is_transposed else ("",):
            _new = ".new" if _rank > 1 and not _is_transposed else ""
            table.define(f"quantized::{_kind}{_relu}{_new}(Tensor qx, {_type} packed_weight, float output_scale, int output_zero_point) "
                         "-> Tensor", _conv(_rank, bool(_relu)), doc="A convolution of a quantized tensor.")
            if _new:
                table.define(f"quantized::{_kind}{_relu}(Tensor qx, {_type} weight, {PLACES}, float output_scale, int output_zero_point) "
                             "-> Tensor", _conv_with_places(bool(_relu)), doc="A convolution of a quantized tensor.")
table.define((f"quantized::conv_unpack({CONV2D} packed_weights) -> (Tensor unpacked_weights, Tensor? B_origin)",), _unpacked(2),
             doc="The weight and the bias that were packed.")
table.define(f"quantized::conv_prepack(Tensor weight, Tensor? bias, {PLACES}) -> {CONV2D}", _prepack(2, False),
             doc="A quantized weight and a bias, with how the kernel moves.")

table.none_batched("scales are of whole tensors, a batch dimension included")
