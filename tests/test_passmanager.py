"""Pipelines: how they are read, what their errors point at, and what the pass manager promises."""
from __future__ import annotations

from typing import Any

import pytest

import irtool
from irtool.ir.graph import Graph
from irtool.ir.source import Diagnostic
from irtool.passes import BY_NAME, PASSES, Pass, PassOption
from irtool.passmanager import Observer, PassManager, PassRecord
from irtool.pipelines import ORDER, PRESETS, Step, expand, parse_pipeline

TEXT = """graph(%a : Tensor,
      %b : Tensor):
  %c : int = prim::Constant[value=1]()
  %d : Tensor = aten::add(%a, %b, %c)
  %e : Tensor = aten::mul(%a, %b)
  %f : int = prim::Constant[value=1]()
  %g : Tensor = aten::add(%a, %b, %f)
  %h : Tensor = aten::mul(%d, %g)
  return (%h)
"""


def every_option(graph: Graph, flag: bool = False, count: int = 3, ratio: float = 0.5, text: str = "x", sizes: tuple[int, ...] = (),
                 limit: int | None = None, *, on_by_default: bool = True) -> bool:
    """A pass with an option of every type; it records them on itself."""
    every_option.seen = {k: v for k, v in locals().items() if k != "graph"}     # type: ignore[attr-defined]
    return False


def needs_option(graph: Graph, size: int) -> bool:
    """A pass with an option that has no default."""
    return False


@pytest.fixture(autouse=True)
def test_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_NAME, "every-option", Pass("every-option", every_option))
    monkeypatch.setitem(BY_NAME, "needs-option", Pass("needs-option", needs_option))


@pytest.mark.parametrize("text, options", [
    ("every-option", {}),
    ("every-option{}", {}),
    ("every-option{flag}", {"flag": True}),
    ("every-option { flag = true }", None),
    ("every-option{ flag=false\n count=12 }", {"flag": False, "count": 12}),
    ("every-option{count=-4 ratio=1e-3}", {"count": -4, "ratio": 1e-3}),
    ("every-option{text=a.b+c}", {"text": "a.b+c"}),
    ('every-option{text="a b, \\"c\\" \\\\ {}="}', {"text": 'a b, "c" \\ {}='}),
    ("every-option{sizes=1,2,3 flag}", {"sizes": (1, 2, 3), "flag": True}),
    ("every-option{on-by-default=false limit=7}", {"on_by_default": False, "limit": 7}),
])
def test_options_are_typed_by_the_pass(text: str, options: dict[str, object] | None) -> None:
    if options is None:
        with pytest.raises(irtool.PipelineError):
            parse_pipeline(text)
        return
    (step,) = parse_pipeline(text)
    assert step.options == options
    assert [type(value) for value in step.options.values()] == [type(value) for value in options.values()]


@pytest.mark.parametrize("text", [
    "every-option", 'every-option{flag sizes=1,2 text="a b" limit=9}', " dce ,\n cse ", "O1", "",
    'every-option{text=""}'])
def test_a_dumped_pipeline_reads_back_as_itself(text: str) -> None:
    dumped = str(PassManager(text))
    again = PassManager(dumped)
    assert str(again) == dumped
    for first, second in zip(PassManager(text).steps, again.steps, strict=True):
        for option in first.entry.options:
            default = first.options.get(option.parameter, option.default)
            assert second.options.get(option.parameter, option.default) == default


