"""How results lie in memory, where a stanza says so: as in torch, whatever the memory order of the operands."""
from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute.executor import Executor
from irtool.ops import OPS
from irtool.ops.call import call_op
from irtool.ops.facts import facts_of_overload
from irtool.testing.finite_differences import flattened
from irtool.testing.formulas import Trial
from tests.laws import over

OTHERWISE = {"aten::einsum", "aten::kron"}
"""Overloads whose results may lie otherwise than in torch."""
CONJUGATES = {"_conj", "conj", "adjoint", "mH", "matrix_H"}
OF_ITS_OWN = {
    "with gaps": {*"copy select_scatter slice_scatter diagonal_scatter as_strided_scatter _weight_norm_interface "
                   "gru lstm rnn_relu rnn_tanh".split(), *CONJUGATES},
    "repeated": {*"fft_fft2 fft_fftn fft_ifft2 fft_ifftn stft _weight_norm_interface".split(), *CONJUGATES},
}
"""Kinds whose results may lie otherwise if their operands have gaps, which torch keeps (or ignores, in the batch sizes of recurrent
networks), or repeat elements."""
LENIENT = {"aten::nll_loss2d_backward"}
"""Overloads that take what torch refuses: an order of dimensions that its kernel does not have."""
FORMULAS = [name for name, op in OPS.items() if name.startswith("aten::") and name in op.formulas and op.samples.get(name)]
SAMPLED = sorted(name for name, op in OPS.items() if name.startswith("aten::") and op.samples.get(name) and "empty" not in name)


def reordered(value: Any, axes: tuple[int, int]) -> Any:
    """The same elements, one dimension of each array at another place in memory."""
    if isinstance(value, list | tuple):
        return [reordered(each, axes) for each in value]
    if not isinstance(value, np.ndarray) or value.ndim < max(2, axes[0] + 1):
        return value
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(value, *axes)), *axes[::-1])


