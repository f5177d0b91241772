"""Arguments of the Python interface that do not fit are refused where they are given."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.cli.main import main

GRAPH = irtool.parse("graph(%x : Tensor):\n  %2 : Tensor = aten::mul(%x, %x)\n  return (%2)\n")


@pytest.mark.parametrize("options, message", [
    ({"native": "all"}, "native='all'; expected True, False or None"), ({"threads": 0}, "threads=0; expected at least 1"),
    ({"threads": "two"}, "threads='two'; expected at least 1")])
def test_options_of_compile(options: dict[str, Any], message: str) -> None:
    with pytest.raises(irtool.RunError, match=message):
        irtool.compile(GRAPH, **options)


def test_names_of_a_trace_differ() -> None:
    with pytest.raises(irtool.RunError, match="expected different ones"):
        irtool.trace(lambda x, y: x + y, [np.ones(2), np.ones(2)], ["a", "a"])


def test_a_traced_function_that_exits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its exit code is not irtool's: 0 would say that there is a graph."""
    path = tmp_path / "model.py"
    path.write_text("def f(x):\n    raise SystemExit(0)\n")
    assert main(["trace", f"{path}:f", "-i", "x=2xf32=1"]) == 1
    assert "SystemExit" in capsys.readouterr().err


# -- what calls of the interface are given: each with what its error says
X: Any = np.array([1, 2], np.float32)
lib: Any = irtool
NUMBERED = irtool.parse("graph(%x : Tensor, %n : int):\n  %2 : Tensor = aten::mul(%x, %n)\n  return (%2)\n")


def square(x: Any) -> Any:
    return (x * x).sum()


