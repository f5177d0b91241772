"""Pages look as they did: screenshots in Chromium, a third in size, against tests/screenshots (`--accept` writes these)."""
from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main
from tests.test_show import EXAMPLES, LOOP, chain

pytestmark = pytest.mark.browser
FOLDER = Path(__file__).parent / "screenshots"
MOST = 0.01
"""The part of the pixels that may be others: fonts are not drawn alike by each version of Chromium."""
LOAD = """async (png) => {
  const image = new Image();
  image.src = "data:image/png;base64," + png;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width / part, image.height / part];
  const drawing = canvas.getContext("2d");
  drawing.imageSmoothingQuality = "high";
  drawing.drawImage(image, 0, 0, canvas.width, canvas.height);
  return %s;
}"""
SMALLER = LOAD.replace("part", "3") % 'canvas.toDataURL("image/png").split(",")[1]'
PIXELS = LOAD.replace("part", "1") % "drawing.getImageData(0, 0, canvas.width, canvas.height).data"
DIFFERENCE = """async ([old, fresh]) => {
  const [a, b] = [await (PIXELS)(old), await (PIXELS)(fresh)];
  if (a.length !== b.length) return 1;
  let count = 0;
  for (let i = 0; i < a.length; i += 4)
    count += Math.max(Math.abs(a[i] - b[i]), Math.abs(a[i + 1] - b[i + 1]), Math.abs(a[i + 2] - b[i + 2])) > 48;
  return 4 * count / a.length;
}""".replace("PIXELS", PIXELS)
TIMES = "[...document.querySelectorAll('#details p')].forEach((each) => / in the |alive/.test(each.textContent) && each.remove())"


def passes(page: Any) -> None:
    while "constant-propagation" not in page.inner_text("#step-name"):
        page.click("#after")


def gradient(page: Any) -> None:
    page.click("#after")
    page.keyboard.press("0")
    page.click(".box.op > rect >> nth=0")


def values(page: Any) -> None:
    page.click(".row:has-text('aten::relu') .value:first-child")
    page.evaluate(TIMES)


def folds(page: Any) -> None:
    page.click("#picture .fold >> nth=1")
    page.keyboard.press("o")
    page.keyboard.press("0")


def print_preview(page: Any) -> None:
    page.emulate_media(media="print")


F = "import torch\n\ndef f(a: torch.Tensor, b: torch.Tensor):\n    c = torch.tanh(a * b)\n    return c * c\n"
FILES = {"loop.ir": LOOP, "folds.ir": chain(60, 3) + chain(200, 5), "f.py": F}
SHOTS: dict[str, tuple[list[str], Callable[[Any], object], str, int]] = {
    "passes": ([str(EXAMPLES / "lstm_cell.ir"), "--passes=O1"], passes, "light", 1000),
    "gradient": (["f.py:f", "--passes=differentiate"], gradient, "dark", 1000),
    "values": ([str(EXAMPLES / "mlp.ir"), "--inputs", str(EXAMPLES / "mlp_inputs.npz")], values, "light", 1000),
    "folds": (["folds.ir", "--graph=graph1"], folds, "dark", 1000),
    "narrow": (["loop.ir"], lambda page: page.keyboard.press("j"), "light", 420),
    "print": (["loop.ir"], print_preview, "light", 800),
}
"""Command line, what is done before the picture is taken, colours, width."""


@pytest.mark.parametrize("name", SHOTS)
def test_a_page_looks_as_it_did(name: str, browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                pytestconfig: pytest.Config) -> None:
    words, act, scheme, width = SHOTS[name]
    monkeypatch.chdir(tmp_path)
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    assert main(["show", *words, "-o", "page.html"]) == 0
    page = browser.new_page(viewport={"width": width, "height": 600}, color_scheme=scheme)
    page.goto((tmp_path / "page.html").as_uri())
    act(page)
    page.mouse.move(1, 1)
    shot = page.screenshot()
    page.goto("about:blank")
    fresh = page.evaluate(SMALLER, b64encode(shot).decode())
    stored = FOLDER / f"{name}.png"
    if pytestconfig.getoption("--accept") == "all":
        FOLDER.mkdir(exist_ok=True)
        stored.write_bytes(b64decode(fresh))
    (tmp_path / f"{name}.png").write_bytes(b64decode(fresh))
    part = page.evaluate(DIFFERENCE, [b64encode(stored.read_bytes()).decode(), fresh])
    page.close()
    assert part <= MOST, f"{part:.1%} of the pixels differ: compare {tmp_path / name}.png with {stored}, then pytest {__file__} --accept"


def test_a_change_is_seen(browser: Any) -> None:
    """A line of the text in another colour is more than MOST."""
    page = browser.new_page(viewport={"width": 1000, "height": 600})
    page.set_content("<body style='margin: 0'><p style='background: #fdf0bd; width: 400px'>a line</p></body>")
    first = b64encode(page.screenshot()).decode()
    page.evaluate("document.querySelector('p').style.background = '#fff'")
    second = b64encode(page.screenshot()).decode()
    assert page.evaluate(DIFFERENCE, [first, first]) == 0
    assert page.evaluate(DIFFERENCE, [page.evaluate(SMALLER, first), page.evaluate(SMALLER, second)]) > MOST
    page.close()
