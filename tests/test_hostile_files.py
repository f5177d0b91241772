"""Files that somebody else made: whatever they say, a message of one line and exit code 1 or 2, in bounded memory, and no command for
the terminal."""
from __future__ import annotations

import io
import os
import re
import stat
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.cli.console import write_whole
from irtool.cli.main import main
from irtool.execute import disk_cache
from irtool.interop.npz import INFLATED, decode, decode_npy
from irtool.ir.errors import Error
from irtool.ir.source import clean

IDENTITY = "graph(%x : Tensor):\n  return (%x)\n"
COMMAND = "\x1b]0;taken\x07\x9b31m‮"
COMMANDING = f'graph(%x : Tensor):\n  %1 : Tensor = ^A{COMMAND}("{COMMAND}")(%x)\n  return (%1)\n'
needs_posix = pytest.mark.skipif(os.name != "posix", reason="pipes, links and signals of POSIX")


def irtool_(*words: str, stdin: str = IDENTITY) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(list(words), io.BytesIO(stdin.encode()), out, err), out.getvalue(), err.getvalue()


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    """The bytes of an `.npy` with a header of any text."""
    text = header.encode("latin1")
    return b"\x93NUMPY" + bytes((version, 0)) + len(text).to_bytes(2 if version == 1 else 4, "little") + text + data


def header_of(descr: str = "'<f4'", order: str = "False", shape: str = "(2,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as file:
        for name, data in members:
            file.writestr(zipfile.ZipInfo(name), data, method)
    return stream.getvalue()


TWO = npy(header_of(), np.float32([1, 2]).tobytes())


class TestArrays:
    @pytest.mark.parametrize("data, text", [
        (npy(header_of(shape="(True,)"), b"1234"), "no tuple of sizes"),
        (npy(header_of(shape="[2]"), b"12345678"), "no tuple of sizes"),
        (npy(header_of(shape="(2.0,)"), b"12345678"), "no tuple of sizes"),
        (npy(header_of(shape="(-2, -1)"), b"12345678"), "no tuple of sizes"),
        (npy(header_of(shape=f"({'9' * 19},)")), "no tuple of sizes"),
        (npy(header_of(shape="(0x7fffffffffffffff, 0)")), "damaged"),
        (npy(header_of(shape=f"({'1,' * 65})"), b"1234"), "65 dimensions"),
        (npy(header_of(order="0"), b"12345678"), "fortran_order"),
        (npy("{'descr': '<f4', 'shape': (2,)}", b"12345678"), "keys"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", b"12345678"), "keys"),
        (npy("(" * 5000), "damaged"), (npy("(" * 20_000), "20000 bytes"), (npy("{'descr"), "damaged"), (npy("\\\n  ("), "damaged"),
        (npy("__import__('os')"), "damaged"), (npy(""), "damaged"), (npy("{[]: 1}"), "damaged"),
        (b"\x93NUMPY\x01\x00\xff\xff{}", "bytes"), (b"\x93NUMPY\x01\x00\x10\x00{}", "does not end"),
        (b"\x93NUMPY\x09\x00", "version 9.0"),
        (b"\x93NUM", "damaged"), (b"", "damaged"),
        (npy(header_of("'<U0'", shape="(1000000000000,)")), "dtype <U0"), (npy(header_of("'<U0'", shape="()")), "dtype <U0"),
        (npy(header_of("'|O'"), b"1" * 16), "Python objects"), (npy(header_of("[('a', '|O')]"), b"1" * 16), "Python objects"),
        (npy(header_of("[('a', '<f4')]"), b"1" * 8), "dtype"), (npy(header_of("'f4,f4'"), b"1" * 16), "dtype"),
        (npy(header_of("'<M8[D]'"), b"1" * 16), "dtype"), (npy(header_of("'<f3'"), b"1" * 6), "dtype"), (npy(header_of("7")), "dtype"),
        (npy(header_of("'<U1'", shape="(1,)"), b"\xff\xff\xff\xff"), "0xffffffff is no character"),
        (npy(header_of("'>U1'", shape="(1,)"), b"\x00\x11\x00\x00"), "0x110000 is no character"),
        (npy(header_of("'<U1'", shape="(1,)"), b"\x00\xd8\x00\x00"), "0xd800 is no character"),
        (npy(header_of(), b"1234567"), "7 bytes where"), (npy(header_of(), b"123456789"), "9 bytes where"),
        (npy(header_of(shape="(1000000, 1000000000000)"), b"12345678"), "8 bytes where"),
    ], ids=str)
    def test_damage_is_said(self, data: bytes, text: str) -> None:
        for read in (lambda: decode_npy(data, "f.npy"), lambda: decode(zipped(("x.npy", data)), "f.npz")):
            with pytest.raises(Error) as raised:
                read()
            assert text in str(raised.value) and "f.np" in str(raised.value)

    @pytest.mark.parametrize("header, version, shape", [
        (header_of(shape="(2L,)"), 1, (2,)), (header_of(shape="(2L, 1L)"), 1, (2, 1)), (header_of(), 2, (2,)), (header_of(), 3, (2,)),
        ("{'shape': (1, 2), 'fortran_order': True, 'descr': u'<f4'}   \n", 1, (1, 2)),
    ])
    def test_headers_of_every_age(self, header: str, version: int, shape: tuple[int, ...]) -> None:
        found = decode_npy(npy(header, np.float32([1, 2]).tobytes(), version), "f.npy")
        assert found.shape == shape and found.ravel().tolist() == [1, 2]

    @given(st.data())
    @settings(max_examples=150, deadline=None)
    def test_any_header_gives_an_array_or_an_error(self, data: st.DataObject) -> None:
        text = list(header_of(data.draw(st.sampled_from(["'<f4'", "'<U1'", "'>i8'", "'|b1'"]))))
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(text) - 1))
            text[place] = data.draw(st.sampled_from([*"()[]{}'\",:L0129-xuTOV<>|\\\n\0\xff", "", "1" * 30]))
        try:
            decode_npy(npy("".join(text), b"12345678"), "f.npy")
        except Error:
            pass


