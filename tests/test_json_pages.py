"""docs/json.md: the commands on it give the fields that its tables say, no more and no fewer."""
from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.cli.command import Choice, Option
from irtool.cli.commands import COMMANDS, load
from irtool.cli.main import main

ROOT = Path(irtool.__file__).resolve().parents[1]
PAGE = (ROOT / "docs/json.md").read_text()
SECTIONS = {title: text for title, text in re.findall(r"(?ms)^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE)}


def records(command: str) -> Iterator[dict[str, Any]]:
    """The objects that a command of the page writes."""
    program, *words = command.split()
    if program == "cat":
        yield json.loads(Path(words[0]).read_text())
        return
    out, err = io.StringIO(), io.StringIO()
    main(words, io.BytesIO(b""), out, err)
    for text in (out.getvalue(), err.getvalue()):
        for match in re.finditer(r"(?ms)^\{.*?^\}$|^\{[^\n]*\}$", text):
            yield json.loads(match[0])


def fields(record: Any, documented: dict[str, str], path: str = "") -> Iterator[str]:
    """The paths of all fields, as the tables write them; values of graphs, executors and the like are described elsewhere."""
    if isinstance(record, list):
        for each in record:
            yield from fields(each, documented, f"{path}[]")
    elif isinstance(record, dict):
        for key, value in record.items():
            inner = f"{path}.{key}".lstrip(".") if f"{path}.*" not in documented else f"{path}.*"
            yield inner
            if documented.get(inner, "").split()[0:1] not in (["value"], ["any"], ["executor"], ["plan"]) or inner.endswith(".*"):
                if documented.get(inner) != "list of executors":
                    yield from fields(value, documented, inner)


@pytest.mark.parametrize("title", SECTIONS)
def test_the_fields_are_those_of_the_table(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    documented = dict(re.findall(r"(?m)^\| (\S+) \| ([^|]+) \| [^|]+ \|$", SECTIONS[title]))
    documented.pop("field")
    commands = re.findall(r"(?m)^\$ (.*)$", SECTIONS[title])
    written = [record for command in commands for record in records(command)]
    assert len(written) >= len([each for each in commands if "--dump-dir" not in each])
    assert {path for record in written for path in fields(record, documented)} == set(documented)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_that_gives_json_is_on_the_page(name: str) -> None:
    for each in load(name).params:
        if not isinstance(each, Option) or each.long_flag == "--diagnostics-format":
            continue
        words = f"{each.long_flag} {each.help} {each.type.choices if isinstance(each.type, Choice) else ''}".lower()
        if "json" in words or "chrome" in words:
            assert any(f"irtool {name} " in title and each.long_flag in title for title in SECTIONS), each.long_flag
