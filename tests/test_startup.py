"""Starting up: which modules a short command loads, and what it costs beside `import click`."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import irtool

ROOT = str(Path(irtool.__file__).resolve().parents[1])
HEAVY = {"numpy", "scipy", "rich", "pygments", "torch", "dataclasses", "argparse", "json", "tempfile", "shutil", "subprocess", "textwrap",
         "logging", "asyncio", "unittest", "difflib", "traceback", "importlib.metadata", "email", "zipfile", "shlex", "locale",
         "click._termui_impl", "click._textwrap", "click.shell_completion", "click.testing"}
"""Nothing of this may be loaded by a command that only reads, rewrites and prints."""

GRAPH = "graph(%0 : Tensor,\n      %1 : Tensor):\n  %2 : int = prim::Constant[value=1]()\n" + "".join(
    f"  %{i} : Tensor = aten::{'add' if i % 2 else 'mul'}(%{i - 1 if i > 3 else 0}, %1{', %2' if i % 2 else ''})\n" for i in range(3, 103)
) + "  return (%99)\n"


def environment() -> dict[str, str]:
    """The caller's, with this checkout in front, and without what would add modules of its own (coverage)."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST", "PYTHON"))}
    return {**kept, "PYTHONPATH": ROOT}


def loaded_by(words: list[str], folder: Path) -> set[str]:
    """Modules in memory when a command ends, without those that bare Python has."""
    code = ("import sys; before = set(sys.modules); sys.argv[1:] = sys.argv[1:]\nfrom irtool.cli.main import main\ncode = main()\n"
            "open('modules', 'w').write('\\n'.join(set(sys.modules) - before))\nsys.exit(code)")
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=folder, env=environment(), capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done.stderr
    return set((folder / "modules").read_text().split())


def test_version_loads_next_to_nothing(tmp_path: Path) -> None:
    loaded = loaded_by(["--version"], tmp_path)
    assert {name for name in loaded if name.startswith("irtool")} == {
        "irtool", "irtool.ir", "irtool.ir.errors", "irtool.ir.source", "irtool.cli", "irtool.cli.main", "irtool.cli.interrupt",
        "irtool.cli.console", "irtool.cli.exit_errors", "irtool.cli.command", "irtool.cli.commands", "irtool.cli.group"}
    assert not loaded & HEAVY
    code = "import sys; before = set(sys.modules); import click; print('\\n'.join(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60, check=True)
    more = {name for name in loaded - set(done.stdout.split()) if not name.startswith("irtool")}
    assert more <= {"gc", "signal", "errno"}, "beside click"


@pytest.mark.parametrize("line", ["--help", "opt --help", "run --help", "fmt --help", "completion bash"])
def test_help_loads_neither_numpy_nor_rich(line: str, tmp_path: Path) -> None:
    assert not loaded_by(line.split(), tmp_path) & {"numpy", "scipy", "rich", "torch"}


@pytest.mark.parametrize("passes", ["", "dce", "cse,dce", "constant-pooling,canonicalize"])
def test_reading_rewriting_and_printing_loads_nothing_heavy(passes: str, tmp_path: Path) -> None:
    (tmp_path / "g.ir").write_text(GRAPH)
    loaded = loaded_by(["opt", f"--passes={passes}", "-o", "out.ir", "g.ir"], tmp_path)
    assert not loaded & HEAVY
    named = {f"irtool.passes.{name.replace('-', '_')}" for name in passes.split(",")}
    assert {name for name in loaded if name.startswith("irtool.passes.")} <= named, "naming one pass must not load another"


def test_importing_irtool_loads_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys; before = set(sys.modules); import irtool; print('\\n'.join(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60, check=True)
    assert {name for name in done.stdout.split() if name.startswith("irtool")} == {"irtool"}


def cpu_seconds(words: list[str], folder: Path) -> float:
    """User and system time of one process."""
    process = subprocess.Popen([sys.executable, *words], cwd=folder, env=environment(), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="needs wait4")
def test_start_up_time_beside_import_click(tmp_path: Path) -> None:
    (tmp_path / "g.ir").write_text(GRAPH)
    commands = {"click": ["-c", "import click"], "version": ["-m", "irtool", "--version"],
                "opt": ["-m", "irtool", "opt", "--passes=dce", "g.ir"]}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(9):
        for name, words in commands.items():
            times[name].append(cpu_seconds(words, tmp_path))
    medians = {name: sorted(each)[len(each) // 2] for name, each in times.items()}
    assert medians["version"] <= 1.3 * medians["click"], medians
    assert medians["opt"] <= 2.0 * medians["click"], medians