def bomb(size: int, shape: str = "(2,)") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file, file.open("x.npy", "w", force_zip64=True) as member:
        member.write(npy(header_of(shape=shape)))
        for _ in range(size >> 22):
            member.write(bytes(1 << 22))
    return stream.getvalue()


def with_sizes(data: bytes, compressed: int, size: int) -> bytes:
    """An archive of one member whose directory says other sizes."""
    at = data.index(b"PK\x01\x02") + 20
    return data[:at] + compressed.to_bytes(4, "little") + size.to_bytes(4, "little") + data[at + 8:]


class TestArchives:
    def test_what_would_inflate_without_limit_is_refused_before_it_does(self) -> None:
        data = bomb(INFLATED + (8 << 20))
        tracemalloc.start()
        for each in (data, data.replace(b"(2,)", b"(9,)")):
            with pytest.raises(Error, match="inflate|damaged"):
                decode(each, "f.npz")
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
        tracemalloc.stop()

    def test_members_that_share_bytes_are_refused(self) -> None:
        data = zipped(("x.npy", TWO))
        entry, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
        count = 50
        entries = b"".join(data[entry:end].replace(b"x.npy", b"%c.npy" % (65 + i)) for i in range(count))
        tail = data[end:end + 8] + count.to_bytes(2, "little") * 2 + len(entries).to_bytes(4, "little") + data[end + 16:]
        with pytest.raises(Error, match="larger than the file"):
            decode(data[:entry] + entries + tail, "f.npz")

    @pytest.mark.parametrize("sizes", [(len(TWO), len(TWO) - 4), (len(TWO), len(TWO) + 4), (len(TWO), 2**32 - 2), (3, len(TWO)), (0, 0),
                                       (2**32 - 1, 2**32 - 1)])
    def test_a_directory_that_lies_about_sizes(self, sizes: tuple[int, int]) -> None:
        with pytest.raises(Error, match="f.npz"):
            decode(with_sizes(zipped(("x.npy", TWO)), *sizes), "f.npz")

    @pytest.mark.parametrize("method, text", [(zipfile.ZIP_LZMA, "method 14"), (zipfile.ZIP_BZIP2, "method 12")])
    def test_other_ways_to_compress(self, method: int, text: str) -> None:
        with pytest.raises(Error, match=text):
            decode(zipped(("x.npy", TWO), method=method), "f.npz")

    @given(st.data())
    @settings(max_examples=150, deadline=None)
    def test_a_damaged_directory_never_crashes(self, data: st.DataObject) -> None:
        method = data.draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
        good = bytearray(zipped(("x.npy", TWO), ("y.npy", TWO), method=method))
        start = good.index(b"PK\x01\x02")
        for _ in range(data.draw(st.integers(1, 5))):
            good[data.draw(st.integers(start, len(good) - 1))] = data.draw(st.sampled_from([0, 1, 2, 8, 14, 0x7f, 0x80, 0xff]))
        try:
            decode(bytes(good), "f.npz")
        except Error:
            pass

    def test_names_are_keys_and_no_paths(self, tmp_path: Path) -> None:
        (tmp_path / "in.npz").write_bytes(zipped(("../../evil.npy", TWO), ("/etc/x.npy", TWO)))
        code, _, err = irtool_("run", "-", str(tmp_path / "in.npz"))
        assert code == 1 and "'../../evil', '/etc/x'" in err
        assert [each.name for each in tmp_path.iterdir()] == ["in.npz"]


