"""The command line beside `opt` and `run`: help, version, fmt, passes, ops, completion."""
from __future__ import annotations

import io
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import irtool
from irtool.cli.command import Arguments, Choice, Converted, Option, argument, command, option
from irtool.cli.commands import COMMANDS, load
from irtool.cli.console import Console
from irtool.cli.converters import at_least
from irtool.cli.exit_errors import UsageError
from irtool.cli.main import main
from irtool.ir.schema import declared_kinds, schemas
from irtool.ops.call import find_overload
from irtool.passes import PASSES
from irtool.pipelines import PRESETS

OLD = """graph(%0 : Float(2, 3)
      %1 : Float(2, 3)) {
  %2 : Float(2, 3) = aten::mul(%0, %1)
  %3 : Float(2, 3) = aten::add[alpha={1}](%2, %1)
  return (%3);
}
"""
NEW = """graph(%x : Float(2, 3),
      %y.1 : Float(2, 3)):
  %7 : Float(2, 3) = aten::mul(%x, %y.1)
  return (%7)
"""


def irtool_(*words: str, text: str = "") -> tuple[int, str, str]:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    code = main(list(words), io.BytesIO(text.encode()), out, err)
    return code, out.getvalue(), err.getvalue()


# -- help and version
def by_group() -> list[str]:
    """The names of all commands, group by group."""
    groups = list(dict.fromkeys(group for group, _ in COMMANDS.values()))
    return sorted(COMMANDS, key=lambda name: groups.index(COMMANDS[name][0]))


