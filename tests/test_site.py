"""The site of the documentation: built without a warning, whole, and readable from disk without a network (`make docs`)."""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from irtool.cli.commands import COMMANDS
from irtool.ops import FAMILIES
from irtool.passes import PASSES

pytestmark = pytest.mark.docs
ROOT = Path(__file__).parent.parent


class Html(HTMLParser):
    """What a page loads, where it links to, the names of its places, and its text outside code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self.prose: list[str] = []
        self.inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.places.update({values[name] for name in ("id", "name") if name in values})
        if tag == "a":
            self.links.append(values.get("href", ""))
        else:
            self.loads += [values[name] for name in ("src", "href", "data") if name in values]
        if tag in ("code", "script", "style", "pre"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.inside and tag == self.inside[-1]:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.prose.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built in the folder that IRTOOL_SITE names, or in a new one."""
    folder = (ROOT / os.environ["IRTOOL_SITE"]) if "IRTOOL_SITE" in os.environ else tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Html]:
    """Every page, read."""
    return {path: Html(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_there_is_a_page_for_all_that_the_tables_name(site: Path) -> None:
    names = [f"passes/{each.name}" for each in PASSES]
    names += [f"operators/{each}" for each in FAMILIES] + [f"commands/{each}" for each in COMMANDS]
    documents = [path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")]
    assert [name for name in (*names, *documents, "index", "names/execute") if not (site / f"{name}.html").exists()] == []


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Html]) -> None:
    assert {load for page in pages.values() for load in page.loads if urlsplit(load).netloc} == set()
    for sheet in {path for page in pages for path in page.parent.rglob("*.css")}:
        assert not re.search(r"url\(['\"]?https?:|@import", sheet.read_text(encoding="utf-8")), sheet


def test_links_lead_to_places_that_exist(pages: dict[Path, Html]) -> None:
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":     # for servers: its links begin at their root
            continue
        for link in {*page.links, *page.loads}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            place = unquote(parts.fragment)
            if not target.exists() or place and place not in pages[target].places and not place.startswith("__"):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_no_mark_of_markdown_is_left_in_the_text(pages: dict[Path, Html]) -> None:
    mark = re.compile(r"```.*|\]\([\w./#]+\)|^ *\|.*\| *$|:::.*", re.MULTILINE)
    assert {path.name: match[0] for path, page in pages.items() if (match := mark.search("".join(page.prose)))} == {}


def test_search_knows_each_page(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {urlsplit(entry["location"]).path for entry in index["docs"]}
    assert {"index.html", "tour.html", "passes/cse.html", "operators/conv.html", "commands/opt.html", "names/execute.html"} <= found
    assert not any(each.startswith("source/") for each in found)


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(site: Path, browser: Any, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(color_scheme=scheme)
    findings = []
    for name in ("index", "passes/cse", "operators/conv", "commands/opt", "names/execute", "notebooks/gradients", "from-jax"):
        page.goto((site / f"{name}.html").as_uri())
        findings += [(name, each["id"], each["nodes"][0]["html"]) for each in Axe().run(page).response["violations"]
                     if each["impact"] in ("serious", "critical")]
    page.close()
    assert findings == []


@pytest.mark.browser
def test_pages_work_from_disk(site: Path, browser: Any) -> None:
    problems: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else problems.append(request.url))
    for name in ("tour", "passes/cse", "names/ir", "index"):
        page.goto((site / f"{name}.html").as_uri())
    page.click("input[name=query]")
    page.keyboard.type("cse")
    page.click(".md-search-result__link[href*='passes/cse.html']")
    page.wait_for_selector("h1:has-text('cse')")
    page.close()
    assert problems == []
