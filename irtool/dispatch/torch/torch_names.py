"""Names of `irtool.torch` that are no operators: numbers, dtypes, random numbers, questions about tensors, gradients, transformations.

A name that torch has and irtool lacks is an error that says where to look instead.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps
from types import SimpleNamespace
from typing import Any

from irtool.dispatch import jacobians, tangents, transforms
from irtool.dispatch.stack import Layer, current
from irtool.dispatch.torch import higher_order, low_rank
from irtool.dispatch.torch.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from irtool.dispatch.torch.torch_functional import of_array, speaking
from irtool.ir.arguments import check_seed
from irtool.ir.errors import NameMissing, RunError, UnsupportedError
from irtool.ops.array_library import np
from irtool.ops.arrays import reseed
from irtool.ops.call import call_op
from irtool.ops.checks import check_device
from irtool.ops.quantized import Quantized
from irtool.ops.tensor import Tensor, call, elements
from irtool.ops.tensor_facts import BY_NAME, Place, Size, finfo, iinfo
from irtool.ops.tensor_methods import lu, nonzero, refuse_gradient, unique, unique_consecutive
from irtool.ops.tensor_parts import made_of

OTHER_DTYPES = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64", "short": "int16",
                "cfloat": "complex64", "cdouble": "complex128"}
ABSENT = {"compile": "see irtool.jit", "optim": "update parameters with what irtool.grad gives",
          "utils": "it is about training, and this package is about graphs",
          "load": "arrays are read by np.load", "save": "arrays are stored by np.savez",
          "autograd": "gradients are asked for by irtool.grad",
          "distributed": "there is one process", "multiprocessing": "there is one process"}


# -- random numbers
class Generator(np.random.Generator):
    """A random generator, for the argument `generator` of operators."""

    def __init__(self, device: str = "cpu") -> None:
        check_device(device)
        super().__init__(np.random.PCG64(0))

    def manual_seed(self, seed: int) -> Generator:
        """Start the random numbers of a seed. Raises RunError for an invalid seed."""
        check_seed("manual_seed", seed)
        refuse_in_jit("Generator.manual_seed")
        self.bit_generator.state = np.random.PCG64(seed).state
        return self


def refuse_in_jit(name: str) -> None:
    """Raises UnsupportedError inside a jitted function, where the call would have an effect only while tracing."""
    layer: Layer | None = current()
    while layer is not None:
        if layer.follows:
            raise UnsupportedError(f"{name} inside irtool.jit is not supported: call it outside of the function", code="E0507")
        layer = layer.inner


def manual_seed(seed: int) -> np.random.Generator:
    """Let operators draw the random numbers of a seed (not torch's numbers). Raises RunError for an invalid seed."""
    check_seed("manual_seed", seed)
    refuse_in_jit("manual_seed")
    return reseed(seed)


# -- questions
def is_tensor(value: Any) -> bool:
    """Is a value a tensor?"""
    return isinstance(value, Tensor)


def get_default_dtype() -> int:
    """The dtype of Python's floats: float32."""
    return BY_NAME["float32"]


def set_default_dtype(dtype: int) -> None:
    """Raises RunError for any dtype but float32: the default is fixed."""
    if dtype != BY_NAME["float32"]:
        raise RunError("set_default_dtype: the default is float32, in graphs too; say dtype=torch.float64 where tensors are made")


def broadcast_shapes(*shapes: Any) -> Size:
    """The sizes that tensors of these sizes have in common. Raises RunError if there are none."""
    try:
        return Size(np.broadcast_shapes(*[tuple(each) if isinstance(each, list | tuple) else each for each in shapes]))
    except ValueError as error:
        raise RunError(f"Shape mismatch: objects cannot be broadcast to a single shape: {', '.join(map(str, shapes))}") from error


def for_each(name: str) -> Callable[..., Any]:
    """A function of a tensor, of several, or of a list of tensors, whose results are a tuple then."""
    def function(*tensors: Any) -> Any:
        if len(tensors) == 1 and not isinstance(tensors[0], list | tuple):
            return call(f"aten::{name}", tensors, {})
        return tuple([call(f"aten::{name}", (each,), {}) for each in (tensors[0] if len(tensors) == 1 else tensors)])
    function.__name__ = name
    return function


def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: int | None = None) -> Any:
    """The norm of all elements, or over the dimensions `dim`, as torch.norm."""
    return of_array(input).norm(p, dim, keepdim, dtype)


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Parts of one size, the last of what is left, or of the sizes in a list, as torch.split, which names its arguments otherwise than the
    method."""
    return of_array(tensor).split(split_size_or_sections, dim)


def stft(input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None, center: bool = True,
         pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None) -> Any:
    """The short-time Fourier transform; center: pad the input so that each window is centred, as torch.stft does."""
    if center:
        rows = input if input.ndim > 1 else input.unsqueeze(0)
        rows = call("aten::pad", (rows, [n_fft // 2, n_fft // 2], pad_mode), {})
        input = rows if input.ndim > 1 else rows.squeeze(0)
    return call("aten::stft", (input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex), {})


def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Any:
    """Distances of all pairs of rows; compute_mode says whether Euclidean ones are computed by a product of matrices."""
    from irtool.ops.composed.several_forms import cdist_of_mode

    return speaking(cdist_of_mode)(x1, x2, p, compute_mode)


def plain(tensor: Any) -> Any:
    """The array of a tensor. Raises UnsupportedError inside a transformation."""
    if isinstance(tensor, Tensor) and not isinstance(tensor.array, np.ndarray):
        raise UnsupportedError("quantized tensors inside of transformations are not supported", code="E0507")
    return tensor.array if isinstance(tensor, Tensor) else elements(tensor)


def quantize_per_tensor(input: Any, scale: float, zero_point: int, dtype: int) -> Quantized:
    """A float32 tensor or array quantized to a dtype: quint8, qint8 or qint32. Raises RunError."""
    result: Quantized = call_op("aten::quantize_per_tensor", [plain(input), float(scale), int(zero_point), int(dtype)])
    return result


def quantize_per_channel(input: Any, scales: Any, zero_points: Any, axis: int, dtype: int) -> Quantized:
    """The same, with a scale and zero point for each slice along a dimension."""
    result: Quantized = call_op("aten::quantize_per_channel", [plain(input), plain(scales), plain(zero_points), axis, int(dtype)])
    return result


def dequantize(tensor: Any) -> Any:
    """A quantized tensor as float32; a plain tensor unchanged."""
    return Tensor(tensor.dequantize()) if isinstance(tensor, Quantized) else tensor


def typed(dtype: str) -> Callable[[Any], Any]:
    """A function such as `torch.LongTensor`: makes a tensor of a dtype from numbers."""
    return lambda data: call("aten::to", (made_of(data), BY_NAME[dtype]), {})


def without_gradient(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes tensors, with a further argument `requires_grad`, which must be False.

    `dtype=None` means its default, int64 for `randint` and `tril_indices`; in a graph None means the default of floats.
    """
    @wraps(function)
    def factory(*args: Any, requires_grad: bool = False, **named: Any) -> Any:
        refuse_gradient(requires_grad, name)
        if named.get("dtype", name) is None:
            del named["dtype"]
        return function(*args, **named)
    return factory


