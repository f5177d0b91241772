"""Operators on quantized tensors give the integers, scales and zero points that torch (engine fbgemm) gave: data/quantized.npz."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ops.call import call_op
from irtool.ops.quantized import Quantized, quantized

FILE = Path(__file__).parent / "data" / "quantized.npz"
CALLS: dict[str, tuple[Any, ...]] = {
    "quantized::add": ("a", "b", 0.07, 31), "quantized::mul_relu": ("a", "b", 0.05, 17), "quantized::add_scalar": ("a", -50.0),
    "quantized::add_scalar_relu": ("a", 1.7), "quantized::mul_scalar": ("a", -2.3), "quantized::cat": (["a", "b"], 1, None, None),
    "quantized::hardswish": ("a", 0.03, 9), "quantized::elu": ("a", 0.03, 9, 1.3, 1.1, 0.9), "quantized::clamp": ("a", -0.5, 1.0),
    "quantized::batch_norm2d": ("a", "w", "w", "w", "w", 1e-5, 0.04, 60), "aten::relu": ("a",), "aten::sigmoid": ("a",),
    "aten::tanh": ("a",),
    "aten::hardtanh": ("a", -1.0, 1.0), "aten::max_pool2d": ("a", [2, 2], [2, 2], [1, 1], [1, 1], False),
    "aten::avg_pool2d": ("a", [3, 3], [2, 2], [1, 1], True, False, None), "aten::adaptive_avg_pool2d": ("a", [2, 4]),
    "aten::upsample_nearest2d": ("a", [8, 8], None, None), "aten::permute": ("a", [0, 2, 3, 1]),
}
"""Operator -> its arguments: the quantized tensors a and b, the floats w, numbers. tests/data/record_quantized.py runs them in torch."""


def given(value: Any, tensors: dict[str, Any]) -> Any:
    """The argument that a word of CALLS stands for."""
    if isinstance(value, list):
        return [given(each, tensors) for each in value]
    return tensors[value] if isinstance(value, str) else value


@pytest.mark.parametrize("name", CALLS)
def test_integers_are_torch_s(name: str) -> None:
    with np.load(FILE) as arrays:
        tensors = {"a": quantized(arrays["a"], 0.04, 50, "quint8"), "b": quantized(arrays["b"], 0.06, 20, "quint8"), "w": arrays["w"]}
        result = call_op(name, [given(each, tensors) for each in CALLS[name]])
        np.testing.assert_array_equal(result.ints, arrays[f"{name}.ints"])
        np.testing.assert_allclose([result.scale, result.zero_point], arrays[f"{name}.how"], rtol=1e-7)


def test_graphs_take_and_give_quantized_tensors_again_and_again() -> None:
    graph = irtool.parse("""graph(%x : Tensor, %q : Tensor):
  %s : float = prim::Constant[value=0.1]()
  %z : int = prim::Constant[value=3]()
  %d : int = prim::Constant[value=13]()
  %y : Tensor = aten::quantize_per_tensor(%x, %s, %z, %d)
  %r : Tensor = aten::relu(%y)
  %f : Tensor = aten::dequantize(%r)
  %p : Tensor = aten::relu(%q)
  return (%f, %p)
""").graph()
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    q = irtool.torch.quantize_per_tensor(x, 0.5, 2, irtool.torch.qint8)
    for _ in range(3):
        numbers, other = irtool.run(graph, [x, q])
        np.testing.assert_array_equal(numbers, np.array([0, 0, 0, 5, 10], np.float32) * np.float32(0.1))
        assert isinstance(other, Quantized) and other.dtype == irtool.torch.qint8
        np.testing.assert_array_equal(other.int_repr(), [2, 2, 2, 3, 4])


@pytest.mark.parametrize("name", ["aten::exp", "aten::sort", "aten::cumsum", "aten::softmax.int"])
def test_operators_that_know_no_quantized_tensors_refuse(name: str) -> None:
    with pytest.raises(irtool.UnsupportedError, match="quantized"):
        call_op(name, [quantized(np.ones(3, np.float32), 0.1, 0, "quint8"), *([0] if name[6] in "cs" and name != "aten::sort" else [])])
