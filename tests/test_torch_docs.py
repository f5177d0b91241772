"""The examples in the documentation of torch's functions and methods, run with torch and with `irtool.torch`.

The texts are those of the installed torch. Lines that draw random numbers run in torch alone, whose tensors are used from then on.
"""
from __future__ import annotations

import contextlib
import doctest
import io
import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ops.tensor import Tensor

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

SPACES = ("", "nn.functional", "linalg", "fft", "special", "func", "Tensor")
ELSEWHERE = re.compile(r"""cuda|backward\(|requires_grad|nn\.[A-Z]|sparse|quantiz|save|load|empty|is_available|Generator|seed|device
|autograd|resolve_neg|export|compile|jit|names|align_|rename|default_|deterministic|testing|data_ptr|printoptions|threads|typename|memory_format|storage|nested
|mps|dlpack|share_memory|pin_memory|record_stream|functionalize|make_fx|functional_call|register_hook|retain_grad|no_grad|enable_grad
|buffer|rearrange|fractional|torch\.lu\(|isneg|is_neg|resize_""".replace("\n", ""))
"""What is not about numbers, or what irtool refuses in words of its own."""
RANDOM = re.compile("rand|normal|bernoulli|multinomial|dropout|poisson|exponential|geometric|cauchy|uniform|shuffle|gumbel")
ROUNDED = {"qr", "cholesky_inverse", "solve", "conv3d", "conv_transpose3d", "hfft2", "hfftn"}
"""Whose examples print rounding errors."""
UNSTABLE = {"sort": "an unstable sort gives any order of equal elements", "unravel_index": "torch returns columns of a matrix"}


def examples(space: str) -> Iterator[tuple[str, list[Any]]]:
    torch = pytest.importorskip("torch")
    for part in filter(None, space.split(".")):
        torch = getattr(torch, part)
    for name in sorted(dir(torch)):
        each = getattr(torch, name)
        if name[0] != "_" and not isinstance(each, type) and (space == "Tensor" or callable(each)) and getattr(each, "__doc__", None):
            with contextlib.suppress(ValueError):
                yield f"{space}.{name}".strip("."), doctest.DocTestParser().get_examples(each.__doc__)


def outcome(code: str, names: dict[str, Any]) -> Any:
    """The value of a line, None for a statement, or the error."""
    library = names["torch"]
    imported = re.match(r"from torch\.?([\w.]*) import (.*)|import torch", code)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            if imported:
                for part in filter(None, (imported[1] or "").split(".")):
                    library = getattr(library, part)
                for each in (imported[2] or "").split(","):
                    name, _, other = each.strip().partition(" as ")
                    if name:
                        names[other or name] = getattr(library, name)
                return None
            try:
                return eval(compile(code, "doc", "eval"), names)
            except SyntaxError:
                exec(compile(code, "doc", "exec"), names)
                return None
        except Exception as error:
            return error


def complaint(wanted: Any, found: Any) -> str:
    """What is different; empty if nothing is."""
    if isinstance(wanted, Exception) or isinstance(found, Exception):
        return "" if isinstance(wanted, Exception) and isinstance(found, Exception) else f"{wanted!r} {found!r}"
    if hasattr(wanted, "detach"):
        if not isinstance(found, Tensor):
            return f"no tensor but {found!r}"
        one, other = wanted.detach().resolve_conj().resolve_neg().numpy(), np.asarray(found)
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{one.dtype}{one.shape} {other.dtype}{other.shape}"
        if one.size and [step for step, size in zip(wanted.stride(), one.shape, strict=True) if size > 1] != \
                [step for step, size in zip(found.stride(), one.shape, strict=True) if size > 1]:
            return f"strides {wanted.stride()} {found.stride()} of {one.shape}"
        return "" if np.allclose(one, other, 1e-4, 1e-5, equal_nan=True) else f"{one} {other}"
    if isinstance(wanted, list | tuple):
        if not isinstance(found, list | tuple) or len(wanted) != len(found):
            return f"{wanted!r} {found!r}"
        if isinstance(wanted, tuple) is not isinstance(found, tuple) and wanted and hasattr(wanted[0], "detach"):
            return f"{type(wanted)} {type(found)}"
        return next((each for each in map(complaint, wanted, found) if each), "")
    if isinstance(wanted, bool | int | float | complex | str):
        return "" if wanted == found or wanted != wanted or isinstance(wanted, float) and math.isclose(wanted, found, rel_tol=1e-5) else \
            f"{wanted!r} {found!r}"
    return "" if str(wanted) == str(found) or type(wanted).__module__ in ("builtins",) else f"{wanted} {found}"


@pytest.mark.parametrize("space", SPACES)
def test_the_examples_of_torch_s_documentation(space: str) -> None:
    torch = pytest.importorskip("torch")
    tried, wrong = 0, []
    for name, lines in examples(space):
        if name.rpartition(".")[2] in ROUNDED | UNSTABLE.keys():
            continue
        torch.manual_seed(0)
        theirs, ours = [{"torch": library, "F": library.nn.functional, "math": math, "np": np, "numpy": np,
                         **{each: getattr(library.func, each) for each in ("vmap", "grad", "jacrev", "jacfwd", "jvp", "vjp", "hessian")}}
                        for library in (torch, irtool.torch)]
        for code in [each.source.strip() for each in lines]:
            if ELSEWHERE.search(code):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = outcome(code, theirs)
                if RANDOM.search(code):
                    ours.update({key: Tensor(each.detach().numpy().copy()) for key, each in theirs.items()
                                 if isinstance(each, torch.Tensor) and each.layout == torch.strided and not each.is_conj()})
                    continue
                found = outcome(code, ours)
            tried += 1
            if why := complaint(wanted, found):
                wrong.append(f"{name}: {code}: {why}"[:400])
    assert not wrong, "\n".join(wrong)
    assert tried > (2 if space == "func" else 20)
