"""Python numbers as tensors. In TorchScript they go through the default dtype: `torch.tensor(0.1, dtype=torch.float64)` is a rounded 0.1.
`irtool.torch.tensor` is exact, as torch's own is; both refuse what a dtype cannot represent as torch does. Recorded with torch 2.13."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch as ours
from irtool.ir.attribute import TensorLiteral
from irtool.ir.errors import RunError
from irtool.torchscript.printing.literals import tensor as written

TENTH = 0.10000000149011612
TOO_LARGE = "value cannot be converted to type .* without overflow"
GRAPHS: list[tuple[str, str, Any, Any]] = [      # type of x, expression, x, the elements or the error
    ("float", "torch.tensor(x, dtype=torch.float64)", 0.1, TENTH), ("float", "torch.as_tensor(x, dtype=torch.float64)", 0.1, TENTH),
    ("float", "torch.tensor([x, 0.1], dtype=torch.float64)", 0.1, [TENTH, TENTH]),
    ("float", "torch.as_tensor([[x]], dtype=torch.float64)", 0.1, [[TENTH]]), ("float", "torch.DoubleTensor([x])", 0.1, [TENTH]),
    ("List[float]", "torch.tensor(x, dtype=torch.float64)", [0.1, 1e300], [TENTH, math.inf]),
    ("float", "torch.tensor(x, dtype=torch.float64)", 1e300, RunError), ("float", "torch.tensor(x)", 3.402823466385289e38, RunError),
    ("float", "torch.tensor(x, dtype=torch.float16)", 65520.0, math.inf),
    ("float", "torch.tensor(x, dtype=torch.float16)", 1e300, RunError),
    ("float", "torch.tensor(x, dtype=torch.bool)", 1e-310, False), ("float", "torch.tensor(x, dtype=torch.int64)", 16777217.0, 16777216),
    ("float", "torch.tensor(x, dtype=torch.float64)", math.inf, math.inf), ("float", "torch.tensor([x])", 1e300, [math.inf]),
    ("float", "torch.tensor(x, dtype=torch.complex128)", 0.1, TENTH),
    ("int", "torch.tensor(x, dtype=torch.float64)", 2 ** 53 + 1, 2.0 ** 53),
    ("int", "torch.tensor(x, dtype=torch.int32)", 2 ** 40 + 1, 1), ("int", "torch.tensor([x], dtype=torch.uint8)", 300, [44]),
    ("complex", "torch.tensor(x, dtype=torch.complex128)", 0.1 + 0.1j, complex(TENTH, TENTH)),
    ("complex", "torch.tensor(x, dtype=torch.float64)", 0.1 + 0.1j, TENTH), ("complex", "torch.tensor(x)", 1e300j, RunError),
    ("float", "torch.full([1], x, dtype=torch.float64)", 0.1, [0.1]), ("float", "torch.scalar_tensor(x, dtype=torch.float64)", 0.1, 0.1),
    ("float", "torch.zeros([1], dtype=torch.float64).fill_(x)", 0.1, [0.1]),
    ("float", "torch.full([1], x, dtype=torch.float16)", 1e5, [math.inf]),
]
WRITES = ["y[0] = x", "y[:1] = x", "y[y > 0] = x"]


def runs(graph: irtool.Graph, given: list[Any]) -> list[Any]:
    """The result of every way to run, each several times."""
    ways = [lambda *a: irtool.run(graph, list(a), interpret=True), irtool.compile(graph), irtool.compile(graph, native=True)]
    return [np.asarray(irtool.run(graph, given)[0]), *(np.asarray(each[0] if isinstance(each, list) else each)
                                                        for way in ways for each in [way(*given) for _ in range(3)])]


@pytest.mark.parametrize("type, text, x, expected", GRAPHS)
@pytest.mark.parametrize("is_constant", [False, True])
def test_a_graph_makes_of_numbers_what_torchscript_makes(type: str, text: str, x: Any, expected: Any, is_constant: bool) -> None:
    if is_constant:
        number = str(x).replace("inf", 'float("inf")') if type != "complex" else f"complex({x.real}, {x.imag})"
        graph, given = irtool.from_script(f"def f():\n    x = {number}\n    return {text}\n"), []
        graph = irtool.PassManager("constant-propagation").run(graph)
    else:
        graph, given = irtool.from_script(f"from typing import List\ndef f(x: {type}):\n    return {text}\n"), [x]
    if expected is RunError:
        with pytest.raises(RunError, match=TOO_LARGE):
            irtool.run(graph, given, interpret=True)
        with pytest.raises(RunError, match=TOO_LARGE):
            irtool.compile(graph)(*given)
    else:
        assert all(each.tolist() == expected for each in runs(graph, given))


@pytest.mark.parametrize("write", WRITES)
def test_a_number_written_into_a_tensor_is_rounded_in_a_graph(write: str) -> None:
    graph = irtool.from_script(f"def f(y: Tensor, x: float):\n    y = y.clone()\n    {write}\n    return y\n")
    y = np.ones(2)
    expected = [TENTH, TENTH if "> 0" in write else 1.0]
    assert all(each.tolist() == expected for each in runs(graph, [y, 0.1]))
    with pytest.raises(RunError, match=TOO_LARGE):
        irtool.compile(graph)(y, 1e300)


MAKERS = {"tensor": ours.tensor, "as_tensor": ours.as_tensor, "asarray": ours.asarray,
          "new_tensor": lambda data, **named: ours.zeros(1, dtype=ours.float64).new_tensor(data, **named)}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_functions_of_irtool_torch_are_exact_and_refuse_what_does_not_fit(maker: Any) -> None:
    assert maker(0.1, dtype=ours.float64).item() == 0.1 and maker([0.1, 1e300], dtype=ours.float64).tolist() == [0.1, 1e300]
    assert irtool.jit(lambda y: maker(y, dtype=ours.float64))(0.1).item() == 0.1
    assert maker(-1, dtype=ours.uint8).item() == 255 and maker(1e300, dtype=ours.float16).item() == math.inf
    for data, dtype in ((300, "int8"), ([300.5], "uint8"), (-1.5, "uint8"), (math.nan, "int64"), ([1e300], "int32"), (2 ** 40, "int32")):
        with pytest.raises(RunError, match=TOO_LARGE):
            maker(data, dtype=getattr(ours, dtype))
        if not isinstance(data, list):
            with pytest.raises(RunError, match=TOO_LARGE):
                irtool.jit(lambda y, dtype=dtype: maker(y, dtype=getattr(ours, dtype)))(data)
    for data in (1j, [1, 2j], 1 + 0j):
        with pytest.raises(RunError, match="must be real number, not complex"):
            maker(data, dtype=ours.float64)
    assert maker(np.array([300]), dtype=ours.int8).tolist() == [44]         # an array is converted


def test_a_number_traced_by_jit_becomes_infinite_where_float32_is_too_small() -> None:
    assert irtool.jit(lambda y: ours.tensor(y))(1e300).item() == math.inf


@pytest.mark.parametrize("key", [ours.tensor([True]), ours.tensor([0])])
def test_a_number_written_at_an_index_tensor_fits_or_is_refused(key: Any) -> None:
    y = ours.zeros(1, dtype=ours.uint8)
    y[key] = -1
    assert y.tolist() == [255]
    for dtype, value in ((ours.uint8, 300), (ours.int8, math.nan), (ours.int64, 1j), (ours.float32, 1e300), (ours.complex64, 1e300)):
        with pytest.raises(RunError, match=TOO_LARGE):
            ours.zeros(1, dtype=dtype)[key] = value
    traces = []

    @irtool.jit
    def write(x: Any, number: float) -> Any:
        traces.append(number)
        x = x.clone()
        x[key] = number
        return x
    assert [write(ours.zeros(1), number).item() for number in (1.5, 2.5, 3.5)] == [1.5, 2.5, 3.5] and len(traces) == 1


ARRAYS = [np.array(0.1), np.array([0.1, 1e300]), np.array([[0.1], [-0.0], [1e-310]]), np.array(5e-324),
          np.array(16777217.0), np.array([0.5, 1.5]),
          np.array(0.1, np.float32), np.array(3.4028235e38, np.float32), np.array([-3.4028235e38], np.float32), np.array(0.1, np.float16),
          np.array(0.1 + 0.2j), np.array([[0.1 + 0.2j]]), np.array([0.5 + 1j], np.complex64), np.array(3.4028235e38j, np.complex64)]


@pytest.mark.parametrize("array", ARRAYS, ids=repr)
def test_a_tensor_constant_written_as_source_keeps_its_bits(array: np.ndarray[Any, Any]) -> None:
    text = written(TensorLiteral("<Tensor>", array.dtype.name, array.shape, array))
    for made in (irtool.run(irtool.from_script(f"def f():\n    return {text}\n"), [])[0], eval(text, {"torch": ours}).array):
        assert made.dtype == array.dtype and made.shape == array.shape and made.tobytes() == array.tobytes()
    if array.dtype == np.float64 and array.tolist() != [0.5, 1.5]:
        assert "torch.tensor" not in text       # which would round in TorchScript


def test_the_largest_float32_as_torch_prints_it_is_written_as_a_number_that_fits() -> None:
    assert written(TensorLiteral("{3.4028235e+38}", "float32", ())) == "torch.tensor(3.4028234663852886e+38, dtype=6)"


@pytest.mark.parametrize("dtype, number", [("float16", 65510), ("float16", 1e5), ("float32", 1e300), ("uint8", 300), ("int8", 200)])
def test_diagonals_refuse_numbers_that_do_not_fit(dtype: str, number: float) -> None:
    """Other than `fill_`, of float16 too."""
    zeros = np.zeros((2, 2), dtype)
    script = irtool.from_script(f"def f(x: Tensor):\n    x.fill_diagonal_({number!r})\n    return x\n", "f")
    for call in (lambda: irtool.torch.tensor(zeros).fill_diagonal_(number), lambda: irtool.run(script, [zeros])):
        with pytest.raises(irtool.RunError, match="without overflow"):
            call()


@pytest.mark.parametrize("call", ["torch.linalg.pinv(x, atol=x[:, :1], rtol=0.1)", "torch.linalg.pinv(x, atol=0.1, rtol=x[:, :1])",
                                  "F.binary_cross_entropy(x, x, weight=0.5)", "F.layer_norm(x, [2], 0.5)",
                                  "torch.bucketize(x, x[0], out=1.0)"])
def test_no_number_stands_for_a_tensor_that_may_be_left_out(call: str) -> None:
    """As in torch, where a number stands for a tensor that must be there. The trace of what was taken did not run."""
    torch = irtool.torch
    with pytest.raises((irtool.Error, TypeError, AttributeError)):
        eval(call, {"torch": torch, "F": torch.nn.functional, "x": torch.tensor(np.full((2, 2), 0.5))})   # noqa: S307  texts above
