"""Arguments for which an operator has no gradient though one exists: who asks for it is refused, in the same words on every way to run;
who does not ask is served."""
from __future__ import annotations

import numpy as np
import pytest
from gradient_ways import outcome, ways

import irtool
from irtool.ir.errors import UnsupportedError
from irtool.ir.schema import parse_schema
from irtool.ops import OPS
from irtool.ops.formula import formula_of, refused_arguments
from irtool.ops.samples.draw import call, real
from irtool.testing.formulas import call_graph, check_formula

REFUSED = [(name, place) for name in OPS for place in refused_arguments(name)]
"""Each overload, and the position of an argument whose gradient it refuses."""


def is_floating(value):
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def calls_of(name):
    """(schema, arguments) of each sample call of an overload."""
    op = OPS[name]
    text = op.schemas[op.names.index(name)]
    return [(parse_schema(text), sample.arguments(text)) for sample in op.samples[name]]


def ones(outputs):
    return [[np.ones_like(one) for one in each] if isinstance(each, list) else np.ones_like(each) if is_floating(each) else None
            for each in outputs]


@pytest.mark.parametrize(("name", "place"), REFUSED)
def test_who_asks_is_refused_in_the_same_words(name, place):
    words = refused_arguments(name)[place]
    tried = 0
    for schema, args in calls_of(name):
        if not is_floating(args[place]):
            continue
        graph, inputs, tensors = call_graph(schema, args)
        (index,) = tensors[place]
        others = [i for other, each in tensors.items() for i in each if other not in refused_arguments(name) and is_floating(args[other])]
        seeds = ones(irtool.run(graph, inputs, seed=0))
        assert {each: got for each, one in ways(graph, inputs, seeds, [index]) if (got := outcome(one)) != words} == {}
        assert {each: got for each, one in ways(graph, inputs, seeds, others) if isinstance(got := outcome(one), str)} == {}
        module = irtool.Module([graph])
        with pytest.raises(UnsupportedError, match="is not supported"):
            irtool.PassManager(f"differentiate{{wrt={index}}}").run(module.clone() if hasattr(module, "clone") else module)
        tried += 1
    assert tried or not any(is_floating(args[place]) for _, args in calls_of(name))


def test_a_value_between_is_refused_and_an_input_of_unknown_need_is_left_alone():
    text = "graph(%x : Tensor, %y : Tensor):\n{}  %2 : Tensor = aten::igamma({}, %y)\n  return (%2)\n"
    alone, behind = text.format("", "%x"), text.format("  %1 : Tensor = aten::exp(%x)\n", "%1")
    assert "df_output_vjps=[1]" in str(irtool.PassManager("differentiate").run(irtool.parse(alone)))
    said = alone.replace("%x : Tensor", "%x : Float(2, requires_grad=1)")
    for source, options in ((behind, ""), (alone, "{requires-grad=all}"), (said, "")):
        with pytest.raises(UnsupportedError, match="its argument 'self'"):
            irtool.PassManager(f"differentiate{options}").run(irtool.parse(source))


def test_a_part_of_a_gradient_is_none():
    text = "graph(%x : Tensor, %y : Tensor):\n  %1 : Tensor = aten::igamma(%x, %y)\n  %2 : Tensor = aten::mul(%1, %x)\n  return (%2)\n"
    with pytest.raises(UnsupportedError, match="its argument 'self'") as raised:
        irtool.PassManager("differentiate").run(irtool.parse(text))
    assert "aten::igamma(%x, %y)" in str(raised.value)


