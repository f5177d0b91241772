"""A page of HTML in one file: the picture of a module beside its text, before and after each pass.

The page loads nothing, and its content security policy allows only its own script and style, by their hashes. Texts of the module are in it
as JSON and as escaped SVG (`irtool/drawing/escaping.py`); the script sets them as text.
"""
from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Any

from irtool.drawing.escaping import markup, script_data
from irtool.drawing.lines import Row, compared, rows_of
from irtool.drawing.scenes import Scenes
from irtool.drawing.svg import picture
from irtool.ir.module import Module
from irtool.text.shown_types import with_types

STATUSES = ("", "new", "changed", "moved", "gone")


class Table:
    """Things that are stored once, and named by their number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text."""
        return self.numbers.setdefault(text, len(self.numbers))


class Page:
    """The versions of a module, and the page of them."""

    def __init__(self, title: str, types: str | None = None) -> None:
        self.title = title
        self.types = types
        """The form of types, in the picture and the text; None: short ones, and the script shows full ones in the text when asked."""
        self.texts = Table()
        self.pictures = Table()
        self.steps: list[dict[str, Any]] = []
        self.rows: list[Row] = []

    def add(self, name: str, module: Module, values: dict[str, Any] | None = None) -> None:
        """Add the module as it is now, after the pass `name`. values: by key (`irtool/drawing/run_values.py`)."""
        scenes = Scenes(module, self.types or "short")
        rows = rows_of(module, scenes.keys)
        shown = compared(self.rows, rows) if self.steps else rows
        self.rows = rows
        number = self.texts.number
        self.steps.append({
            "name": name, "changed": True,
            "rows": [[number(with_types(row.text, self.types or "short")), number(row.graph), number(row.key), STATUSES.index(row.status),
                      number(row.origin), number(row.text if self.types is None else "")] for row in shown],
            "scenes": {key: self.pictures.number(picture(scene, False)) for key, scene in scenes.scenes.items()},
            "parents": {key: parent for key, parent in scenes.parents.items() if key in scenes.scenes},
            "roots": scenes.roots,
            "captures": scenes.captures,
            "values": values or {},
        })

    def add_unchanged(self, name: str) -> None:
        """Add a pass that changed nothing."""
        self.steps.append({"name": name, "changed": False})

    def html(self) -> str:
        """The page."""
        style, script = template("page.css"), page_script()
        policy = f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; base-uri 'none'; form-action 'none'"
        data = {"title": self.title, "texts": list(self.texts.numbers), "pictures": list(self.pictures.numbers), "steps": self.steps,
                "hasOneForm": self.types is not None}
        parts = {"policy": policy, "title": markup(self.title), "style": style, "script": script, "data": script_data(data)}
        page = template("page.html")
        pieces = []
        for piece in page.split("{{"):
            name, end, rest = piece.partition("}}")
            pieces.append(parts[name] + rest if end else piece)
        return "".join(pieces)


def page_script() -> str:
    """The script of a page: three files of one scope."""
    return template("colours.js") + template("boxes.js") + template("page.js")


def template(name: str) -> str:
    """A file of the folder `templates`."""
    return files("irtool.drawing").joinpath("templates", name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """The hash by which a content security policy names a script or style."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
