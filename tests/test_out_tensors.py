"""`out=`: the tensor takes the result, and its shape where nothing else reads the tensor, with torch's warning; else that is refused."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ir.errors import UnsupportedError
from irtool.ops.call import call_op

CALLS = ("torch.linspace(1.0, 2.0, 5, out={})", "torch.add(x, 1.0, out={})", "torch.cat([x, x], out={})", "torch.sum(x, 0, out={})",
         "torch.logspace(0.0, 1.0, 3, out={})", "torch.mm(x, x.t(), out={})", "torch.arange(4, out={})")
OTHERS = ("y", "torch.zeros([7])", "torch.zeros([2, 3])", "torch.zeros([1])", "torch.zeros([0])", "x.new_zeros([4, 4])")
OPTIONS: tuple[dict[str, Any], ...] = ({}, {"native": False}, {"optimize": False}, {"profiling": True})


@pytest.mark.oracle
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_all_ways_give_torchs_result(call: str, other: str) -> None:
    torch = pytest.importorskip("torch")
    source = f"def f(x: Tensor, y: Tensor):\n    return {call.format(other)} * 2\n"
    inputs = [np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((3, 3), np.float32)]
    wanted = torch.jit.CompilationUnit(source).f(*[torch.tensor(each) for each in inputs]).numpy()
    module = irtool.from_script(source)
    results = [irtool.run(module, inputs, interpret=True), *[irtool.run(module, inputs) for _ in range(3)]]
    for options in OPTIONS:
        executor = irtool.compile(module, **options)
        results += [executor.run(inputs) for _ in range(2)]
    for (result,) in results:
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(result, wanted, rtol=1e-6)
    assert not inputs[1].any()


def test_a_warning_names_both_shapes() -> None:
    module = irtool.from_script("def f(x: Tensor):\n    return torch.neg(x, out=torch.zeros([7]))\n")
    with pytest.warns(UserWarning, match=r"since it had shape \[7\], which does not match the required output shape \[2\]"):
        irtool.run(module, [np.ones(2, np.float32)])


@pytest.mark.parametrize("after", ["return a, b", "return a.sum() + b.sum()"])
@pytest.mark.parametrize("out", ["torch.zeros([7])", "y", "y[0]", "y.view(-1)"])
def test_who_would_see_the_new_shape_is_not_misled(out: str, after: str) -> None:
    source = f"def f(x: Tensor, y: Tensor):\n    a = {out}\n    b = torch.neg(x, out=a)\n    {after}\n"
    module = irtool.from_script(source)
    for options in OPTIONS:
        with pytest.raises(UnsupportedError, match="another shape"):
            irtool.compile(module, **options).run([np.ones(2, np.float32), np.ones((3, 5), np.float32)])
    with pytest.raises(UnsupportedError, match="another shape"):
        irtool.run(module, [np.ones(2, np.float32), np.ones((3, 5), np.float32)], interpret=True)
    single = irtool.from_script("def f(x: Tensor, y: Tensor):\n    return torch.neg(x, out=y[0])\n")     # a view of what y holds
    with pytest.raises(UnsupportedError, match="another shape"):
        irtool.run(single, [np.ones(2, np.float32), np.ones((3, 5), np.float32)])


@pytest.mark.oracle
@pytest.mark.parametrize("made", ["x.clone()", "x * 2", "x"])
@pytest.mark.parametrize("size", ["[2, 2], [1, 2], 1", "[2], [1]", "[4, 2], [2, 1]", "[3, 2], [1, 1]"])
def test_as_strided_to_another_number_of_elements(size: str, made: str) -> None:
    """As for out=: a view of the same memory takes the place of the tensor, if nothing else reads that."""
    torch = pytest.importorskip("torch")
    source = f"def f(x: Tensor):\n    a = {made}\n    b = a.as_strided_({size})\n    return b * 3\n"
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    wanted = torch.jit.CompilationUnit(source).f(torch.tensor(x)).numpy()
    module, again = irtool.from_script(source), irtool.from_script(source.replace("b * 3", "b * 3, a" if made != "x" else "b * 3, x"))
    executors = [irtool.compile(module, **options) for options in OPTIONS]
    for call in (lambda: irtool.run(module, [x], interpret=True), *[lambda: irtool.run(module, [x])] * 3,
                 *[lambda each=each: each.run([x]) for each in executors * 2]):
        np.testing.assert_array_equal(call()[0], wanted)
    with pytest.raises(UnsupportedError, match="another number of elements"):
        irtool.run(again, [x])


WRONG_OUTS = {
    "torch.add(x, 1.0, out=y)": "to have dtype float, but got double",                      # alone with a number, not converted
    "torch.bmm(x[None], x[None].mT, out=y[None])": "xpected|same dtype",
    "torch.add(x, x, out=y.long())": "can't be cast to the desired output type Long",
    "torch.sin(x, out=torch.zeros([1, 3]).expand(2, 3))": "more than one element of the written-to tensor refers to a single memory",
    "torch.clone(x[1:], out=torch.zeros([3]).expand(1, 3)[:, :1].expand(1, 3))": "more than one element",
    "torch.sin(x[0, 1:], out=x[0, :-1])": "some elements of the input tensor and the written-to tensor",
}


@pytest.mark.parametrize("call", WRONG_OUTS)
def test_all_ways_refuse_what_torch_refuses(call: str) -> None:
    module = irtool.from_script(f"def f(x: Tensor, y: Tensor):\n    x = x * 2\n    return {call}\n")
    inputs = [np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((2, 3))]
    executors = [irtool.compile(module, **options) for options in OPTIONS]
    for run in (lambda: irtool.run(module, inputs, interpret=True), *[lambda: irtool.run(module, inputs)] * 3,
                *[lambda each=each: each.run(inputs) for each in executors * 2]):
        with pytest.raises(irtool.RunError, match=WRONG_OUTS[call]):
            run()


@pytest.mark.oracle
@pytest.mark.parametrize("call", WRONG_OUTS)
def test_torch_refuses_them(call: str) -> None:
    torch = pytest.importorskip("torch")
    function = torch.jit.CompilationUnit(f"def f(x: Tensor, y: Tensor):\n    x = x * 2\n    return {call}\n").f
    with pytest.raises(RuntimeError, match=WRONG_OUTS[call]):
        function(torch.arange(6, dtype=torch.float32).reshape(2, 3), torch.zeros(2, 3, dtype=torch.float64))


@pytest.mark.parametrize(("name", "args"), [
    ("mean.out", [[1], False, None]), ("mean.dtype_out", [None]), ("nansum.out", [[1], False, None]), ("nanmean.out", [[1], False, None]),
    ("std.out", [[1], True, False]), ("var.correction_out", [[1], 1, False]), ("var.out", [[1], True, False])])
def test_reductions_compute_in_the_wider_dtype_of_the_tensor_that_they_write(name, args):
    """float16 into float32 gave inf, or ten bits; a given dtype stays the one that counts."""
    x = np.float16([[1.5, 2.25, -3.3], [1e4, 6e4, 6e4]])
    for dtype in (np.float32, np.float64):
        result = call_op(f"aten::{name}", [x, *args, np.zeros(0, dtype)])
        np.testing.assert_array_equal(result, call_op(f"aten::{name}", [x.astype(dtype), *args, np.zeros(0, dtype)]))
        assert np.isfinite(result).all()
    if args[-1] is None:
        assert call_op(f"aten::{name}", [x, *args[:-1], 5, np.zeros(0, np.float16)]).dtype == np.float16


@pytest.mark.parametrize("transform", [irtool.grad, irtool.jacrev, irtool.jacfwd])
def test_gradients_of_what_writes_to_out_are_refused_in_torchs_words(transform) -> None:
    x = irtool.torch.tensor([1.0, 2.0])

    def function(x):
        out = irtool.torch.zeros(2)
        irtool.torch.sub(x, x * x, alpha=2, out=out)
        return out.sum()

    with pytest.raises(irtool.RunError, match=r"sub\(\): functions with out=\.\.\. arguments don't support automatic differentiation"):
        transform(function)(x)