@pytest.mark.parametrize("text, line, column, message", [
    ("dce,", 1, 4, "empty pass name; remove the comma"),
    ("dce, ", 1, 4, "empty pass name; remove the comma"),
    (",dce", 1, 1, "empty pass name; remove the comma"),
    ("dce,,cse", 1, 5, "empty pass name; remove the comma"),
    ("dce,csee", 1, 5, "unknown pass 'csee' (did you mean 'cse'?)"),
    ("dce,\n  constant_propagation", 2, 3, "(did you mean 'constant-propagation'?)"),
    ("xyzzy", 1, 1, "unknown pass 'xyzzy'; `irtool passes` lists them"),
    ("dce cse", 1, 5, "expected ',' or the end, found 'c'"),
    ("dce{", 1, 4, "'{' is never closed"),
    ("every-option{flag", 1, 13, "'{' is never closed"),
    ('every-option{text="a}', 1, 19, "this '\"' is never closed"),
    ("every-option{flags}", 1, 14, "no option 'flags' (did you mean 'flag'?)"),
    ("every-option{on_by_default}", 1, 14, "(did you mean 'on-by-default'?)"),
    ("every-option{qwerty=1}", 1, 14, "its options: flag, count"),
    ("needs-option{size=1 other}", 1, 21, "no option 'other'; its options: size"),
    ("dce,needs-option", 1, 5, "needs the option 'size' (int)"),
    ("every-option{count}", 1, 14, "needs a value: count=<int>"),
    ("every-option{count=}", 1, 20, "expected a value, found '}'"),
    ("every-option{count=x}", 1, 20, "expected an integer, not 'x'"),
    ("every-option{count=1,2}", 1, 20, "expected one value (int), not 2"),
    ('every-option{count="1"}', 1, 20, "expected int, not a string"),
    ("every-option{count=" + "9" * 5000 + "}", 1, 20, "expected an integer"),
    ("every-option{flag=maybe}", 1, 19, "expected true or false, not 'maybe'"),
    ("every-option{ratio=1.2.3}", 1, 20, "expected a number"),
    ("every-option{sizes=1,x}", 1, 20, "expected an integer, not 'x'"),
    ("every-option{flag flag}", 1, 19, "option 'flag' is given twice"),
    ("every-option{flag, count=1}", 1, 18, "options are separated by spaces, not commas"),
    ("every-option{!}", 1, 14, "expected an option or '}', found '!'"),
    ("O1{x}", 1, 3, "preset 'O1' has no options"),
    ("fixpoint(dce)", 1, 1, "'fixpoint' is reserved"),
    ("repeat{n=3}(dce)", 1, 1, "'repeat' is reserved"),
    ("every-optionsizes=1", 1, 18, "did the shell expand the braces? quote the pipeline"),
    ("dce0", 1, 1, "did the shell expand the braces? quote the pipeline"),
    ("builtin.module(dce)", 1, 1, "unknown pass 'builtin.module'"),
    ("dce;cse", 1, 4, "expected ',' or the end, found ';'"),
    ("(dce)", 1, 1, "expected the name of a pass, found '('"),
    ("dcé", 1, 3, "found 'é'"),
])
def test_errors_point_into_the_string(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(irtool.PipelineError) as raised:
        PassManager(text)
    (diagnostic,) = raised.value.diagnostics
    assert (diagnostic.line, diagnostic.col) == (line, column)
    assert message in diagnostic.message
    shown = str(raised.value).split("\n")
    assert shown[0].startswith(f"<passes>:{line}:{column}: error: ")
    if len(text) < 400:
        assert shown[1] == text.split("\n")[line - 1]
        assert shown[2].index("^") == column - 1


def test_an_unknown_pass_is_not_there_yet() -> None:
    with pytest.raises(irtool.UnsupportedError, match="unknown pass 'unroll-everything'"):
        irtool.PassManager("unroll-everything")


def test_a_pipeline_file_may_hold_comments() -> None:
    steps = parse_pipeline("dce,  # first\n# nothing\ncse", "my.pipeline", has_comments=True)
    assert [step.name for step in steps] == ["dce", "cse"]
    with pytest.raises(irtool.PipelineError, match=r"my.pipeline:2:1: error: unknown pass 'csee'"):
        parse_pipeline("dce, # first\ncsee", "my.pipeline", has_comments=True)


def test_presets_keep_the_order_table() -> None:
    for preset, lines in PRESETS.items():
        assert len(expand(preset)) == len(lines)
        assert all(why for _, why in lines)
    names = {entry.name for entry in PASSES}
    assert all(earlier in names and later in names and why for earlier, later, why in ORDER)


def test_a_preset_in_the_wrong_order_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRESETS, "wrong", (("dce", "too early"), ("cse", "too late")))
    with pytest.raises(irtool.PipelineError, match="runs 'dce' before 'cse'"):
        expand("wrong")


def test_every_pass_is_one_word_in_three_places() -> None:
    for entry in PASSES:
        word = entry.name.replace("-", "_")
        assert entry.function.__name__ == word
        assert entry.function.__module__ == f"irtool.passes.{word}"
        assert entry.summary
        for option in entry.options:
            assert option.type.removesuffix(" | None") in (
                "bool", "int", "float", "str", "tuple[bool, ...]", "tuple[int, ...]", "tuple[str, ...]"), option.name


def test_options_come_from_the_signature() -> None:
    options: tuple[PassOption, ...] = Pass("every-option", every_option).options
    assert [(option.name, option.type, option.default, option.is_required) for option in options] == [
        ("flag", "bool", False, False), ("count", "int", 3, False), ("ratio", "float", 0.5, False), ("text", "str", "x", False),
        ("sizes", "tuple[int, ...]", (), False), ("limit", "int | None", None, False), ("on-by-default", "bool", True, False)]


def test_running_takes_a_graph_or_a_module_and_gives_a_module() -> None:
    module = irtool.parse(TEXT)
    assert irtool.PassManager("dce").run(module) is module
    graph = irtool.parse(TEXT).graph()
    assert str(irtool.PassManager("dce").run(graph)) == str(module)
    assert "aten::mul(%a, %b)" not in str(module)


