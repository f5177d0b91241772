"""`with` of contexts that compute nothing else here: autocast that is off, and strict_fusion. Autocast that is on is refused."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool.ir.schema import schemas
from irtool.torchscript.python_names import MODULES

X = np.float32([[1, 2], [3, 4]])
OFF = ["torch.autocast('cpu', enabled=False)", "torch.amp.autocast('cuda', torch.float16, False)", "torch.cpu.amp.autocast(False)",
       "torch.cuda.amp.autocast(enabled=b)", "torch.jit.strict_fusion()"]
ON = ["torch.autocast('cpu')", "torch.autocast('cpu', dtype=torch.bfloat16, enabled=True)", "torch.cuda.amp.autocast()",
      "torch.cpu.amp.autocast(enabled=not b)"]
CLASSES = {"__torch__.torch.amp.autocast_mode.autocast": "%cpu, %none, %off, %none", "__torch__.torch.cpu.amp.autocast_mode.autocast":
           "%off, %dtype, %on", "__torch__.torch.jit.strict_fusion": ""}
"""Classes -> what torch's prints give to their constructors, after the instance."""
TEXT = """graph(%x : Tensor, %off : bool):
  %none : NoneType = prim::Constant()
  %cpu : str = prim::Constant[value="cpu"]()
  %dtype : int = prim::Constant[value=15]()
  %on : bool = prim::Constant[value=1]()
  %m : CLASS = prim::CreateObject()
  %0 : NoneType = prim::CallMethod[name="__init__"](%m, GIVEN)
  %1 : CLASS = prim::Enter(%m)
  %y : Tensor = aten::mm(%x, %x)
  %2 : Tensor = prim::Exit(%m)
  return (%y)
"""


def program(context: str) -> irtool.Module:
    return irtool.from_script(f"def f(x: Tensor, b: bool):\n    with {context}:\n        y = torch.mm(x, x)\n    return y\n")


@pytest.mark.parametrize("interpret", [True, False])
@pytest.mark.parametrize("context", OFF)
def test_what_is_off_changes_nothing(context: str, interpret: bool) -> None:
    module = program(context)
    np.testing.assert_array_equal(irtool.run(module, [X, False], interpret=interpret)[0], X @ X)
    (gradient,) = irtool.vjp(module, [X, False], [np.ones_like(X)], [0], interpret=interpret)
    np.testing.assert_array_equal(gradient, np.ones_like(X) @ X.T + X.T @ np.ones_like(X))


@pytest.mark.parametrize("interpret", [True, False])
@pytest.mark.parametrize("context", ON)
def test_what_is_on_is_refused(context: str, interpret: bool) -> None:
    with pytest.raises(irtool.UnsupportedError, match="autocast that is on"):
        irtool.run(program(context), [X, False], interpret=interpret)


@pytest.mark.parametrize("name", CLASSES)
def test_prints_that_are_not_inlined(name: str) -> None:
    text = TEXT.replace("CLASS", name).replace("%m, GIVEN", f"%m, {CLASSES[name]}".rstrip(", "))
    np.testing.assert_array_equal(irtool.run(irtool.parse(text), [X, False])[0], X @ X)
    if "autocast" in name:
        with pytest.raises(irtool.UnsupportedError, match="autocast that is on"):
            irtool.run(irtool.parse(text), [X, True])


@pytest.mark.oracle
def test_archives_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Off(torch.nn.Module):     # type: ignore[misc, name-defined]
        def forward(self, x: torch.Tensor) -> torch.Tensor:     # type: ignore[name-defined]
            with torch.autocast("cpu", enabled=False), torch.jit.strict_fusion():
                y = torch.mm(x, x)
            return y

    class On(torch.nn.Module):      # type: ignore[misc, name-defined]
        def forward(self, x: torch.Tensor) -> torch.Tensor:     # type: ignore[name-defined]
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = torch.mm(x, x)
            return y

    torch.jit.script(Off()).save(tmp_path / "off.pt")
    torch.jit.script(On()).save(tmp_path / "on.pt")
    np.testing.assert_array_equal(irtool.load(tmp_path / "off.pt")(X), X @ X)
    with pytest.raises(irtool.UnsupportedError, match="autocast that is on"):
        irtool.load(tmp_path / "on.pt")(X)


def test_operators_with_the_name_of_a_module() -> None:
    """`torch.cpu` is a module in source, and an operator in code as it is printed."""
    printed = irtool.to_script(irtool.from_script("def f(x: Tensor):\n    return torch.ops.aten.cpu(x)\n"), "f")
    assert "torch.cpu(x)" in printed
    np.testing.assert_array_equal(irtool.run(irtool.from_script(printed), [X])[0], X)
    assert not [path for path in MODULES if path.startswith("torch.") and schemas("aten::" + path.rpartition(".")[2])]