def ready() -> Any:
    return lib.compile(NUMBERED)


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "compile: a device": (lambda: lib.compile(NUMBERED, backend="cuda"), "compile: backend='cuda'; expected 'numpy' or 'cupy'"),
    "compile: a slip": (lambda: lib.compile(NUMBERED, backend="numpi"), "did you mean 'numpy'?"),
    "compile: a flag": (lambda: lib.compile(NUMBERED, optimize="no"), "compile: optimize='no'; expected True or False"),
    "compile: a bool": (lambda: lib.compile(NUMBERED, threads=True), "threads=True; expected at least 1"),
    "compile: an array": (lambda: lib.compile(NUMBERED, native=X), "native=ndarray of shape (2,); expected True, False or None"),
    "run: a number for the inputs": (lambda: lib.run(NUMBERED, 3), "run: expected a list of inputs, one per input of the graph"),
    "vjp: a number for the inputs": (lambda: lib.vjp(NUMBERED, 3, [X], [0]), "vjp: expected a list of inputs"),
    "freeze: a number for the values": (lambda: lib.freeze(NUMBERED, 3), "freeze: values=3; expected a dict of values"),
    "save: a number": (lambda: lib.save(3, "x.pt"), "save: expected a module as `load` returns it, a Module or a Graph, got int"),
    "functional_call: a number": (lambda: lib.functional_call(3, {}), "functional_call: expected a module as `load` returns it, got int"),
    "debug_state: a number": (lambda: lib.debug_state(3), "debug_state: expected an executor, as `compile` makes it, got int"),
    "register_hook: no function": (lambda: lib.grad(lambda x: (lib.register_hook(x, 3), square(x))[1])(X),
                                   "register_hook: expected a function, got int"),
    "register_hook: a word as gradient": (lambda: lib.grad(lambda x: (lib.register_hook(x, lambda g: "a"), square(x))[1])(X),
                                          "expected a tensor as gradient, but hook returned 'a'"),
    "run: a word": (lambda: lib.run(NUMBERED, [X, "1"]), "input %n: expected int, got '1'"),
    "run: a seed": (lambda: lib.run(NUMBERED, [X, 1], seed="x"), "run: seed='x'; expected an integer that is not negative"),
    "run: an observer": (lambda: lib.run(NUMBERED, [X, 1], observer=3), "run: observer=3; expected"),
    "vjp: wrt no list": (lambda: lib.vjp(NUMBERED, [X, 1], [X], 0), "vjp: wrt=0; expected a list of positions of inputs, 0 (%x"),
    "vjp: wrt a name": (lambda: lib.vjp(NUMBERED, [X, 1], [X], ["x"]), "wrt names input 'x'; expected positions of inputs"),
    "vjp: wrt too high": (lambda: lib.vjp(NUMBERED, [X, 1], [X], [2]), "wrt names input 2, the graph has 2: 0 (%x"),
    "vjp: wrt an int": (lambda: lib.vjp(NUMBERED, [X, 1], [X], [1]), "wrt names input 1 (%n : int), which has no gradient"),
    "vjp: wrt whole numbers": (lambda: lib.vjp(NUMBERED, [X.astype(int), 1], [X], [0]), "it is a tensor of int64"),
    "vjp: no cotangents": (lambda: lib.vjp(NUMBERED, [X, 1], None, [0]), "vjp: expected a list of cotangents, one per tensor"),
    "vjp: an array of cotangents": (lambda: lib.vjp(NUMBERED, [X, 1], X, [0]), "expected a list of cotangents"),
    "vjp: ragged": (lambda: lib.vjp(NUMBERED, [X, 1], [[1, [2]]], [0]), "a cotangent is an array of numbers or None, not list"),
    "vjp: complex": (lambda: lib.vjp(NUMBERED, [X, 1], [X + 1j], [0]), "a cotangent is of complex64, its output of float32"),
    "vjp: no graph": (lambda: lib.vjp("graph", [X, 1], [X], [0]), "vjp: expected a Module or a Graph, got str"),
    "executor: too few": (lambda: ready()(X), "expected 2 inputs, but got only 1; the graph takes (%x : Tensor, %n : int)"),
    "executor: a seed": (lambda: ready()(X, 1, seed=-3), "run: seed=-3; expected an integer that is not negative"),
    "executor.run: an array": (lambda: ready().run(X), "run: expected a list of inputs, one per input of the graph (%x"),
    "executor.vjp: wrt an int": (lambda: ready().vjp([X, 1], [X], [1]), "which has no gradient"),
    "executor.vjp: wrt no list": (lambda: ready().vjp([X, 1], [X], 0), "vjp: wrt=0"),
    "executor.record: wrt": (lambda: ready().record([X, 1], "x"), "record: wrt='x'"),
    "executor.plan_for: wrt": (lambda: ready().plan_for(X, 1, wrt=[7]), "plan_for: wrt names input 7, the graph has 2"),
    "backward": (lambda: ready().record([X, 1], [0]).backward(None), "backward: expected a list of cotangents"),
    "hook: a place": (lambda: ready().record([X, 1], [0]).hook_output(3, print), "index=3; expected the position of an output"),
    "hook: no function": (lambda: ready().record([X, 1], [0]).hook_output(0, 3), "hook_output: expected a function, got int"),
    "hook: a position": (lambda: ready().record([X, 1], [0]).hook_input(1, print), "position=1; expected a position in wrt, which is [0]"),
    "grad: no function": (lambda: lib.grad(3), "grad: expected a function, got int"),
    "grad: too many": (lambda: lib.grad(square)(X, X), "the function is called with 2 arguments: square() takes 1 positional"),
    "grad: unused": (lambda: lib.grad(square, unused="zero"), "unused='zero'; expected 'zeros' or 'none' (did you mean 'zeros'?)"),
    "grad: an aux": (lambda: lib.grad(square, has_aux=True)(X), "it gave a tensor of shape []"),
    "grad: a tree with None": (lambda: lib.grad(lambda d: d["a"].sum())({"a": X, "b": None}), "argument 0 has a NoneType in it; expected"),
    "grad: for a number": (lambda: lib.grad(lambda s: lib.torch.full((2,), s).sum())(X[0]), "'fill_value' is a number, which has no"),
    "jvp: for a number": (lambda: lib.jvp(lambda s: lib.torch.add(X, X, alpha=s), (X[0],), (X[0],)), "argument 'alpha' is a number"),
    "vjp: a text": (lambda: lib.dispatch.vjp(lambda x, t: x, X, ["t"]), "vjp: argument 1 has a str in it; expected tensors"),
    "jvp: a tree with None": (lambda: lib.jvp(lambda d: d[0], ([X, None],), ([X, None],)), "jvp: argument 0 has a NoneType in it"),
    "jvp: gives a number": (lambda: lib.jvp(lambda x: 3, (X,), (X,)), "jvp: the function must give tensors, it gave int"),
    "jacfwd: gives a number": (lambda: lib.jacfwd(lambda x: 3)(X), "jacfwd: the function must give tensors, it gave int"),
    "jacfwd: integers": (lambda: lib.jacfwd(square)(X.astype(int)), "numbers have tangents, argument 0 has a tensor of int64"),
    "jacrev: integers": (lambda: lib.jacrev(lambda x, n: x * n, argnums=1)(X, X.astype(int)), "argument 1 has a tensor of int64 in it"),
    "vmap: an index": (lambda: lib.vmap(lambda k: lib.torch.select(lib.Tensor(X), 0, k))(np.arange(2)), "a batched tensor as 'index': it"),
    "functional: a number": (lambda: lib.torch.nn.functional.softmax(3.0, 0), "softmax: 'float' object has no attribute"),
    "func: a module": (lambda: lib.torch.func.functional_call, "see irtool.functional_call"),
    "jvp: a number": (lambda: lib.jvp(square, (X,), (3,)), "a tangent is int, its primal a tensor of shape [2]"),
    "dispatch.vjp: a word": (lambda: lib.dispatch.vjp(square, X)[1]("a"), "a cotangent is str, its output a tensor of shape []"),
    "vmap: a chunk": (lambda: lib.vmap(square, chunk_size="x"), "chunk_size should be None or greater than 0. (got 'x')"),
    "vmap: a slip": (lambda: lib.vmap(square, randomness="diferent"), "did you mean 'different'?"),
    "jit: no function": (lambda: lib.jit(3), "jit: expected a function, got int"),
    "jit: no tensor": (lambda: lib.jit(lambda x: {1})(X), "jit: the function must give tensors, numbers, texts, None, and"),
    "trace: too many names": (lambda: lib.trace(square, [X], ["a", "b"]), "2 names for 1 values among the arguments: b too many"),
    "trace: no name": (lambda: lib.trace(square, [X], ["a b"]), "'a b' is no name of an input"),
    "trace: no list": (lambda: lib.trace(square, X), "trace: expected a list of arguments, one per parameter"),
    "hessian: no function": (lambda: lib.hessian("f"), "hessian: expected a function, got str"),
    "custom_vjp: forward": (lambda: lib.custom_vjp(square, square)(X), "forward must give a tuple (output, saved), it gave a tensor"),
    "custom_vjp: backward": (lambda: lib.grad(lib.custom_vjp(lambda x: (x.sum(), 0), lambda g, s: ["a"]))(X),
                             "gave str for a gradient"),
    "verify": (lambda: lib.verify("graph"), "verify: expected a Module or a Graph, got str"),
    "from_script": (lambda: lib.from_script(square), "from_script: expected the source as text (str), got function"),
    "to_script": (lambda: lib.to_script(None), "to_script: expected a Module or a Graph, got NoneType"),
    "gradcheck": (lambda: lib.gradcheck(NUMBERED, [X, 1], order=0), "gradcheck: order=0; expected at least 1"),
    "gradcheck: a tolerance": (lambda: lib.gradcheck(NUMBERED, [X, 1], rtol=-1), "rtol=-1; expected a number that is not negative"),
    "register_python_op": (lambda: lib.register_python_op("a b", square), "expected the name of an operator, such as 'Twice'"),
    "register_python_op: no function": (lambda: lib.register_python_op("Twice", 3), "register_python_op: Twice: expected a function"),
    "Builder": (lambda: lib.Builder("graph"), "Builder: expected a Graph, got str"),
    "an operator: a dtype": (lambda: lib.torch.zeros(2, dtype="float32"), "'dtype' takes a dtype, such as torch.float32, not str"),
    "an operator: a tensor": (lambda: lib.torch.cat(X, X), "the argument 'tensors' takes Tensor[], not "),
    "an operator: a list": (lambda: lib.torch.zeros((2, 2.5)), "the argument 'size' takes int[], not list of float, int"),
    "an operator: too many": (lambda: lib.torch.relu(lib.Tensor(X), 3), "aten::relu() expected at most 1 argument(s) but received 2"),
    "an operator: too few": (lambda: lib.torch.softmax(lib.Tensor(X)), "is missing value for argument 'dim'"),
    "an operator: no such argument": (lambda: lib.torch.randn(2, sead=3), "aten::randn() has no argument 'sead'"),
    "freeze: a position": (lambda: lib.freeze(NUMBERED, {2: 3}), "freeze: no input is at position 2, there are 0 (%x"),
    "parse: a path": (lambda: lib.parse("graphs/model.ir"), "found 'graphs/model.ir'; this is the name of a file, which irtool.load reads"),
    "a pass in capitals": (lambda: lib.PassManager("DCE"), "did you mean 'dce'?"),
    "a preset": (lambda: lib.PassManager("o1"), "did you mean 'O1'?"),
    "a name": (lambda: lib.compil, "did you mean 'compile'?"),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    call, message = CALLS[name]
    with pytest.raises(irtool.Error) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize("target", ["none/x.pt", "."])
