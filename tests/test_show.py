"""`irtool show` without a browser: trees, pictures, DOT and pages, of ordinary graphs and of hostile ones."""
from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import irtool
from irtool.cli.main import main
from irtool.drawing.layers import GAP, arrange
from irtool.drawing.lines import compared, longest_increasing, rows_of
from irtool.drawing.scenes import MOST, Keys, Scene, Scenes
from irtool.drawing.svg import picture
from irtool.ir.module import Module
from irtool.ir.short_types import short_type
from irtool.ir.types import parse_type
from irtool.text.parser import parse
from tests.random_graphs import Writer

EXAMPLES = Path(__file__).parent.parent / "examples"
LOOP = """graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %carried : Tensor):
      %even : bool = aten::eq(%i, %one)
      %picked : Tensor = prim::If(%even)
        block0():
          %a : Tensor = aten::add(%carried, %x, %one)
          -> (%a)
        block1():
          -> (%carried)
      -> (%true, %picked)
  return (%y)
"""


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What `irtool show` prints."""
    assert main(["show", *words]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


class Parts(HTMLParser):
    """The elements of a page, the texts of its scripts and styles, and its content security policy."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[tuple[str, dict[str, str | None], str]] = []
        self.policy = ""
        self.open: tuple[str, dict[str, str | None]] | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        found = dict(attrs)
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"] or ""
        self.open = (tag, found) if tag in ("script", "style", "title") else None

    def handle_data(self, data: str) -> None:
        if self.open is not None:
            self.texts.append((*self.open, data))

    def handle_endtag(self, tag: str) -> None:
        self.open = None

    @property
    def data(self) -> Any:
        """The JSON of the page."""
        return json.loads("".join([text for tag, found, text in self.texts if found.get("id") == "data"]))


