"""Compilers and folders as they may be found: whatever they do, a graph gives its results, and no file of anybody else goes."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool.execute import disk_cache
from irtool.execute.fusion import Fused
from irtool.execute.native import building

CC = building.compiler()
pytestmark = pytest.mark.skipif(os.name != "posix", reason="compilers here are shell scripts")
needs_compiler = pytest.mark.skipif(CC is None, reason="needs a C compiler")
TEXT = """graph(%a : Float(*), %b : Float(*)):
  %1 : Float(*) = aten::sub(%a, %b)
  %2 : Float(*) = aten::div(%1, %b)
  %3 : Bool(*) = aten::isnan(%2)
  return (%2, %3)
"""
A = np.array([0.0, -0.0, np.inf, np.nan, 1e-40, 1.0, -np.inf], np.float32)
B = np.array([0.0, 3.0, np.inf, 1.0, 3e-39, -0.0, 1.0], np.float32)


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No compiler was looked for, and nothing was compiled."""
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(building, "_loops", {})
    monkeypatch.setattr(building, "_given_up", [])
    for each in (building.command, building._compiler_version):
        each.cache_clear()
    yield
    for each in (building.command, building._compiler_version):
        each.cache_clear()


def group() -> Fused:
    return Fused(irtool.parse(TEXT).graph(), native=True)


def assert_right(ran_native: bool | None = None) -> None:
    """The group has the interpreter's bits; ran_native: did a loop in C run?"""
    fused = group()
    wanted = irtool.run(irtool.parse(TEXT).graph(), [A, B])
    with np.errstate(all="ignore"):
        found = fused([A, B])
    assert [each.tobytes() for each in found] == [each.tobytes() for each in wanted]
    if ran_native is not None:
        assert any(building._loops.values()) == ran_native


def script(place: Path, text: str) -> str:
    """A program in the shell's language."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    place.chmod(0o755)
    return str(place)


OUT = 'while [ $# -gt 0 ]; do [ "$1" = -o ] && out="$2"; shift; done; '
BROKEN = {"fails": "exit 1", "is killed": "kill -9 $$", "makes nothing": "exit 0", "makes garbage": f'{OUT} echo garbage > "$out"',
          "makes an empty file": f'{OUT} : > "$out"', "makes a folder": f'{OUT} mkdir "$out"',
          "says too much": "yes | head -c 3000000; exit 1"}


@pytest.mark.parametrize("name", BROKEN)
def test_a_compiler_that_does_not_compile(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", script(tmp_path / "bin" / "cc", BROKEN[name]))
    assert_right(False)


def test_one_that_hangs_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tmp_path / "calls"
    monkeypatch.setenv("CC", script(tmp_path / "cc", f'[ "$1" = --version ] || {{ echo >> {calls}; exec sleep 100; }}'))
    monkeypatch.setattr(building, "SECONDS", 0.5)
    assert_right(False)
    assert building.compiler() is None
    monkeypatch.setattr(building, "_loops", {})
    assert_right(False)
    assert calls.read_text() == "\n"


def test_one_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cc").write_bytes(b"\x7fELF, but no more of it")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    assert_right(False)


@pytest.mark.parametrize("named", ["/nowhere/cc", "'no end", "/dev/null", "no-such-compiler -O2"])
def test_none_where_cc_names_none(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", named)
    assert building.compiler() is None
    assert_right(False)


@needs_compiler
def test_warnings_are_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", script(tmp_path / "cc", f'yes warning | head -c 200000 >&2; exec {CC} "$@"'))
    assert_right(True)


@needs_compiler
@pytest.mark.parametrize("flags", ["-ffast-math", "-Ofast", "-funsafe-math-optimizations -ffinite-math-only", "-O0 -g"])
def test_flags_in_cc_do_not_change_the_arithmetic(flags: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do those of other variables; denormal numbers stay what they are in the whole process."""
    monkeypatch.setenv("CC", f"{CC} {flags}")
    monkeypatch.setenv("CFLAGS", "-ffast-math")
    monkeypatch.setenv("LDFLAGS", "--no-such-flag")
    assert building.command() == (CC, *flags.split())
    assert_right(True)
    assert np.float32(1e-40) / np.float32(2) > 0