def test_a_pipeline_is_its_passes_one_after_another_through_text() -> None:
    at_once = str(irtool.PassManager("cse,dce,canonicalize").run(irtool.parse(TEXT)))
    text = TEXT
    for name in ("cse", "dce", "canonicalize"):
        text = str(irtool.PassManager(name).run(irtool.parse(text)))
    assert at_once == text


def test_names_are_forgotten_between_passes() -> None:
    taken = []

    def add_and_remove(graph: Graph) -> bool:
        """Takes a fresh id and leaves nothing behind."""
        taken.append(graph.fresh_id())
        return False

    steps = [Step(Pass("add-and-remove", add_and_remove), {})] * 2
    PassManager(steps).run(irtool.parse("graph(%0 : Tensor):\n  return (%0)\n"))
    assert taken == ["1", "1"]


def test_the_observer_is_told_of_every_pass() -> None:
    class Notes(Observer):
        def __init__(self) -> None:
            self.records: list[PassRecord] = []

        def after(self, record: PassRecord, module: irtool.Module) -> None:
            self.records.append(record)

    notes = Notes()
    PassManager("dce,cse,dce").run(irtool.parse(TEXT), notes)
    first, second, third = notes.records
    assert (first.ops_before, first.ops_after, first.changed) == (6, 5, True)
    assert (second.index, second.ops_before, second.changed) == (2, 5, True)
    assert third.total_ns >= third.self_ns > 0


def test_a_pass_that_breaks_the_graph_is_named() -> None:
    def swap(graph: Graph) -> bool:
        """Moves the last node to the front."""
        node = graph.nodes[-1]
        node.remove()
        graph.block.prepend(node)
        return True

    manager = PassManager([*parse_pipeline("dce"), Step(Pass("swap", swap), {})], verify=True)
    with pytest.raises(irtool.VerifyError, match=r"note: after pass 'swap' \(2 of 2\)"):
        manager.run(irtool.parse(TEXT))


def test_a_pass_error_names_its_pass() -> None:
    def refuse(graph: Graph) -> bool:
        """Refuses every graph."""
        raise irtool.PassError(diagnostics=[Diagnostic("error", "too hard", graph.source, 4, 3)])

    with pytest.raises(irtool.PassError, match=r"(?s)too hard.*note: in pass 'refuse' \(1 of 1\)"):
        PassManager([Step(Pass("refuse", refuse), {})]).run(irtool.parse(TEXT))


def test_passes_are_imported_by_one_name_only() -> None:
    with pytest.raises(ImportError, match="import irtool.passes"):
        __import__("passes")


@pytest.mark.parametrize("text", [
    "graph() {\n  %b : int = prim::FloatToInt(5)\n  %3 : int = aten::add(%b, 1)\n  return (%3);\n}\n",
    "graph(%1 : Double(13, 16)\n      %2 : Double(20, 16)) {\n  %4 : UNKNOWN_TYPE = Undefined(), uses = [%3.i2];\n"
    "  %3.0 : Double(20, 13), %3.1 : Handle = CppOp[ConvForward](%2, %1, %4), uses = [[%0.i0], []];\n  return (%3.0);\n}\n",
], ids=["literals among operands", "uses lists"])
def test_where_text_leaves_something_out_the_next_pass_sees_no_more_than_text(text: str) -> None:
    names = ("canonicalize", "cse", "erase-shapes", "constant-pooling", "dce", "canonicalize")
    at_once = str(PassManager(",".join(names)).run(irtool.parse(text)))
    for name in names:
        text = str(PassManager(name).run(irtool.parse(text)))
    assert at_once == text


@pytest.mark.parametrize("pipeline", [None, 3, [3], b"dce"])
def test_a_pipeline_is_one_text(pipeline: Any) -> None:
    with pytest.raises(irtool.PipelineError, match="expected a pipeline as one text, such as 'dce,cse'"):
        irtool.PassManager(pipeline)


@pytest.mark.parametrize("module", [None, "graph():"])
def test_passes_run_on_modules_and_graphs(module: Any) -> None:
    with pytest.raises(irtool.PassError, match="expected a Module or a Graph"):
        irtool.PassManager("dce").run(module)


def test_a_pass_that_stumbles_over_no_graph_says_what_is_wrong_with_it() -> None:
    def stumble(graph: Graph) -> bool:
        raise IndexError

    loop = irtool.parse("graph(%n : int, %c : bool):\n  %0 : int = prim::Loop(%n, %c, %n)\n    block0(%i : int):\n      -> (%c)\n"
                        "  return (%0)\n")
    with pytest.raises(irtool.VerifyError, match="in pass 'stumble'"):
        PassManager([Step(Pass("stumble", stumble), {})]).run(loop)
    with pytest.raises(IndexError):
        PassManager([Step(Pass("stumble", stumble), {})]).run(irtool.parse(TEXT))
