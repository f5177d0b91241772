"""What campaigns found stays mended, and their generators stay alive: reduced cases, and a few live ones of each kind.

`make fuzz` draws many more; tests/fuzz_cases/ holds what it wrote, a file for each case, with what must hold of it in the first line.
"""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import irtool
from fuzz import oracle, programs, texts
from fuzz.campaign import Plan, run
from fuzz.case import read, spell
from fuzz.gradients import check_differences
from fuzz.judge import Finding, Wrong, attempt, same
from fuzz.kinds import BY_NAME, KINDS, Kind
from fuzz.rounding import is_explained

CASES = sorted((Path(__file__).parent / "fuzz_cases").glob("*"))
TEXTS = tuple(path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "data" / "corpus").glob("2018*.txt"))[:12])
LIVE = {"programs": range(11), "gradients": (3, 4, 5, 6, 7, 9, 11, 12), "laws": (0, 1, 2, 3, 4, 5, 6, 8),
        "orders": range(8), "passes": range(3), "pipelines": range(10), "texts": range(1000, 1100), "archives": range(20),
        "modules": range(60), "calls": range(60), "changed": range(100)}
"""Seeds of live cases."""


@pytest.fixture(autouse=True, scope="module")
def torch_as_it_was(pytestconfig: pytest.Config) -> Iterator[None]:
    """Campaigns set torch to run graphs as they stand; other tests compare with what it does by default. `make test` asks it nothing."""
    with pytest.MonkeyPatch.context() as patch:
        if pytestconfig.option.markexpr == "not oracle":
            patch.setattr(oracle, "library", cache(lambda: None))
        oracle.library()        # loaded before the time of a case begins
        yield
        if oracle.library.cache_info().currsize and (torch := oracle.library()) is not None:
            torch._C._jit_set_profiling_executor(True)
            torch._C._set_graph_executor_optimize(True)
        oracle.library.cache_clear()


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_a_case_holds(path: Path) -> None:
    case = read(path.read_text(encoding="utf-8"))
    tally: Counter[str] = Counter()
    finding = BY_NAME[case.kind].attempt(case, tally)
    assert finding is None, finding.message
    assert not any(what.startswith("skipped") for what in tally), tally


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_live_cases_of_a_kind_hold(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "corpus", lambda: TEXTS)      # another expect file must not make other cases
    tally: Counter[str] = Counter()
    seeds = LIVE[kind.name]
    for seed in seeds:
        case = kind.draw(seed)
        finding = kind.attempt(case, tally)
        assert finding is None, f"{kind.name}:{seed}: {finding.message}\n{spell(case)}"
    skipped = sum(count for what, count in tally.items() if what.startswith("skipped"))
    assert skipped <= len(seeds) // 3, tally


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_a_seed_is_a_case_and_a_file_holds_it(kind: Kind) -> None:
    for seed in range(20):
        case = kind.draw(seed)
        assert case == kind.draw(seed) == read(spell(case))


def test_a_finding_is_reduced_and_written(tmp_path: Path) -> None:
    """A kind whose law does not hold: no result may be negated."""
    programs = BY_NAME["programs"]

    def check(case: object, tally: Counter[str]) -> None:
        if "neg" in str(getattr(case, "text", "")):
            raise Wrong("here", "a sign changed")

    broken = Kind("programs", 8, 5, programs.draw, check, programs.smaller)
    report = run(Plan(3, 30, [broken], rounds=12, out=tmp_path), lambda report: None)
    (written,) = tmp_path.iterdir()
    case = read(written.read_text())
    assert report.counts["programs"]["wrong"] > 1 and len(report.findings) == 1
    assert len(case.text.splitlines()) <= 3 and "neg" in case.text


def test_a_case_that_does_not_end_is_a_finding() -> None:
    def check(case: object, tally: Counter[str]) -> None:
        while True:
            pass

    finding = attempt(check, BY_NAME["programs"].draw(0), Counter(), 0.2)
    assert isinstance(finding, Finding) and finding.sort == "hang"


def test_tensors_without_dimensions_are_no_numbers() -> None:
    import numpy as np

    with pytest.raises(Wrong, match="structure"):
        same([1.5], [np.float64(1.5).reshape(())], "here")


def test_rounding_explains_a_difference_only_where_other_roundings_make_as_much():
    module = irtool.from_script("def f(x: Tensor):\n    y = torch.pow(x * x + 1, x * 0.5)\n    return y.sin(), y.sqrt()\n", "f")
    values = [np.array([3.0, 8.0], "float32")]

    def reference():
        return irtool.run(module, values, interpret=True)

    wild, tame = (each.copy() for each in reference()[0])
    other = wild + np.array([0, 0.5], "float32")        # of 65 ** 4, which single precision does not tell from its neighbours
    assert is_explained([(other, tame)], reference(), reference)
    assert not is_explained([(wild + np.array([0.5, 0], "float32"), tame)], reference(), reference)
    assert not is_explained([(other, tame * np.float32(1.001))], reference(), reference)


def test_an_interrupted_campaign_reports_what_it_ran(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "fuzz", "--seconds", "100", "--kinds", "texts", "--json", "--out", str(tmp_path)]
    def heard() -> None:
        """Ctrl-C, also where the tests themselves run in the background, which ignores it."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    folder = Path(__file__).parents[1]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=folder, start_new_session=True, preexec_fn=heard) as process:
        assert process.stdout is not None
        for _ in range(600):
            time.sleep(0.1)
            if len(children(process.pid)) > 0:
                break
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)       # as a terminal does
        output = process.stdout.read()
    assert process.returncode == 130
    assert "texts" in json.loads(output)["kinds"]


def children(process: int) -> list[str]:
    """The processes that a process has started."""
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()


def test_what_is_not_finite_is_not_compared_with_differences() -> None:
    module = irtool.from_script("def f(x):\n    return torch.acosh(x)\n")
    assert not check_differences(module, [np.zeros(3)], Counter())
    assert check_differences(module, [np.full(3, 2.0)], Counter())


@pytest.mark.parametrize(("other", "is_beside"), [([1.0, 0.0, 2.0], True), ([0.0, 1.0, 2.0], True), ([1.0, 1.0, 2.0], False),
                                                  ([2.0, 1.0, 0.0], False)])
def test_only_neighbours_make_up_for_a_count(other: list[float], is_beside: bool) -> None:
    assert programs.counts_beside(("value", [np.array([0.0, 1.0, 2.0])]), ("value", np.array(other))) is is_beside
