"""What a person sees on a terminal: colours, lists that wrap in their column, a pager, what is being done. A pipe sees none of it."""
from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import irtool
from irtool.cli.show.highlight import painted
from irtool.passes import PASSES

pty = pytest.importorskip("pty")
ROOT = str(Path(irtool.__file__).resolve().parents[1])
GRAPH = """graph(%x : Float(2, 3)):
  # expected
  %y : Float(2, 3) = aten::relu(%x)
  %z : str = prim::Constant[value="%x # no"]()
  return (%y)
"""
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(folder: Path, *words: str, rows: int = 50, columns: int = 100, script: str = "", **variables: str) -> tuple[int, str]:
    """Run irtool on a terminal of this size; the exit code, and all that was shown."""
    import fcntl
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "LESS")}
    environment |= {"PYTHONPATH": ROOT, "TERM": "xterm-256color", "PAGER": "cat", **variables}
    command = [sys.executable, "-c", script] if script else [sys.executable, "-m", "irtool"]
    process = subprocess.Popen([*command, *words], cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 1 << 16):
            shown += piece
    except OSError:         # the other end is closed
        pass
    os.close(ours)
    return process.wait(timeout=60), shown.decode().replace("\r\n", "\n")


def test_ir_is_in_colours_and_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "g.ir").write_text(GRAPH)
    code, shown = on_terminal(tmp_path, "opt", "g.ir")
    assert (code, ESCAPE.sub("", shown)) == (0, GRAPH)
    assert "\x1b[33maten::relu\x1b[0m(\x1b[36m%x\x1b[0m)" in shown
    assert '\x1b[32m"%x # no"\x1b[0m' in shown and "\x1b[2m# expected\x1b[0m" in shown
    assert on_terminal(tmp_path, "opt", "g.ir", NO_COLOR="1") == (0, GRAPH)
    assert on_terminal(tmp_path, "opt", "--color=never", "g.ir") == (0, GRAPH)
    assert on_terminal(tmp_path, "opt", "-o", "out.ir", "--color=always", "g.ir") == (0, "")
    assert (tmp_path / "out.ir").read_text() == GRAPH


def test_dumps_and_diffs_are_in_colours(tmp_path: Path) -> None:
    (tmp_path / "g.ir").write_text(GRAPH)
    code, shown = on_terminal(tmp_path, "opt", "--passes=dce", "--print-changed", "--print-after=dce", "-o", "out.ir", "g.ir")
    assert code == 0 and "\x1b[31m-  %z" in shown and "\x1b[33maten::relu" in shown


@pytest.mark.parametrize("path", sorted((Path(ROOT) / "examples").glob("*.ir")), ids=lambda path: path.name)
def test_colours_change_no_letter(path: Path) -> None:
    text = path.read_text()
    assert ESCAPE.sub("", painted(text, "ir")) == text


def test_source_is_in_colours(tmp_path: Path) -> None:
    (tmp_path / "g.ir").write_text(GRAPH.replace("  # expected\n", ""))
    code, shown = on_terminal(tmp_path, "decompile", "g.ir")
    piped = subprocess.run([sys.executable, "-m", "irtool", "decompile", "g.ir"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": ROOT},
                           capture_output=True, text=True, check=True).stdout
    assert code == 0 and "\x1b[" in shown and ESCAPE.sub("", shown) == piped


def test_lists_wrap_under_themselves(tmp_path: Path) -> None:
    code, shown = on_terminal(tmp_path, "passes", rows=999, columns=60)
    lines = ESCAPE.sub("", shown).split("\n")
    assert code == 0 and max(map(len, lines)) <= 60
    start = lines[0].index("Number all values")
    assert "\x1b" in shown and "\x1b" not in on_terminal(tmp_path, "passes", rows=999, NO_COLOR="1")[1]
    assert "\x1b" not in on_terminal(tmp_path, "passes", rows=999, TERM="dumb")[1]
    (second,) = [line for line in lines if "equal graphs" in line][:1]
    assert second[:start].isspace()
    assert [name for name in (line[2:start].strip() for line in lines[:lines.index("Presets:")]) if name] == [each.name for each in PASSES]


def test_operators_are_a_table(tmp_path: Path) -> None:
    code, shown = on_terminal(tmp_path, "ops", "--family=loss", rows=999)
    lines = [line.split() for line in ESCAPE.sub("", shown).split("\n") if line.strip()]
    assert code == 0 and lines[0] == ["operator", "family", "kernel", "promotion", "gradient", "batch", "samples"]
    assert ["aten::hinge_embedding_loss", "loss"] in [line[:2] for line in lines]


def test_what_is_longer_than_the_screen_goes_through_a_pager(tmp_path: Path) -> None:
    assert on_terminal(tmp_path, "passes", rows=10, PAGER="sed s/^/|/")[1].startswith("|")
    assert not on_terminal(tmp_path, "passes", rows=999, PAGER="sed s/^/|/")[1].startswith("|")


def test_a_table_of_results(tmp_path: Path) -> None:
    (tmp_path / "g.ir").write_text(GRAPH)
    code, shown = on_terminal(tmp_path, "run", "g.ir", "--input", "x=2x3xf32=1")
    assert code == 0 and "output0 %y" in shown and "float32 (2, 3)" in shown


def test_what_takes_long_says_what_it_does(tmp_path: Path) -> None:
    (tmp_path / "g.ir").write_text(GRAPH)
    script = ("import sys, time\nfrom irtool.cli.show import progress\nprogress.DELAY = 0.05\nfrom irtool.passes import BY_NAME, Pass\n"
              "def slow(graph):\n    'Wait.'\n    time.sleep(1)\n    return False\n"
              "BY_NAME['slow'] = Pass('slow', slow)\nfrom irtool.cli.main import main\nsys.exit(main())")
    code, shown = on_terminal(tmp_path, "opt", "--passes=dce,slow,cse", "g.ir", script=script)
    text = ESCAPE.sub("", shown)
    assert code == 0 and "slow" in text and "1 of 3" in text and "\x1b[?25l" not in shown
    assert text.count("01 dce: -1 op\n") == text.count("02 slow: unchanged\n") == text.count("03 cse: unchanged\n") == 1
    assert text.endswith("return (%y)\n")
    done = subprocess.run([sys.executable, "-c", script, "opt", "--passes=slow", "g.ir"], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": ROOT}, check=True)
    assert done.stderr == "01 slow: unchanged\n"