class TestMessages:
    """Texts that command a terminal, by every way in."""

    @pytest.mark.parametrize("words, stdin", [
        (["run", "-", "IN"], IDENTITY), (["run", "-", "-i", "x=1", "--constants", "IN"], IDENTITY),
        (["run", "-", "-i", "x=2xf32=1", "--expect", "IN"], IDENTITY), (["run", "-", "-i", "x=2xf32=1", "--cotangents", "IN"], IDENTITY),
        (["run", COMMAND], ""), (["run", "-", COMMAND], IDENTITY), (["run", "-", "-i", f"{COMMAND}=1"], IDENTITY),
        (["run", "-", "-i", f"x={COMMAND}"], IDENTITY), (["run", f"--{COMMAND}"], ""), ([COMMAND], ""),
        (["fmt", "-", "-o", f"/no/{COMMAND}"], IDENTITY),
        (["opt", f"--passes={COMMAND}"], IDENTITY), (["opt", "--graph", COMMAND], IDENTITY),
        (["opt", f"--passes=dce{{{COMMAND}=1}}"], IDENTITY),
        (["fmt"], f"graph(%x : Tensor):\n  %y : {COMMAND} = aten::neg(%x)\n  return (%y)\n"),
        (["fmt"], f"graph(%x : Tensor):\n  return (%{COMMAND})\n"),
        (["fmt", "--check"], IDENTITY.replace("  return", f"  # {COMMAND}\n    return")),
        (["run"], f'graph():\n  %1 : str = prim::Constant[value="{COMMAND}"]()\n   = prim::RaiseException(%1)\n  return ()\n'),
        (["run"], f'graph():\n  %1 : str = prim::Constant[value="{COMMAND}"]()\n  return (%1)\n'),
        (["opt", "--run-reproducer"], f"# irtool: opt --graph={COMMAND}\n{IDENTITY}"),
        (["opt", "--diagnostics-format=json", "--graph", COMMAND], IDENTITY),
        (["compile"], f"def f(x):\n    return x.{COMMAND}\n"),
        (["passes", COMMAND], ""), (["ops", COMMAND], ""), (["completion", COMMAND], ""),
        (["inspect", "IN"], ""), (["show"], COMMANDING), (["stats"], COMMANDING), (["gradcheck", "-", "-i", "x=2xf64=1"], COMMANDING),
        (["opt", "--print-changed", "--passes=dce", "--color=always"],
         f"graph(%x : Tensor):\n  %1 : str = prim::Constant[value=\"{COMMAND}\"]()\n  return (%x)\n"),
    ], ids=str)
    def test_no_message_commands_a_terminal(self, words: list[str], stdin: str, tmp_path: Path) -> None:
        np.savez(tmp_path / "in.npz", **{COMMAND: np.ones(2, "f4")})
        code, out, err = irtool_(*[str(tmp_path / "in.npz") if word == "IN" else word for word in words], stdin=stdin)
        assert code in (0, 1, 2) and (out or err)
        for text in (out, err):
            bare = re.sub(r"\x1b\[\d*m", "", text) if "--color=always" in words else text
            assert clean(bare) == bare

    def test_errors_raised_in_python_too(self) -> None:
        with pytest.raises(Error) as raised:
            irtool.parse(IDENTITY).graph(COMMAND)
        assert clean(str(raised.value)) == str(raised.value) and "\\x1b]0;taken\\x07" in str(raised.value)

    def test_a_result_on_a_terminal(self) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        text = f'graph():\n  %1 : str = prim::Constant[value="{COMMAND}"]()\n  return (%1)\n'
        for words in (["fmt"], ["run"], ["run", "--json"]):
            out = Terminal()
            assert main(words, io.BytesIO(text.encode()), out, io.StringIO()) == 0
            text_on_it = re.sub(r"\x1b\[\d*m", "", out.getvalue())       # bold, of the table itself
            assert clean(text_on_it) == text_on_it and "taken" in text_on_it
        assert COMMAND in irtool_("fmt", stdin=text)[1]         # into a file it goes as it is


