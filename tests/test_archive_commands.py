"""Archives on the command line, in the place of IR text; `freeze` of graphs."""
from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.ir.rounded import rounded_constants

ARCHIVES = Path(__file__).parent / "data" / "archives"
NAMES = sorted(path.stem for path in ARCHIVES.glob("*.pt"))


def run_cli(*words: Any, stdin: bytes = b"") -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    code = main([str(word) for word in words], io.BytesIO(stdin), out, err)
    return code, out.getvalue(), err.getvalue()


def recorded(name: str, folder: Path) -> tuple[Path, Path]:
    """The arguments of the first call that torch made, and what it gave, as the command line takes them."""
    with np.load(ARCHIVES / f"{name}.npz") as archive:
        inputs = {f"input{key.split('.')[1]}": archive[key] for key in archive.files if key.startswith("0.") and ".out." not in key}
        outputs = [archive[key] for key in archive.files if key.startswith("0.out.")]
    keys = ["output0"] if len(outputs) == 1 else [f"output0.{place}" for place in range(len(outputs))]
    np.savez(folder / "in.npz", **inputs)
    np.savez(folder / "out.npz", **dict(zip(keys, outputs)))
    return folder / "in.npz", folder / "out.npz"


@pytest.mark.parametrize("name", NAMES)
def test_run_gives_what_torch_gave(name: str, tmp_path: Path) -> None:
    inputs, outputs = recorded(name, tmp_path)
    code, out, err = run_cli("run", ARCHIVES / f"{name}.pt", inputs, "--expect", outputs)
    assert code == 0, out + err
    method = "" if name == "hooked" else ":forward"        # a method that is named runs without hooks, as in torch
    code, out, err = run_cli("run", f"{ARCHIVES / name}.pt{method}", inputs, "--interpret", "--expect", outputs)
    assert code == 0, out + err


@pytest.mark.parametrize("name", NAMES)
def test_text_with_weights_beside_it_gives_the_same(name: str, tmp_path: Path) -> None:
    inputs, outputs = recorded(name, tmp_path)
    for command in (["fmt"], ["opt", "--passes=dce,cse,constant-propagation"]):
        assert run_cli(*command, ARCHIVES / f"{name}.pt", "-o", tmp_path / "m.ir")[0] == 0
        code, out, err = run_cli("run", tmp_path / "m.ir", inputs, "--expect", outputs)
        assert code == 0, out + err


@pytest.mark.parametrize("passes", ["inference", "freeze{eval},inference", "dce"])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("hooked", "objects")])
def test_passes_over_an_archive_are_validated_on_arguments_alone(name: str, passes: str, tmp_path: Path) -> None:
    inputs, _ = recorded(name, tmp_path)
    small = tmp_path / "small.pt"
    code, _, err = run_cli("opt", f"--validate={inputs}", f"--passes={passes}", ARCHIVES / f"{name}.pt", "-o", small)
    assert code == 0 and "nothing was compared" not in err and "'forward' computes was not compared" not in err, err
    assert irtool.load(small).methods()


def test_a_wrong_pass_over_an_archive_is_found(tmp_path: Path) -> None:
    root = ARCHIVES.parents[2]
    words = ["--load", root / "examples/wrong_pass.py", "--passes=drop-negations"]
    text = "graph(%x : Tensor):\n  %1 : Tensor = aten::neg(%x)\n  return (%1)\n"
    (tmp_path / "g.ir").write_text(text)
    assert run_cli("convert", tmp_path / "g.ir", tmp_path / "g.pt")[0] == 0
    np.savez(tmp_path / "in.npz", x=np.float32([1, 2]))
    code, _, err = run_cli("opt", f"--validate={tmp_path / 'in.npz'}", *words, tmp_path / "g.pt", "-o", tmp_path / "h.pt")
    assert code == 1 and "changes what 'forward' computes" in err and not (tmp_path / "h.pt").exists()
    np.savez(tmp_path / "in.npz", y=np.float32([1, 2]))
    code, _, err = run_cli("opt", f"--validate={tmp_path / 'in.npz'}", *words, tmp_path / "g.pt", "-o", tmp_path / "h.pt")
    assert code == 1 and "no input is called 'y'" in err, err


def test_other_commands_take_archives() -> None:
    path = ARCHIVES / "net_train.pt"
    assert run_cli("plan", path, "-i", "x=2x2x5x5xf32=1")[0] == 0
    code, out, _ = run_cli("gradcheck", ARCHIVES / "choice.pt", "-i", "x=3x2xf64=randn", "-i", "i=1", "--cast")
    assert code in (0, 1), out
    code, out, _ = run_cli("decompile", path)
    assert code == 0 and "class Net(Module):" in out
    code, out, _ = run_cli("decompile", f"{path}:forward")
    assert code == 0 and out.startswith("def forward(self: __torch__.Net")


