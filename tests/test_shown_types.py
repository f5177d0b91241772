"""`--types`: every command that prints IR prints it with short types or none, and nothing else of it changes."""
from __future__ import annotations

import io
import re
from pathlib import Path
from shutil import copyfile
from types import SimpleNamespace

import pytest

import irtool
from irtool.cli.commands import COMMANDS, load
from irtool.cli.main import main
from irtool.ir.module import Module
from irtool.ir.short_types import short_type
from irtool.text.parser import parse
from irtool.text.shown_types import diff_with_types, with_types
from irtool.text.tidy import tidy
from tests.random_graphs import Writer

EXAMPLES = Path(irtool.__file__).resolve().parents[1] / "examples"
GRAPH, OTHER = "mlp.ir", "lstm_cell.ir"
NEGATED = "graph(%x : Float(3, strides=[1], requires_grad=0, device=cpu)):\n  %y : Float(3, strides=[1], requires_grad=0, device=cpu) = " \
          "aten::neg(%x)\n  %z : Tensor = aten::sin(%y)\n  %s : Tensor = aten::sum(%z, %none)\n  return (%s)\n".replace(
              "  %s :", "  %none : NoneType = prim::Constant()\n  %s :")
FILES = {"f.py": "def f(x):\n    return x.sin()\n", "neg.ir": NEGATED,
         "g.py": "import torch\n\ndef g(x: torch.Tensor):\n    return torch.sin(x)\n",
         "tanh.ir": (EXAMPLES / GRAPH).read_text().replace("aten::relu", "aten::tanh")}
LINES = {
    "opt": [[GRAPH], [OTHER, "--passes=O1", "--print-changed", "--print-alias"], [OTHER, "--passes=cse", "--print-before-all"],
            ["tour.ir", "--passes=differentiate", "--print-changed=full"], ["mul_add_2018.ir"]],
    "show": [[GRAPH], [GRAPH, "--dot"], [GRAPH, "--svg"]],
    "run": [[GRAPH, "mlp_inputs.npz", "--trace"]],
    "plan": [[GRAPH, "mlp_inputs.npz"], [GRAPH, "mlp_inputs.npz", "--phases"], [GRAPH, "mlp_inputs.npz", "--backward-plan"],
             [GRAPH, "mlp_inputs.npz", "--print-after-all"], [GRAPH, "mlp_inputs.npz", "--profiling"]],
    "grad": [[GRAPH, "mlp_inputs.npz"]],
    "vmap": [[GRAPH, "--in-dims=0,None,None,None,None"]],
    "transform": [["neg.ir", "grad(0)", "-i", "x=3xf32=1"]],
    "gradcheck": [[GRAPH, "mlp_inputs.npz"]],
    "diff": [[GRAPH, OTHER], [GRAPH, "tanh.ir"]],
    "compare": [[GRAPH, "tanh.ir"]],
    "bisect": [["neg.ir", "--passes=drop-negations", "--load", "wrong_pass.py"]],
    "reduce": [["neg.ir", "--passes=drop-negations", "--load", "wrong_pass.py"]],
    "fmt": [[GRAPH], ["mul_add_2018.ir"], ["collatz.ir", "--check", "--renumber"], [GRAPH, "--syntax=2018-06"]],
    "convert": [[GRAPH, "out.npz"]],
    "decompile": [[GRAPH]],
    "compile": [["g.py"]],
    "trace": [["f.py:f", "-i", "x=2x3xf32=1"]],
    "check-operator": [["--help"]],
    "passes": [["cse"], ["differentiate"], []],
    "ops": [["aten::tanh"], []],
    "stats": [[GRAPH]],
    "inspect": [["model.pt"]],
    "explain": [["--help"]],      # its examples are what was typed, not what irtool prints
    "completion": [["bash"]],
}
"""Command lines that print all that the command has to print."""
TYPED = re.compile(r"%[\w.]+ ?: (?:Tensor|Dynamic|NoneType|Float|Double|Long)")
FULL = re.compile(r"%[\w.]+ ?: (?:Float|Double|Long)\(")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The examples, and FILES."""
    monkeypatch.chdir(tmp_path)
    for path in EXAMPLES.iterdir():
        if path.is_file():
            copyfile(path, tmp_path / path.name)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def printed(*words: str) -> str:
    """What a command writes to both streams."""
    out, err = io.StringIO(), io.StringIO()
    assert main(words, io.BytesIO(b""), out, err) < 2, err.getvalue()
    return out.getvalue() + err.getvalue()


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.usefixtures("folder")
def test_every_command_that_prints_ir_has_types(name: str) -> None:
    texts = [printed(name, *words) for words in LINES[name]]
    prints = any(TYPED.search(text) or "%x: f32[" in text for text in texts)
    assert prints == any(option.name == "types" for option in load(name).params), texts
    if not prints:
        return
    for words in LINES[name]:
        short, none = (printed(name, *words, f"--types={form}") for form in ("short", "none"))
        assert not FULL.search(short) and not TYPED.search(none), words
        assert short.count("\n") == none.count("\n")


@pytest.mark.parametrize("words", [["opt", GRAPH], ["fmt", GRAPH], ["opt", GRAPH, "--passes=dce"]])
def test_what_is_stored_can_be_read_again(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--types=short", "-o", "out.ir"]) == 2
    assert "irtool could not read out.ir again" in capsys.readouterr().err and not (folder / "out.ir").exists()


def canonical(text: str) -> str:
    """The text as `fmt` prints it."""
    module = parse(text)
    for graph in module.graphs:
        tidy(graph)
    return str(module)


def by_the_printer(text: str, form: str) -> str:
    """The same as `with_types`, by types that spell themselves so."""
    module = parse(text)
    for graph in every_graph(module):
        for value in graph.values():
            value.type = SimpleNamespace(text=short_type(value.type) if form == "short" else "NONE")    # type: ignore[assignment]
    return str(module).replace(" : NONE", "")


def every_graph(module: Module) -> list[irtool.Graph]:
    """The graphs of a module and of its nodes."""
    graphs = list(module.graphs)
    for graph in graphs:
        graphs += [inner for node in graph.walk() for inner in node.graphs.values()]
    return graphs


@pytest.mark.parametrize("form", ["short", "none"])
@pytest.mark.parametrize("source", ["lstm_cell.ir", "collatz.ir", "tour.ir", "mlp.ir", *range(30)])
def test_only_types_change(source: str | int, form: str) -> None:
    text = canonical((EXAMPLES / source).read_text() if isinstance(source, str) else Writer(source).graph())
    assert with_types(text, form) == by_the_printer(text, form)
    assert with_types(text, "full") == text


def test_strings_and_comments_stay() -> None:
    text = 'graph(%x : Float(2, 3)):\n  %s : str = prim::Constant[value="%x : Tensor \\" %y : int"]() # %x : Float(2)\n'
    assert with_types(text, "short") == text.replace("Float(2, 3)", "f32[2,3]")


def test_a_diff_shows_types_where_only_they_differ() -> None:
    lines = ["-  %a : Float(2, strides=[1]) = f(%x)", "+  %a : Float(2) = f(%x)", "   %b : Float(2) = g(%a)", "-  %c : Float(2) = h(%a)"]
    assert diff_with_types(lines, "short") == [*lines[:2], "   %b : f32[2] = g(%a)", "-  %c : f32[2] = h(%a)"]
    assert diff_with_types(["-  %a : Float(2) = f(%x)", "+  %a : Float(3) = f(%x)"], "none") == \
        ["-  %a : f32[2] = f(%x)", "+  %a : f32[3] = f(%x)"]
