"""What works where neither NumPy nor SciPy is installed, as in the playground's page: all that computes nothing with arrays."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irtool.ir.errors import UnsupportedError
from irtool.ops.array_library import AbsentArray, AbsentDtype

EXAMPLES = Path(__file__).parent.parent / "examples"
BLOCKED = """
import io, json, sys
from importlib.abc import MetaPathFinder


class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numpy", "scipy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Blocked())
from irtool.cli.main import main

answers = []
for words, text in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    code = main(words, io.BytesIO(text.encode()), out, err)
    answers.append([code, out.getvalue(), err.getvalue()])
json.dump(answers, sys.stdout)
"""
TEXTS = [path for path in sorted(EXAMPLES.glob("*.ir")) if path.name != "python_op.ir"]
SOURCE = """
import torch

def f(x: torch.Tensor, n: int):
    for i in range(n):
        x = x.sin() * x
    return x
"""


def without_numpy(commands: list[tuple[list[str], str]]) -> list[tuple[int, str, str]]:
    """Exit code, output and messages of command lines, run where NumPy cannot be imported."""
    done = subprocess.run([sys.executable, "-c", BLOCKED], input=json.dumps(commands), capture_output=True, text=True, check=True,
                          cwd=EXAMPLES.parent)
    return [tuple(each) for each in json.loads(done.stdout)]


def with_numpy(words: list[str], text: str) -> tuple[int, str, str]:
    """The same, here."""
    import io

    from irtool.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    code = main(words, io.BytesIO(text.encode()), out, err)
    return code, out.getvalue(), err.getvalue()


def test_commands_answer_alike(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(SOURCE)
    source, archive = str(tmp_path / "f.py"), str(EXAMPLES / "model.pt")
    commands: list[tuple[list[str], str]] = [
        (["compile", source], ""), (["show", source], ""), (["fmt"], "graph(%x:Tensor):\n return(%x)"), (["passes"], ""),
        (["inspect", archive], ""), (["decompile", archive], ""), (["opt"], "graph(%x : T")]
    for path in TEXTS:
        for words in (["fmt", "-"], ["decompile"], ["show"], ["stats"], ["opt", "--passes=O1"], ["opt", "--passes=O2"],
                      ["opt", "--passes=differentiate"], ["opt", "--passes=inline,differentiate,dce,cse,peephole,canonicalize"]):
            commands.append((words, path.read_text()))
    answers = without_numpy(commands)
    for (words, text), answer in zip(commands, answers, strict=True):
        assert answer == with_numpy(words, text), words


def test_tensors_of_an_archive_have_no_numbers() -> None:
    options = (["show"], ["show", "--passes=O1,differentiate"], ["opt", "--passes=O2,differentiate"], ["opt"])
    for code, out, err in without_numpy([([*words, str(EXAMPLES / "model.pt")], "") for words in options]):
        assert not code and "<Tensor>" in out and "error" not in err


@pytest.mark.parametrize("words", [["run", "examples/mlp.ir", "examples/mlp_inputs.npz"], ["inspect", "examples/model_inputs.npz"],
                                   ["opt", "--passes=vmap", "examples/mlp.ir"], ["opt", "--passes=fuse", "examples/lstm_cell.ir"]])
def test_what_computes_says_what_it_needs(words: list[str]) -> None:
    code, out, err = without_numpy([(words, "")])[0]
    assert code == 1 and not out and "this needs NumPy, which is not installed (pip install numpy) [E0404]" in err


@pytest.mark.parametrize("form", "float32 <f4 |b1 bool ? |u1 int64 <i8 >c8 complex128 float bfloat16 U3".split())
def test_dtypes(form: str) -> None:
    def facts(kind: Any) -> Any:
        try:
            dtype = kind(form)
        except (TypeError, KeyError):
            return None
        return dtype.name, dtype.kind, dtype.itemsize, dtype is kind(form) or dtype == kind(form)

    assert facts(AbsentDtype) == (facts(np.dtype) if form not in ("bfloat16", "U3") else None)


def test_arrays_without_elements() -> None:
    array, real = AbsentArray((2, 3), "float32"), np.zeros((2, 3), "float32")
    for name in ("shape", "size", "nbytes", "ndim", "itemsize", "strides"):
        assert getattr(array, name) == getattr(real, name)
    assert not hasattr(array, "sum")
    for use in (lambda: array == 0, lambda: array[0], lambda: array + 1, lambda: bool(array), lambda: array.sum(), lambda: 1 in array):
        with pytest.raises(UnsupportedError, match="NumPy"):
            use()