def strides(shape: Any, steps: Any, size: int) -> list[int]:
    """Strides in elements that matter: of dimensions of more than one element."""
    return [step // size for extent, step in zip(shape, steps) if extent > 1] if 0 not in shape else []


def stepped(value: Any) -> Any:
    """The same elements, with gaps between them in memory."""
    if isinstance(value, list | tuple):
        return [stepped(each) for each in value]
    if not isinstance(value, np.ndarray) or not value.ndim:
        return value
    wide = np.repeat(value, 2, -1)
    return wide[..., ::2]


def repeated(value: Any) -> Any:
    """The first row of each array, as often as the array has rows, without copies."""
    if isinstance(value, list | tuple):
        return [repeated(each) for each in value]
    return value if not isinstance(value, np.ndarray) or not value.size or value.ndim < 2 else \
        np.lib.stride_tricks.as_strided(value, strides=(0, *value.strides[1:]))


WAYS: dict[str, Any] = {
    **{f"axes {axes}": partial(reordered, axes=axes) for axes in ((0, 0), (0, 1), (-1, -2), (1, -1))}, "with gaps": stepped,
    "repeated": repeated}


@pytest.mark.oracle
@pytest.mark.parametrize("name", sorted({*SAMPLED} - OTHERWISE))
def test_results_lie_in_memory_as_in_torch(name: str) -> None:
    """And a memory order is refused where torch refuses it, in its words."""
    torch = pytest.importorskip("torch")
    kind, _, variant = name.removeprefix("aten::").partition(".")
    function = getattr(getattr(torch.ops.aten, kind, None), variant or "default", None)
    text = dict(zip(OPS[name].names, OPS[name].schemas))[name]

    def to_torch(value: Any) -> Any:
        return [to_torch(each) for each in value] if isinstance(value, list) else \
            torch.from_numpy(value) if isinstance(value, np.ndarray) else value

    def layout(run: Any, *args: Any, **named: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return laid(run(*args, **named))
        except (irtool.Error, RuntimeError, TypeError, ValueError, AttributeError, IndexError) as error:
            return str(error).partition("\n")[0]

    for sample in OPS[name].samples[name]:
        for way, change in WAYS.items():
            args = change(sample.arguments(text))
            words = {each.name: to_torch(value) for each, value in zip(function._schema.arguments, args)} if function else {}
            want, result = layout(function, **words), layout(call_op, name, args)
            is_refused = isinstance(want, str) or isinstance(result, str)
            if is_refused and way == "axes (0, 0)":
                break       # an overload that torch has no more, or other arguments
            if is_refused and (way == "repeated" or name in LENIENT) or kind in OF_ITS_OWN.get(way, ()):
                continue    # other elements may be refused by their values
            assert result == want or is_refused and want[:60] in result, way


def arrays(value: Any) -> Any:
    """Tensors of irtool, also in lists, as arrays."""
    return [arrays(each) for each in value] if isinstance(value, list | tuple) else np.asarray(value)


def laid(value: Any) -> Any:
    """The strides of tensors, in elements, of irtool's and torch's alike."""
    if isinstance(value, list | tuple):
        return [laid(each) for each in value]
    if hasattr(value, "itemsize") and hasattr(value, "strides"):
        return strides(value.shape, value.strides, value.itemsize)
    return strides(value.shape, value.stride(), 1) if hasattr(value, "stride") else None


NETS = {
    "conv1d": "F.conv1d(x, w), F.conv1d(x[0], w)", "conv2d": "F.conv2d(x, w), F.conv2d(x[0], w)",
    "conv3d": "F.conv3d(x, w), F.conv3d(x[0], w)",
    "transposed": "[(F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[x.dim() - 3](y, w[:3, :3]) for y in (x, x[0])]",
    "pools": "[getattr(F, f'{kind}_pool{x.dim() - 2}d')(x, 2) for kind in ('max', 'avg', 'adaptive_avg', 'adaptive_max')]",
    "norms": "F.batch_norm(x, None, None, None, None, True), F.group_norm(x, 3), F.instance_norm(x), F.layer_norm(x, [x.shape[-1]])",
    "pads": "[F.pad(x, [1] * (2 * x.dim() - 4), mode=mode) for mode in ('constant', 'reflect', 'replicate', 'circular')]",
    "sizes": "[F.interpolate(x, scale_factor=2.0, mode=mode) for mode in ('nearest', ['linear', 'bilinear', 'trilinear'][x.dim() - 3])]",
    "fft": "[f(x, n, d) for f in (torch.fft.fft, torch.fft.rfft, torch.fft.hfft) for n in (None, 5) for d in range(x.dim())]",
    "fftn": "[f(x, dim=d) for f in (torch.fft.fftn, torch.fft.rfftn, torch.fft.hfftn, torch.fft.ihfftn) "
            "for d in ((0, 1), (2, 0), (1, 2), (0, 1, 2))]",
    "rot90": "[torch.rot90(x, k, d) for k in (1, 2, 3) for d in ((0, 1), (2, 1))]",
    "shuffles": "[torch.channel_shuffle(F.pixel_unshuffle(x[..., :4], 2), 3), F.pixel_shuffle(F.pixel_unshuffle(x[..., :4], 2), 2), "
                "F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)] if x.dim() == 4 else []",
    "joined": "[f([x, y], d) for f in (torch.cat, torch.stack) for y in (x, x.contiguous(), x[:1].expand(x.shape), torch.cat([x])) "
              "for d in range(x.dim())], torch.cat([x, x[:1]]), torch.hstack([x, x]), torch.dstack([x, x])",
    "rolled": "[torch.roll(x, n, d) for n in (1, 2, 6) for d in range(x.dim())], torch.roll(x, 1), torch.roll(x, [1, 1], [0, 1]), "
              "torch.fft.fftshift(x), torch.fft.fftshift(x[:1]), torch.fft.ifftshift(x, 1)",
    "unchanged": "[f(x, 1) for f in (F.pixel_shuffle, F.pixel_unshuffle, torch.channel_shuffle) if x.dim() == 4], "
                 "torch.diff(x, n=0), torch.rot90(x, 0), torch.rot90(x[:, :2], 4), F.one_hot((x > 0).long(), 3), torch.polygamma(3, x), "
                 "torch.special.zeta(x, 2.0)",
    "others": "torch.diff(x), torch.diff(x, dim=1), torch.complex(x, x), F.dropout(x, 0.5), torch.addcmul(x, x, x)",
}


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NETS)
def test_results_of_permuted_images_lie_in_memory_as_in_torch(name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    for rank in (3, 4, 5) if name not in ("conv1d", "conv2d", "conv3d") else (int(name[4]) + 2,):
        x, w = np.ones((2, 3, 6, 5, 4)[:rank], dtype), np.ones((4, 3, 3, 3, 3)[:rank], dtype)
        for axes in ((0, 0), (1, -1), (0, 1), (-1, -2), (0, -1)):
            for other in ((0, 0), (1, -1)):
                args, found = (reordered(x, axes), reordered(w, other)), []
                for library, make in ((torch, torch.from_numpy), (irtool.torch, irtool.Tensor)):
                    space = {"torch": library, "F": library.nn.functional, "x": make(args[0]), "w": make(args[1])}
                    result = eval(NETS[name], space)  # of the table
                    found.append(laid(result if library is torch else arrays(result)))
                assert found[0] == found[1], (rank, axes, other)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "float32", "float64", "complex64"])
