"""Graphs that hold functions of torch by name only: they run as torch's where arguments and results are torch's, and nothing else does."""
from __future__ import annotations

import importlib.util
import linecache
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.passes.inline import inline
from irtool.torchscript.library_calls import LibraryWarning, opened

X = np.array([[-1.0, 2.0], [3.0, -4.0]], np.float32)
RELU = """graph(%x : Tensor):
  %f : Function = prim::Constant[name="relu"]()
  %no : bool = prim::Constant[value=0]()
  %1 : Tensor = prim::CallFunction(%f, %x, %no)
  return (%1)
"""


def test_a_function_of_torch_runs_by_its_name_with_a_warning() -> None:
    graph = irtool.parse(RELU).graph()
    with pytest.warns(LibraryWarning, match="assumed to be torch's: relu"):
        results = [irtool.run(graph, [X])[0]]
    results += [irtool.run(graph, [X])[0] for _ in range(2)]        # by a plan, and without a word
    assert all(np.array_equal(found, X.clip(0)) for found in results)
    with pytest.warns(LibraryWarning):
        assert np.array_equal(irtool.compile(irtool.parse(RELU).graph())(X)[0], X.clip(0))
    with pytest.warns(LibraryWarning):
        (gradient,) = irtool.vjp(irtool.parse(RELU).graph(), [X], [np.ones_like(X)], [0])
    assert np.array_equal(gradient, (X > 0).astype(np.float32))


@pytest.mark.parametrize("call, result", [
    ('"relu"](%x)', "Tensor"), ('"relu"](%x, %no, %no)', "Tensor"), ('"relu"](%x, %no)', "int"), ('"mine"](%x, %no)', "Tensor"),
])
def test_a_function_with_other_arguments_is_somebody_elses(call: str, result: str) -> None:
    name, _, arguments = call.partition("](")
    text = RELU.replace('"relu"', name).replace("(%f, %x, %no)", f"(%f, {arguments}").replace("%1 : Tensor", f"%1 : {result}")
    graph = irtool.parse(text).graph()
    assert opened(graph) is graph
    with pytest.raises(irtool.UnsupportedError, match=f"prim::CallFunction of '{name[1:-1]}' is not supported: its body is not in the"):
        irtool.run(graph, [X])


def test_the_pass_inline_opens_them() -> None:
    module = irtool.parse(RELU)
    assert inline(module)
    assert "prim::CallFunction" not in str(module)


CALLS = """relu(x); relu6(x, True); leaky_relu(x); elu(x); gelu(x); silu(x); softmax(x, 1); log_softmax(x, 0); softmin(x, 1)
dropout(x, 0.5, False); normalize(x); threshold(x, 0.1, 20.0); max_pool1d(x, 2)
max_pool1d(x, 2, return_indices=True); adaptive_max_pool1d(x, 1); adaptive_max_pool1d(x, 1, return_indices=True)
interpolate(x[None], scale_factor=2.0); interpolate(x[None], size=3, mode="linear")
mse_loss(x, x + 1); mse_loss(x, x + 1, size_average=False); l1_loss(x, x + 1, reduce=False); smooth_l1_loss(x, x * 2)
huber_loss(x, x * 2, weight=x); mse_loss(x, x * 2, weight=x, reduction="sum"); kl_div(x, x, size_average=False); soft_margin_loss(x, x)
cross_entropy(x, x.softmax(1)); hinge_embedding_loss(x, x); cosine_similarity(x, x); pairwise_distance(x, x); layer_norm(x, [2])
batch_norm(x, x[0], x[0].abs()); tanh(x); sigmoid(x); softsign(x); hardtanh(x); glu(x); celu(x); selu(x); mish(x); tanhshrink(x)"""
OF_TORCH = """norm(x); norm(x, dim=1); norm(x, 2.0, 1); norm(x, p=1, dim=[0, 1]); tensordot(x, x, 2); tensordot(x, x, [[0], [0]])
cdist(x, x); cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist"); unique(x); unique(x, return_inverse=True)
unique(x, True, True, True); unique_consecutive(x, return_counts=True)
lu(x); lu(x, get_infos=True)"""


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_what_torch_prints_of_its_functions_gives_what_torch_gives() -> None:
    torch = pytest.importorskip("torch")
    from tests.script_programs import agree, as_json

    calls = [f"torch.nn.functional.{call}" for call in CALLS.replace("\n", "; ").split("; ")]
    calls += [f"torch.{call}" for call in OF_TORCH.replace("\n", "; ").split("; ")]
    for call in calls:
        unit = _scripted(torch, call)
        wanted = unit(torch.from_numpy(X.copy()))
        found = irtool.run(irtool.parse(str(unit.graph)).graph(), [X.copy()])
        plain = [each.numpy() for each in wanted] if isinstance(wanted, tuple) else [wanted.numpy()]
        flat = list(found[0]) if isinstance(found[0], tuple) else found
        assert agree([as_json(each) for each in flat], [as_json(each) for each in plain]), call


def _scripted(torch: Any, call: str) -> Any:
    """A function of one call, as torch compiles it from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "called.py"
        path.write_text(f"import torch\ndef f(x):\n    return {call}\n")
        spec = importlib.util.spec_from_file_location("called", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        linecache.checkcache()
        return torch.jit.script(module.f)
