"""Operators on a batch of nothing: sizes and gradients are torch's, and so is whether the operator takes it."""
from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import irtool
from irtool.ir.schema import parse_schema
from irtool.ops import OPS
from irtool.ops.formula import formula_of, refused_arguments
from irtool.testing.formulas import call_graph

CRASHES = re.compile("qkv|pdist|weight_norm|_batch_norm|instance_norm")
"""Where torch ends the process, by a division by zero or worse."""
OTHERWISE = re.compile("MKL|not implemented|Could not run|does not support automatic|not differentiable|Expected a value|ASSERT"
                       "|Expected storage|ZeroTensor|setStorage|last dimension with stride|Expected isFloating|to be Float32"
                       "|unspecified dimension")
"""Errors of torch that are not about the sizes, or come from strides that it gives gradients of nothing."""


def calls():
    for name, op in OPS.items():
        if not name.startswith("aten::") or formula_of(name) is None or name not in op.samples or CRASHES.search(name):
            continue
        text = op.schemas[op.names.index(name)]
        if parse_schema(text).is_mutable or op.family == "random" or re.search("dropout|backward|empty", name):
            continue
        for place, sample in enumerate(op.samples[name][:3]):
            args = sample.arguments(text)
            if args and isinstance(args[0], np.ndarray) and args[0].ndim:
                first = args[0]
                cut = [each[:0].copy() if isinstance(each, np.ndarray) and each.ndim == first.ndim and len(each) == len(first) else each
                       for each in args]
                yield name, place, parse_schema(text), cut


def by_torch(torch, name, schema, args, wrt):
    """Shapes of the results and gradients of their sum, or the words of the error; None where torch lacks the operator."""
    kind, _, overload = name.removeprefix("aten::").partition(".")
    operator = getattr(getattr(torch.ops.aten, kind, None), overload or "default", None)
    values = [torch.from_numpy(each.copy()) if isinstance(each, np.ndarray) else each for each in args]
    for place in wrt:
        values[place].requires_grad_()
    named = {each.name: value for each, value in zip(schema.arguments, values, strict=True) if each.keyword_only}
    if operator is None:
        return None
    try:
        results = operator(*values[:len(values) - len(named)], **named)
        tensors = [each for each in (results if isinstance(results, tuple | list) else [results]) if isinstance(each, torch.Tensor)]
        reached = [each.real.sum() if each.is_complex() else each.sum() for each in tensors if each.requires_grad]
        gradients = torch.autograd.grad(sum(reached), [values[place] for place in wrt], allow_unused=True) if reached else [None] * len(wrt)
        return [tuple(each.shape) for each in tensors], [None if each is None else each.resolve_conj().numpy(force=True)
                                                         for each in gradients]
    except Exception as error:
        return str(error)


def by_irtool(schema, args, wrt):
    graph, inputs, tensors = call_graph(schema, args)
    try:
        outputs = irtool.run(graph, inputs, seed=0)
        leaves = [leaf for each in outputs for leaf in (each if isinstance(each, list) else [each])]
        seeds = [np.ones_like(each) if isinstance(each, np.ndarray) and each.dtype.kind in "fc" else None for each in leaves]
        gradients = irtool.vjp(graph, inputs, seeds, [tensors[place][0] for place in wrt]) if any(
            each is not None for each in seeds) else [None] * len(wrt)
        return [each.shape for each in leaves if isinstance(each, np.ndarray)], gradients
    except irtool.Error as error:
        return str(error)


@pytest.mark.oracle
def test_batches_of_nothing() -> None:
    torch = pytest.importorskip("torch")
    wrong, tried = [], 0
    for name, place, schema, args in calls():
        wrt = [i for i, each in enumerate(args)
               if isinstance(each, np.ndarray) and each.dtype.kind in "fc" and i not in refused_arguments(name)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want, got = by_torch(torch, name, schema, args, wrt), by_irtool(schema, args, wrt)
        if want is None or isinstance(want, str) and OTHERWISE.search(want):
            continue
        tried += 1
        if isinstance(want, str) or isinstance(got, str):
            if isinstance(want, str) != isinstance(got, str):
                wrong.append(f"{name}-{place}: torch {want}, irtool {got}")
            continue
        for argument, theirs, ours in zip(wrt, want[1], got[1], strict=True):
            theirs, ours = (np.zeros_like(args[argument]) if each is None else each for each in (theirs, ours))
            if theirs.shape != ours.shape or not np.allclose(theirs, ours, equal_nan=True):
                wrong.append(f"{name}-{place}: gradient of {schema.arguments[argument].name}")
        if want[0] != got[0]:
            wrong.append(f"{name}-{place}: torch {want[0]}, irtool {got[0]}")
    assert wrong == [] and tried > 800


def test_gradients_of_batch_norm_of_nothing() -> None:
    """torch ends the process for some of these; `batch_norm` in training it takes."""
    torch = irtool.torch

    def total(x, weight):
        return torch.nn.functional.batch_norm(x, irtool.Tensor(np.zeros(3)), irtool.Tensor(np.ones(3)), weight, training=True).sum()

    for shape in ((0, 3, 2), (2, 3, 0), (0, 3)):
        for_x, for_weight = irtool.grad(total, argnums=(0, 1))(irtool.Tensor(np.zeros(shape)), irtool.Tensor(np.ones(3)))
        assert tuple(for_x.shape) == shape and for_weight.numpy().tolist() == [0, 0, 0]
