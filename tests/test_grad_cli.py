"""Gradients on the command line: what `irtool grad` gives and stores, and `irtool run` of gradient pairs."""
from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.interop.npz import Archive, decode, encode

MUL_ADD = """graph(%0 : Float(2, 3, 4)
      %1 : Float(2, 3, 4)) {
  %2 : Float(2, 3, 4) = aten::mul(%0, %1)
  %3 : Float(2, 3, 4) = aten::mul(%2, %0)
  %4 : Float(2, 3, 4) = aten::add[alpha={1}](%3, %1)
  return (%4);
}
"""
TWO = """graph(%x : Float(2), %y : Float(2), %z : Float(2), %n : int):
  %3 : Float(2) = aten::mul(%x, %y)
  %4 : Float(2) = aten::mul(%y, %n)
  return (%3, %4)
"""
INPUTS = {"0": np.full((2, 3, 4), 2, np.float32), "1": np.full((2, 3, 4), 3, np.float32)}
ONES = np.ones((2, 3, 4), np.float32)
TWO_INPUTS = {"x": np.float32([1, 2]), "y": np.float32([3, 4]), "z": np.float32([5, 6]), "n": np.array(7)}


class Done:
    """What a command left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


def irt(*words: object, text: str = "") -> Done:
    """`irtool words` with `text` on standard input."""
    out, err = io.StringIO(), io.StringIO()
    code = main([str(word) for word in words], stdin=io.BytesIO(text.encode()), stdout=out, stderr=err)
    assert "Traceback" not in err.getvalue() and code != 3
    return Done(code, out.getvalue(), err.getvalue())


def npz(path: Path, arrays: dict[str, Any], **lists: list[str]) -> Path:
    path.write_bytes(encode(Archive({key: np.asarray(array) for key, array in arrays.items()}, **lists)))
    return path


def load(path: Path) -> Archive:
    return decode(path.read_bytes(), str(path))


def pair(passes: str, text: str = MUL_ADD) -> str:
    return irt("opt", f"--passes={passes}", text=text).out


class TestPairs:
    @pytest.mark.parametrize("passes", ["differentiate", "differentiate,specialize-undef", "differentiate,lower-grad-of",
                                        "differentiate{form=modern}"])
    def test_the_example(self, passes: str, tmp_path: Path) -> None:
        given = npz(tmp_path / "in.npz", {**INPUTS, "vjp0": ONES})
        done = irt("run", "-", given, "-o", tmp_path / "out.npz", text=pair(passes))
        assert (done.code, done.out, done.err) == (0, "", "")
        stored = load(tmp_path / "out.npz")
        assert list(stored.arrays) == ["output0", "grad0", "grad1"] and not stored.none
        for key, value in {"output0": 15, "grad0": 12, "grad1": 5}.items():
            assert np.array_equal(stored.arrays[key], np.full((2, 3, 4), value, np.float32))

    @pytest.mark.parametrize("key", ["vjp0", "0", "arr_0"])
    def test_cotangents_in_a_file_of_their_own(self, key: str, tmp_path: Path) -> None:
        words = ["run", "-", npz(tmp_path / "in.npz", INPUTS), "--cotangents", npz(tmp_path / "c.npz", {key: ONES}), "--json"]
        found = json.loads(irt(*words, text=pair("differentiate")).out)
        assert [each["key"] for each in found["outputs"]] == ["output0"]
        assert [each["value"]["data"][0][0][0] for each in found["gradients"]] == [12.0, 5.0]

    def test_given_twice(self, tmp_path: Path) -> None:
        words = ["run", "-", npz(tmp_path / "in.npz", {**INPUTS, "vjp0": ONES}), "--cotangents", npz(tmp_path / "c.npz", {"vjp0": ONES})]
        assert "given twice" in irt(*words, text=pair("differentiate")).err

    def test_without_cotangents(self, tmp_path: Path) -> None:
        given = npz(tmp_path / "in.npz", INPUTS)
        done = irt("run", "-", given, "--json", text=pair("differentiate"))
        assert done.code == 0 and done.err.startswith("note: only outputs are computed")
        assert list(json.loads(done.out)) == ["schema", "outputs"]
        for words in (["run", "--backward"], ["grad"]):
            done = irt(*words, "-", given, text=pair("differentiate"))
            assert (done.code, done.out) == (1, "") and done.err.startswith("error: no cotangents")

    def test_a_sole_number_gets_one(self) -> None:
        text = "graph(%x : Float()):\n  %1 : Float() = aten::mul(%x, %x)\n  return (%1)\n"
        done = irt("run", "-", "--input", "x=f32=3", text=pair("differentiate", text))
        assert done.out == "output0 %1: float32 () 9.\ngrad0 %x: float32 () 6.\n"

    def test_specialised_pairs_say_what_they_take(self) -> None:
        text = pair("differentiate,specialize-undef{defined=1,0,1,1,1}", TWO)
        words = ["run", "-", "--input", "x=2xf32=1,2", "--input", "y=2xf32=3,4", "--input", "z=2xf32=5,6", "--input", "n=7"]
        done = irt(*words, "--input", "vjp1=2xf32=1", text=text)
        assert done.code == 1 and "vjp1 is given, but 'df' was specialised for its being undefined (defined=[1, 0, 1, 1, 1])" in done.err
        done = irt(*words, "--input", "vjp0=2xf32=1", text=text)
        assert done.code == 0 and "grad0 %x: float32 (2,)\n  [3. 4.]\n" in done.out

    def test_zeros_where_defined_says_so_and_undefined_elsewhere(self, tmp_path: Path) -> None:
        """Absent cotangents: of two outputs only the second is given."""
        words = ["run", "-", npz(tmp_path / "in.npz", TWO_INPUTS), "--input", "vjp1=2xf32=1"]
        for passes in ("differentiate", "differentiate,specialize-undef"):
            done = irt(*words, text=pair(passes, TWO))
            assert done.code == 0, done.err
            assert done.out.endswith("grad0 %x: float32 (2,)\n  [0. 0.]\ngrad1 %y: float32 (2,)\n  [7. 7.]\ngrad2 %z: None\n")

    def test_an_unreached_input_is_none_in_both_forms(self, tmp_path: Path) -> None:
        text = "graph(%0 : Float(2)\n      %1 : Float(2)) {\n  %2 : Float(2) = aten::neg(%0)\n  return (%2);\n}\n"
        for form in ("2018", "modern"):
            given = ["--input", "0=2xf32=1", "--input", "1=2xf32=1", "--input", "vjp0=2xf32=1"]
            done = irt("run", "-", *given, "-o", tmp_path / "out.npz", text=pair(f"differentiate{{form={form}}}", text))
            assert done.code == 0, done.err
            stored = load(tmp_path / "out.npz")
            assert list(stored.arrays) == ["output0", "grad0", "grad1"] and stored.none == {"grad1"}
            assert np.array_equal(stored.arrays["grad1"], np.zeros(2, np.float32))

    def test_one_that_df_takes_no_gradient_for(self) -> None:
        text = TWO.replace("return (%3, %4)", "return (%3, %z)")
        words = ["run", "-", "--input", "x=2xf32=1", "--input", "y=2xf32=1", "--input", "z=2xf32=1", "--input", "n=1"]
        both = ["--input", "vjp0=2xf32=1", "--input", "vjp1=2xf32=1"]
        done = irt(*words, *both, text=pair("differentiate{wrt=0}", text))
        assert done.code == 0 and done.err == "note: 'df' takes no gradient of output 1: vjp1 is ignored\n"
        assert "grad0" in done.out and "grad1" not in done.out
        done = irt(*words, *both[:2], "--input", "vjp1=3xf32=1", text=pair("differentiate{wrt=0}", text))
        assert done.code == 1 and "cotangent 'vjp1': expected float32 (2,), got float32 (3,)" in done.err

    def test_dtypes(self, tmp_path: Path) -> None:
        words = ["run", "-", npz(tmp_path / "in.npz", {**INPUTS, "vjp0": ONES.astype(np.float64)})]
        done = irt(*words, text=pair("differentiate"))
        assert done.code == 1 and 'array.astype("float32"), or add --cast' in done.err
        assert irt(*words, "--cast", text=pair("differentiate")).code == 0

    def test_none_is_understood(self, tmp_path: Path) -> None:
        given = npz(tmp_path / "c.npz", {"vjp0": np.zeros(2, np.float32), "vjp1": np.ones(2, np.float32)}, none=["vjp0"])
        words = ["grad", "-", npz(tmp_path / "in.npz", TWO_INPUTS), "--cotangents", given]
        assert irt(*words, text=TWO).out == "grad0 %x: float32 (2,)\n  [0. 0.]\ngrad1 %y: float32 (2,)\n  [7. 7.]\ngrad2 %z: None\n"

    def test_results_can_be_expected(self, tmp_path: Path) -> None:
        words = ["run", "-", npz(tmp_path / "in.npz", {**INPUTS, "vjp0": ONES})]
        text = pair("differentiate")
        irt(*words, "-o", tmp_path / "out.npz", text=text)
        done = irt(*words, "--expect", tmp_path / "out.npz", text=text)
        assert done.code == 0 and done.out.endswith(f"3 of 3 agree with {tmp_path / 'out.npz'}\n")

    def test_choosing(self, tmp_path: Path) -> None:
        given = npz(tmp_path / "in.npz", INPUTS)
        first = pair("differentiate")
        two = first + first.replace("# graph f:", "# graph g:").replace("# graph df: of=f", "# graph dg: of=g")
        done = irt("run", "-", given, text=two)
        assert done.code == 1 and "several gradient pairs; choose one: --pair f, --pair g, --graph f, --graph df" in done.err
        assert irt("run", "-", given, "--pair=g", text=two).code == 0
        assert "no gradient pair 'h', expected one of: f, g" in irt("run", "-", given, "--pair=h", text=two).err
        assert "it has none" in irt("run", "-", given, "--pair=h", text=MUL_ADD).err
        assert irt("run", "-", given, "--pair=f", "--graph=f", text=two).code == 2
        done = irt("run", "-", given, "--backward", text=MUL_ADD)
        assert done.code == 1 and "no cotangents" in done.err
        assert irt("run", "-", given, "--save-intermediates", tmp_path / "all.npz", text=first).code == 2
        assert irt("run", "-", given, "--graph=f", text=two).out.count("output") == 2

    def test_a_reverse_graph_by_itself_takes_and_gives_undefined_gradients(self) -> None:
        text = "graph(%x : Float(2), %y : Float(2)):\n  %2 : Float(2) = aten::exp(%x)\n  %3 : Float(2) = aten::exp(%y)\n  return (%2, %3)\n"
        given = ["--input", "0=none", "--input", "1=2xf32=1", "--input", "2=2xf32=3", "--input", "3=2xf32=5"]
        done = irt("run", "-", "--graph=df", *given, text=pair("differentiate", text))
        assert done.code == 0, done.err
        assert done.out.startswith("output0 %") and done.out.count("None") == 1 and "[5. 5.]" in done.out
        done = irt("run", "-", "--graph=df", *given[:-2], "--input", "3=none", text=pair("differentiate", text))
        assert done.code == 1 and "got None" in done.err

    def test_watching(self, tmp_path: Path) -> None:
        done = irt("run", "-", npz(tmp_path / "in.npz", {**INPUTS, "vjp0": ONES}), "--trace", text=pair("differentiate,specialize-undef"))
        assert done.err.count("aten::mul") == 6


class TestGrad:
    def test_as_the_library_does(self, tmp_path: Path) -> None:
        given, cotangents = npz(tmp_path / "in.npz", TWO_INPUTS), npz(tmp_path / "c.npz", {"vjp0": np.float32([1, -1])})
        done = irt("grad", "-", given, "--cotangents", cotangents, "--wrt=1,0,2", "-o", tmp_path / "g.npz", text=TWO)
        assert (done.code, done.out, done.err) == (0, "", "")
        stored = load(tmp_path / "g.npz")
        assert list(stored.arrays) == ["grad1", "grad0", "grad2"] and stored.none == {"grad2"}
        expected = irtool.vjp(irtool.parse(TWO), list(TWO_INPUTS.values()), [np.float32([1, -1]), None], [1, 0, 2])
        for key, array in zip(["grad1", "grad0"], expected, strict=False):
            assert np.array_equal(stored.arrays[key], array)
        assert expected[2] is None

    def test_a_pair_as_its_graph(self, tmp_path: Path) -> None:
        given = npz(tmp_path / "in.npz", {**INPUTS, "vjp0": ONES})
        for text in (MUL_ADD, pair("differentiate"), pair("differentiate,specialize-undef")):
            found = json.loads(irt("grad", "-", given, "--json", "--wrt=1", text=text).out)
            assert list(found) == ["schema", "gradients"]
            assert [(each["key"], each["value"]["data"][0][0][0]) for each in found["gradients"]] == [("grad1", 5.0)]
        done = irt("grad", "-", given, "--wrt=1", text=pair("differentiate{wrt=0}"))
        assert done.code == 1 and "gives no gradient of input 1" in done.err

    def test_lists_of_tensors(self) -> None:
        text = ("graph(%l : Tensor[]):\n  %1 : int = prim::Constant[value=0]()\n  %2 : Tensor = aten::cat(%l, %1)\n"
                "  %3 : Tensor = aten::mul(%2, %2)\n  return (%3)\n")
        done = irt("grad", "-", "--input", "l.0=2xf32=1,2", "--input", "l.1=1xf32=3", "--input", "vjp0=3xf32=1", text=text)
        assert done.out == "grad0 %l: list of 2\n  .0: float32 (2,)\n    [2. 4.]\n  .1: float32 (1,)\n    [6.]\n"

    def test_random_operators_follow_the_seed(self) -> None:
        text = ("graph(%x : Float(64)):\n  %p : float = prim::Constant[value=0.5]()\n  %t : bool = prim::Constant[value=1]()\n"
                "  %1 : Float(64) = aten::dropout(%x, %p, %t)\n  return (%1)\n")
        words = ["--input", "x=64xf32=1", "--json", "--seed=5"]
        outputs = json.loads(irt("run", "-", *words, text=text).out)["outputs"][0]["value"]["data"]
        found = json.loads(irt("grad", "-", *words, "--input", "vjp0=64xf32=1", text=text).out)["gradients"][0]["value"]["data"]
        assert found == outputs and 0.0 in found and 2.0 in found

    @pytest.mark.parametrize("words", ["--wrt=a", "--wrt=0,0", "--wrt=-1", "--wrt=9"])
    def test_wrong_positions(self, words: str) -> None:
        assert irt("grad", "-", words, text=TWO).code == 2

    @pytest.mark.parametrize("keys, message", [
        ({"vjp2": [1, 1]}, "'vjp2': the graph has 2 outputs, expected 'vjp0', 'vjp1'"),
        ({"x": [1, 1]}, "no cotangent is called 'x'"), ({"vjp0": [1, 1], "1": [1, 1]}, "no cotangent is called '1'"),
        ({"vjp0.0": [1, 1]}, "expected float32 (2,), got elements ('0')"), ({"vjp0": 1.0}, "expected float32 (2,), got float64 ()")])
    def test_wrong_cotangents(self, keys: dict[str, Any], message: str, tmp_path: Path) -> None:
        arrays = {key: np.array(value, np.float32) if isinstance(value, list) else value for key, value in keys.items()}
        done = irt("grad", "-", npz(tmp_path / "in.npz", TWO_INPUTS), "--cotangents", npz(tmp_path / "c.npz", arrays), text=TWO)
        assert done.code == 1 and message in done.err

    def test_a_number_has_no_gradient(self) -> None:
        text = "graph(%x : Float(2), %n : int):\n  return (%x, %n)\n"
        done = irt("grad", "-", "--input", "x=2xf32=1", "--input", "n=1", "--input", "vjp1=f32=1", text=text)
        assert done.code == 1 and "expected nothing, since output is the int 1 and has no gradient" in done.err

    def test_an_input_called_as_a_cotangent(self) -> None:
        text = "graph(%vjp0 : Float()):\n  %1 : Float() = aten::exp(%vjp0)\n  return (%1)\n"
        assert irt("grad", "-", "--input", "vjp0=f32=0", text=text).out == "grad0 %vjp0: float32 () 1.\n"

    def test_files_that_cannot_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "damaged.npz").write_text("no")
        assert irt("grad", "-", "--cotangents", tmp_path / "absent.npz", text=MUL_ADD).code == 2
        assert irt("grad", "-", "--cotangents", tmp_path / "damaged.npz", text=MUL_ADD).code == 1


STATISTICS = """graph(%x : Double(4, 3), %m : Double(3), %v : Double(3)):
  %n : NoneType = prim::Constant()
  %t : bool = prim::Constant[value=0]()
  %b : float = prim::Constant[value=0.1]()
  %o : Tensor = aten::batch_norm(%x, %n, %n, %m, %v, %t, %b, %b, %t)
  return (%o)
"""


@pytest.mark.parametrize("command", ["grad", "run", "gradcheck"])
def test_inputs_that_have_no_gradient_are_left_out_aloud_unless_asked_for(command: str, tmp_path: Path,
                                                                          capsys: pytest.CaptureFixture[str]) -> None:
    graph = tmp_path / "norm.ir"
    graph.write_text(STATISTICS, encoding="utf-8")
    inputs = ["-i", "x=4x3xf64=1", "-i", "m=3xf64=0.5", "-i", "v=3xf64=2"]
    if command != "gradcheck":
        np.savez(tmp_path / "ones.npz", vjp0=np.ones((4, 3)))
        inputs += ["--cotangents", str(tmp_path / "ones.npz")]
    assert main([command, str(graph), *inputs]) == 0
    said = capsys.readouterr().err
    assert "note: %m is left without a gradient" in said and "note: %v is left without a gradient" in said
    assert main([command, str(graph), *inputs, "--requires-grad" if command == "run" else "--wrt", "m"]) == 1
    told = capsys.readouterr()
    assert "its argument 'running_mean' is not supported" in told.err + told.out