@needs_compiler
def test_paths_with_spaces_and_other_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / "a folder, überall '\"$(false)"
    odd.mkdir()
    monkeypatch.setenv("CC", script(odd / "c c", f'exec {CC} "$@"'))
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(odd / "kept"))
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    assert_right(True)
    assert [path.suffix for path in (odd / "kept").iterdir()] == [".so"]
    assert sorted(path.name for path in odd.iterdir()) == ["c c", "kept"]


@needs_compiler
def test_cc_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "cc", f'exec {CC} "$@"')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CC", "./cc")
    assert_right(True)


@needs_compiler
def test_without_a_place_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert_right(False)


@needs_compiler
def test_without_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be kept is used all the same."""
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert_right(True)
    assert list((tmp_path / "cache").iterdir()) == []


@needs_compiler
def test_a_folder_that_can_only_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_right(True)
    before = sorted((tmp_path / "cache").iterdir())

    def refused(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "utime", refused)
    monkeypatch.setattr(building, "_compile", refused)
    monkeypatch.setattr(building, "_loops", {})
    assert_right(True)
    assert sorted((tmp_path / "cache").iterdir()) == before


@needs_compiler
def test_a_kernel_of_another_machine_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_right(True)
    monkeypatch.setattr(building, "_processor", lambda: "another")
    monkeypatch.setattr(building, "_loops", {})
    assert_right(True)
    assert len(list((tmp_path / "cache").iterdir())) == 2


@needs_compiler
def test_an_entry_that_is_sound_but_no_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made anew."""
    assert_right(True)
    (kept,) = (tmp_path / "cache").iterdir()
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path / "other"))
    wrong = disk_cache.store(kept.stem, "so", b"no library")
    monkeypatch.setattr(building, "_loops", {})
    assert_right(True)
    assert wrong is not None and wrong.stat().st_size > 1000


def test_trimming_touches_entries_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "home"
    base.mkdir(mode=0o700)
    mine = [base / "thesis.tex", base / ("0" * 64), base / f"{'x' * 64}.so"]
    for path in mine:
        path.write_bytes(bytes(5000))
        os.utime(path, (0, 0))
    (base / f"{'0' * 64}.so").mkdir()
    (base / ".making-abandoned").write_bytes(b"half of one")
    os.utime(base / ".making-abandoned", (0, 0))
    (base / ".making-now").write_bytes(b"half of one")
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(base))
    monkeypatch.setattr(disk_cache, "MAX_BYTES", 8000)
    for i in range(100):
        assert disk_cache.store(disk_cache.key_of(str(i)), "so", bytes(100))
    left = {path.name for path in base.iterdir()}
    assert {path.name for path in mine} < left and ".making-now" in left and ".making-abandoned" not in left
    assert f"{disk_cache.key_of('99')}.so" in left and f"{disk_cache.key_of('0')}.so" not in left


PROCESS = """
import sys, numpy as np, irtool
from irtool.execute.fusion import Fused
group = Fused(irtool.parse(sys.argv[1]).graph(), native=True)
x = np.arange(1, 100, dtype=np.float32)
print(*[float(each.sum()) for each in group([x, x + 1])])
"""


def started(**environment: str | None) -> subprocess.Popen[str]:
    """A process with other variables; None: without that one."""
    variables = {**os.environ, **environment, "PYTHONPATH": str(Path(irtool.__file__).parent.parent)}
    return subprocess.Popen([sys.executable, "-c", PROCESS, TEXT], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={key: value for key, value in variables.items() if value is not None})


def said(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=100)
    assert not process.returncode and not err, err
    return out


@needs_compiler
def test_several_processes_at_once_share_one_folder(tmp_path: Path) -> None:
    places = {"IRTOOL_CACHE_DIR": str(tmp_path / "shared")}
    first, *others = [said(each) for each in [started(**places) for _ in range(3)]]
    assert others == [first] * 2
    assert [path.suffix for path in (tmp_path / "shared").iterdir()] == [".so"]


def test_without_a_home_and_without_a_place_for_temporary_files(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    usual = said(started(IRTOOL_CACHE_DIR=str(tmp_path / "shared")))
    places = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "IRTOOL_CACHE_DIR": None, "TMPDIR": nowhere, "HOME": None}
    assert said(started(**places)) == usual
    if CC is not None and shutil.which("cc"):
        assert said(started(**places, PATH="")) == usual      # the compiler is gone, what it made is not
    assert said(started(**{**places, "XDG_CACHE_HOME": "/dev/null"})) == usual
