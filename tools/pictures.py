"""Screenshots of pages for the documentation: `python tools/pictures.py`, with playwright and Chromium installed, after `make docs`.

Writes docs/pictures/*.png: pages of examples in examples/, with some of it selected, and a page of the site.
"""
from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from irtool.cli.main import main

ROOT = Path(__file__).parent.parent
PICTURES: dict[str, tuple[list[str], str, list[str]]] = {      # name: words after `show`, colours, what is clicked
    "passes": (["lstm_cell.ir", "--passes=O1"], "light", ["#after", "#after"]),
    "gradient": (["mlp.ir", "--passes=differentiate"], "light", ["#after", "#fit", ".box[data-keys='f %hidden'] > rect"]),
    "values": (["mlp.ir", "--inputs", "mlp_inputs.npz"], "dark", [".box[data-keys='graph %6'] > rect"]),
}


def shoot(browser: Any, name: str, folder: str) -> None:
    """Write one picture."""
    words, scheme, clicks = PICTURES[name]
    path = Path(folder) / "page.html"
    if main(["show", *words, "-o", str(path)]):
        sys.exit(1)
    page = browser.new_page(viewport={"width": 1160, "height": 680}, color_scheme=scheme)
    page.goto(path.as_uri())
    for click in clicks:
        page.click(click)
    page.screenshot(path=ROOT / "docs" / "pictures" / f"{name}.png")
    page.close()


def shoot_site(browser: Any) -> None:
    """Write the picture of a page of the site."""
    page = browser.new_page(viewport={"width": 1280, "height": 640})
    page.goto((ROOT / "build" / "site" / "passes" / "cse.html").as_uri())
    page.screenshot(path=ROOT / "docs" / "pictures" / "site.png")
    page.close()


def run() -> None:
    """Write all pictures."""
    from playwright.sync_api import sync_playwright

    os.chdir(ROOT / "examples")
    with sync_playwright() as playwright, TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"] * (os.geteuid() == 0))
        for name in PICTURES:
            shoot(browser, name, folder)
        shoot_site(browser)
        browser.close()


if __name__ == "__main__":
    run()
