"""`irtool run`: what it prints, stores and compares, and how it fails. Every case is a command line in this process."""
from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irtool.cli.main import main
from irtool.interop.npz import Archive, decode, encode
from tests.test_verify import BAD

EXAMPLES = Path(__file__).parent.parent / "examples"
CHAIN = "graph(%x : Float(4)):\n" + "".join(
    f"  %{i + 1} : Float(4) = aten::exp(%{i or 'x'})\n" for i in range(10)) + "  return (%10)\n"
DIVIDE = "graph(%x : Float(2), %y : Float(2)):\n  %2 : Float(2) = aten::div(%x, %y)\n  %3 : Float(2) = aten::neg(%2)\n  return (%3)\n"


class Done:
    """What a command left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


def run(*words: object, text: str = "") -> Done:
    """`irtool run words` with `text` on standard input."""
    out, err = io.StringIO(), io.StringIO()
    code = main(["run", *map(str, words)], stdin=io.BytesIO(text.encode()), stdout=out, stderr=err)
    assert "Traceback" not in err.getvalue()
    return Done(code, out.getvalue(), err.getvalue())


def npz(path: Path, arrays: dict[str, Any], **lists: list[str]) -> Path:
    path.write_bytes(encode(Archive({key: np.asarray(array) for key, array in arrays.items()}, **lists)))
    return path


def load(path: Path) -> Archive:
    return decode(path.read_bytes(), str(path))


class TestOutputs:
    def test_lines(self) -> None:
        done = run("-", "--input", "x=2x2xf32=1,2,3,4", "--input", "n=3",
                   text="graph(%x : Float(2, 2), %n : int):\n  %y : Tensor = aten::mul(%x, %n)\n"
                        "  %l : int[] = prim::ListConstruct(%n, %n)\n  return (%y, %n, %l)\n")
        assert (done.code, done.err) == (0, "")
        assert done.out == "output0 %y: float32 (2, 2)\n  [[ 3.  6.]\n   [ 9. 12.]]\noutput1 %n: int 3\noutput2 %l: list of 2 [3, 3]\n"

    def test_json(self) -> None:
        done = run("-", "--json", "--input", "x=2xf32=1,nan", text="graph(%x : Float(2)):\n  return (%x)\n")
        assert json.loads(done.out) == {"schema": 1, "outputs": [{"key": "output0", "name": "x", "type": "Float(2)", "value": {
            "dtype": "float32", "shape": [2], "data": [1.0, "nan"]}}]}

    def test_a_table_on_a_terminal(self) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        out = Terminal()
        words = ["run", str(EXAMPLES / "mlp.ir"), str(EXAMPLES / "mlp_inputs.npz"), "--color=never"]
        assert main(words, stdout=out, stderr=io.StringIO()) == 0
        assert "output0 %9" in out.getvalue() and "float32 (4, 3)" in out.getvalue() and "0.87506175" in out.getvalue()

    def test_stored_outputs_can_be_expected(self, tmp_path: Path) -> None:
        graph = "graph(%x : Tensor):\n  %l : Tensor[] = prim::ListConstruct(%x, %x)\n  %n : NoneType = prim::Constant()\n" \
                "  %e : int[] = prim::ListConstruct()\n  return (%x, %l, %n, %e)\n"
        words = ["-", "--input", "x=2xf32=1,2"]
        assert run(*words, "-o", tmp_path / "out.npz", text=graph).out == ""
        stored = load(tmp_path / "out.npz")
        assert list(stored.arrays) == ["output0", "output1.0", "output1.1", "output2", "output3"] and stored.none == {"output2"}
        done = run(*words, "--expect", tmp_path / "out.npz", text=graph)
        assert done.code == 0 and done.out.endswith(f"5 of 5 agree with {tmp_path / 'out.npz'}\n")

    def test_none_has_the_declared_shape_in_the_file(self, tmp_path: Path) -> None:
        run("-", "-o", tmp_path / "o.npz", text="graph():\n  %n : Double(2, 3) = prim::AutogradZero()\n  return (%n)\n")
        stored = load(tmp_path / "o.npz")
        assert stored.none == {"output0"} and stored.arrays["output0"].shape == (2, 3) and stored.arrays["output0"].dtype == np.float64

    def test_bfloat16_outputs_are_listed(self, tmp_path: Path) -> None:
        run("-", "--input", "x=2xbf16=1.001", "-o", tmp_path / "o.npz", text="graph(%x : BFloat16(2)):\n  return (%x)\n")
        assert load(tmp_path / "o.npz").bfloat16 == {"output0"}

    def test_no_file_is_written_when_the_run_fails(self, tmp_path: Path) -> None:
        done = run("-", "--input", "x=2xf32=1", "-o", tmp_path / "o.npz",
                   text="graph(%x : Tensor):\n  %1 : Tensor = aten::mm(%x, %x)\n  return (%1)\n")
        assert done.code == 1 and not list(tmp_path.iterdir())

    def test_an_output_that_cannot_be_written(self, tmp_path: Path) -> None:
        done = run("-", "--input", "x=1", "-o", tmp_path / "no" / "o.npz", text="graph(%x : int):\n  return (%x)\n")
        assert done.code == 2 and "cannot write" in done.err


class TestExpect:
    def expect(self, tmp_path: Path, array: Any, *words: str) -> Done:
        path = npz(tmp_path / "e.npz", {"output0": array})
        return run("-", "--input", "x=2xf32=1,2", "--expect", path, *words, text="graph(%x : Float(2)):\n  return (%x)\n")

    def test_the_worst_element_and_what_would_pass(self, tmp_path: Path) -> None:
        done = self.expect(tmp_path, np.float32([1, 2.5]))
        assert done.code == 1
        assert "output0: 2.0 at [1], expected 2.5 (off by 0.5, 0.2 relative); 1 of 2 elements differ" in done.out
        assert "would pass with --atol=0.5 or --rtol=0.2" in done.out and "0 of 1 agree" in done.out

    @pytest.mark.parametrize("word", ["--atol=0.5", "--rtol=0.2"])
    def test_what_it_names_does_pass(self, tmp_path: Path, word: str) -> None:
        assert self.expect(tmp_path, np.float32([1, 2.5]), word).code == 0

    def test_default_tolerances_forgive_rounding(self, tmp_path: Path) -> None:
        assert self.expect(tmp_path, np.float32([1, 2.000001])).code == 0
        assert self.expect(tmp_path, np.float32([1, 2.000001]), "--rtol=0", "--atol=0").code == 1

    @pytest.mark.parametrize("array, reason", [
        (np.zeros(3, "f"), "shape (2,), expected (3,)"),
        (np.zeros(2), "dtype float32, expected float64"),
        (np.float32([1, np.nan]), "no tolerance would pass"),
    ])
    def test_other_differences(self, tmp_path: Path, array: Any, reason: str) -> None:
        done = self.expect(tmp_path, array)
        assert done.code == 1 and reason in done.out

    def test_missing_and_surplus_members(self, tmp_path: Path) -> None:
        path = npz(tmp_path / "e.npz", {"output1": np.zeros(1)})
        done = run("-", "--input", "x=1", "--expect", path, text="graph(%x : int):\n  return (%x)\n")
        assert done.code == 1 and "output1: missing" in done.out and "output0: not expected" in done.out

    def test_json(self, tmp_path: Path) -> None:
        record = json.loads(self.expect(tmp_path, np.float32([1, 2.5]), "--json").out)
        assert record["schema"] == 1 and record["is_equal"] is False
        assert record["members"][0]["worst"] == [1] and record["members"][0]["atol_needed"] == 0.5

    @pytest.mark.parametrize("word", ["--rtol=-1", "--atol=nan", "--rtol=x"])
    def test_wrong_tolerances(self, tmp_path: Path, word: str) -> None:
        assert self.expect(tmp_path, np.float32([1, 2]), word).code == 2


class TestWatching:
    def test_the_first_nan_is_named_with_its_line_and_operands(self) -> None:
        done = run("-", "--check=nan", "--input", "x=2xf32=1,0", "--input", "y=2xf32=2,0", text=DIVIDE)
        assert done.code == 1
        assert done.err.startswith("<stdin>:2:3: error: aten::div made %2 with nan: 1 of 2 elements, first at [1] [E0411]\n"
                                   "  %2 : Float(2) = aten::div(%x, %y)\n")
        assert "note: %x: float32 (2,), 0 to 1\n" in done.err

    def test_infinities_only_when_asked_for(self) -> None:
        words = ["--input", "x=2xf32=1", "--input", "y=2xf32=0"]
        assert run("-", "--check=nan", *words, text=DIVIDE).code == 0
        assert "with inf: 2 of 2 elements" in run("-", "--check=nan,inf", *words, text=DIVIDE).err

    def test_inputs_and_constants_count(self) -> None:
        done = run("-", "--check=nan", "--input", "x=2xf32=nan", "--input", "y=2xf32=0", text=DIVIDE)
        assert done.code == 1 and "input 0 '%x' holds nan: 2 of 2" in done.err
        text = "graph():\n  %c : float = prim::Constant[value=inf]()\n  return (%c)\n"
        assert "<stdin>:2:3: error: the constant %c holds inf" in run("-", "--check=inf", text=text).err

    def test_inside_a_loop(self) -> None:
        text = ("graph(%x : Float(1), %n : int):\n  %t : bool = prim::Constant[value=1]()\n  %y : Tensor = prim::Loop(%n, %t, %x)\n"
                "    block0(%i : int, %z : Tensor):\n      %w : Tensor = aten::log(%z)\n      -> (%t, %w)\n  return (%y)\n")
        assert "<stdin>:5:7: error: aten::log made %w with nan" in run("-", "--check=nan", "--input", "x=1xf32=0.5", "--input", "n=2",
                                                                     text=text).err

    def test_trace(self) -> None:
        done = run("-", "--trace", "--input", "x=2xf32=1,2", "--input", "y=2xf32=1", text=DIVIDE)
        assert done.err == ("%2 : Float(2) = aten::div(%x, %y)\n    %2: float32 (2,), 1 to 2\n"
                            "%3 : Float(2) = aten::neg(%2)\n    %3: float32 (2,), -2 to -1\n")

    def test_a_chain_peaks_at_two_buffers(self) -> None:
        done = run("-", "--trace-memory", "--input", "x=4xf32=0", text=CHAIN)
        assert done.err.splitlines()[0] == "16 bytes in 1 buffer after the inputs"
        assert done.err.splitlines()[-1] == "peak: 32 bytes in 2 buffers after %1 = aten::exp"

    def test_a_loop_peaks_at_two_buffers(self) -> None:
        text = ("graph(%x : Float(4), %n : int):\n  %t : bool = prim::Constant[value=1]()\n  %y : Tensor = prim::Loop(%n, %t, %x)\n"
                "    block0(%i : int, %z : Tensor):\n      %w : Tensor = aten::neg(%z)\n      -> (%t, %w)\n  return (%y)\n")
        done = run("-", "--trace-memory", "--input", "x=4xf32=1", "--input", "n=50", text=text)
        assert done.err.splitlines()[-1].startswith("peak: 32 bytes in 2 buffers")

    def test_intermediates(self, tmp_path: Path) -> None:
        text = ("graph(%file : Float(1), %n : int):\n  %t : bool = prim::Constant[value=1]()\n  %none : NoneType = prim::Constant()\n"
                "  %y : Tensor = prim::Loop(%n, %t, %file)\n    block0(%i : int, %z : Tensor):\n"
                "      %w : Tensor = aten::add_(%z, %z, %n)\n"
                "      -> (%t, %w)\n  return (%y)\n")
        done = run("-", "--save-intermediates", tmp_path / "all.npz", "--input", "file=1xf32=1", "--input", "n=2", text=text)
        assert done.code == 0, done.err
        stored = {key: array.tolist() for key, array in load(tmp_path / "all.npz").arrays.items()}
        assert stored == {"file": [1], "n": 2, "t": True, "w": [3], "w#2": [9], "y": [9]}

    def test_intermediates_of_a_run_that_failed(self, tmp_path: Path) -> None:
        path = tmp_path / "all.npz"
        done = run("-", "--save-intermediates", path, "--check=nan", "--input", "x=2xf32=0", "--input", "y=2xf32=0", text=DIVIDE)
        assert done.code == 1 and "2" in load(path).arrays

    def test_a_check_that_is_none(self) -> None:
        done = run("-", "--check=nam", text=DIVIDE)
        assert done.code == 2 and "not 'nam' (did you mean 'nan'?)" in done.err


class TestWhatToRun:
    TWO = "# graph f: f_real_outputs=1\ngraph(%0 : int):\n  return (%0)\n# graph g:\ngraph(%0 : int):\n  return (%0, %0)\n"
    PAIR = TWO.replace("# graph g:", "# graph df: of=f")

    def test_several_graphs_need_a_name(self) -> None:
        done = run("-", "--input", "0=1", text=self.TWO)
        assert done.code == 1 and "--graph f, --graph g" in done.err
        assert run("-", "--graph=g", "--input", "0=1", text=self.TWO).out == "output0 %0: int 1\noutput1 %0: int 1\n"
        assert "expected one of: f, g" in run("-", "--graph=h", text=self.TWO).err

    def test_a_pair_that_does_not_fit(self) -> None:
        for words in ([], ["--pair=f"]):
            done = run("-", *words, "--input", "0=1", text=self.PAIR)
            assert done.code == 1 and "graph 'df' has no df_input_vjps" in done.err
        assert run("-", "--graph=df", "--input", "0=1", text=self.PAIR).code == 0

    def test_a_file_without_a_graph(self) -> None:
        done = run("-", text="just words\n")
        assert done.code == 1 and done.err.count("error:") == 1

    def test_python_ops_are_loaded(self, tmp_path: Path) -> None:
        op = tmp_path / "op.py"
        op.write_text("import irtool\nirtool.register_python_op('RunCliTwice', lambda x: x + x)\n")
        text = "graph(%x : Float(1)):\n  %1 : Float(1) = ^RunCliTwice()(%x)\n  return (%1)\n"
        before = run("-", "--input", "x=1xf32=2", text=text)
        assert before.code == 1 and "RunCliTwice" in before.err and "--load" in before.err
        assert "[4.]" in run("-", "--load", op, "--input", "x=1xf32=2", text=text).out

    def test_a_python_file_that_raises(self, tmp_path: Path) -> None:
        op = tmp_path / "op.py"
        op.write_text("\n1 / 0\n")
        done = run("-", "--load", op, text="graph():\n  return ()\n")
        assert done.code == 1 and f"{op}:2:1: error: ZeroDivisionError: division by zero [E0607]\n1 / 0\n^~~~~\n" == done.err
        assert run("-", "--load", tmp_path / "none.py", text="graph():\n  return ()\n").code == 2

    def test_the_seed_decides_random_numbers(self) -> None:
        text = "graph(%x : Float(5)):\n  return (%x)\n"
        one, again, other = (run("-", "--input", "x=5xf32=randn", "--seed", seed, text=text).out for seed in (1, 1, 2))
        assert one == again != other

    def test_an_operator_nobody_has(self) -> None:
        done = run("-", "--input", "x=1xf32=0", text="graph(%x : Tensor):\n  %1 : Tensor = aten::no_such_op(%x)\n  return (%1)\n")
        assert done.code == 1 and "aten::no_such_op" in done.err and done.err.startswith("<stdin>:2:17: error:")


class TestBadInputs:
    GRAPH = "graph(%x : Float(2)):\n  return (%x)\n"

    @pytest.mark.parametrize("words, code, message", [
        (["in.npz"], 2, "in.npz: no such file"),
        (["."], 2, "is a directory"),
        (["--input", "x"], 2, "expected NAME=VALUE"),
        (["--input", "=1"], 2, "expected NAME=VALUE"),
        (["--input", "x=2xf32=0", "--input", "x=2xf32=1"], 2, "given twice"),
        (["--input", "x=2xf32=zz"], 2, "--input x: "),
        (["--input", "x=99999x99999x99999xf32=0"], 2, "larger than 1 GiB"),
        (["--input", "x=@none.npy"], 2, "none.npy: no such file"),
        (["--input", "y=1"], 1, "no such input"),
        ([], 1, "no value for 'x'"),
        (["--input", "x=3xf32=0"], 1, "input 0 '%x': expected Float(2), got float32 (3,)"),
        (["--input", "x=2xf64=0"], 1, 'array.astype("float32"), or add --cast'),
        (["--seed=x"], 2, "expected an integer"),
        (["--frobnicate"], 2, "no such option"),
    ])
    def test_each_has_its_message_and_exit_code(self, words: list[str], code: int, message: str, tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        done = run("-", *words, text=self.GRAPH)
        assert (done.code, message in done.err) == (code, True), done.err
        assert not done.out and not list(tmp_path.iterdir())

    @pytest.mark.parametrize("content, message", [
        (b"", "damaged, or not an .npz"),
        (b"PK\x03\x04 nonsense", "damaged, or not an .npz"),
    ])
    def test_damaged_files(self, content: bytes, message: str, tmp_path: Path) -> None:
        path = tmp_path / "in.npz"
        path.write_bytes(content)
        done = run("-", path, text=self.GRAPH)
        assert done.code == 1 and message in done.err

    def test_object_arrays_are_refused(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "in.npz", x=np.array([print], dtype=object))
        done = run("-", tmp_path / "in.npz", text=self.GRAPH)
        assert done.code == 1 and "Python objects" in done.err

    def test_arrays_from_files(self, tmp_path: Path) -> None:
        np.save(tmp_path / "x.npy", np.float32([1, 2]))
        assert "[1. 2.]" in run("-", "--input", f"x=@{tmp_path / 'x.npy'}", text=self.GRAPH).out
        (tmp_path / "x.npy").write_bytes(b"no")
        assert run("-", "--input", f"x=@{tmp_path / 'x.npy'}", text=self.GRAPH).code == 1

    def test_cast(self, tmp_path: Path) -> None:
        path = npz(tmp_path / "in.npz", {"x": np.array([1.5, 2])})
        assert run("-", path, text=self.GRAPH).code == 1
        assert run("-", path, "--cast", text=self.GRAPH).out.startswith("output0 %x: float32 (2,)")

    @pytest.mark.parametrize("type, value, words", [
        ("int", np.array(np.nan), ["--cast"]), ("int", np.array(np.inf), ["--cast"]), ("int", np.array(1j), ["--cast"]),
        ("float", np.array(1j), ["--cast"]), ("int", np.array(2**64 - 1, np.uint64), []), ("int[]", np.array([np.nan]), ["--cast"]),
    ])
    def test_numbers_that_do_not_fit(self, type: str, value: Any, words: list[str], tmp_path: Path) -> None:
        done = run("-", npz(tmp_path / "in.npz", {"x": value}), *words, text=f"graph(%x : {type}):\n  return (%x)\n")
        assert done.code == 1 and done.err.startswith(f"error: input 0 '%x': expected {type}, got ")

    @pytest.mark.parametrize("type, literal", [
        ("int", "9" * 30), ("Tensor", "9" * 30), ("float", "9" * 400), ("Dict(Tensor, int)", "{1: 2}")])
    def test_literals_that_do_not_fit(self, type: str, literal: str) -> None:
        done = run("-", "--input", f"x={literal}", text=f"graph(%x : {type}):\n  return (%x)\n")
        assert done.code == 1 and done.err.startswith(f"error: input 0 '%x': expected {type}, got ")


# -- Ctrl-C
STUCK = """
import ctypes, os, signal, threading
from irtool.cli.interrupt import interruptible
signal.signal(signal.SIGINT, signal.default_int_handler)
library, lock = ctypes.CDLL(None), ctypes.create_string_buffer(64)
library.pthread_mutex_lock(lock)
with interruptible(True):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    library.pthread_mutex_lock(lock)        # forever
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a lock of the C library, called by its name")
def test_an_interrupt_ends_what_runs_in_c() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK], timeout=60, capture_output=True)
    assert (done.returncode, done.stderr) == (130, b"")