def test_inspect_tells_what_is_there() -> None:
    code, out, _ = run_cli("inspect", ARCHIVES / "net_train.pt", "--json")
    content = json.loads(out)
    assert code == 0 and content == irtool.load(ARCHIVES / "net_train.pt").inspect() | {"file": content["file"]}
    assert content["classes"][0]["name"] == "__torch__.Net" and content["classes"][0]["methods"] == ["forward"]
    assert [each["name"] for each in content["weights"]][:2] == ["body.0.weight", "body.0.bias"]
    assert not content["problems"] and all(each["has_kernel"] for each in content["operators"])
    code, piped, _ = run_cli("inspect", "-", "--json", stdin=(ARCHIVES / "net_train.pt").read_bytes())
    assert code == 0 and json.loads(piped) == content | {"file": "<stdin>"}
    code, out, _ = run_cli("inspect", ARCHIVES / "state.pt")
    assert code == 0 and "colour                  Enum<__torch__.Colour>" in out


@pytest.mark.parametrize("words, code, message", [
    (["fmt", ARCHIVES / "net_train.npz"], 1, "which contain no program"),
    (["run", f"{ARCHIVES}/net_train.pt:forwrd"], 1, "has no method 'forwrd' (did you mean 'forward'?), expected one of: forward"),
    (["fmt", f"{ARCHIVES}/net_train.pt:nomethod"], 1, "has no method 'nomethod', expected one of: forward [E0605]"),
    (["run", f"{ARCHIVES}/nothing.pt:forward"], 2, "no such file or directory"),
    (["inspect", ARCHIVES / "make.py"], 1, "expected an archive, or weights"),
    (["inspect", ARCHIVES / "nothing.pt"], 2, "no such file or directory"),
])
def test_what_is_wrong_is_said(words: list[Any], code: int, message: str) -> None:
    got, out, err = run_cli(*words)
    assert (got, out) == (code, "") and message in err and err.count("\n") <= 2


def test_bytes_in_front_of_an_archive_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "m.pt").write_bytes(b"#!/usr/bin/env model\n" + (ARCHIVES / "choice.pt").read_bytes())
    assert run_cli("fmt", tmp_path / "m.pt")[0] == 0


def test_constants_of_archives_are_not_called_rounded() -> None:
    values = {"w": np.array([0.04073363], np.float32), "l": [np.array([-0.2148, -0.3601], np.float16)]}
    frozen = irtool.freeze(irtool.parse(GRAPH).graph(), values)
    assert not rounded_constants(frozen)


def test_a_file_whose_name_has_a_colon_is_meant(tmp_path: Path) -> None:
    (tmp_path / "m.pt:forward").write_bytes((ARCHIVES / "choice.pt").read_bytes())
    code, out, err = run_cli("fmt", tmp_path / "m.pt:forward")
    assert code == 0 and "%i.1 : int" in out, err


GRAPH = """graph(%x : Tensor, %w.1 : Tensor, %n : int, %l : Tensor[]):
  %y : Tensor = aten::mul(%x, %w.1)
  %z : Tensor = aten::add_(%w.1, %x, %n)
  %c : Tensor = aten::cat(%l, %n)
  %t : (Tensor, Tensor, Tensor) = prim::TupleConstruct(%y, %z, %c)
  return (%t)"""


def test_frozen_inputs_leave_the_signature() -> None:
    graph = irtool.parse(GRAPH).graph()
    w, x = np.array([2.0, 3.0]), np.array([1.0, 10.0])
    frozen = irtool.freeze(graph, {"w": w, 2: 0, "l": [w, w]})
    w[0] = 99.0     # copied
    assert [value.name for value in frozen.inputs] == ["x"]
    irtool.verify(frozen)
    for _ in range(3):      # what a run writes does not stay
        (y, z, c), = irtool.run(frozen, [x])
        np.testing.assert_array_equal(y, [2.0, 30.0])
        np.testing.assert_array_equal(z, [2.0, 3.0])
        np.testing.assert_array_equal(c, [2.0, 3.0, 2.0, 3.0])
    assert len(graph.inputs) == 4


@pytest.mark.parametrize("values, message", [
    ({"v": 1}, "no input is called 'v'"), ({7: 1}, "position 7"), ({"w": 1, 1: 2}, "input 1 twice"), ({"n": "a"}, "n"),
])
def test_values_that_fit_no_input_are_refused(values: Any, message: str) -> None:
    with pytest.raises(irtool.Error, match=message):
        irtool.freeze(irtool.parse(GRAPH).graph(), values)
