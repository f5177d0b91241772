"""Man pages: each option has its paragraph, and a reader of man pages takes them without a word."""
from __future__ import annotations

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from irtool.cli.command import Option
from irtool.cli.commands import COMMANDS, load

PAGES: dict[str, str] = runpy.run_path(str(Path(__file__).parent.parent / "tools" / "man.py"))["pages"]()


def plain(page: str) -> str:
    """The letters of a page, without its escapes."""
    for escape, letter in (("\\-", "-"), ("\\(aq", "'"), ("\\(ga", "`"), ("\\(ti", "~"), ("\\(ha", "^"), ("\\&", ""), ("\\e", "\\")):
        page = page.replace(escape, letter)
    return page


def test_there_is_a_page_for_each_subcommand() -> None:
    assert list(PAGES) == ["irtool.1", *(f"irtool-{name}.1" for name in COMMANDS)]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_every_option(name: str) -> None:
    page = plain(PAGES[f"irtool-{name}.1"])
    assert page.startswith(f'.TH "IRTOOL-{name.upper()}" 1')
    assert [line[4:] for line in page.split("\n") if line.startswith(".SH ")][:2] == ["NAME", "SYNOPSIS"]
    for each in load(name).params:
        assert f".TP\n.B {each.shown}\n{each.help}" in page      # type: ignore[attr-defined]
        assert not isinstance(each, Option) or f".SH {each.group.upper()}\n" in page
    assert ".TP\n.B -h, --help\n" in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
@pytest.mark.parametrize("name", PAGES)
def test_groff_takes_a_page(name: str, tmp_path: Path) -> None:
    done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-P-cbou"], input=PAGES[name], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    shown = re.sub(r"\s+", " ", done.stdout)
    assert "NAME irtool" in shown and "SYNOPSIS irtool" in shown
    if name == "irtool-opt.1":
        assert "irtool opt --passes='lower-tuples{all},cse,dce' graph.ir" in shown