def page(tmp_path: Path, *words: str) -> tuple[str, Parts]:
    """The page that `irtool show` writes."""
    assert main(["show", *words, "-o", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    return text, Parts(text)


# -- pictures
def overlapping(scene: Scene) -> Iterator[tuple[str, str]]:
    """Boxes that overlap, in a scene and in the scenes of its boxes, and boxes that stick out."""
    for i, box in enumerate(scene.boxes):
        if box.x < -1e-6 or box.y < 0 or box.x + box.width > scene.width + 1e-6 or box.y + box.height > scene.height + 1e-6:
            yield box.key, "the scene"
        for other in scene.boxes[:i]:
            if (box.x < other.x + other.width and other.x < box.x + box.width
                    and box.y < other.y + other.height and other.y < box.y + box.height):
                yield box.key, other.key
        for inner in box.inner:
            if inner.x + inner.width > box.width or inner.y + inner.height > box.height:
                yield "a scene", box.key
            yield from overlapping(inner)


def all_scenes(module: Module) -> Scenes:
    """The scenes of a module, each of them a well-formed picture in which nothing overlaps, and which show every node."""
    scenes = Scenes(module)
    keys: set[str] = set()
    for scene in scenes.scenes.values():
        assert not list(overlapping(scene))
        ElementTree.fromstring(picture(scene))
        for box in scene.all_boxes():
            keys |= {box.key, *box.members}
            assert not box.opens or box.opens in scenes.scenes
    for scene in scenes.scenes.values():
        for box in scene.boxes:     # what is drawn in the box of a node needs no name above it
            inside = {each.key for inner in box.inner for each in inner.all_boxes()}
            assert not {f"{box.key.partition(' ')[0]} %{name}" for name in box.absent} & inside
    assert all(key in keys or scenes.literals.is_folded(node) for node, key in scenes.keys.nodes.items())
    assert set(scenes.parents) <= set(scenes.scenes)
    return scenes


@pytest.mark.parametrize("seed", range(12))
def test_boxes_of_random_graphs_do_not_overlap(seed: int) -> None:
    all_scenes(parse(Writer(seed).graph()))


@pytest.mark.parametrize("name", ["lstm_cell.ir", "mlp.ir", "tour.ir", "collatz.ir", "mul_add_2018.ir", "python_op.ir"])
def test_boxes_of_the_examples_do_not_overlap(name: str) -> None:
    all_scenes(parse((EXAMPLES / name).read_text()))


@pytest.mark.parametrize("passes", ["differentiate", "differentiate,lower-grad-of", "differentiate,pack-gradient"])
def test_a_pair_is_drawn_side_by_side_with_an_arrow_per_capture(passes: str) -> None:
    module = irtool.PassManager(passes).run(parse((EXAMPLES / "lstm_cell.ir").read_text()))
    scenes = all_scenes(module)
    if "pack" in passes:
        return
    lists = module.graph("df").metadata
    captured = sum(len(json.loads(lists[f"df_input_captured_{what}"])) for what in ("inputs", "outputs"))
    assert scenes.roots[0] == "f | df"
    arrows = [line for line in scenes.scenes["f | df"].lines if line.is_capture]
    assert len(arrows) == captured
    middles = {box.y + box.height / 2 for box in scenes.scenes["f | df"].all_boxes()}
    assert not any(start[1] == end[1] and start[1] in middles for start, end in (line.points for line in arrows))     # through boxes


def test_an_edge_ends_below_where_it_begins() -> None:
    for scene in Scenes(parse(LOOP)).scenes.values():
        for line in scene.lines:
            heights = [y for _, y in line.points]
            assert heights == sorted(heights)


def test_many_inputs_are_one_box() -> None:
    inputs = ", ".join([f"%w{i} : Tensor" for i in range(40)])
    sums = "".join([f"  %s{i} : Tensor = aten::mul(%s{i - 1}, %w{i})\n" for i in range(1, 40)]).replace("%s0", "%w0")
    scenes = all_scenes(parse(f"graph({inputs}):\n{sums}  return (%s39)\n"))
    boxes = {box.key: box for box in scenes.scenes["graph"].boxes}
    assert boxes["graph %w3"].rows == ["37 more inputs"] and boxes["graph %w3"].members[-1] == "graph %w39"
    assert boxes["graph %s30"].absent == ["w30"] and not boxes["graph %s2"].absent


def test_blocks_are_drawn_in_the_box_of_their_node() -> None:
    scenes = all_scenes(parse(LOOP))
    (loop,) = [box for box in scenes.scenes["graph"].boxes if box.key == "graph %y"]
    names = ["%i", "%carried", "%even", "%picked", "%y block0 return"]
    assert [box.key for box in loop.inner[0].boxes] == [f"graph {name}" for name in names]
    assert loop.inner[0].boxes[3].inner[0].boxes[0].rows == ["add", "%a: Tensor", "alpha=1"]


def chain(count: int, scopes: int = 0) -> str:
    """The text of a chain of nodes, in scopes of equal size."""
    lines = []
    for i in range(1, count + 1):
        scope = f", scope: Net/Layer[{(i - 1) * scopes // count}]" if scopes else ""
        lines.append(f"  %{i} : Float(4) = aten::{'relu' if i % 2 else 'tanh'}(%{i - 1}){scope}")
    return "graph(%0 : Float(4)):\n" + "\n".join(lines) + f"\n  return (%{count})\n"


@pytest.mark.parametrize("scopes", [0, 7])
def test_large_graphs_are_folded(scopes: int) -> None:
    scenes = all_scenes(parse(chain(1000, scopes)))
    top = scenes.scenes["graph"].boxes
    assert len(top) <= MOST + 2 and any(box.opens for box in top)
    if scopes:
        assert [box.rows[0] for box in top[1:-1]] == [f"Layer[{i}]" for i in range(7)]
    assert all(len(scene.boxes) <= MOST + 2 for scene in scenes.scenes.values())


def test_deep_blocks_open_as_scenes_of_their_own() -> None:
    depth = 60
    text = "graph(%c : bool, %x : Tensor):\n"
    for i in range(depth):
        text += f"{'    ' * i}  %v{i} : Tensor = prim::If(%c)\n{'    ' * i}    block0():\n"
    text += f"{'    ' * depth}  -> (%x)\n" if not depth else ""
    for i in reversed(range(depth)):
        inner = f"%v{i + 1}" if i < depth - 1 else "%x"
        text += f"{'    ' * i}      -> ({inner})\n{'    ' * i}    block1():\n{'    ' * i}      -> (%x)\n"
    scenes = all_scenes(parse(text + "  return (%v0)\n"))
    assert len(scenes.scenes) > 10


def test_layers() -> None:
    placed = arrange([(50, 20)] * 4, [(0, 2), (1, 2), (2, 3)], 3)
    (x0, y0), (x1, y1), (_, y2), (_, y3) = placed.corners
    assert y0 == y1 < y2 < y3
    assert abs(x0 - x1) >= 50 + GAP - 1e-9
    assert arrange([], []).height == 0


# -- text
def test_short_types() -> None:
    pairs = {"Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)": "f32[2,3]", "Tensor": "Tensor", "Long()": "i64[]",
             "Double(*, 4)": "f64[?,4]", "BFloat16(1)": "bf16[1]", "Bool(2)": "bool[2]", "Tensor[]": "Tensor[]", "int?": "int?",
             "(Float(1), int[])": "(f32[1], int[])", "ComplexFloat(1)": "c64[1]", "HalfTensor": "f16[...]",
             "Dict(str, Tensor)": "Dict(str, Tensor)", "__torch__.m.Net": "Net", "QInt8(2)": "qint8[2]", "Future(Tensor)": "Future(Tensor)"}
    assert {text: short_type(parse_type(text)) for text in pairs} == pairs


@pytest.mark.parametrize("name", ["lstm_cell.ir", "collatz.ir", "mul_add_2018.ir", "tour.ir"])
def test_rows_are_the_lines_of_the_canonical_text(name: str) -> None:
    module = parse((EXAMPLES / name).read_text())
    rows = rows_of(module, Keys(module))
    assert [row.text for row in rows] == [line for line in str(module).split("\n") if line.strip()]
    assert len({row.key for row in rows}) == len(rows)


@pytest.mark.parametrize("seed", range(6))
def test_what_a_pass_did(seed: int) -> None:
    """Without the lines that are gone the rows are the text after, without new ones those before, and what moved is as little as can be."""
    module = parse(Writer(seed).graph())
    before = rows_of(module, Keys(module))
    irtool.PassManager("dce,cse,constant-pooling").run(module)
    after = rows_of(module, Keys(module))
    marked = compared(before, after)
    assert [row.text for row in marked if row.status != "gone"] == [row.text for row in after]
    assert {row.key for row in marked if row.status != "new"} == {row.key for row in before}
    texts = {row.key: row.text.strip() for row in before}
    assert all((texts.get(row.key) == row.text.strip()) == (row.status in ("", "moved", "gone")) for row in marked)


def test_a_graph_that_has_another_name_is_the_same() -> None:
    module = parse((EXAMPLES / "lstm_cell.ir").read_text())
    before = rows_of(module, Keys(module))
    irtool.PassManager("differentiate").run(module)
    marked = compared(before, rows_of(module, Keys(module)))
    assert {row.status for row in marked if row.graph == "f" and " %" in row.key} == {"", "gone"}      # a node that no result needs
    assert {row.status for row in marked if row.graph == "df"} == {"new"}


def test_a_node_without_results_is_the_same_when_others_go() -> None:
    head, tail = "graph(%x : Tensor, %y : Tensor):\n", "  return (%x)\n"
    lines = ["   = prim::Print(%x)\n", "   = prim::Print(%y)\n", "   = prim::Print(%x, %y)\n"]
    before, after = (parse(head + "".join(kept) + tail) for kept in (lines, lines[1:]))
    marked = compared(rows_of(before, Keys(before)), rows_of(after, Keys(after)))
    assert [(row.text.strip(), row.status) for row in marked if row.status] == [("= prim::Print(%x)", "gone")]


def test_longest_increasing() -> None:
    assert len(longest_increasing([3, 1, 2, 5, 4])) == 3
    assert longest_increasing([1, 2, 3]) == {1, 2, 3}
    assert longest_increasing([]) == set()


def test_the_tree(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "loop.ir").write_text(LOOP)
    assert shown(capsys, str(tmp_path / "loop.ir")) == """\
graph(%x: Tensor, %n: int)
  %y: Tensor = prim::Loop(%n, 1, %x)
    block0(%i: int, %carried: Tensor)
      %even: bool = eq(%i, 1)
      %picked: Tensor = prim::If(%even)
        block0()
          %a: Tensor = add(%carried, %x, 1)
          return %a
        block1()
          return %carried
      return 1, %picked
  return %y
"""
    assert "%a = add(%carried, %x, 1)" in shown(capsys, str(tmp_path / "loop.ir"), "--types=none")
    assert "%xw: Float(3, 80) = mm" in shown(capsys, str(EXAMPLES / "lstm_cell.ir"), "--types=full")


# -- pages
def test_the_page_stands_alone(tmp_path: Path) -> None:
    text, parts = page(tmp_path, str(EXAMPLES / "lstm_cell.ir"), "--passes=O1,differentiate")
    assert not [value for name, value in parts.attributes if name in ("src", "href", "action", "style") or name.startswith("on")]
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|innerHTML|eval\(", text)
    inline = [(tag, body) for tag, found, body in parts.texts if tag in ("script", "style") and found.get("type") != "application/json"]
    assert [tag for tag, _ in inline] == ["style", "script"]
    for tag, body in inline:
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in parts.policy
    assert "default-src 'none'" in parts.policy and "unsafe" not in parts.policy
    names = [step["name"] for step in parts.data["steps"]]
    assert names[0] == "as it was read" and names[-1] == "differentiate"
    assert len(names) == 2 + len(irtool.PassManager("O1").steps)


def test_the_page_links_lines_and_boxes(tmp_path: Path) -> None:
    _, parts = page(tmp_path, str(EXAMPLES / "lstm_cell.ir"))
    data = parts.data
    (step,) = data["steps"]
    drawn = set(re.findall(r'data-keys="([^",]*)', data["pictures"][step["scenes"]["graph"]]))
    keys = {data["texts"][row[2]] for row in step["rows"]}
    assert {"graph %sum.1", "graph %hy", "graph return"} <= drawn & keys


def test_values_of_a_run(tmp_path: Path) -> None:
    _, parts = page(tmp_path, str(EXAMPLES / "mlp.ir"), "--inputs", str(EXAMPLES / "mlp_inputs.npz"))
    values = parts.data["steps"][0]["values"]
    assert values["graph %hidden"]["lines"][0] == "float32 (4, 16), 256 bytes"
    assert sum(values["graph %hidden"]["bars"]) == 64 and not values["graph %hidden"]["nan"]
    *_, alive, spent, planned = [line.partition(" ")[2] for line in values["graph %9"]["lines"]]
    assert (alive, spent, planned.partition(" ")[2]) == ("bytes in 2 buffers alive after it", "ms in the interpreter", "in the plan")


def test_the_first_nan(tmp_path: Path) -> None:
    (tmp_path / "g.ir").write_text("graph(%x : Tensor):\n  %a : Tensor = aten::neg(%x)\n  %b : Tensor = aten::log(%a)\n"
                                   "  %c : Tensor = aten::relu(%b)\n  return (%c)\n")
    _, parts = page(tmp_path, str(tmp_path / "g.ir"), "--input", "x=3xf32=1")
    assert [key for key, facts in parts.data["steps"][0]["values"].items() if facts["nan"]] == ["graph %b", "graph %c"]


def test_values_of_a_gradient_pair(tmp_path: Path) -> None:
    (tmp_path / "g.py").write_text("import torch\n\ndef loss(x: torch.Tensor):\n    return torch.tanh(x).sum()\n")
    _, parts = page(tmp_path, f"{tmp_path / 'g.py'}:loss", "--input", "x=3xf32=1", "--passes=differentiate")
    first, last = parts.data["steps"]
    origins = {parts.data["texts"][row[4]] for row in last["rows"]} - {""}
    assert origins and origins <= {parts.data["texts"][row[2]] for row in last["rows"]}
    assert {key.split()[0] for key in first["values"]} == {"loss"}
    assert {key.split()[0] for key in last["values"]} == {"loss", "dloss"}


def test_every_kind_of_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    functions = "def f(x: torch.Tensor):\n    return x + 1\n\ndef g(x: torch.Tensor):\n    return x * 2\n"
    (tmp_path / "g.py").write_text("import torch\n\n" + functions)
    assert shown(capsys, str(EXAMPLES / "model.pt")) == shown(capsys, f"{EXAMPLES / 'model.pt'}:forward")
    assert shown(capsys, f"{tmp_path / 'g.py'}:g") == "g(%x.1: Tensor)\n  %1: Tensor = mul(%x.1, 2)\n  return %1\n"
    assert shown(capsys, str(tmp_path / "g.py")).count("return") == 2
    assert main(["run", f"{tmp_path / 'g.py'}:f", "--input", "x=2xf32=1"]) == 0
    assert "[2. 2.]" in capsys.readouterr().out


@pytest.mark.parametrize("words, message", [
    (["-o", "x.png"], "expected an ending of .html, .svg, .dot"), (["--svg", "--dot"], "exclude each other"),
    (["--svg", "-o", "x.dot"], "exclude each other"), (["--scene", "f"], "--scene"), (["--svg", "--scene", "grph"], "did you mean 'graph'"),
    (["--svg", "--input", "x=1"], "values are shown on a page"), (["--passes=nothing"], "unknown pass"),
])
def test_wrong_options(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(EXAMPLES / "lstm_cell.ir"), *words]) == 2
    assert message in capsys.readouterr().err


def test_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    addresses: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: addresses.append(address) or len(addresses) == 1)
    for name in ("a b.html", "picture.svg"):
        assert main(["show", str(EXAMPLES / "mlp.ir"), "-o", str(tmp_path / name), "--open"]) == 0
    assert addresses == [(tmp_path / "a b.html").as_uri(), (tmp_path / "picture.svg").as_uri()] and "a%20b" in addresses[0]
    assert capsys.readouterr().err == f"note: no browser was found; open {addresses[1]}\n"
    assert main(["show", str(EXAMPLES / "mlp.ir"), "--open"]) == 2


# -- hostile files
ATTACK = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
TURNED = "\u202egnp.exe\u2066\u200f"
HOSTILE = {
    "string": f'graph(%x : Tensor):\n  %s : str = prim::Constant[value="{ATTACK}\'&amp;"]()\n   = prim::Print(%s)\n  return (%x)\n',
    "turned": f'graph(%x : Tensor):\n  %s : str = prim::Constant[value="{TURNED}"]()\n   = prim::Print(%s)\n  return (%x)\n',
    "scope": f"graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x), scope: Net/{ATTACK} # <svg onload=alert(3)>.py:1:1\n  return (%y)\n",
    "name": "graph(%<img> : Tensor):\n  %<b>&'|\u202e : Tensor = aten::neg(%<img>)\n  return (%<b>&'|\u202e)\n",
    "comment": f"# {ATTACK} {TURNED}\ngraph(%x : Tensor):\n  return (%x)\n",
    "long": 'graph(%x : Tensor):\n  %s : str = prim::Constant[value="' + "<b>" * 3_500_000 + '"]()\n   = prim::Print(%s)\n  return (%x)\n',
}


def hostile_file(name: str, folder: Path) -> Path:
    """A file with such a graph; its name is hostile too."""
    path = folder / ("<img src=x onerror=alert(4)>\u202e.ir" if name != "long" else "long.ir")
    path.write_text(HOSTILE[name], encoding="utf-8")
    return path


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_only_texts(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = hostile_file(name, tmp_path)
    tags = Parts(page(tmp_path, str(EXAMPLES / "mlp.ir"))[0]).tags
    text, parts = page(tmp_path, str(path))
    assert parts.tags == tags
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f]", text)
    assert len(text) < 300_000
    for drawing in parts.data["pictures"]:
        kinds = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawing).iter()}
        assert kinds <= {"svg", "g", "rect", "text", "title", "path"}
    svg = shown(capsys, str(path), "--svg")
    kinds = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
    assert kinds <= {"svg", "style", "g", "rect", "text", "title", "path"}
    dot = shown(capsys, str(path), "--dot")
    assert re.fullmatch(r'(?:[^"]|"(?:[^"\\]|\\.)*")*', dot) and "<img" not in re.sub(r'"(?:[^"\\]|\\.)*"', "", dot)


def test_a_box_never_grows_with_its_text() -> None:
    for name in HOSTILE:
        scenes = Scenes(parse(HOSTILE[name]))
        assert all(box.width < 600 for scene in scenes.scenes.values() for box in scene.all_boxes())
