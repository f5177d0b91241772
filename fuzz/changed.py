"""Changed samples: a call of an operator as its stanza shows it, with one or two arguments changed: other sizes, dtypes, numbers, None.

The text of a case is the operator, and below it a line of JSON for each argument; a tensor is `{"tensor": literal}`. The call is run by the
kernel and by a plan, which must agree, and by torch: what torch refuses is refused, and what irtool gives has torch's dtype and sizes, and
its numbers where the operands are finite.
"""
from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import irtool
from fuzz import oracle
from fuzz.case import Case
from fuzz.judge import Skip, Wrong, agree, outcome
from fuzz.values import copied, spelled, value_of
from irtool.ir.schema import Schema
from irtool.ops import OPS
from irtool.ops.call import overload
from irtool.testing.formulas import call_graph

LEFT_OUT = re.compile(
    r"empty|rand|dropout|rrelu|bernoulli|normal_|uniform|exponential|cauchy|geometric|poisson|binomial|multinomial|_sample|gamma|_lazy"
    r"|resize|set_|Generator|_masked_scale|segment|pdist|_weight_norm|_eig|svd|qr|lstsq|_ex$|_ldl|as_strided|hash_tensor|fractional|_slow"
    r"|_unsafe|_reshape_|nextafter|_linalg|_pad_packed|_pack_padded|ormqr|orgqr|householder|histogramdd|_transform|lu_factor|lu_unpack"
    r"|_lu_with|cholesky|inv_ex|linalg_lu$|_backward|native_|convolution_overrideable|_conv_depthwise|::_|pinv|embedding_bag|fake_quant"
    r"|::(lstm|gru|rnn_tanh|rnn_relu)\.|::to$|::to\.|quantize|ctc_loss|view_as_complex|istft|::data$|matrix_rank|airy|::copysign_"
    r"|special_zeta|batch_norm|norm_except|polygamma|::sorted|affine_grid|::gradient|thnn_conv"
    r"|::convolution|::slow_conv|lift|pin_memory|as_tensor|chalf|_out$")
"""Operators of random numbers, of memory that nobody filled, of factors that are not unique, of layouts; private ones; and those at which
torch ends the process or runs without end."""
TIED = re.compile("topk|sort|mode|median|kthvalue|max_pool|adaptive_max|unique|argm|cumm|aminmax")
"""Operators whose results say which of equal elements they are: their numbers are not compared."""
KERNELS = re.compile("not implemented for|Could not run|Expected a value of|MKL|INTERNAL|unsupported|not supported|same dtype|scalar type"
                     "|complex32|ComplexHalf|must have the same|expected m1|Half")
"""Refusals of torch's for want of a kernel."""
DTYPES = ("float32", "float16", "int64", "bool", "complex64", "uint8", "int32", "float64")
SPECIAL = (float("nan"), float("inf"), float("-inf"), 0.0, -3.0)


@cache
def operators() -> tuple[str, ...]:
    """Overloads with samples whose arguments JSON can hold."""
    return tuple(name for name, op in OPS.items() if name.startswith("aten::") and op.samples.get(name) and not LEFT_OUT.search(name)
                 and op.family not in ("dict", "list", "string", "scalar", "prim", "cast") and not overload(name).schema.is_mutable)


def draw(seed: int) -> Case:
    """A sample with one argument changed; one in three with two."""
    rng = random.Random(seed)
    for _ in range(20):
        name = rng.choice(operators())
        op = OPS[name]
        schema = overload(name).schema
        args = rng.choice(op.samples[name]).arguments(op.schemas[op.names.index(name)])
        for _ in range(rng.choice((1, 1, 2))):
            place = rng.randrange(len(args)) if args else 0
            text = schema.arguments[place].type_text if args else ""
            options = [] if not args or "str" in text or "ScalarType" in text else changes(rng, args[place])
            if text.endswith("?"):
                options.append(None)
            if options:
                args[place] = rng.choice(options)
        try:
            call_graph(schema, copied(args))
            return Case("changed", "\n".join([name, *(json.dumps(spell(each)) for each in args), ""]))
        except (TypeError, KeyError, AttributeError, irtool.Error):       # a complex number, a dtype without a literal, a list of two types
            continue
    return Case("changed", 'aten::neg\n{"tensor": "f32=1.0"}\n')


def changes(rng: random.Random, value: Any) -> list[Any]:
    """Values to put in place of one."""
    if isinstance(value, np.ndarray):
        found: list[Any] = [value[None], value[..., None], *(value.astype(dtype) for dtype in DTYPES if value.dtype.kind != "c")]
        if value.ndim:
            found += [value[:1], value[:0], value[..., :1], value[..., :0], np.concatenate([value, value]), np.swapaxes(value, 0, -1)]
            found += [np.asarray(value[0])] if len(value) else []
        numbers = SPECIAL if value.dtype.kind in "fc" else (0, 1, 100) if value.dtype.kind in "ui" else ()
        for number in numbers if value.size else ():
            other = value.copy(order="C")
            other.reshape(-1)[rng.randrange(value.size)] = number
            found.append(other)
        return found
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 0, -1, -2, 2, 5]
    if isinstance(value, float):
        return [0.0, -1.0, float("nan"), 2.5, 1e-3]
    if isinstance(value, list) and value:
        place = rng.randrange(len(value))
        return [*([*value[:place], each, *value[place + 1:]] for each in changes(rng, value[place])), value[:-1], [*value, value[-1]], []]
    return []