class Transformations:
    """torch.func: irtool's transformations, with the same signatures."""

    def __getattr__(self, name: str) -> Any:
        if name == "functional_call":
            raise NameMissing("torch.func has no functional_call here: see irtool.functional_call")
        if name not in TRANSFORMATIONS:
            raise NameMissing(f"torch.func has no '{name}'", name, lambda: TRANSFORMATIONS)
        return TRANSFORMATIONS[name]


TRANSFORMATIONS: Mapping[str, Any] = {name: getattr(module, name) for module in (transforms, tangents, jacobians)
                                      for name in module.__all__}
NOWHERE = SimpleNamespace(is_available=lambda: False, device_count=lambda: 0, manual_seed=manual_seed, manual_seed_all=manual_seed)
FUNC = Transformations()
CONTROL_FLOW = {"cond": higher_order.cond, "while_loop": higher_order.while_loop, "scan": higher_order.scan, "map": higher_order.map_slices}

NAMES: Mapping[str, Any] = {
    **CONTROL_FLOW, "_higher_order_ops": SimpleNamespace(**CONTROL_FLOW),
    **{name: BY_NAME[dtype] for name, dtype in OTHER_DTYPES.items()},
    "pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None,
    "strided": 0, "contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3,
    "finfo": finfo, "iinfo": iinfo, "Size": Size, "Tensor": Tensor, "device": Place, "vmap": transforms.vmap, "stft": stft,
    "cdist": cdist,
    "Generator": Generator, "quantize_per_tensor": quantize_per_tensor, "quantize_per_channel": quantize_per_channel,
    "dequantize": dequantize,
    "no_grad": no_grad, "inference_mode": no_grad, "enable_grad": enable_grad, "set_grad_enabled": set_grad_enabled,
    "is_grad_enabled": is_grad_enabled, "manual_seed": manual_seed,
    "is_tensor": is_tensor, "get_default_dtype": get_default_dtype, "set_default_dtype": set_default_dtype,
    "svd_lowrank": low_rank.svd_lowrank, "pca_lowrank": low_rank.pca_lowrank, "unravel_index": low_rank.unravel_index,
    "unique": unique, "unique_consecutive": unique_consecutive, "lu": lu, "norm": norm, "split": split,
    "broadcast_shapes": broadcast_shapes, **{name: for_each(name) for name in ("atleast_1d", "atleast_2d", "atleast_3d")},
    "nonzero": lambda input, *, as_tuple=False: nonzero(input, as_tuple=as_tuple),
    "FloatTensor": typed("float32"), "DoubleTensor": typed("float64"), "LongTensor": typed("int64"), "IntTensor": typed("int32"),
    "BoolTensor": typed("bool"), "func": FUNC, "cuda": NOWHERE, "mps": NOWHERE, "accelerator": NOWHERE,
    "backends": SimpleNamespace(cuda=NOWHERE, mps=NOWHERE, cudnn=SimpleNamespace(deterministic=True, benchmark=False)),
    "set_printoptions": lambda **options: np.set_printoptions(**{key: each for key, each in options.items() if key != "sci_mode"}),
    "use_deterministic_algorithms": lambda mode, **options: None, "set_num_threads": lambda count: None, "get_num_threads": lambda: 1,
}
"""Names that take precedence over operators."""
