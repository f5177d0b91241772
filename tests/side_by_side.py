"""Running one operator here and in torch on the same arguments, and comparing: what the op tests share.

`python tests/side_by_side.py` (with torch) records what torch makes of the calls in `op_facts.py`, so that machines without torch
check against it: tests/data/op_facts.json.
"""
from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from irtool import Error
from irtool.ops.arrays import code_of
from irtool.ops.call import call_op

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")
TOLERANCE = {"float16": (2e-3, 1e-3), "float32": (1.3e-5, 1e-5), "float64": (1e-7, 1e-9), "complex64": (1.3e-5, 1e-5),
             "complex128": (1e-7, 1e-9)}
RECORDED = Path(__file__).parent / "data" / "op_facts.json"


class Torch:
    """`torch`, imported when it is first asked for something: it takes as long as all tests of a file that only names it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("torch"), name)


def numbers(seed: int, shape: tuple[int, ...], dtype: str, low: float = -3, high: float = 3, special: bool = False) -> np.ndarray:
    """Repeatable numbers of a dtype; `special` puts infinities, nan, signed zeros and units among them."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        return rng.integers(max(int(low), 0) if kind == "u" else int(low), int(high) + 1, shape).astype(dtype)
    values: Any = rng.uniform(low, high, size)
    if kind == "c":
        values = values + 1j * rng.uniform(low, high, size)
    if special and size:
        chosen = (0, 1, -1, 1j, -1j, -2) if kind == "c" else (np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 0.5, 100.0)
        values[[3 * place % size for place in range(len(chosen))]] = chosen
    return values.reshape(shape).astype(dtype)


def difference(got: Any, want: Any) -> str | None:
    """Why two results differ; None when they agree: dtype and shape exactly, floats within a tolerance, nan as nan."""
    if isinstance(want, (list, tuple)):
        if len(got) != len(want):
            return f"{len(got)} results, expected {len(want)}"
        return next((why for why in map(difference, got, want) if why), None)
    if not isinstance(want, np.ndarray):
        return None if got == want or (got != got and want != want) else f"{got!r}, expected {want!r}"
    if not isinstance(got, np.ndarray) or got.dtype != want.dtype or got.shape != want.shape:
        return f"{getattr(got, 'dtype', type(got))}{getattr(got, 'shape', '')}, expected {want.dtype}{want.shape}"
    if got.dtype.kind in "biu":
        good = got == want
    else:
        relative, absolute = TOLERANCE[got.dtype.name]
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        a, b = got.astype(wide), want.astype(wide)
        with np.errstate(all="ignore"):
            near = np.isfinite(a) & np.isfinite(b) & (abs(a - b) <= absolute + relative * abs(b))
            good = (a == b) | (np.isnan(a) & np.isnan(b)) | near
    if good.all():
        return None
    first = np.flatnonzero(~good.reshape(-1))[0]
    a, b = got.reshape(-1)[first], want.reshape(-1)[first]
    return f"{(~good).sum()} of {good.size} elements, the first at {first}: {a!r}, expected {b!r}"


def ours(name: str, args: Any, named: Any) -> Any:
    """The result here, or the error's text in a one-element list."""
    given = [value.copy(order="K") if isinstance(value, np.ndarray) else value for value in args]
    try:
        return call_op(name, given, **{key: code_of(value) if isinstance(value, np.dtype) else value for key, value in named.items()})
    except Error as error:
        return [f"error: {error}"]


def theirs(name: str, args: Any, named: Any) -> Any:
    """torch's result as arrays, or its error's first line in a one-element list."""
    import torch

    kind, _, overload = name.removeprefix("aten::").partition(".")
    function = getattr(getattr(torch.ops.aten, kind), overload or "default")
    try:
        return _arrays(function(*map(_tensor, args), **{key: _tensor(value) for key, value in named.items()}))
    except (RuntimeError, NotImplementedError, IndexError, ValueError, TypeError) as error:
        return ["error: " + str(error).split("\n")[0]]


def _tensor(value: Any) -> Any:
    import torch

    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy(order="K"))
    if isinstance(value, np.dtype):
        return getattr(torch, value.name)
    return [_tensor(item) for item in value] if isinstance(value, list) else value


def _arrays(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().resolve_conj().resolve_neg().numpy().copy() if value.dtype != torch.complex32 else None
    return [_arrays(item) for item in value] if isinstance(value, (list, tuple)) else value


def is_error(result: Any) -> bool:
    return isinstance(result, list) and len(result) == 1 and isinstance(result[0], str) and result[0].startswith("error: ")


def complaint(got: Any, want: Any, message: bool = False) -> str | None:
    """Why our result is not what torch's asks for. Where torch raises so must we; with `message`, in its words."""
    if is_error(want):
        if not is_error(got):
            return f"a result, expected {want[0]}"
        return None if not message or want[0][:60] in got[0] else f"{got[0]}, expected {want[0]}"
    return got[0] if is_error(got) else difference(got, want)


def same_as_torch(name: str, *args: Any, **named: Any) -> None:
    """Asserts that a call gives here what it gives in torch, float32 and int64 also with another order of dimensions in memory. complex32
    results, which there are none of here, count as agreement."""
    orders = {"": args}
    if any(isinstance(each, np.ndarray) and each.ndim > 1 and each.dtype.name in ("float32", "int64") for each in args):
        orders[" transposed"] = [transposed(each) for each in args]
    for order, given in orders.items():
        want = theirs(name, given, named)
        if want is None or (is_error(want) and "ComplexHalf" in want[0]):
            return
        why = complaint(ours(name, given, named), want)
        assert why is None, f"{name}({', '.join(map(shown, args))}{', ' if named else ''}{named or ''}){order}: {why}"


def transposed(value: Any) -> Any:
    """The same elements, the first and last dimension of arrays the other way round in memory; any other value itself."""
    if not isinstance(value, np.ndarray) or value.ndim < 2:
        return value
    return np.ascontiguousarray(value.swapaxes(0, -1)).swapaxes(0, -1)


def shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}{value.tolist() if value.size < 8 else ''}"
    return repr(value)


# ---- recorded results

def encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        parts = [[float(x.real), float(x.imag)] for x in value.reshape(-1)] if value.dtype.kind == "c" else value.reshape(-1).tolist()
        return {"dtype": value.dtype.name, "shape": list(value.shape), "values": parts}
    return [encode(item) for item in value] if isinstance(value, (list, tuple)) else value


def decode(value: Any) -> Any:
    if isinstance(value, dict):
        values = value["values"]
        if value["dtype"].startswith("complex"):
            values = [complex(*pair) for pair in values]
        return np.array(values, value["dtype"]).reshape(value["shape"])
    return [decode(item) for item in value] if isinstance(value, list) else value


def recorded() -> dict[str, Any]:
    return {key: decode(value) for key, value in json.loads(RECORDED.read_text()).items()}


if __name__ == "__main__":
    from op_facts import FACTS

    lines = [f"{json.dumps(title)}: {json.dumps(encode(theirs(name, args, named)))}" for title, name, args, named in FACTS]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(lines)} facts in {RECORDED}")
