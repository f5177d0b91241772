"""Mutated texts of every dialect through commands: a clear message or a result, exit 0, 1 or 2; no traceback, no hang, bounded memory.

What `fmt` prints is printed again as it is; what a command says on standard error holds no escape codes.
"""
from __future__ import annotations

import contextlib
import io
import random
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import irtool
from fuzz.case import Case
from fuzz.judge import INTERNAL, Hang, Skip, Wrong
from fuzz.mutations import mutated
from fuzz.pipelines import OPTIONED
from fuzz.reduction import fewer_lines
from fuzz.source import Style, program
from irtool.ir.constants import constant
from irtool.ir.effects import LOOP_KINDS
from irtool.text.dialect_conversion import convert

ROOT = Path(__file__).parent.parent
SYNTAXES = ("2.13", "2018-06", "2017-11", "2019-05")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
MOST_MEMORY = 1 << 20
"""So many kB may a command that runs nothing need."""
RUNNING = ("run", "grad")
MOST_ROUNDS = 10_000
"""A loop of more rounds may take longer than a case has."""


@cache
def corpus() -> tuple[str, ...]:
    """Texts of the tests and examples, of programs, and the latter in older dialects."""
    texts = [path.read_bytes().decode("utf-8", "surrogateescape") for folder,
             pattern in (("tests/data/corpus", "*.txt"), ("examples", "*.ir"))
             for path in sorted((ROOT / folder).glob(pattern)) if path.stat().st_size < 9000]
    for path in sorted((ROOT / "tests" / "expect").rglob("*.ir")):
        for piece in re.split(r"^# (?:====|---- \w+).*\n", path.read_text(encoding="utf-8"), flags=re.M):
            lines = [line for line in piece.split("\n") if "graph" in piece and not line.startswith(("# RUN", "# expected"))]
            texts += ["\n".join(lines)] * bool(lines)
    for seed in range(120):
        with contextlib.suppress(irtool.Error):
            module = irtool.from_script(program(seed, Style(compiled=True, grad=seed % 3 == 0, most=7)).source, "f")
            texts.append(str(module))
            texts.append(str(convert(module, SYNTAXES[seed % len(SYNTAXES)])))
    return tuple(text for text in texts if "graph" in text or "%" in text)


def draw(seed: int) -> Case:
    """A text, changed, and a command line for it."""
    rng = random.Random(seed)
    texts = corpus()
    text = rng.choice(texts)
    others = [rng.choice(texts), rng.choice(texts)]
    return Case("texts", mutated(rng, text, others), {}, {"command": command(rng, text)})


def command(rng: random.Random, text: str) -> str:
    """fmt, opt with up to four passes, run on inputs that fit the text as it was, plan, vmap, transform, decompile, grad."""
    how = rng.random()
    if how < 0.15:
        return shlex.join(["fmt", *rng.choice(([], [], [f"--syntax={rng.choice(SYNTAXES)}"], ["--check"]))])
    if how < 0.6:
        names = [entry.name for entry in irtool.PASSES] + list(OPTIONED) + ["lower-tuples{all}", "differentiate{requires-grad=all}",
                                                                          "differentiate{save=least}", "differentiate,specialize-undef"]
        pipeline = ",".join(rng.choice(names) for _ in range(rng.choice((1, 1, 2, 4))))
        return shlex.join(["opt", f"--passes={pipeline}", *rng.choice(([], [], ["--verify-each"], ["--verify-roundtrip"],
                                                                       ["--diagnostics-format=json"]))])
    if how < 0.85:
        flags = rng.choice((["--interpret"], ["--repeat", "3"], ["--no-optimize"], ["--check=nan"], ["--json"],
                            ["--profiling", "--repeat", "2"], []))
        return shlex.join(["run", "-", *flags, *inputs_of(text)])
    return shlex.join(rng.choice((["plan", "-"], ["vmap"], ["transform", "grad(0)"], ["decompile"], ["transform", "vmap(grad(0))"],
                                  ["grad", "-", *inputs_of(text)], ["decompile"])))