class TestReproducers:
    @pytest.mark.parametrize("line", [
        "opt -p @secret", "opt '--passes= @secret'", "opt --passes=dce --passes=@secret", "opt secret", "opt -o secret",
        "opt --dump-dir=secret", "opt --write-reproducer=secret", "run --load secret", "run -i x=@secret"])
    def test_a_reproducer_names_no_other_file(self, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("secret").write_text("private words")
        code, out, err = irtool_("opt", "--run-reproducer", stdin=f"# irtool: {line}\n{IDENTITY}")
        assert code == 2 and "private" not in out + err
        assert Path("secret").read_text() == "private words" and len(list(tmp_path.iterdir())) == 1


@needs_posix
class TestWriting:
    def test_names_that_are_taken_are_left_alone(self, tmp_path: Path) -> None:
        target, dear = tmp_path / "out.ir", tmp_path / "dear"
        dear.write_text("dear")
        for name in (f"out.ir.{os.getpid()}.tmp", f"out.ir.{os.getpid()}.1.tmp"):
            (tmp_path / name).symlink_to(dear)
        assert irtool_("fmt", "-o", str(target))[0] == 0
        assert target.read_text() == IDENTITY and dear.read_text() == "dear" and len(list(tmp_path.iterdir())) == 4

    def test_a_write_that_fails_leaves_what_was_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        target = tmp_path / "out.ir"
        target.write_text("old")
        target.chmod(0o640)
        for error in (OSError(28, "No space left on device"), KeyboardInterrupt()):
            def replace(old: str, new: str, error: BaseException = error) -> None:
                raise error

            monkeypatch.setattr(os, "replace", replace)
            with pytest.raises((Error, KeyboardInterrupt)):
                write_whole(str(target), b"new")
            monkeypatch.undo()
            assert [each.name for each in tmp_path.iterdir()] == ["out.ir"] and target.read_text() == "old"
        write_whole(str(target), b"new")
        assert target.read_text() == "new" and stat.S_IMODE(target.stat().st_mode) == 0o640

    @pytest.mark.parametrize("path", ["", "folder", "no/out.ir", "a\0b", "x" * 300])
    def test_places_that_take_no_file(self, path: str, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        code, _, err = irtool_("fmt", "-o", f"{tmp_path}/{path}")
        assert code == 2 and err.startswith("error: cannot write ")
        assert [each.name for each in tmp_path.iterdir()] == ["folder"]

    def test_a_long_name(self, tmp_path: Path) -> None:
        assert irtool_("fmt", "-o", str(tmp_path / ("x" * 255)))[0] == 0


def started(*words: str, text: str = IDENTITY, stdout: int = subprocess.PIPE) -> tuple[int, bytes]:
    """Exit code and messages of a process of its own."""
    done = subprocess.run([sys.executable, "-m", "irtool", *words], input=text.encode(), stdout=stdout, stderr=subprocess.PIPE, timeout=60,
                          check=False)
    return done.returncode, done.stderr


@needs_posix
class TestDevices:
    def test_devices_without_an_end_are_refused_at_once(self) -> None:
        for words in (["fmt", "/dev/zero"], ["run", "-", "/dev/zero"], ["run", "-", "-i", "x=@/dev/zero"],
                      ["run", "-", "--expect=/dev/zero", "-i", "x=1"]):
            code, _, err = irtool_(*words)
            assert code == 1 and "/dev/zero" in err, words

    def test_folders_and_what_may_not_be_read(self, tmp_path: Path) -> None:
        for words in (["fmt", "FOLDER"], ["run", "-", "FOLDER"], ["run", "-", "-i", "x=@FOLDER"], ["run", "-", "--constants", "FOLDER"],
                      ["run", "-", "--load", "FOLDER"], ["opt", "-p", "@FOLDER"]):
            words = [word.replace("FOLDER", str(tmp_path)) for word in words]
            assert irtool_(*words)[0] == 2, words

    def test_a_pipe_is_read(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with subprocess.Popen(["sh", "-c", f"printf 'graph(%%x : Tensor):\\n  return (%%x)\\n' > {tmp_path}/pipe"]):
            assert irtool_("fmt", str(tmp_path / "pipe")) == (0, IDENTITY, "")

    @pytest.mark.parametrize("flag", [[], ["--interpret"]])
    def test_prints_that_nobody_reads(self, flag: list[str]) -> None:
        text = ("graph():\n  %n : int = prim::Constant[value=9000]()\n  %t : bool = prim::Constant[value=1]()\n   = prim::Loop(%n, %t)\n"
                "    block0(%i : int):\n       = prim::Print(%i)\n      -> (%t)\n  return ()\n")
        with open("/dev/full", "w") as full:
            assert started("run", *flag, text=text, stdout=full.fileno()) == (
                2, b"error: cannot write to standard output: no space left on device [E0709]\n")
        reading, writing = os.pipe()
        os.close(reading)
        assert started("run", *flag, text=text, stdout=writing) == (0, b"")
        os.close(writing)


@needs_posix
class TestCache:
    def test_what_is_no_entry_is_skipped_at_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path / "cache"))
        path = disk_cache.store("0" * 64, "plan", b"data")
        assert path is not None and disk_cache.read("0" * 64, "plan") == b"data"
        whole = path.read_bytes()
        (tmp_path / "elsewhere").write_bytes(whole)
        start = time.monotonic()
        for make in (lambda: os.mkfifo(path), path.mkdir, lambda: path.symlink_to("/dev/zero"),
                     lambda: path.symlink_to(tmp_path / "elsewhere"), lambda: path.symlink_to(path), lambda: path.write_bytes(whole[:-1]),
                     lambda: path.write_bytes(b"")):
            if path.is_dir():
                path.rmdir()
            path.unlink(missing_ok=True)
            make()
            assert disk_cache.read("0" * 64, "plan") is None and disk_cache.load("0" * 64, "plan") is None
        assert disk_cache.store("0" * 64, "plan", b"again") == path and disk_cache.read("0" * 64, "plan") == b"again"
        assert time.monotonic() - start < 2


def python(script: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Python code in a process of its own, with this checkout."""
    return subprocess.run([sys.executable, "-c", script], input=IDENTITY.encode(), cwd=folder, capture_output=True, timeout=60, check=False,
                          env={**os.environ, "PYTHONPATH": str(Path(irtool.__file__).resolve().parents[1])})


@needs_posix
class TestInterrupts:
    """Ctrl-C at moments that are hard to come by."""

    SCRIPT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {moment!r}:
            sys.meta_path.remove(self)
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                if {as_error}:
                    raise ImportError("this installation is broken")
                raise
sys.meta_path.insert(0, Finder())
sys.argv[1:] = ["run", "-", "-i", "x=2xf32=1", "-o", "out.npz"]
import runpy
runpy.run_module("irtool", run_name="__main__")
"""

    @pytest.mark.parametrize("as_error", [False, True])
    @pytest.mark.parametrize("moment", ["irtool.cli.console", "click", "irtool.cli.commands.run", "numpy", "irtool.interop.npy",
                                        "irtool.execute.executor"])
    def test_during_an_import(self, moment: str, as_error: bool, tmp_path: Path) -> None:
        if as_error and moment in ("irtool.cli.console", "click"):
            pytest.skip("nobody takes it for an error there")
        done = python(self.SCRIPT.format(moment=moment, as_error=as_error), tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"") and not list(tmp_path.iterdir())

    def test_when_the_result_is_out(self, tmp_path: Path) -> None:
        script = ("import atexit, os, signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
                  "from irtool.cli.main import main\nsys.argv[1:] = ['fmt', '-o', 'out.ir']\ncode = main()\n"
                  "os.kill(os.getpid(), signal.SIGINT)\nsys.exit(code)")
        done = python(script, tmp_path)
        assert (done.returncode, done.stderr) == (130, b"") and (tmp_path / "out.ir").read_text() == IDENTITY


def test_too_little_memory_is_an_error_that_names_the_array(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "in.npz").write_bytes(zipped(("x.npy", TWO)))

    def empty(*args: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(np, "empty", empty)
        code, _, err = irtool_("run", "-", str(tmp_path / "in.npz"))
    assert code == 1 and "in.npz: 'x': not enough memory for float32 (2,), 8 bytes" in err
    text = ("graph():\n  %n : int = prim::Constant[value=1000000000000]()\n  %l : int[] = prim::ListConstruct(%n)\n"
            "  %m : int[] = aten::mul(%l, %n)\n  return (%m)\n")
    code, _, err = irtool_("run", stdin=text)
    assert code == 1 and "<stdin>:4:3: error: aten::mul: not enough memory" in err


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
@pytest.mark.parametrize("limit", [420, 620])
def test_memory_that_ends_while_files_are_read_or_written(limit: int, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones(30_000_000))
    script = ("import os, resource, sys\nos.environ.update(OPENBLAS_NUM_THREADS='1', OMP_NUM_THREADS='1')\n"
              f"resource.setrlimit(resource.RLIMIT_AS, ({limit} << 20,) * 2)\nfrom irtool.cli.main import main\n"
              "sys.argv[1:] = ['run', '-', 'in.npz', '-o', 'out.npz']\nsys.exit(main())")
    done = python(script, tmp_path)
    assert done.returncode == 1 and b"not enough memory" in done.stderr and (b"'x'" in done.stderr or b"'output0'" in done.stderr)
    assert not (tmp_path / "out.npz").exists()


def test_standard_input_is_read_once() -> None:
    code, _, err = irtool_("opt", "-p", "@-", "-")
    assert code == 2 and "named twice" in err


def test_warnings_of_a_graph_are_messages() -> None:
    text = (f'graph():\n  %1 : str = prim::Constant[value="mind {COMMAND}"]()\n  %2 : int = prim::Constant[value=2]()\n'
            "   = aten::warn(%1, %2)\n  return ()\n")
    code, err = started("run", text=text)
    assert code == 0 and err.startswith(b"warning: mind \\x1b") and err.count(b"\n") == 1