def spell(value: Any) -> Any:
    """An argument as JSON. Raises TypeError or KeyError for what has no spelling."""
    if isinstance(value, np.ndarray) and (value.dtype.kind != "c" or np.isfinite(value).all()):
        return {"tensor": spelled(value)}
    if isinstance(value, complex | np.ndarray):
        raise TypeError("a complex number")
    return [spell(each) for each in value] if isinstance(value, list) else value


def read(value: Any) -> Any:
    """The argument that JSON stands for."""
    if isinstance(value, dict):
        return np.asarray(value_of(value["tensor"]))
    return [read(each) for each in value] if isinstance(value, list) else value


def check(case: Case, tally: Counter[str]) -> None:
    """The kernel, a plan and torch. Raises Wrong, Skip."""
    name, *lines = case.text.strip().split("\n")
    args = [read(json.loads(line)) for line in lines]
    if "attention" in name and any(isinstance(each, np.ndarray) and not each.size for each in args):
        raise Skip("torch believes the queries about how many batches there are")
    schema = overload(name).schema
    graph, inputs, _ = call_graph(schema, copied(args))
    want = outcome(lambda: irtool.run(graph, copied(inputs), seed=0, interpret=True))
    tally["ways"] += 1
    executor = irtool.compile(graph, native=False)
    for _ in range(2):
        agree(outcome(lambda: executor.run(copied(inputs), seed=0)), want, "plan")
    if want[0] not in ("value", "error", "refused"):
        raise Skip(f"{want[0]}: {want[1]}")
    compare_with_torch(name, schema, args, want, tally)


def compare_with_torch(name: str, schema: Schema, args: list[Any], want: Any, tally: Counter[str]) -> None:
    """Raises Wrong where irtool takes what torch refuses, or gives something else."""
    torch = oracle.library()
    kind, _, variant = name.removeprefix("aten::").partition(".")
    operator = getattr(getattr(torch.ops.aten, kind, None), variant or "default", None) if torch is not None else None
    if operator is None:
        tally["no torch, or no such operator"] += 1
        return

    given = [oracle.to_torch(each) for each in args]
    named = {argument.name: value for argument, value in zip(schema.arguments, given, strict=True) if argument.keyword_only}
    try:
        result = operator(*given[:len(given) - len(named)], **named)
    except Exception as error:
        words = str(error).strip().partition("\n")[0][:150]
        tally[f"torch raises: {words[:40]}"] += 1
        if want[0] == "value" and not KERNELS.search(words) and not oracle.FAULTS.search(words):
            raise Wrong("torch", f"lenient: no error, but torch: {words}") from None
        return
    if want[0] != "value":
        tally[f"refused: {str(want[1])[:60]}"] += 1
        return
    tally["compared with torch"] += 1
    compare(name, leaves(want[1]), leaves(oracle.to_numpy(result)), args)


def compare(name: str, ours: list[Any], theirs: list[Any], args: list[Any]) -> None:
    """Dtypes and sizes of the results, and their numbers where operands are finite. Raises Wrong."""
    facts, others = ([(each.dtype.name, each.shape) for each in results if isinstance(each, np.ndarray)] for results in (ours, theirs))
    if facts != others:
        raise Wrong("torch", f"gives {facts}, torch {others}")
    arrays = [each for each in leaves(args) if isinstance(each, np.ndarray)]
    numbers = [*arrays, *(np.asarray(each) for each in leaves(args) if isinstance(each, float))]
    if TIED.search(name) or not all(np.isfinite(each).all() for each in numbers):
        return
    least = 1e-2 if any(each.dtype == np.float16 for each in [*arrays, *ours] if isinstance(each, np.ndarray)) else 1e-4
    for got, want in zip(ours, theirs, strict=True):
        if isinstance(got, np.ndarray) and got.dtype.kind in "fc":
            with np.errstate(all="ignore"):
                far = ~np.isclose(got, want, rtol=least, atol=least, equal_nan=True)
            if far.any():
                raise Wrong("torch", f"{int(far.sum())} of {far.size} numbers differ: {got[far][0]}, torch {want[far][0]}")
        elif not np.array_equal(got, want):
            raise Wrong("torch", f"gives {str(got)[:60]}, torch {str(want)[:60]}")


def leaves(value: Any) -> list[Any]:
    """Arrays and numbers in values, in order."""
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in leaves(each)]
    return [] if value is None else [value]


def smaller(case: Case) -> Iterator[Case]:
    """A changed sample is small."""
    yield from ()