def test_an_interrupted_run_stores_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "op.py").write_text("import irtool\ndef stop(x):\n    raise KeyboardInterrupt\nirtool.register_python_op('Stop', stop)\n")
    (tmp_path / "g.ir").write_text("graph(%x : Tensor):\n  %1 : Tensor = aten::neg(%x)\n  %2 : Tensor = ^Stop()(%1)\n  return (%2)\n")
    words = ["run", str(tmp_path / "g.ir"), "-i", "x=1.0", "--load", str(tmp_path / "op.py")]
    for more in (["--save-intermediates", str(tmp_path / "all.npz")], ["-o", str(tmp_path / "out.npz")]):
        assert main([*words, *more]) == 130
    assert capsys.readouterr().err == "" and not list(tmp_path.glob("*.npz"))


def test_an_empty_name_is_no_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--expect=$UNSET` must not mean that nothing is compared."""
    (tmp_path / "g.ir").write_text("graph(%x : Tensor):\n  return (%x)\n")
    for flag in ("--expect", "--graph", "--constants", "--cotangents", "--save-intermediates", "-o"):
        assert main(["run", str(tmp_path / "g.ir"), "-i", "x=1.0", f"{flag}="]) == 2
        assert "needs a value" in capsys.readouterr().err


class TestInvalidGraphs:
    @pytest.mark.parametrize("command", ["run", "grad", "gradcheck", "plan"])
    def test_commands_that_run_report_what_opt_reports(self, command: str) -> None:
        for line, _ in BAD:
            text = f"graph(%x : Tensor, %s : str, %p : (int, int, int)):\n  {line}\n  return (%x)\n"
            reports = []
            for words in (["opt"], [command, "-", "--input", "x=1xf32=0"]):
                out, err = io.StringIO(), io.StringIO()
                assert main(words, stdin=io.BytesIO(text.encode()), stdout=out, stderr=err) == 1
                reports.append((out.getvalue(), err.getvalue()))
            assert reports[0] == reports[1] and reports[0][0] == ""