def test_a_file_that_cannot_be_written_has_the_name_that_was_given(target: str, tmp_path: Path) -> None:
    """Not that of the file which is renamed at the end."""
    path = tmp_path / target
    with pytest.raises(OSError) as caught:
        irtool.save(NUMBERED, path)
    assert (caught.value.filename, caught.value.filename2) == (str(path), None)
    assert list(tmp_path.iterdir()) == []


def test_what_a_function_raises_itself_stays() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        irtool.grad(lambda x: None + 1)(X)      # type: ignore[operator]


# -- the command line
MODEL = """def scaled(x, n=2, *, m=1):
    return x * n * m

def wrong(x):
    y = x * 2
    return y.summ()

def refused(x):
    return helper(x)

def helper(x):
    return x.view(7)

def raises(x):
    raise ValueError("no")
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "broken.py").write_text("def f(x:\n")
    (tmp_path / "graph.ir").write_text("graph(%x : Float(2), %n : int):\n  %2 : Float(2) = aten::mul(%x, %n)\n  return (%2)\n")
    return tmp_path


TRACES = {
    "model.py:wrong":
        "model.py:6:12: error: a Tensor has no method 'summ' (did you mean 'sum'?) [E0002]\n    return y.summ()\n           ^~~~~~\n",
    "model.py:refused":
        "model.py:12:12: error: shape '[7]' is invalid for input of size 2 [E0407]\n    return x.view(7)\n           ^~~~~~~~~\n",
    "model.py:raises": "model.py:15:5: error: ValueError: no [E0607]\n    raise ValueError(\"no\")\n    ^~~~~~~~~~~~~~~~~~~~~~\n",
    "model.py:scale": "error: model.py: there is no function 'scale' (did you mean 'scaled'?), "
                      "expected one of: scaled, wrong, refused, helper, raises [E0605]\n",
    "broken.py:f": "broken.py:1:6: error: '(' was never closed [E0607]\ndef f(x:\n     ^\n",
}


@pytest.mark.parametrize("function", TRACES)
def test_errors_of_traced_functions_have_places(function: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", function, "-i", "x=2xf32=1"]) == 1
    assert capsys.readouterr().err == TRACES[function]


def test_parameters_with_defaults_are_given_by_name(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers are constants of the function, arrays are inputs."""
    assert main(["trace", "model.py:scaled", "-i", "x=2xf32=1", "-i", "n=5", "-i", "m=2xf32=3"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("graph(%x : Float(2,") and "%m : Float(2," in text and "prim::Constant[value=5]" in text
    assert main(["trace", "model.py:scaled", "-i", "x=2xf32=1", "-i", "k=5"]) == 1


COMMANDS = {
    "run graph.ir -i x=2xf32=1 -i n=3 --requires-grad y": (2, "--requires-grad: no input is called 'y'; the graph has x, n"),
    "run graph.ir -i x=2xf32=1 -i n=3 --requires-grad n": (1, "input %n is no floating-point tensor"),
    "vmap graph.ir --in-dims 0,0,0": (2, "error: --in-dims: 3 dimensions, the graph has 2 inputs (%x : Float(2), %n : int)"),
    "vmap graph.ir --in-dims a": (2, "error: --in-dims: expected a dimension or None, not 'a'"),
    "plan graph.ir -i x=2xf32=1 -i n=3 --defined 0": (2, "it needs --backward-plan"),
    "trace :f": (2, "expected FILE.py:FUNCTION, not ':f'"),
}


@pytest.mark.parametrize("words", COMMANDS)
def test_wrong_command_lines(words: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, message = COMMANDS[words]
    assert main(words.split()) == code
    assert message in capsys.readouterr().err


def test_a_wrong_command_line_is_json_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--diagnostics-format=json", "nosuch.ir"]) == 2
    assert json.loads(capsys.readouterr().err)["message"] == "nosuch.ir: no such file or directory"


# -- graphs that are none, or have no meaning here
DATA = Path(__file__).parent / "data"


def test_a_plan_of_what_is_no_graph_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    path = DATA / "malformed/if_results_differ.ir"
    assert main(["plan", str(path), "--spec", "bool, Float(*, requires_grad=1)"]) == 1
    assert f"{path}:4:17: error: block1 of prim::If gives 0 values, expected 1" in capsys.readouterr().err
    with pytest.raises(irtool.VerifyError, match="block1 of prim::If"):
        irtool.compile(irtool.parse(path.read_text())).vjp([True, X], [X], [1])


@pytest.mark.parametrize("more", [[], ["--interpret"], ["--backward"]])
def test_loops_of_2018_02_are_refused_by_name(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = DATA / "corpus/2018-02_TestJit.test_script_while_write_outer_then_read_3ffd6ffa7.txt"
    assert main(["run", str(path), "-i", "a=1.0", "-i", "b=2.0", *more]) == 1
    assert f"{path}:6:44: error: a Loop whose block takes its condition" in capsys.readouterr().err


def test_what_only_plans_can_do_is_refused_elsewhere(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (model / "pair.ir").write_text(str(irtool.PassManager("differentiate").run(irtool.parse((model / "graph.ir").read_text()))))
    for words, message in (("run pair.ir -i x=2xf32=1 -i n=3 --stats", "--stats is for one graph: add --graph f or --graph df"),
                           ("run graph.ir -i x=2xf32=1 -i n=3 --interpret --threads 2", "is for plans; with --interpret")):
        assert main(words.split()) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("wrt, message", [
    ([1], "wrt names argument 1, the method takes 1"), ([-1], "wrt names argument -1"), ([True], "wrt names argument True"),
    ([None], "wrt names argument None"), (0, "wrt=0; expected a list"), ("head.bias", "wrt='head.bias'; expected a list")])
def test_gradients_of_arguments_that_a_method_lacks(wrt: Any, message: str) -> None:
    """They were those of parameters."""
    module: Any = irtool.load(Path(__file__).parent / "data" / "archives" / "net_traced.pt")
    with pytest.raises(irtool.RunError, match=message):
        module.vjp("forward", [np.ones((1, 2, 4, 4), np.float32)], [np.ones((1, 3), np.float32)], wrt)