def test_pointwise_results_lie_in_memory_as_in_torch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = np.arange(24).reshape(2, 3, 4).astype(dtype).transpose(2, 0, 1)
    for name in sorted(name for name in OPS if facts_of_overload(name).is_pointwise):
        kind, _, variant = name.removeprefix("aten::").partition(".")
        function = getattr(getattr(torch.ops.aten, kind, None), variant or "default", None)
        for args in ([x], [x, 0], [x, 1], [x, x * 1], [x, x[0, 0]]):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    result = call_op(name, args)
                    want = function(*[torch.from_numpy(each) if isinstance(each, np.ndarray) else each for each in args])
            except (irtool.Error, RuntimeError, TypeError, ValueError, AttributeError):
                continue        # other dtypes or other arguments
            for one, other in zip(*[each if isinstance(each, tuple) else (each,) for each in (result, want)]):
                assert strides(one.shape, one.strides, one.itemsize) == strides(other.shape, other.stride(), 1), (name, args[1:])


PARTICULAR = set("view _unsafe_view view_as view_as_complex view_as_complex_copy _pdist_forward native_group_norm conv_tbc".split())
"""Kinds that refuse operands in other memory orders, as in torch."""


@over("name", [pytest.param(name, id=name) for name in sorted(FORMULAS)
                if name.removeprefix("aten::").partition(".")[0] not in PARTICULAR], lambda name: name.removeprefix("aten::")[0])
def test_gradients_do_not_depend_on_memory_orders(name: str) -> None:
    """A formula that computes the result anew takes what the operator takes."""
    trial = Trial(name, OPS[name].samples[name][0])
    wanted = irtool.vjp(trial.graph, trial.inputs, trial.cotangents, list(trial.wrt))
    moved = [reordered(value, (0, -1)) for value in trial.inputs]
    for found, expected in zip(irtool.vjp(trial.graph, moved, trial.cotangents, list(trial.wrt)), wanted, strict=True):
        for one, other in zip(flattened(found), flattened(expected), strict=True):
            np.testing.assert_allclose(0.0 if one is None else one, 0.0 if other is None else other, 1e-7, 1e-9)


@pytest.mark.parametrize("expanded", ["x[:1].expand(3, -1)", "x.t()[:1].expand(4, -1).t()", "x.expand(2, 3, 4).transpose(1, 2)"])
def test_copies_of_expanded_tensors_lie_alike_in_all_ways(expanded: str) -> None:
    x = np.arange(12.0).reshape(3, 4)
    for copy in ("y.float()", "y.int() + 0.5", "y.clone()", "torch.zeros_like(y) + y", "torch.erf(y.float())"):
        module = irtool.from_script(f"def f(x: Tensor):\n    y = {expanded}\n    return {copy}\n")
        (want,) = irtool.run(module, [x], interpret=True)
        for compiled in (irtool.compile(module), irtool.compile(module, native=False)):
            for _ in range(2):
                (result,) = compiled.run([x])
                np.testing.assert_array_equal(result, want, strict=True)
                assert result.strides == want.strides, copy


