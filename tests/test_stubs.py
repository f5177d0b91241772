"""What editors, `help`, `inspect.signature` and mypy know of `irtool.torch` and `irtool.Tensor`."""
from __future__ import annotations

import ast
import inspect
import os
import pydoc
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

ROOT = Path(__file__).parent.parent
STUBS = runpy.run_path(str(ROOT / "tools" / "stubs.py"))
CLASSES: dict[str, Any] = {
    "Tensor": irtool.Tensor(np.ones((2, 2))), "_Operators": torch, "_Torch": torch, "_Linalg": torch.linalg, "_Fft": torch.fft,
    "_Special": torch.special, "_Functional": torch.nn.functional, "_NN": torch.nn, "_Func": torch.func}
"""What each class of the stub speaks of."""

RIGHT = """
import numpy as np
import irtool
from irtool import torch

x = irtool.Tensor(np.ones((2, 3)))
F = torch.nn.functional
def loss(w: irtool.Tensor) -> irtool.Tensor:
    y = torch.sin(x @ w + 1.0).sum(dim=1, keepdim=True)
    values, places = torch.max(y, 0)
    z = x.permute(1, 0).reshape(2, 3)[0, 1:].to(torch.float32)
    p = F.softmax(z, dim=-1) * torch.linalg.norm(x) + torch.zeros(2, dtype=torch.float64).mean()
    return torch.where(p > 0, p, -p).mean() + values.sum() + F.relu(z).sum() + torch.tensor([1.0]).sum() + (2.0 * x).sum()
print(irtool.grad(loss)(np.ones((3, 2))), x.shape[0] + x.size(0), x.tolist())
with torch.no_grad():
    a, b = x.split(1)
torch.stack([a, b]); torch.cat([a, b], dim=0); x.T.contiguous(); x.add_(1); torch.mm(x, np.ones((3, 3)), out=x + 1)
"""
WRONG = ("torch.sinn(x)", "x.summ()", "torch.nn.functional.sofmax(x, dim=1)", "torch.linalg.sovle(x, x)", "torch.sin(x, 3)",
         "torch.softmax(x, dmi=1)", "torch.sin(x).shap", "torch.nn.Linear(2, 3)", "x.reshape('2')")


def test_the_stub_is_what_the_schemas_say() -> None:
    assert STUBS["FILE"].read_text(encoding="utf-8") == STUBS["text"](), "run tools/stubs.py"


def has(subject: Any, name: str) -> bool:
    """Is there such an attribute? One that refuses this tensor is."""
    try:
        getattr(subject, name)
    except AttributeError:
        return False
    except irtool.Error:
        return True
    return True


def test_what_the_stub_names_is_there() -> None:
    for each in ast.parse(STUBS["text"]()).body:
        if isinstance(each, ast.ClassDef):
            for member in each.body:
                name = member.name if isinstance(member, ast.FunctionDef) else member.target.id if isinstance(member, ast.AnnAssign) else ""
                assert not name or has(CLASSES[each.name], name), f"{each.name}.{name}"


def test_mypy_takes_a_program_and_refuses_what_is_misspelt(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    start = "import numpy as np\nimport irtool\nfrom irtool import torch\nx = irtool.Tensor(np.ones((2, 3)))\n"
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(start + "\n".join(WRONG))
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "right.py", "wrong.py"], cwd=tmp_path,
                          env={**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    errors = set(re.findall(r"(?m)^(\S+:\d+): error", done.stdout))
    assert errors == {f"wrong.py:{line}" for line in range(5, 5 + len(WRONG))}, done.stdout + done.stderr
    exec(compile(RIGHT, "right.py", "exec"), {})


@pytest.mark.parametrize("function, shown, doc", [
    (torch.sin, "(input: Tensor, *, out: Tensor | None = None) -> Tensor", "Sine."),
    (irtool.Tensor([1.0]).sum, "(dim: Sequence[int] | int | None = ..., keepdim: bool = False, *, dtype: int | None = None, "
     "out: Tensor | None = None) -> Tensor", "Sum over dimensions."),
    (torch.add_, "(input: Tensor, other: Tensor | complex, *, alpha: complex = 1) -> Tensor", "self += b; returns self."),
    (torch.linalg.inv, "(A: Tensor, *, out: Tensor | None = None) -> Tensor", ""),
])
def test_help_shows_schema_and_docstring(function: Any, shown: str, doc: str) -> None:
    assert str(inspect.signature(function)) == shown
    text = pydoc.plain(pydoc.render_doc(function))
    assert f"{function.__name__}{shown}" in text and doc in text and f"aten::{function.__name__}" in text


def test_signatures_take_what_the_functions_take() -> None:
    x = np.ones((2, 2))
    for name, args, named in (("add", (x, x), {"alpha": 2}), ("sum", (x,), {}), ("sum", (x, 1), {}), ("max", (x,), {"dim": 1}),
                              ("max", (x, x), {}), ("split", (x, 1), {}), ("where", (x > 0, x, x), {}), ("zeros", ([2],), {})):
        inspect.signature(getattr(torch, name)).bind(*args, **named)
        getattr(torch, name)(*args, **named)


def test_tab_offers_operators() -> None:
    assert {"sin", "float32", "nn", "linalg", "cond", "tensor"} <= set(dir(torch))
    assert {"softmax", "interpolate", "relu", "conv2d"} <= set(dir(torch.nn.functional)) and "solve" in dir(torch.linalg)
    assert {"sum", "shape", "tolist", "add_", "requires_grad"} <= set(dir(irtool.Tensor([1.0])))