def test_help_lists_every_command_in_groups() -> None:
    code, out, err = irtool_("--help")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines() if line.startswith("  ") and line.split()[0] in COMMANDS] == by_group()
    assert irtool_() == (2, out, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_of_one_screen(name: str) -> None:
    for flag in ("-h", "--help"):
        code, out, err = irtool_(name, flag, "nonsense")
        assert (code, err) == (0, "")
        assert out.startswith(f"usage: irtool {name} [options]")
        assert len(out.splitlines()) < 70
    for each in load(name).params:
        assert each.help        # type: ignore[attr-defined]
        assert not isinstance(each, Option) or each.long_flag.startswith("--")


def test_help_of_a_command_by_name() -> None:
    assert irtool_("help", "fmt") == irtool_("fmt", "--help")
    assert irtool_("help") == irtool_("--help")
    assert irtool_("help", "fnt")[0] == 2


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(arguments: Arguments, console: Console) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(load("fmt"), "callback", interrupt)
    assert irtool_("fmt") == (130, "", "")


def test_versions() -> None:
    assert irtool_("--version") == (0, f"irtool {irtool.__version__}\n", "")
    report = json.loads(irtool_("--version", "--json")[1])
    assert report["schema"] == 1
    assert set(report) == {"schema", "irtool", "python", "click", "numpy", "scipy", "rich", "plugins", "operators"}


def test_each_file_of_commands_is_a_subcommand() -> None:
    folder = Path(irtool.__file__).parent / "cli" / "commands"
    assert {path.stem.replace("_", "-") for path in folder.glob("[!_]*.py")} == set(COMMANDS)
    for name in COMMANDS:
        assert load(name).name == name


# -- options
@command("opt")
@argument("first")
@argument("second", default="-")
@argument("rest", nargs=-1)
@option("-o", "--output", metavar="FILE", default="-")
@option("--switch", is_flag=True)
@option("--on/--no-on", default=True)
@option("--form", metavar="FORM", type=Choice("text", "json"), bare="text")
@option("--count", metavar="N", type=Converted(at_least(0)))
@option("--name", metavar="NAME", multiple=True)
def many_options(arguments: Arguments, console: Console) -> int:
    """A command with an option of each kind."""
    return 0


@pytest.mark.parametrize("line, expected", [
    ("a", {"first": "a", "second": "-", "rest": (), "output": "-", "switch": False, "on": True, "form": None, "count": None, "name": ()}),
    ("a b c d", {"first": "a", "second": "b", "rest": ("c", "d")}),
    ("a -o x --switch", {"output": "x", "switch": True}),
    ("-ox a", {"output": "x", "first": "a"}),
    ("-o=x a", {"output": "x"}),
    ("--output=x=y a", {"output": "x=y"}),
    ("--no-on a", {"on": False}),
    ("--no-on --on a", {"on": True}),
    ("--form a", {"form": "text", "first": "a"}),
    ("--form=json a", {"form": "json"}),
    ("--count 3 a", {"count": 3}),
    ("--name x --name=y a", {"name": ("x", "y")}),
    ("--form -o x --name --form -- --form", {"form": "text", "output": "x", "name": ("--form",), "first": "--form"}),
    ("-o --form a", {"output": "--form", "form": None, "first": "a"}),
    ("--form=json --form a", {"form": "text", "first": "a"}),
    ("- -- --switch", {"first": "-", "second": "--switch", "switch": False}),
])
def test_what_the_option_parser_reads(line: str, expected: dict[str, object]) -> None:
    arguments = many_options.read(line.split())
    assert {name: getattr(arguments, name) for name in expected} == expected
    assert many_options.read(["a"]).name == ()


def test_which_options_were_written() -> None:
    assert many_options.read("a --form --no-on --output=- --name x".split()).given == {"first", "form", "on", "output", "name"}


def test_no_environment_variable_sets_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IRTOOL_SWITCH", "IRTOOL_OPT_SWITCH", "OPT_SWITCH", "SWITCH", "IRTOOL_OPT_OUTPUT"):
        monkeypatch.setenv(name, "1")
    assert many_options.read(["a"]).given == {"first"}


@pytest.mark.parametrize("line, message", [
    ("", "missing argument FIRST"),
    ("a --swich", "no such option: --swich (did you mean '--switch'?)"),
    ("a -x", "no such option: -x"),
    ("a --no-switch", "no such option: --no-switch (did you mean '--switch'?)"),
    ("a --switch=1", "--switch takes no value"),
    ("a --output", "--output needs a value: --output=FILE"),
    ("a --output=", "--output needs a value: --output=FILE"),
    ("a --name x --name=", "--name needs a value: --name=NAME"),
    ("a --outpu x", "no such option: --outpu (did you mean '--output'?)"),
    ("a --help", "no such option: --help"),
    ("a --count=-1", "--count: expected at least 0, not -1"),
    ("a --count=1.5", "--count: expected an integer, not '1.5'"),
    ("a --form=jsn", "--form: expected text or json, not 'jsn' (did you mean 'json'?)"),
])
def test_what_the_option_parser_refuses(line: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        many_options.read(line.split())
    assert str(raised.value) == message


# -- click
def test_the_group_is_clicks() -> None:
    from click.testing import CliRunner

    from irtool.cli.main import cli

    runner = CliRunner()
    result = runner.invoke(cli, ["opt", "-q", "--passes=dce"], input=NEW)
    assert (result.exit_code, result.output) == (0, NEW)
    assert runner.invoke(cli, ["opt", "--passes=dcee"], input=NEW).exit_code == 2
    assert runner.invoke(cli, ["opt"], input="graph(").exit_code == 1
    assert runner.invoke(cli, ["help", "opt"]).output == irtool_("opt", "--help")[1]
    with pytest.raises(SystemExit) as ended:
        cli(["--version"])
    assert ended.value.code == 0
    assert cli.main(["optt"], standalone_mode=False) == 2
    assert runner.invoke(load("opt"), ["-q", "--passes=dce"], input=NEW).output == NEW
    assert runner.invoke(load("opt"), ["--passes=dcee"], input=NEW).exit_code == 2


# -- fmt
def test_fmt_lays_out_what_was_written_by_hand() -> None:
    text = "graph( %x:Float(2, 3),%y.1 : Float(2, 3) ):\n    %7 = aten::mul( %x,%y.1 )  # why\n    return (%7)\n"
    code, out, err = irtool_("fmt", text=text)
    assert (code, err) == (0, "")
    assert out.startswith("graph(%x : Float(2, 3),\n      %y.1 : Float(2, 3)):\n  %7 : Tensor = aten::mul(%x, %y.1)")
    assert irtool_("fmt", text=out)[1] == out
    assert irtool_("fmt", "--check", text=text)[0] == 1


def test_fmt_gives_machine_printed_text_back() -> None:
    assert irtool_("fmt", text=OLD) == (0, OLD, "")
    assert irtool_("fmt", "--check", text=NEW) == (0, "", "")


def test_fmt_changes_the_dialect_and_back() -> None:
    code, out, err = irtool_("fmt", "--syntax=2.13", text=OLD)
    assert (code, err) == (0, "")
    assert "prim::Constant[value=1]()" in out and "aten::add(%2, %1, %" in out
    assert irtool_("fmt", "--syntax=2018-06", text=out)[1].count("aten::add[alpha={1}](%2, %1)") == 1
    code, out, err = irtool_("fmt", "--syntax=2.14", text=OLD)
    assert (code, out) == (2, "")
    assert "2.14" in err


def test_fmt_renumbers() -> None:
    assert irtool_("fmt", "--renumber", text=NEW)[1] == NEW.replace("%7", "%0")


def test_fmt_checks_and_rewrites_files(tmp_path: Path) -> None:
    path = tmp_path / "a.ir"
    path.write_text(NEW)
    code, out, err = irtool_("fmt", "--check", "--renumber", str(path))
    assert (code, out) == (1, "")
    assert err.startswith(f"{path}: would be reformatted\n---")
    assert path.read_text() == NEW
    assert irtool_("fmt", "--in-place", "--renumber", str(path)) == (0, "", "")
    assert irtool_("fmt", "--check", "--renumber", str(path)) == (0, "", "")
    assert irtool_("fmt", str(path), str(path))[0] == 2      # several files need -o DIR
    assert irtool_("fmt", "-i")[0] == 2
    assert irtool_("fmt", "-i", "--check", str(path))[0] == 2
    assert irtool_("fmt", "-i", "-o", "x.ir", str(path))[0] == 2


def test_a_byte_order_mark_stays() -> None:
    assert irtool_("fmt", text="\ufeff" + NEW) == (0, "\ufeff" + irtool_("fmt", text=NEW)[1], "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("words", [["--version"], ["--help"], ["passes"], ["opt"]])
def test_a_full_disk_is_no_bug_of_ours(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.ir").write_text(NEW)
    with open(tmp_path / "a.ir") as text, open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "irtool", *words]
        done = subprocess.run(command, stdin=text, stdout=full, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (2, "error: cannot write to standard output: no space left on device [E0709]\n")
        text.seek(0)
        assert subprocess.run(command, stdin=text, stdout=subprocess.DEVNULL, stderr=full).returncode == 0


def test_closed_streams() -> None:
    def start(redirection: str) -> int:
        return subprocess.run(["sh", "-c", f"{shlex.quote(sys.executable)} -m irtool --help {redirection}"], capture_output=True).returncode

    assert start(">&-") == 2
    assert start("2>&-") == 0


def test_fmt_keeps_large_constants_beside_the_text(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    text = ("graph(%x : Float(3, 4)):\n  %5 : Float(4, 300) = prim::Constant[value=<Tensor>]()\n"
            "  %y : Float(3, 300) = aten::matmul(%x, %5)\n  return (%y)\n")
    path, archive = tmp_path / "g.ir", tmp_path / "g.npz"
    path.write_text(text)
    weight = np.arange(1200, dtype=np.float32).reshape(4, 300) / 3
    np.savez(archive, **{"5": weight})
    code, out, err = irtool_("fmt", "--renumber", f"--constants={archive}", "-o", str(path), str(path))
    assert (code, out, err) == (0, "", "")
    with np.load(archive) as file:
        assert file.files == ["0"]
        assert (file["0"] == weight).all()
    assert "%0 : Float(4, 300) = prim::Constant[value=<Tensor>]()" in path.read_text()
    code, out, err = irtool_("fmt", f"--constants={tmp_path / 'none.npz'}", str(path))
    assert code == 0 and "no file has the numbers of constant %0" in err
    code, out, err = irtool_("run", f"--constants={archive}", str(path), "--input", "x=3x4xf32=1")
    assert (code, err) == (0, "")
    assert "[600.     601.3334 602.6666" in out
    assert irtool_("run", str(path), "--input", "x=3x4xf32=1")[0] == 1
    np.savez(archive, **{"0": weight.astype(np.float64)})
    code, out, err = irtool_("fmt", f"--constants={archive}", str(path))
    assert (code, out) == (1, "")
    assert f"{path}:2:" in err and "expected Float(4, 300), the npz has float64 (4, 300)" in err
    np.savez(archive, other=weight)
    code, out, err = irtool_("fmt", f"--constants={archive}", str(path))
    assert (code, out) == (1, "") and "no constant of" in err


# -- passes and ops
def test_passes_are_listed_and_explained() -> None:
    code, out, err = irtool_("passes")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.split("\n\n")[0].splitlines() if not line.startswith("   ")] == [entry.name for entry in PASSES]
    assert "Presets:\n  O1 " in out
    for entry in PASSES:
        code, out, _ = irtool_("passes", entry.name)
        assert code == 0
        assert "before" in out and "after" in out
        for each in entry.options:
            assert f"{each.name}: {each.type} = " in out
            assert f"--passes='{entry.name}{{{each.name}" in out
    lines = irtool_("passes", "differentiate")[1].splitlines()
    for text in ("{requires-grad=all}'  # all, types, or 0 and 1 for each input", "{form=2018}'  # 2018 or modern",
                 "{save=least}'  # least"):
        assert any(line.endswith(f"  --passes='differentiate{text}") for line in lines)
    assert "last: each pass before leaves nodes" in irtool_("passes", "O1")[1]
    code, out, err = irtool_("passes", "dcee")
    assert (code, out) == (2, "")
    assert "unknown pass 'dcee' (did you mean 'dce'?)" in err


def test_the_help_of_opt_names_every_preset() -> None:
    assert f"a preset ({', '.join(PRESETS)});" in " ".join(irtool_("opt", "--help")[1].split())


def test_passes_as_json() -> None:
    report = json.loads(irtool_("passes", "--json")[1])
    assert report["schema"] == 1
    assert [row["name"] for row in report["passes"]] == [entry.name for entry in PASSES]
    assert set(report["passes"][0]) == {"name", "summary", "on", "options", "repeats"}
    for row in report["passes"]:
        for each in row["options"]:
            assert set(each) == {"name", "type", "default", "required", "example"}
            irtool.PassManager(each["example"].removeprefix("--passes='").removesuffix("'"))
    assert [row["name"] for row in json.loads(irtool_("passes", "--json", "dce")[1])["passes"]] == ["dce"]


def test_ops_are_listed_and_explained() -> None:
    code, out, err = irtool_("ops")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == ["operator", "family", "kernel", "promotion", "gradient", "batch", "samples"]
    assert irtool_("ops", "--matrix")[1] == out
    assert any(line.startswith("aten::add.Tensor ") for line in out.splitlines())
    code, out, _ = irtool_("ops", "relu")
    assert code == 0 and "aten::relu(Tensor self) -> Tensor" in out
    code, _, err = irtool_("ops", "aten::rleu")
    assert code == 2 and "did you mean 'aten::relu'?" in err
    report = json.loads(irtool_("ops", "--json", "aten::relu")[1])
    assert report["ops"][0]["name"] == "aten::relu"
    assert report["ops"][0]["kernel"] is True


def test_ops_without_a_stanza_of_their_own() -> None:
    code, out, err = irtool_("ops", "div_")
    assert (code, err) == (0, "note: aten::div_ runs the kernel of aten::div and stores the result\n")
    assert "aten::div.Tensor(" in out
    assert "the interpreter's own" in irtool_("ops", "prim::If")[2]
    assert irtool_("ops", "aten::diw")[::2] == (2, "error: no operator 'aten::diw' has a kernel (did you mean 'aten::div'?) [E0806]\n"
                                                   "try: irtool ops --help\n")


def test_ops_of_a_family_and_ops_that_miss_something() -> None:
    def rows(*words: str) -> list[list[str]]:
        code, out, err = irtool_("ops", *words)
        assert (code, err) == (0, "")
        return [line.split() for line in out.splitlines()[1:-1]]

    assert {row[1] for row in rows("--family=loss")} == {"loss"}
    everything = rows()
    assert rows("--missing=gradient") == [row for row in everything if row[4] in (".", "!")]
    both = rows("--family", "loss", "--missing", "promotion")
    assert both == [row for row in everything if row[1] == "loss" and row[3] in (".", "!")]
    records = json.loads(irtool_("ops", "--json", "--family=loss")[1])["ops"]
    assert [record["name"] for record in records] == [row[0] for row in rows("--family=loss")]
    assert irtool_("ops", "--family=los")[::2] == (
        2, "error: --family: no family 'los' (did you mean 'loss'?) [E0806]\ntry: irtool ops --help\n")
    assert "(did you mean 'gradient'?)" in irtool_("ops", "--missing=gradiant")[2]
    _, out, _ = irtool_("ops", "--missing=kernel")
    declared = {schema.name for kind in declared_kinds() if not kind.startswith("prim::") for schema in schemas(kind)}
    assert set(out.split()) == {name for name in declared if find_overload(name) is None} and "aten::_foreach_add.List" in out.split()
    assert irtool_("ops", "hspmm", "--missing=kernel")[1].split() == ["aten::hspmm.out", "aten::hspmm"]
    assert "--missing=kernel" in irtool_("ops", "hspmm")[2] and "torch has no operator" in irtool_("ops", "hspm", "--missing=kernel")[2]
    assert irtool_("ops", "relu", "--family=loss") == (0, "", "note: no operator called relu of the family loss\n")


# -- completion
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_shell(shell: str, tmp_path: Path) -> None:
    code, out, err = irtool_("completion", shell)
    assert (code, err) == (0, "")
    assert "constant-pooling" in out and "verify-diagnostics" in out
    assert "irtool opt" not in out, "a TAB must start no Python"
    if shutil.which(shell):
        (tmp_path / "script").write_text(out)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


def test_completion_of_an_unknown_shell() -> None:
    assert irtool_("completion", "bsh")[0] == 2
    assert irtool_("completion")[0] == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("line, words", [
    ("irtool o", ["opt", "ops"]),
    ("irtool opt --verify-", ["--verify-each", "--verify-roundtrip", "--verify-diagnostics"]),
    ("irtool opt --passes=constant-p", ["constant-pooling", "constant-propagation"]),
    ("irtool opt --passes=dce,cs", ["dce,cse"]),
    ("irtool opt --print-changed=", ["diff", "full", "quiet"]),
])
def test_completion_in_bash(line: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "script").write_text(irtool_("completion", "bash")[1])
    shell = (f"compopt() {{ :; }}; source ./script; COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDS=({line}) "
             f"COMP_CWORD={len(line.split()) - 1}; _irtool; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == sorted(words)


# -- streams
def test_colours() -> None:
    console = Console(io.BytesIO(), io.StringIO(), io.StringIO())
    console.color = True
    assert console.painted("a.ir:1:2: error: x") == "\x1b[1ma.ir:1:2: \x1b[31merror: \x1b[0mx"
    assert console.painted("  %3 = error: y") == "  %3 = error: y"
