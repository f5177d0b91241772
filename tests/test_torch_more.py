"""Functions of torch and torch.nn.functional that are no operators: values, gradients, batches, traces, and as TorchScript source."""
from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch as ours
from irtool.ir.errors import RunError

pytestmark = pytest.mark.filterwarnings("ignore")       # what torch says of its own deprecated functions
RNG = np.random.default_rng(0)
LENGTH, SOURCE, BATCH, WIDTH, HEADS = 4, 5, 3, 8, 2
QUERY = [RNG.standard_normal(shape) for shape in (
    (LENGTH, BATCH, WIDTH), (SOURCE, BATCH, WIDTH), (SOURCE, BATCH, WIDTH), (3 * WIDTH, WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), (WIDTH,))]
LINE, PLANE, SPACE = (np.abs(RNG.standard_normal(shape)) + 0.1 for shape in ((2, 3, 9), (2, 3, 8, 9), (1, 2, 5, 6, 7)))
TRIPLE = [RNG.standard_normal((3, 4)) for _ in range(3)]
TALL = RNG.standard_normal((7, 3)) @ RNG.standard_normal((3, 5))
PADDED = np.array([[0, 0, 0, 1, 1]] * BATCH, bool)
MASK = RNG.standard_normal((LENGTH, SOURCE))


def attention(F: Any, q: Any, k: Any, v: Any, w: Any, b: Any, out: Any, bias: Any, *, zero: bool = False, more: Any = (None, None),
              **named: Any) -> Any:
    return F.multi_head_attention_forward(q, k, v, WIDTH, HEADS, w, b, *more, zero, 0.0, out, bias, **named)


def product(parts: Any) -> Any:
    """What does not depend on the signs of singular vectors: the largest values, and what the parts are parts of."""
    u, s, v = parts
    return s[:3], (u * s) @ v.mH


CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {     # name: (function of F, torch and tensors, tensors)
    **{f"lp_pool1d {p}": (lambda F, t, x, p=p: (F.lp_pool1d(x, p, 3), F.lp_pool1d(x, p, 3, 2, True)), [LINE]) for p in (2, 3.0, math.inf)},
    "lp_pool1d -inf": (lambda F, t, x: F.lp_pool1d(x, -math.inf, 2), [LINE]),
    "lp_pool2d": (lambda F, t, x: (F.lp_pool2d(x, 2.0, (3, 2), stride=2), F.lp_pool2d(x, 2, 2, ceil_mode=True)), [PLANE]),
    "lp_pool3d": (lambda F, t, x: F.lp_pool3d(x, 2.0, 2), [SPACE]),
    "max_unpool1d": (lambda F, t, x: F.max_unpool1d(*F.max_pool1d(x, 3, return_indices=True), 3), [LINE]),
    "max_unpool2d": (lambda F, t, x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=x.shape[-2:]), [PLANE]),
    "max_unpool2d of a whole shape": (lambda F, t, x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), (2, 2), output_size=x.shape),
                                      [PLANE]),
    "max_unpool3d": (lambda F, t, x: F.max_unpool3d(*F.max_pool3d(x, (1, 2, 2), return_indices=True), (1, 2, 2), output_size=x.shape),
                     [SPACE]),
    "multilabel_soft_margin_loss": (lambda F, t, x, y: [F.multilabel_soft_margin_loss(x, y, weight=w, reduction=r)
                                                        for w in (None, y + 0.5) for r in ("none", "mean", "sum")], TRIPLE[:2]),
    "triplet_margin_with_distance_loss": (lambda F, t, a, b, c: [F.triplet_margin_with_distance_loss(a, b, c, reduction=r)
                                                                 for r in ("none", "mean", "sum")], TRIPLE),
    "triplet_margin_with_distance_loss, a distance": (lambda F, t, a, b, c: F.triplet_margin_with_distance_loss(
        a, b, c, distance_function=lambda x, y: (x - y).abs().sum(-1), margin=2.0, swap=True), TRIPLE),
    "dropout of channels": (lambda F, t, x: (F.dropout1d(x, 0.5, False), F.dropout1d(x[0], 0.0), F.dropout1d(x, 1.0)), [LINE]),
    "dropout of planes": (lambda F, t, x: (F.dropout2d(x, 0.5, False), F.dropout3d(x, 0.0), F.dropout3d(x, 1.0)), [PLANE]),
    "upsample": (lambda F, t, x: (F.upsample_nearest(x, 4), F.upsample_bilinear(x, (5, 7)), F.upsample(x, scale_factor=2.0)), [PLANE]),
    "svd_lowrank": (lambda F, t, x: product(t.svd_lowrank(x, 3)), [TALL]), "svd_lowrank, wide": (lambda F, t, x: product(
        t.svd_lowrank(x.mT, q=3, niter=3, M=x.mT * 0.5)), [TALL]),
    "pca_lowrank": (lambda F, t, x: (product(t.pca_lowrank(x, 3)), product(t.pca_lowrank(x.mT, 3, center=False))), [TALL]),
    **{f"attention, weights {w}": (lambda F, t, *a, w=w: attention(F, *a, need_weights=w), QUERY) for w in (True, False)},
    "attention of every head": (lambda F, t, *a: attention(F, *a, average_attn_weights=False), QUERY),
    "attention without biases": (lambda F, t, q, k, v, w, b, out, bias: attention(F, q, k, v, w, None, out, None), QUERY),
    "attention, unbatched": (lambda F, t, q, k, v, *a: attention(F, q[:, 0], k[:, 0], v[:, 0], *a), QUERY),
    "attention, masks": (lambda F, t, m, *a: attention(F, *a, attn_mask=m, key_padding_mask=t.from_numpy(PADDED)), [MASK, *QUERY]),
    "attention, masks of bools": (lambda F, t, *a: attention(F, *a, attn_mask=t.from_numpy(MASK > 1.2), need_weights=False), QUERY),
    "attention, more keys": (lambda F, t, k, v, *a: attention(F, *a, more=(k, v), zero=True, key_padding_mask=t.from_numpy(PADDED)),
                             [QUERY[0][:1, :1], QUERY[1][:1, :1], *QUERY]),
    "attention, separate weights": (lambda F, t, x, y, z, q, k, v, w, *a: attention(
        F, q, k, v, None, *a, use_separate_proj_weight=True, q_proj_weight=x, k_proj_weight=y, v_proj_weight=z),
        [QUERY[5], QUERY[5] + 1, QUERY[5] * 2, *QUERY]),
    "attention, keys from elsewhere": (lambda F, t, k, v, *a: attention(F, *a, static_k=k, static_v=v),
                                       [RNG.standard_normal((BATCH * HEADS, 6, WIDTH // HEADS)) for _ in range(2)] + QUERY),
}


def flat(value: Any) -> list[Any]:
    """The tensors of a result."""
    return [one for each in value for one in flat(each)] if isinstance(value, list | tuple) else [] if value is None else [value]


def as_arrays(value: Any) -> list[Any]:
    return [np.asarray(each.detach() if hasattr(each, "detach") else each) for each in flat(value)]


def call(name: str, arrays: list[Any]) -> Any:
    """What irtool gives."""
    return CASES[name][0](ours.nn.functional, ours, *arrays)


def total(name: str, *arrays: Any) -> Any:
    """One number that depends on all of it."""
    return sum((each * each).sum() for each in flat(call(name, list(arrays))))


def assert_same(found: Any, wanted: Any, rtol: float = 1e-6) -> None:
    found, wanted = as_arrays(found), as_arrays(wanted)
    assert [each.shape for each in found] == [each.shape for each in wanted]
    assert [each.dtype for each in found] == [each.dtype for each in wanted]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-8)


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    function, arrays = CASES[name]
    given = [torch.from_numpy(each).requires_grad_() for each in arrays]
    wanted = function(torch.nn.functional, torch, *given)
    assert_same(call(name, [ours.from_numpy(each) for each in arrays]), wanted)
    gradients = torch.autograd.grad(sum((each * each).sum() for each in flat(wanted)), given, allow_unused=True, materialize_grads=True)
    found = irtool.grad(lambda *args: total(name, *args), argnums=tuple(range(len(arrays))))(*arrays)
    assert_same(found, gradients, 1e-5)


@pytest.mark.parametrize("name", CASES)
def test_jit_and_vmap_are_eager(name: str) -> None:
    arrays = CASES[name][1]
    tensors = [ours.from_numpy(each) for each in arrays]
    wanted = as_arrays(call(name, tensors))
    compiled = irtool.jit(lambda *args: flat(call(name, list(args))))
    for _ in range(2):
        assert_same(list(flat(compiled(*tensors))), wanted)
    twice = [np.stack([each, each * 0.5]) for each in arrays]
    randomness = {"randomness": "same"} if "lowrank" in name or "dropout" in name else {}
    found = irtool.vmap(lambda *args: tuple(flat(call(name, list(args)))), **randomness)(*twice)
    halves = as_arrays(call(name, [ours.from_numpy(each * 0.5) for each in arrays]))
    assert_same(found, [np.stack(pair) for pair in zip(wanted, halves, strict=True)], 1e-5)


@pytest.mark.parametrize("name", CASES)
def test_numpy_arrays_are_taken_as_tensors(name: str) -> None:
    arrays = CASES[name][1]
    assert_same(as_arrays(call(name, arrays)), as_arrays(call(name, [ours.from_numpy(each) for each in arrays])))


def test_dropout_drops_whole_channels() -> None:
    F = ours.nn.functional
    for shape, channels, function in (((50, 40, 3), 2000, F.dropout1d), ((50, 40, 2, 3), 2000, F.dropout2d), ((400, 5), 400, F.dropout1d),
                                      ((50, 40, 2, 1, 3), 2000, F.dropout3d), ((400, 2, 1, 3), 400, F.dropout3d)):
        x = ours.from_numpy(np.ones(shape))
        for randomness in ("none", "same", "different"):
            if randomness == "none":
                found = np.asarray(function(x, 0.25))
            else:
                both = np.asarray(irtool.vmap(lambda x, f=function: f(x, 0.25), randomness=randomness)(ours.stack([x, x])))
                found = both[1]
                assert (both[0] == both[1]).all() == (randomness == "same")
            rows = found.reshape(channels, -1)
            assert (rows == rows[:, :1]).all() and set(np.unique(found)) == {0.0, 1 / 0.75} and 0.6 < (found > 0).mean() < 0.9


def test_places_of_numbered_elements() -> None:
    numbers = RNG.integers(0, 120, (3, 2))
    for dtype in (np.int64, np.int32, np.uint8):
        found = ours.unravel_index(ours.from_numpy(numbers.astype(dtype)), (4, 5, 6))
        assert_same(list(found), list(np.unravel_index(numbers, (4, 5, 6))))
    assert_same(list(ours.unravel_index(ours.tensor(3), 7)), [np.array(3)])
    assert_same(list(irtool.vmap(lambda x: ours.unravel_index(x, (4, 30)))(numbers)), list(np.unravel_index(numbers, (4, 30))))
    for indices, shape, text in ((ours.ones(2), 3, "integer dtype"), (ours.tensor([True]), 3, "integer dtype"),
                                 (ours.tensor([1]), (2, -3), "negative"), (ours.tensor([1]), (2, 1.5), "sequence of ints")):
        with pytest.raises(RunError, match=text):
            ours.unravel_index(indices, shape)


@pytest.mark.parametrize("function, text", [
    (lambda F, t: F.triplet_margin_with_distance_loss(t.ones(2), t.ones(2), t.ones(2), margin=0.0), "margin must be greater than 0"),
    (lambda F, t: F.triplet_margin_with_distance_loss(t.ones(2), t.ones(2), t.ones(2), reduction="all"), "reduction='all'"),
    (lambda F, t: F.triplet_margin_with_distance_loss(t.ones(2), t.ones(1, 2), t.ones(2)), "same number of dimensions"),
    (lambda F, t: t.pca_lowrank(t.ones(3, 2), q=3), "not greater than min"), (lambda F, t: t.pca_lowrank(t.ones(3, 2), niter=-1), "niter"),
    (lambda F, t: F.dropout1d(t.ones(2, 2, 2, 2)), "Expected 2D or 3D input"),
    (lambda F, t: F.dropout3d(t.ones(2, 2), 1.5), "between 0 and 1"),
    (lambda F, t: F.max_unpool1d(t.ones(1, 2), t.zeros(1, 2, dtype=t.int64), 2, output_size=[9]), "invalid output_size"),
    (lambda F, t: F.multilabel_soft_margin_loss(t.ones(2), t.ones(2), reduction="all"), "all is not valid"),
    (lambda F, t: attention(F, *[t.from_numpy(each) for each in QUERY], attn_mask=t.zeros(1, 1)), "shape of the 2D attn_mask"),
    (lambda F, t: attention(F, *[t.from_numpy(each) for each in QUERY], is_causal=True), "Need attn_mask"),
])
def test_what_torch_refuses_is_refused(function: Callable[[Any, Any], Any], text: str) -> None:
    with pytest.raises((RunError, ValueError, RuntimeError, AssertionError), match=text):
        function(ours.nn.functional, ours)


SCRIPT = '''
import torch
import torch.nn.functional as F
from typing import List, Optional, Tuple
from torch import Tensor

def lp1(x: Tensor):
    return F.lp_pool1d(x, 2, 3), F.lp_pool1d(x, 3.0, 3, stride=2, ceil_mode=True), F.lp_pool1d(x, float("inf"), 2)

def lp2(x: Tensor):
    return F.lp_pool2d(x.unsqueeze(0), 2.0, 3, 2), F.lp_pool2d(x.unsqueeze(0), 2, [2, 1])

def lp3(x: Tensor):
    return F.lp_pool3d(x.unsqueeze(0).unsqueeze(0), 2.0, 2)

def unpool1(x: Tensor):
    y, i = torch.max_pool1d_with_indices(x, 2)
    return F.max_unpool1d(y, i, 2), F.max_unpool1d(y, i, [2], output_size=[x.size(-1)])

def unpool2(x: Tensor):
    y, i = torch._C._nn.max_pool2d_with_indices(x, [2, 2])
    return F.max_unpool2d(y, i, 2, output_size=[x.size(-2), x.size(-1)])

def unpool3(x: Tensor):
    y, i = torch._C._nn.max_pool3d_with_indices(x.unsqueeze(0), [1, 2, 2])
    return F.max_unpool3d(y, i, [1, 2, 2], output_size=[x.size(0), x.size(1), x.size(2)])

def dropped(x: Tensor):
    return F.dropout1d(x, 0.5, False), F.dropout2d(x.unsqueeze(0), 0.0), F.dropout3d(x.unsqueeze(0), 1.0)

def margin(x: Tensor):
    return F.multilabel_soft_margin_loss(x, x), F.multilabel_soft_margin_loss(x, x, weight=x, reduction="sum")

def resized(x: Tensor):
    return (F.upsample_nearest(x, 4), F.upsample_bilinear(x.unsqueeze(0), [4, 5]), F.interpolate(x, scale_factor=2.0),
            F.upsample(x.unsqueeze(0), size=[3, 3], mode="bicubic", align_corners=False))

def attend(x: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor, o: Tensor, c: Tensor, m: Optional[Tensor]):
    y, s = F.multi_head_attention_forward(x, k, v, 8, 2, w, b, None, None, True, 0.0, o, c, attn_mask=m)
    z, n = F.multi_head_attention_forward(x, k, v, 8, 2, w, b, None, None, False, 0.0, o, c, need_weights=False)
    return y, s, z, n
'''


def script_calls() -> list[tuple[str, list[Any]]]:
    names = ("lp1", "lp2", "lp3", "unpool1", "unpool2", "unpool3", "dropped", "margin", "resized")
    return [*[(name, [PLANE[0]]) for name in names], ("attend", [*QUERY, None]), ("attend", [*QUERY, MASK])]


@pytest.mark.oracle
@pytest.mark.parametrize("name, values", script_calls(), ids=lambda value: value if isinstance(value, str) else str(len(value)))
def test_source_is_taken_as_torch_takes_it(name: str, values: list[Any], tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    (tmp_path / "written.py").write_text(SCRIPT)
    spec = importlib.util.spec_from_file_location("written", tmp_path / "written.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    wanted = torch.jit.script(getattr(module, name))(*[None if each is None else torch.from_numpy(each) for each in values])
    graph = irtool.from_script(SCRIPT).graph(name)
    for interpret in (True, False, False, False):
        assert_same(irtool.run(graph, values, interpret=interpret), wanted)


def test_source_refuses_what_torch_refuses() -> None:
    for call_text in ("torch.svd_lowrank(x)", "torch.unravel_index(x, [2])", "F.triplet_margin_with_distance_loss(x, x, x)",
                      "F.sizes_of([1], 1)"):
        with pytest.raises(irtool.Error):
            irtool.from_script(f"import torch\nimport torch.nn.functional as F\ndef f(x: torch.Tensor):\n    return {call_text}\n")