def inputs_of(text: str) -> list[str]:
    """`-i` words for the inputs that the first graph of a text declares."""
    head = text.partition("graph(")[2].partition("):\n")[0]
    words: list[str] = []
    for name, said in re.findall(r"%([\w.]+) : ([\w?]+(?:\([\d, ]*)?)", head):
        kind, _, sizes = said.partition("(")
        numbers = [size for size in sizes.replace(" ", "").split(",") if size]
        literal = {"int": "2", "float": "0.5", "bool": "true", "str": '"a"'}.get(kind)
        dtype = {"Double": "f64", "Long": "i64", "Int": "i32", "Bool": "i1", "Byte": "u8"}.get(kind, "f32")
        words += ["-i", f"{name}=" + (literal or "x".join([*(numbers or ["2", "3"]), f"{dtype}=1"]))]
    return words


def check(case: Case, tally: Counter[str]) -> None:
    """The command on the text. Raises Wrong."""
    words = shlex.split(case.options["command"])
    try:
        code, out, err = called(words, case.text, bounded=words[0] not in RUNNING)
    except Hang:
        if words[0] in (*RUNNING, "vmap", "transform") and may_run_long(case.text):
            raise Skip("the text asks for more rounds than there is time for") from None
        raise
    tally["ways"] += 1
    tally[f"exit {code}"] += 1
    judge_message(err)
    if words == ["fmt"] and code == 0:
        again, printed, _ = called(words, out, bounded=True)
        if again or printed != out:
            raise Wrong("fmt", "what it prints is not printed again as it is")


def may_run_long(text: str) -> bool:
    """Is there a loop that does not say that its rounds are few?"""
    with contextlib.suppress(irtool.Error):
        for node in (node for graph in irtool.parse(text).graphs for node in graph.walk()):
            count = constant(node.inputs[0]) if node.kind in LOOP_KINDS and node.inputs else 0
            if not isinstance(count, int) or count > MOST_ROUNDS:
                return True
    return False


def called(words: list[str], text: str, bounded: bool) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command. Raises Wrong for code 3, for exceptions, and for memory."""
    from irtool.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    before = peak(reset=True)
    try:
        code = main([*words, "--debug"], io.BytesIO(text.encode("utf-8", "surrogateescape")), out, err)
    except (Hang, KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        from fuzz.judge import place_of

        raise Wrong(words[0], f"{INTERNAL}: {type(error).__name__} {place_of(error)}: {error}") from error
    if code not in (0, 1, 2):
        raise Wrong(words[0], internal(err.getvalue()))
    if bounded and peak() - before > MOST_MEMORY:
        raise Wrong(words[0], f"memory: {(peak() - before) >> 10} MiB")
    return code, out.getvalue(), err.getvalue()


def internal(err: str) -> str:
    """The first traceback of an internal error: its innermost place in irtool, and what it says."""
    head = err.partition("Traceback (most recent call last):")[2]
    places = re.findall(r'File "[^"]*?((?:irtool|passes)/[^"]*)", line \d+, in (\S+)', head)
    last = re.search(r"^\S.*", head.partition("\n")[2], re.M)
    what = last.group() if last else err.strip()[-200:]
    return f"{INTERNAL}: in {places[-1][1] if places else '?'}: {what[:200]}"


def judge_message(err: str) -> None:
    """No escape codes. Raises Wrong."""
    if CONTROL.search(err):
        raise Wrong("message",
                    "it holds control characters: " + ascii(next(line for line in err.split("\n") if not line.isprintable()))[:150])


def peak(reset: bool = False) -> int:
    """The most memory that this process had, in kB, since the last reset; 0 where the system does not say."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        match = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    except OSError:
        return 0
    return int(match[1]) if match else 0


def smaller(case: Case) -> Iterator[Case]:
    """Fewer passes, fewer words of the command, fewer lines, shorter lines."""
    words = shlex.split(case.options["command"])
    if words[0] == "opt" and "," in words[1]:
        parts = words[1].removeprefix("--passes=").split(",")
        for place in range(len(parts)):
            yield case.with_option("command", shlex.join(["opt", "--passes=" + ",".join(parts[:place] + parts[place + 1:]), *words[2:]]))
    for place in range(2, len(words)):
        yield case.with_option("command", shlex.join(words[:place] + words[place + 1:]))
    lines = case.text.split("\n")
    for fewer in fewer_lines(["", *lines]):
        yield case.with_text("\n".join(fewer[1:]))
    for place, line in enumerate(lines):
        size = len(line) // 2
        while size > 8:
            for start in range(0, len(line), size):
                yield case.with_text("\n".join([*lines[:place], line[:start] + line[start + size:], *lines[place + 1:]]))
            size //= 2
