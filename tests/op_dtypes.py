"""What an operator takes: its samples in every dtype, with one tensor of another dtype than the rest, without elements, with tensors of
every dtype as out=, and with lists of other lengths, here and in torch.

`python tests/op_dtypes.py` (with torch) records what torch takes, so that machines without torch check against it, and what is otherwise
here: tests/data/op_dtypes.json.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side import is_error, ours, theirs

from irtool.ir.schema import Schema, parse_schema, schemas
from irtool.ops import OPS
from irtool.ops.arrays import CODES
from irtool.ops.samples.draw import Call, Draw, real

RECORDED = Path(__file__).parent / "data" / "op_dtypes.json"
BESIDE = {"b": "bool", "l": "int64", "h": "float16", "f": "float32", "d": "float64", "c": "complex64"}
"""What one tensor is converted to while the others are of single precision."""
LETTERS = {"b": "bool", "u": "uint8", "i": "int32", "l": "int64", "h": "float16", "f": "float32", "d": "float64", "c": "complex64",
           "z": "complex128"}
PLAIN: dict[str, Any] = {
    "Tensor": real(2, 3), "Tensor?": None, "Tensor[]": [real(2, 3), real(2, 3)], "Scalar": 2, "Scalar?": 1, "int": 0, "int?": 0,
    "SymInt": 2, "float": 0.5, "bool": False, "complex": 1j, "int[]": [0], "int[]?": [0], "int[1]": [0], "int[1]?": [0], "SymInt[]": [2, 3]}
"""What is given for arguments of operators without samples."""
SKIPPED = {"data", "_conj", "_conj_copy", "_neg_view", "_neg_view_copy", "copy_.int", "copy_.float", "is_coalesced", "_tensor_to_list",
           "_construct_empty_tensor_list", "native_norm", "native_norm.ScalarOpt_dim_dtype", "_local_scalar_dense", "chalf", "_lazy_clone"}
FAILS_WITHOUT_ELEMENTS = {"embedding_bag", "embedding_bag.padding_idx"}
"""What ends the process of torch where tensors have no elements."""
FAILS_WITH_OTHER_LENGTHS = {"fractional_max_pool2d_backward", "fractional_max_pool3d_backward", "_ctc_loss_backward",
                            "reflection_pad1d_backward", "reflection_pad2d_backward"}
"""What ends the process of torch where lists have other lengths."""
MOST = 4
"""More samples of an overload are not tried."""
Run = Callable[[str, Any, Any], Any]


def overloads() -> Iterator[tuple[str, str, list[Call]]]:
    """Name, schema and calls of what takes tensors and draws no random numbers."""
    for name, op in OPS.items():
        text = next(text for text, one in zip(op.schemas, op.names, strict=True) if one == name)
        if not name.startswith("aten::") or name.removeprefix("aten::") in SKIPPED or op.family in ("random", "dict"):
            continue
        if "Tensor" not in text.partition(") ->")[0] or "Generator" in text or "_backward" in name and not op.samples.get(name):
            continue
        found = op.samples.get(name) or plain_calls(text)
        if found:
            yield name, text, found[:MOST]


def plain_calls(text: str) -> list[Call]:
    """A call of an operator that has no samples; none where an argument is of an unusual type."""
    needed = [argument.type.text for argument in parse_schema(text).arguments if not argument.has_default]
    return [Call(tuple(PLAIN[kind] for kind in needed), {})] if all(kind in PLAIN for kind in needed) else []


def in_dtype(value: Any, draw: Any, dtype: str) -> Any:
    """What was drawn, in a dtype: rounded to whole numbers, without imaginary parts, truth of what is positive."""
    if isinstance(draw, list):
        return [in_dtype(one, other, dtype) for one, other in zip(value, draw, strict=True)]
    if not isinstance(draw, Draw):
        return value
    real_part = value if dtype.startswith("complex") else value.real
    if dtype == "bool":
        return np.asarray(real_part > 0)
    if dtype.startswith("uint"):
        real_part = abs(real_part)
    return np.asarray(np.rint(real_part) if "int" in dtype else real_part).astype(dtype)


def taken(run: Run, name: str, text: str, calls: list[Call]) -> str:
    """The letters of the dtypes in which one of the calls at least gives a result."""
    return "".join(letter for letter, dtype in LETTERS.items() if any(
        gives_result(run, name, text, [in_dtype(value, draw, dtype) for value, draw in drawn(call, text)]) for call in calls))


def taken_beside(run: Run, name: str, text: str, calls: list[Call]) -> str:
    """For each tensor of the first call, the letters of the dtypes that it may have while the others are of single precision."""
    pairs = drawn(calls[0], text)
    single = [in_dtype(value, draw, "float32") if getattr(value, "dtype", np.dtype(int)).kind in "fc" else value for value, draw in pairs]
    places = [place for place, (_, draw) in enumerate(pairs) if isinstance(draw, Draw)]
    return " ".join("".join(letter for letter, dtype in BESIDE.items()
                            if gives_result(run, name, text, [*single[:place], in_dtype(*pairs[place], dtype), *single[place + 1:]])) or "-"
                    for place in places) if len(places) > 1 and is_public(name) else ""


def taken_empty(run: Run, name: str, text: str, calls: list[Call]) -> str:
    """For each call and each extent of its tensors, the sizes of the results where dimensions of this extent are empty; `-`: an error.
    Transforms of Fourier are not asked: of what is empty some builds of torch transform nothing, and others refuse it."""
    if not is_public(name) or name.removeprefix("aten::") in FAILS_WITHOUT_ELEMENTS or "fft" in name:
        return ""
    return " ".join(sizes_of(answer(run, name, text, [without(extent, value) for value, _ in pairs]))
                    for pairs in (drawn(call, text) for call in calls) for extent in extents_of([value for value, _ in pairs]))


def taken_out(run: Run, name: str, text: str, calls: list[Call]) -> str:
    """The letters of the dtypes of tensors that may be given as out=, where the tensors of a call are of the first dtype that is taken."""
    form = out_form(parse_schema(text))
    values, result = first_taken(name, text, calls) if form else ([], None)
    return "".join(letter for letter, dtype in LETTERS.items()
                   if gives_result(run, form.name, form.text, [*values, np.zeros(result.shape, dtype)])) if result is not None else ""


def taken_lengths(run: Run, name: str, text: str, calls: list[Call]) -> str:
    """For each list of ints that the first call that is taken gives, how many it may have."""
    values, _ = first_taken(name, text, calls)
    if name.removeprefix("aten::") in FAILS_WITH_OTHER_LENGTHS:
        return ""
    return " ".join("".join(str(count) for count in range(7) if gives_result(
        run, name, text, [*values[:place], (value * 7)[:count], *values[place + 1:]]))
        for place, value in enumerate(values) if isinstance(value, list) and value and all(type(each) is int for each in value))


def first_taken(name: str, text: str, calls: list[Call]) -> tuple[list[Any], Any]:
    """Values of the first call that irtool takes in one of some dtypes, and the first tensor of the result; nothing and None without."""
    for dtype in ("float32", "int64", "complex64", "float64"):
        for call in calls:
            values = [in_dtype(value, draw, dtype) for value, draw in drawn(call, text)]
            result = answer(here, name, text, values)
            if isinstance(result, np.ndarray | tuple):
                return values, result if isinstance(result, np.ndarray) else result[0]
    return [], None


def out_form(plain: Schema) -> Any:
    """The schema of the overload with one out= and otherwise the same arguments; None if there is none."""
    names = [argument.name for argument in plain.arguments]
    return next((form for form in schemas(plain.kind) if [argument.name for argument in form.arguments] == [*names, "out"]
                 and all(one.type.text == other.type.text for one, other in zip(plain.arguments, form.arguments, strict=False))), None)


def extents_of(values: list[Any]) -> list[int]:
    """The extents of arrays, also in lists."""
    arrays = [each for value in values for each in (value if isinstance(value, list) else [value]) if isinstance(each, np.ndarray)]
    return sorted({extent for array in arrays for extent in array.shape})


def without(extent: int, value: Any) -> Any:
    """An array whose dimensions of an extent are empty; so are those of arrays in a list."""
    if isinstance(value, list):
        return [without(extent, each) for each in value]
    if not isinstance(value, np.ndarray):
        return value
    return np.zeros([0 if each == extent else each for each in value.shape], value.dtype) if extent in value.shape else value


def sizes_of(result: Any) -> str:
    """The sizes of tensors as text."""
    if is_error(result):
        return "-"
    results = result if isinstance(result, list | tuple) else [result]
    return ",".join("x".join(map(str, np.shape(each))) or "()" for each in results) or "[]"


def is_public(name: str) -> bool:
    """Is the overload one that programs call?"""
    return not name.startswith("aten::_") and "backward" not in name


def drawn(call: Call, text: str) -> list[tuple[Any, Any]]:
    """The arguments of a call, each with how it was drawn."""
    return list(zip(call.arguments(text), call._bound(text), strict=True))


def gives_result(run: Run, name: str, text: str, values: list[Any]) -> bool:
    """Is a call on values, one for each argument, no error?"""
    return not is_error(answer(run, name, text, values))


def answer(run: Run, name: str, text: str, values: list[Any]) -> Any:
    """The result of a call on values, one for each argument, or its error."""
    schema = parse_schema(text)
    count = sum(not argument.keyword_only for argument in schema.arguments)
    values = [np.dtype(CODES[value]) if argument.type.text.startswith("ScalarType") and value is not None else value
              for value, argument in zip(values, schema.arguments, strict=True)]
    named = {argument.name: value for argument, value in zip(schema.arguments[count:], values[count:], strict=True)
             if isinstance(value, np.ndarray | np.dtype | list) or not argument.has_default or value != argument.default}
    return run(name, values[:count], named)


def here(name: str, args: Any, named: Any) -> Any:
    """As `ours`, which wants numbers for dtypes among the arguments by position."""
    codes = {title: code for code, title in CODES.items()}
    return ours(name, [codes[value.name] if isinstance(value, np.dtype) else value for value in args], named)


ASKED = {"": taken, " beside": taken_beside, " empty": taken_empty, " out": taken_out, " lengths": taken_lengths}
"""The ending of a table's name -> what it answers. The tables that begin with `torch` are whole, the others where irtool differs."""


def record() -> None:
    """Write what torch takes, and where this differs here."""
    tables: dict[str, dict[str, str]] = {}
    for ending, question in ASKED.items():
        torch_takes, differs = tables.setdefault("torch" + ending, {}), tables.setdefault("irtool" + ending, {})
        for name, text, calls in overloads():
            try:
                found = question(theirs, name, text, calls)
            except AttributeError:      # torch has no such function
                continue
            if not ending or found.strip("- "):        # torch on a CPU has the operator
                torch_takes[name] = found
                if (mine := question(here, name, text, calls)) != found:
                    differs[name] = mine
        print(f"{len(torch_takes)} overloads{ending}, {len(differs)} of them otherwise, in {RECORDED}")
    lines = [f" {json.dumps(part)}: {{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in table.items()) + "\n }"
             for part, table in tables.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record()
