"""Archives and source cannot keep all that a text says: what they lose is refused, or said."""
from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.ir.rounded import RoundedWarning

STRAIGHT_THROUGH = """# graph f: f_real_outputs=1
graph(%x : Tensor):
  %1 : Tensor = aten::round(%x)
  return (%1)
# graph df: of=f df_input_vjps=[0] df_input_captured_inputs=[] df_input_captured_outputs=[] df_output_vjps=[0]
graph(%g : Tensor):
  return (%g)
"""
ROUNDED = """graph(%x : Float(2)):
  %w : Float(2) = prim::Constant[value=-0.1374 -0.2820 [ CPUFloatType{2} ]]()
  %y : Float(2) = aten::mul(%x, %w)
  return (%y)
"""
EXACT = ROUNDED.replace("-0.1374 -0.2820", " 1  2")

WRITTEN: dict[str, Callable[[Any], object]] = {
    "save": lambda module: irtool.save(module, io.BytesIO()),
    "save a graph": lambda module: irtool.save(module.graph(), io.BytesIO()),
    "to_script": irtool.to_script,
    "to_script of a graph": lambda module: irtool.to_script(module.graph()),
}
"""Ways to write a module in another form, from Python."""
COMMANDS = (("convert", "-", "o.pt"), ("convert", "-", "o.py"), ("decompile", "-"), ("opt", "-q", "--passes=dce", "-", "-o", "o.pt"))
"""The same on the command line."""


def command(words: tuple[str, ...], text: str, folder: Path) -> tuple[int, str]:
    """The exit code, and what was said."""
    err = io.StringIO()
    placed = [str(folder / word) if word.startswith("o.") else word for word in words]
    return main(placed, io.BytesIO(text.encode()), io.StringIO(), err), err.getvalue()


def packed() -> irtool.Module:
    return irtool.PassManager("pack-gradient").run(irtool.parse(STRAIGHT_THROUGH))


# -- gradients of its own
@pytest.mark.parametrize("way", WRITTEN)
def test_a_packed_gradient_is_not_dropped(way: str) -> None:
    module = packed()
    with pytest.raises(irtool.UnsupportedError, match="has a gradient of its own"):
        WRITTEN[way](module)
    assert irtool.vjp(module, [np.float32([0.4])], [np.float32([1])], [0])[0].tolist() == [1]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_do_not_drop_a_packed_gradient(words: tuple[str, ...], tmp_path: Path) -> None:
    code, said = command(words, str(packed()), tmp_path)
    assert code == 1 and "has a gradient of its own" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("way", WRITTEN)
def test_the_gradient_of_a_custom_function_is_not_dropped(way: str) -> None:
    function = irtool.custom_vjp(lambda x: (irtool.torch.round(x), ()), lambda g, saved: [g])
    graph = irtool.trace(lambda x: function(x), [np.float32([0.4])])
    with pytest.raises(irtool.UnsupportedError, match="has a gradient of its own"):
        WRITTEN[way](irtool.Module([graph]))


# -- rounded constants
@pytest.mark.parametrize("way", WRITTEN)
def test_python_warns_of_rounded_constants(way: str) -> None:
    for text, count in ((ROUNDED, 1), (EXACT, 0)):
        module = irtool.parse(text, filename="f.ir")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            WRITTEN[way](module)
            WRITTEN[way](module)
        assert [each.category for each in said] == [RoundedWarning] * count
        assert all(str(each.message).startswith("f.ir:2:19: of constant %w") and each.filename == __file__ for each in said)


@pytest.mark.parametrize("words", [*COMMANDS, ("convert", "-", "o.npz"), ("convert", "-", "o.safetensors")], ids=" ".join)
def test_commands_warn_of_rounded_constants(words: tuple[str, ...], tmp_path: Path) -> None:
    code, said = command(words, ROUNDED, tmp_path)
    assert code == 0 and said.count("<stdin>:2:19: warning: of constant %w the text has rounded numbers") == 1
    assert command(words, EXACT, tmp_path) == (0, "")


def test_text_stays_text(tmp_path: Path) -> None:
    assert command(("convert", "-", "o.ir"), ROUNDED, tmp_path) == (0, "")
    assert (tmp_path / "o.ir").read_text() == ROUNDED


# -- operators that do not exist
MISSPELT = {"aten::nge": "aten::neg", "prim::Constnt": "prim::Constant", "prim::if": "prim::If",
            "prim::ListConstrct": "prim::ListConstruct", "prim::loop": "prim::Loop", "prim::NumToTensr": "prim::NumToTensor",
            "prim::Unitialized": "prim::Uninitialized"}


def call_of(kind: str) -> str:
    return f"graph(%x : Tensor):\n  %1 : Tensor = {kind}(%x)\n  return (%1)\n"


@pytest.mark.parametrize("kind", MISSPELT)
def test_misspelt_operators_are_refused_everywhere(kind: str, tmp_path: Path) -> None:
    expected = f"<stdin>:2:17: error: unknown operator '{kind}' (did you mean '{MISSPELT[kind]}'?) [E0103]"
    for words in (*COMMANDS, ("opt", "-q", "--passes=dce", "-"), ("run", "-", "-i", "x=2xf32=1"), ("plan", "-", "-i", "x=2xf32=1")):
        code, said = command(words, call_of(kind), tmp_path)
        assert code == 1 and said.startswith(expected), (words, said)
    for way in WRITTEN.values():
        with pytest.raises(irtool.UnsupportedError, match="unknown operator"):
            way(irtool.parse(call_of(kind)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("kind", "message"), [("aten::zzzqq", "unknown operator 'aten::zzzqq'"),
                                               ("aten::mul", "no overload of aten::mul takes (Tensor)")])
def test_calls_that_torch_would_not_load_are_not_written(kind: str, message: str, tmp_path: Path) -> None:
    for words in COMMANDS:
        code, said = command(words, call_of(kind), tmp_path)
        assert code == 1 and message in said


def test_operators_of_other_libraries_are_written() -> None:
    assert "ops.mine.op(x)" in irtool.to_script(irtool.parse(call_of("mine::op")))
