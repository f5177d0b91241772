"""Every gradient formula on every sample of its stanza: slopes of first and second order, every subset of the inputs and of the gradients
that come in, complete types, and its two forms, compiled and as Python."""
from __future__ import annotations

import contextlib
import json
from collections import Counter
from typing import Any

import formula_samples as recorded
import pytest

import irtool
from irtool.autodiff.formula_graphs import compiled
from irtool.execute.graph_gradients import Differentiated
from irtool.ir.schema import is_tensor_like, schema_named, schema_of
from irtool.ir.types import parse_type
from irtool.ops import OPS
from irtool.ops.formula import formula_of, why_no_gradient
from irtool.ops.samples.draw import Call
from irtool.testing.formulas import Trial, check_formula, subsets
from tests.laws import family, kind, over, overload_samples

FORMULAS = sorted(name for name, op in OPS.items() if name in op.formulas)
ROUGH = {
    "single precision has no differences to take": "_cast_Float _cast_Half",
    "rows of padding have no gradient, others are scaled, by design": "embedding",
    "rounding counts as the identity": "fake_quantize_per_tensor_affine",
    "torch's gradient is not the slope": "as_strided_scatter",
    "the losses it is given belong to its other operands: at order 2 of the loss they do": "_ctc_loss_backward _ctc_loss_backward.Tensor",
    "a tensor stands for what is waited for": "wait prim::awaitable_nowait prim::awaitable_wait",
    "saved statistics count as functions of the input: at order 2 of the forward operator they do move with it":
        "native_batch_norm_backward batch_norm_backward _batch_norm_impl_index_backward native_layer_norm_backward "
        "native_group_norm_backward",
}
"""What cannot be checked by differences, and why: on some of the samples of these, only the two forms of the formula are compared."""


@over("name, sample", [case for name in FORMULAS for case in overload_samples(name)], kind)
def test_formula_is_right(name: str, sample: Call) -> None:
    problems = check_formula(name, sample, pairs=sample is OPS[name].samples[name][0])
    assert not problems, "\n".join(problems)


SEVERAL = [name for name in FORMULAS if len(schema_named(name).returns) > 1]    # type: ignore[union-attr]


@over("name", [pytest.param(name, id=name) for name in SEVERAL], family)
def test_results_may_be_declared_to_have_no_gradients(name: str) -> None:
    """The formula gets the gradients of some results; if it gets none, nothing is differentiated."""
    for sample in OPS[name].samples[name]:
        graph = Trial(name, sample).graph
        tensors = [value for value in graph.outputs if is_tensor_like(value.type)]
        for chosen in (*subsets(tensors), tensors):
            for type in ("Long(2)", "Float(2, requires_grad=0)"):
                copy = irtool.parse(str(graph)).graph()
                for value in chosen:
                    copy.outputs[graph.outputs.index(value)].type = parse_type(type)
                with contextlib.suppress(irtool.UnsupportedError):
                    irtool.PassManager("differentiate", verify=True).run(irtool.Module([copy]))


def test_every_formula_has_samples() -> None:
    assert not [f"{name}: no sample in irtool/ops/samples/{OPS[name].family}.py" for name in FORMULAS if not OPS[name].samples.get(name)]


BY_TORCH: dict[str, list[Any]] = json.loads(recorded.RECORDED.read_text(encoding="utf-8"))
DIFFERENT = {f"aten::{name}" for names in recorded.DIFFERENT.values() for name in names.split()}


@over("name", [pytest.param(name, id=name) for name in sorted(BY_TORCH.keys() - DIFFERENT)], family)
def test_torch_has_the_same_gradients(name: str) -> None:
    for place, (sample, numbers) in enumerate(zip(OPS[name].samples[name], BY_TORCH[name], strict=True)):
        if numbers is not None:
            trial = Trial(name, sample)
            found = recorded.products(trial, Differentiated(trial.graph, trial.wrt).gradients(trial.inputs, trial.cotangents, trial.seed))
            expected = [each or 0.0 for each in numbers]
            assert [each or 0.0 for each in found] == pytest.approx(expected, rel=1e-7, abs=1e-8), f"sample {place}"


def test_what_cannot_be_checked_is_known() -> None:
    found: dict[str, set[str]] = {}
    for name in FORMULAS:
        for sample in OPS[name].samples[name]:
            if sample.why_rough:
                found.setdefault(sample.why_rough, set()).add(name)
    assert found == {reason: {n if "::" in n else f"aten::{n}" for n in names.split()} for reason, names in ROUGH.items()}


def test_samples_are_the_same_every_time() -> None:
    (text,) = OPS["aten::mm"].schemas
    sample = OPS["aten::mm"].samples["aten::mm"][0]
    assert [arg.tolist() for arg in sample.arguments(text)] == [arg.tolist() for arg in sample.arguments(text)]


def test_subsets() -> None:
    assert list(subsets([4, 5, 6])) == [(4,), (5,), (6,), (4, 5), (4, 6), (5, 6)]
    assert Counter(map(len, subsets(range(5)))) == {1: 5, 2: 10}
    assert Counter(map(len, subsets(range(10)))) == {1: 10, 2: 9}
    assert list(subsets([1])) == []


def test_what_formulas_use_has_a_gradient_or_says_why_not() -> None:
    """The closure: a gradient is made of the nodes of these graphs, and differentiating it again meets only these."""
    silent: dict[str, str] = {}
    for name in FORMULAS:
        formula = compiled(OPS[name].formula(name), name)
        for graph in (formula.graph, formula.backward):
            for node in graph.walk():
                schema = schema_of(node)
                if schema is None or not any("Tensor" in result.type.text for result in schema.returns):
                    continue
                if formula_of(schema.name) is None and why_no_gradient(schema.name) is None:
                    silent.setdefault(schema.name, name)
    assert silent == {}