def test_a_new_shape_of_a_result_shares_memory_as_in_torch() -> None:
    source = "def f(x: Tensor):\n    v = {}\n    v.reshape(-1).add_(1)\n    return v\n"
    x = np.arange(6.0).reshape(2, 3).T
    for operator, is_shared in (("torch.tril(x)", True), ("x.cumsum(0)", True), ("x.flip(0)", False), ("x.sort(0)[0]", False)):
        module = irtool.from_script(source.format(operator))
        plain = irtool.run(irtool.from_script(f"def f(x: Tensor):\n    return {operator}\n"), [x], interpret=True)[0]
        for result in (irtool.run(module, [x], interpret=True), irtool.run(module, [x]), irtool.run(module, [x])):
            np.testing.assert_array_equal(result[0], plain + is_shared)


@pytest.mark.parametrize(("view", "strides"), [
    ("torch.tensor([1, 2, 3])[0:9:2]", [2]), ("torch.ones([2, 3]).t()", [1, 3]), ("torch.ones([1]).expand(3)", [0])])
def test_strides_of_constants_survive_folding(view: str, strides: list[int]) -> None:
    text = f"def f(a: Tensor) -> Tuple[bool, List[int]]:\n    x = {view}\n    return x.is_contiguous(), x.stride()"
    (graph,) = irtool.from_script(text).graphs
    assert irtool.run(graph, [np.ones(1)]) == [(False, strides)]
    assert Executor(graph).run([np.ones(1)], None) == [(False, strides)]


@pytest.mark.parametrize("options", [{}, {"native": True}, {"native": False}])
def test_plans_lay_out_results_of_mixed_operands_as_the_reference_does(options: dict[str, Any]) -> None:
    source = "def f(x: Tensor, y: Tensor):\n    u = x * 2\n    v = u + y\n    return u, v, v.t() * u, y * y\n"
    x, y = np.ones((3, 3), np.float32), np.asfortranarray(np.ones((3, 3), np.float32))
    wants = [each.strides for each in irtool.run(irtool.from_script(source), [x, y], interpret=True)[0]]
    executor = irtool.compile(irtool.from_script(source), **options)
    for _ in range(3):
        assert [each.strides for each in executor.run([x, y])[0]] == wants


@pytest.mark.parametrize("inner", [1, 3])
@pytest.mark.parametrize("call", ["a.matmul(b)", "a[0].matmul(b[0])", "a[0].matmul(b)", "a.matmul(b[0])", "torch.bmm(a[0], b[0])",
                                  "torch.baddbmm(a[0] @ b[0], a[0], b[0])", "torch.baddbmm(a.sum(), a[0], b[0], beta=0.5)",
                                  "F.bilinear(a[0, :, :, 0].t(), a[1, :, :, 0].t(), torch.ones(5, 4, 4).to(a.dtype))"])
def test_products_are_row_major(call: str, inner: int) -> None:
    """Whatever the memory order of stacks of matrices, `view` of their products works, as in torch; by plans, too."""
    names = ["torch", "F"]
    module = irtool.from_script(f"def f(a, b):\n    c = {call}\n    return c.view(-1)\n", "f")
    orders = [(0, 1, 2, 3), (1, 0, 2, 3), (2, 1, 0, 3), (1, 2, 0, 3), (3, 1, 0, 2), (0, 3, 2, 1)]
    for order in orders:
        a, b = (np.zeros([shape[place] for place in order]).transpose(np.argsort(order)) for shape in ((2, 4, 5, inner), (2, 4, inner, 6)))
        space = dict(zip(names, (irtool.torch, irtool.torch.nn.functional)), a=irtool.torch.from_numpy(a), b=irtool.torch.from_numpy(b))
        assert eval(call, space).is_contiguous()
        executor = irtool.compile(module)
        for _ in range(2):
            assert executor(a, b)[0].ndim == 1