def test_what_an_operator_saved_for_its_gradient_needs_none():
    """Second derivatives go through `native_batch_norm_backward`, which takes `save_mean` and `save_invstd`, results of the operator."""
    torch = irtool.torch
    x, weight = irtool.Tensor(np.random.default_rng(0).standard_normal((4, 3))), irtool.Tensor(np.array([0.5, 1.0, 2.0]))
    target = irtool.Tensor(np.array([0, 2, 1, 1]))

    def normal(x):
        return (torch.native_batch_norm(x, weight, None, None, None, True, 0.1, 1e-5)[0] ** 3).sum()

    def loss(x):
        return torch.nn.functional.nll_loss(x.log_softmax(1), target, weight) ** 2

    for function in (normal, loss):
        hessian = irtool.hessian(function)(x)
        step = 1e-5
        moved = irtool.Tensor(np.eye(12)[5].reshape(4, 3) * step)
        slope = (irtool.grad(function)(x + moved).numpy() - irtool.grad(function)(x - moved).numpy()) / (2 * step)
        np.testing.assert_allclose(hessian.numpy()[:, :, 1, 2], slope, atol=1e-6)


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(4, 3), (3,), (2, 3, 4), (2, 3, 2, 2)])
@pytest.mark.parametrize("ignored", [-100, 1])
def test_cross_entropy_has_gradients_for_weights(reduction, smoothing, shape, ignored):
    target = np.random.default_rng(1).integers(0, 3, shape[:1] + shape[2:] if len(shape) > 1 else ())
    if ignored == 1 and (target == 1).all():
        return
    sample = call(real(*shape), target, real(3, low=0.2), reduction=reduction, ignore_index=ignored, label_smoothing=smoothing)
    assert check_formula("aten::cross_entropy_loss", sample) == []


@pytest.mark.oracle
def test_what_torch_refuses_is_refused():
    """For every sample and every argument whose gradient is None or zeros here: torch gives none either, or the refusal is declared."""
    torch = pytest.importorskip("torch")
    silent = set()
    for name in OPS:
        if not name.startswith("aten::") or formula_of(name) is None or name not in OPS[name].samples:
            continue
        kind, _, overload = name.removeprefix("aten::").partition(".")
        operator = getattr(getattr(torch.ops.aten, kind, None), overload or "default", None)
        if operator is None:
            continue
        for schema, args in calls_of(name):
            graph, inputs, tensors = call_graph(schema, args)
            try:
                seeds = ones(irtool.run(graph, inputs, seed=0))
                pairs = [(place, irtool.vjp(graph, inputs, seeds, tensors[place])) for place, value in enumerate(args)
                         if is_floating(value) and place not in refused_arguments(name)]
            except irtool.Error:
                continue
            for place in [place for place, gradients in pairs if all(each is None or not np.any(each) for each in gradients)]:
                values = [torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value for value in args]
                values[place].requires_grad_()
                named = {each.name: value for each, value in zip(schema.arguments, values, strict=True) if each.keyword_only}
                try:
                    results = operator(*values[:len(values) - len(named)], **named)
                    results = [each for each in (results if isinstance(results, tuple | list) else [results])
                               if isinstance(each, torch.Tensor) and each.requires_grad]
                    if results:
                        sum(each.abs().sum() for each in results).backward()
                except (RuntimeError, NotImplementedError) as error:
                    if "not differentiable with respect" in str(error) or "the derivative for '" in str(error):
                        silent.add(f"{name} {schema.arguments[place].name}: {str(error)[:80]}")
    assert silent == set()


@pytest.mark.parametrize("node, result", [("aten::copy_(%1, %x)", "%2"), ("aten::mul(%1, %x)", "%2"), ("aten::neg(%x)", "%1")])
def test_values_that_a_text_omits_are_refused_in_every_transformation(node: str, result: str) -> None:
    graph = irtool.parse("graph(%x : Float(2)\n      # ---- omitted for brevity ----\n      %y : Float(2)):\n"
                         f"  %2 : Tensor = {node}\n  return ({result})\n")
    x = np.ones(2)
    for transform in (irtool.grad, irtool.vmap, irtool.jit, irtool.jacrev, irtool.hessian):
        with pytest.raises(irtool.Error, match="%1 is left out of the text"):
            transform(graph)(x, x)
    with pytest.raises(irtool.Error, match="%1 is left out of the text"):
        irtool.jvp(graph, (x, x), (x, x))
