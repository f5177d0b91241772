"""The pages of `irtool show` in headless Chromium: every control, accessibility, hostile texts (`make browser`)."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.cli.main import main
from irtool.text.parser import parse
from tests.test_show import EXAMPLES, HOSTILE, LOOP, chain, hostile_file

pytestmark = pytest.mark.browser

OPTIONS = {
    "passes": [str(EXAMPLES / "lstm_cell.ir"), "--passes=O1"],
    "gradient": [str(EXAMPLES / "lstm_cell.ir"), "--passes=differentiate"],
    "values": [str(EXAMPLES / "mlp.ir"), "--inputs", str(EXAMPLES / "mlp_inputs.npz")],
    "folds": ["folds.ir"],
    "archive": [str(EXAMPLES / "model.pt")],
    "loop": ["loop.ir", "--passes=loop-unrolling"],
    "large": ["large.ir", "--passes=dce"],
    "nan": ["nan.ir", "--input", "x=3xf32=1"],
}
NAN = "graph(%x : Tensor):\n  %a : Tensor = aten::neg(%x)\n  %b : Tensor = aten::log(%a)\n  return (%b)\n"


@pytest.fixture
def opened(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Opens the page of a command line; at the end no script may have failed, been refused, or opened a dialog."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.ir").write_text(LOOP)
    (tmp_path / "large.ir").write_text(chain(1000, 5))
    (tmp_path / "f.py").write_text("import torch\n\ndef f(x: torch.Tensor):\n    return x.sin()\n")
    (tmp_path / "folds.ir").write_text(chain(300))
    (tmp_path / "nan.ir").write_text(NAN)
    problems: list[str] = []
    pages: list[Any] = []

    def open_page(*words: str, scheme: str = "light") -> Any:
        assert main(["show", *words, "-o", str(tmp_path / "page.html")]) == 0
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: None if request.url.startswith("file:") else problems.append(request.url))
        page.goto((tmp_path / "page.html").as_uri())
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert not problems


def text_of(page: Any, name: str) -> str:
    """The text of an element."""
    return str(page.inner_text(name))


STICKS_OUT = """() => [...document.querySelectorAll("#picture .box > text")].filter((text) => {
  const frame = text.parentElement.querySelector("rect").getBBox(), words = text.getBBox();
  return words.x < frame.x - 1 || words.x + words.width > frame.x + frame.width + 8 || words.y + words.height > frame.y + frame.height + 2;
}).map((text) => text.textContent)"""
COVERED = """() => {
  const texts = [...document.querySelectorAll("#picture text")].map((text) => [text.getBBox(), text.textContent]);
  return texts.flatMap(([a, words], i) => texts.slice(0, i).filter(([b]) =>
    a.x + 1 < b.x + b.width && b.x + 1 < a.x + a.width && a.y + 3 < b.y + b.height && b.y + 3 < a.y + a.height
  ).map((each) => [words, each[1]]));
}"""
OVERLAPS = """() => {
  const parts = [...document.querySelectorAll("header > *")].filter((each) => each.offsetWidth).map((each) => each.getBoundingClientRect());
  return parts.some((a, i) => parts.slice(0, i).some((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom));
}"""


@pytest.mark.parametrize("name", OPTIONS)
def test_every_control(name: str, opened: Callable[..., Any]) -> None:
    page = opened(*OPTIONS[name])
    assert not page.evaluate(STICKS_OUT) and not page.evaluate(OVERLAPS) and not page.evaluate(COVERED)
    for _ in range(page.locator("#step").evaluate("each => Number(each.max)")):
        page.click("#after")
        assert text_of(page, "#step-name") != "as it was read"
        assert not page.evaluate(STICKS_OUT) and not page.evaluate(COVERED)
    if page.is_visible("#before"):
        assert page.is_disabled("#after")
        page.click("#before")
    view = "() => document.querySelector('#picture svg').getAttribute('viewBox')"
    page.click("#fit")
    whole = page.evaluate(view)
    page.click("#closer")
    assert page.evaluate(view) != whole
    page.click("#farther")
    page.mouse.move(300, 400)
    page.mouse.wheel(0, 200)
    page.mouse.down()
    page.mouse.move(340, 430)
    page.mouse.up()
    page.click("#fit")
    assert page.evaluate(view) == whole
    page.click("#theme")
    assert page.evaluate("document.documentElement.classList.contains('dark')")
    page.click("#theme")
    page.click("#help")
    assert page.is_visible("#keys")
    page.click("#keys button")
    assert not page.is_visible("#keys")
    for option in page.locator("#scene option").all()[:8]:
        page.select_option("#scene", option.get_attribute("value"))
        assert page.locator("#picture svg .box").count() and not page.evaluate(STICKS_OUT)
    page.fill("#find", "%")
    assert text_of(page, "#found").endswith("lines")
    page.press("#find", "Enter")
    assert text_of(page, "#found").startswith("1 of")
    page.press("#find", "Escape")
    for key in ("ArrowRight", "ArrowLeft", "j", "j", "k", "o", "u", "n", "t", "t", "+", "-", "0", "Escape"):
        page.keyboard.press(key)
    page.emulate_media(media="print")
    assert not page.is_visible("#theme") and page.is_visible("#text")


def test_lines_and_boxes_are_linked(opened: Callable[..., Any]) -> None:
    page = opened(*OPTIONS["values"])
    page.click(".row:has-text('aten::relu') .value:first-child")
    assert page.locator(".box.picked").get_attribute("data-keys") == "graph %hidden"
    assert page.locator(".edge.near").count() == 1
    assert "float32 (4, 16)" in text_of(page, "#details")
    assert page.locator("#details svg rect").count() == 24
    page.click(".box[data-keys='graph %8'] > rect")
    assert "aten::addmm(%b2" in text_of(page, ".row.picked")
    page.keyboard.press("Escape")
    assert not page.locator(".picked").count()


def test_what_a_pass_did_is_in_colour(opened: Callable[..., Any]) -> None:
    page = opened(*OPTIONS["passes"])
    while "constant-propagation" not in text_of(page, "#step-name"):
        page.click("#after")
    assert page.locator(".row.gone").count() == 1 and page.locator(".row.changed").count() == 2
    page.click("#before")
    assert not page.locator(".row.gone:has-text('%two')").count()


def test_nodes_of_df_are_linked_with_those_of_f(opened: Callable[..., Any]) -> None:
    page = opened("f.py:f", "--passes=differentiate")
    page.click("#after")
    assert page.locator("#scene").input_value() == "f | df"
    page.click("#before")
    assert page.locator("#scene").input_value() == "f"
    page = opened(*OPTIONS["gradient"])
    page.click("#after")
    page.click(".row:has-text('from %hw,') >> nth=0", position={"x": 400, "y": 8})
    assert page.locator(".row.near:has-text('%hw :')").count() == 1
    page.click("#fit")
    assert "near" in (page.locator(".box[data-keys='f %hw']").get_attribute("class") or "")
    page.click(".box[data-keys='f %hw'] > rect")
    assert page.locator(".row.near:has-text('from %hw,')").count() == 5


def test_keys_lead_into_folds(opened: Callable[..., Any]) -> None:
    page = opened(*OPTIONS["large"])
    page.fill("#find", "%333 :")
    page.press("#find", "Enter")
    assert page.locator(".box.picked").get_attribute("data-keys") == "graph %333"
    page.press("#find", "Escape")
    page.keyboard.press("j")
    assert page.locator(".box.picked").get_attribute("data-keys") == "graph %334"


MISPLACED = """() => {
  const frame = (box) => box.querySelector(":scope > rect").getBBox(), problems = [];
  const meet = (a, b) => a.x + 1 < b.x + b.width && b.x + 1 < a.x + a.width && a.y + 1 < b.y + b.height && b.y + 1 < a.y + a.height;
  for (const parent of document.querySelectorAll("#picture svg, #picture .box")) {
    const boxes = [...parent.children].filter((each) => each.matches(".box")), frames = boxes.map(frame);
    const around = parent.matches(".box") ? frame(parent) : parent.getBBox();
    frames.forEach((a, i) => {
      if (frames.slice(0, i).some((b) => meet(a, b))) problems.push("overlaps: " + boxes[i].dataset.keys);
      if (a.x < around.x || a.x + a.width > around.x + around.width + 1 || a.y + a.height > around.y + around.height + 1)
        problems.push("sticks out: " + boxes[i].dataset.keys);
    });
    for (const edge of parent.querySelectorAll(":scope > .edge:not(.capture)")) {
      const ends = edge.dataset.ends.split(","), length = edge.getTotalLength();
      const [start, end] = ends.map((key) => frames[boxes.findIndex((each) => each.dataset.keys.split(",")[0] === key)]);
      const first = edge.getPointAtLength(0), last = edge.getPointAtLength(length);
      if (Math.abs(first.y - start.y - start.height) > 1 || Math.abs(last.y - end.y) > 1 || last.x < end.x || last.x > end.x + end.width
          || first.x < start.x || first.x > start.x + start.width) problems.push("comes off: " + ends);
      for (let part = 1; part < 40; part++) {
        const at = edge.getPointAtLength(length * part / 40), spot = { x: at.x - 1, y: at.y - 1, width: 2, height: 2 };
        const inside = frames.find((a) => meet(a, spot));
        if (inside && inside !== start && inside !== end) problems.push("runs through a box: " + ends);
      }
    }
  }
  return problems;
}"""


def test_a_fold_opens_alone(opened: Callable[..., Any]) -> None:
    page = opened(*OPTIONS["large"])
    assert page.locator("#picture .fold").count() == 5 and page.is_disabled("#up")
    page.click("#picture .fold >> nth=1")
    page.keyboard.press("O")
    assert page.locator("#scene").input_value() != "graph"
    page.click("#up")
    assert page.locator("#scene").input_value() == "graph" and not page.locator(".open").count()


@pytest.mark.parametrize("name", OPTIONS)
def test_boxes_open_and_close_where_they_stand(name: str, opened: Callable[..., Any]) -> None:
    page = opened(*OPTIONS[name])
    if page.is_visible("#after"):
        page.click("#after")
    assert not page.evaluate(MISPLACED)
    page.keyboard.press("0")
    before = page.inner_html("#picture")
    corner = "name => { const at = document.querySelector(`[data-opens='${name}'] > rect`).getBoundingClientRect(); return [at.x, at.y]; }"
    toggled: list[str] = []
    while (closed := page.locator("#picture [data-opens]:not(.open)")).count() and len(toggled) < 6:
        fold = closed.nth((closed.count() - 1) // 2)
        toggled.append(fold.get_attribute("data-opens"))
        fold.locator("> path.sign").scroll_into_view_if_needed()
        page.keyboard.press("0")
        at = page.evaluate(corner, toggled[-1])
        fold.locator("> path.sign").click(force=True)
        assert page.evaluate(corner, toggled[-1]) == pytest.approx(at, abs=1)
        assert not page.evaluate(MISPLACED) and not page.evaluate(STICKS_OUT) and not page.evaluate(COVERED)
    assert page.locator("#picture .open").count() == len(toggled) and page.locator("#scene").input_value() in ("graph", "forward", "f | df")
    for each in reversed(toggled):
        page.locator(f"[data-opens='{each}'] > text.head >> nth=0").dispatch_event("dblclick")
    page.keyboard.press("0")
    assert page.inner_html("#picture").replace(" picked", "") == before or not toggled


def test_keys_open_boxes(opened: Callable[..., Any]) -> None:
    page = opened(*OPTIONS["large"])
    page.click("#picture .fold >> nth=0")
    page.keyboard.press("o")
    assert page.locator(".open").count() == 1
    page.click(".open .fold >> nth=0")
    page.keyboard.press("o")
    assert page.locator(".open").count() == 2
    page.keyboard.press("j")
    page.keyboard.press("o")
    assert page.locator(".open").count() == 1


def test_the_first_nan(opened: Callable[..., Any]) -> None:
    page = opened(*OPTIONS["nan"])
    page.click("#nan")
    assert page.locator(".box.picked").get_attribute("data-keys") == "graph %b"
    assert "3 nan" in text_of(page, "#details .trouble")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", OPTIONS)
def test_accessibility(name: str, scheme: str, opened: Callable[..., Any]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened(*OPTIONS[name], scheme=scheme)
    page.keyboard.press("j")
    if page.is_visible("#after"):
        page.click("#after")
    found = Axe().run(page).response["violations"]
    assert not [(each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_do_nothing(name: str, opened: Callable[..., Any], tmp_path: Path) -> None:
    page = opened(str(hostile_file(name, tmp_path)))
    for element in ("img", "b", "iframe", "#text script", "#picture script", "svg svg"):
        assert not page.locator(element).count()
    for unfold in page.locator(".unfold").all():
        unfold.click()
    page.keyboard.press("j")
    if name in ("string", "scope", "comment"):
        assert "<script>alert(1)</script>" in text_of(page, "#text")
    if name == "turned":
        assert "\\u202egnp.exe" in text_of(page, "#text")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_do_nothing_in_notebooks(name: str, browser: Any) -> None:
    """What notebooks show of modules, graphs, nodes and values is put into a page without a policy, as Jupyter does."""
    module = parse(HOSTILE[name])
    (graph,) = module.graphs
    things = [module, graph, *graph.walk(), *graph.values(), irtool.compile(graph)]
    problems: list[str] = []
    page = browser.new_page()
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("console", lambda message: problems.append(message.text))
    page.on("request", lambda request: problems.append(request.url[:80]))
    for thing in things:
        page.set_content(f"<body>{thing._repr_html_()}</body>")      # type: ignore[attr-defined]
        page.wait_for_timeout(50)
        assert not page.locator("script, b, iframe, svg, a, object, img:not([src^='data:image/svg+xml;base64,'])").count(), thing
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", page.inner_text("body"))
        assert page.evaluate("[...document.images].every((each) => each.complete && each.naturalWidth)")
    page.close()
    assert not [each for each in problems if not each.startswith(("data:image/svg+xml;base64,", "about:"))]
