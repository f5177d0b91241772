"""A scene as SVG."""
from __future__ import annotations

from irtool.drawing.escaping import cut, markup
from irtool.drawing.layers import Point
from irtool.drawing.scenes import CHARACTER, LINE, PADDING, Box, Line, Scene, text_width

STYLE = """
svg { font: 11px "DejaVu Sans Mono", Menlo, Consolas, monospace; background: #fff }
text { fill: #1b2430; white-space: pre; text-rendering: geometricPrecision }
.box rect { fill: #f4f7fb; stroke: #8397b0 } .input rect { fill: #e5f3ea; stroke: #5b9a72 } .result rect { fill: #f9ecdb; stroke: #c08a3e }
.graph > rect { fill: #fff; stroke: #9a86c9 } .fold > rect { fill: #eee9fa; stroke: #7d65bd; stroke-width: 2 }
.head { font-weight: bold } .quiet { fill: #56657a }
path { fill: none; stroke: #8397b0; stroke-width: 1.2 } .capture { stroke: #c2574b; stroke-dasharray: 5 3 }
"""
"""Of a picture that is a file; pages have rules of their own."""
MARGIN = 16.0
ARC = 12.0
"""How far an arrow between boxes of one row bends above them."""
SEPARATOR = ","
"""Between keys: no name of a value, node or graph contains it."""


def picture(scene: Scene, is_file: bool = True) -> str:
    """The SVG of a scene. is_file: with colours, complete; else for a page, whose script opens boxes and draws edges and captures."""
    width, height = scene.width + 2 * MARGIN, scene.height + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">']
    if is_file:
        out.append(f"<style>{STYLE}</style>")
    draw(scene, MARGIN, MARGIN, is_file, out)
    out.append("</svg>")
    return "".join(out)


def draw(scene: Scene, x: float, y: float, is_file: bool, out: list[str]) -> None:
    """Draw a scene whose corner is at this place."""
    if scene.title:
        out.append(text(scene.title, x, y + 11, "quiet"))
    out.extend([edge(line, x, y, is_file) for line in scene.lines if not line.is_capture])
    for box in scene.boxes:
        draw_box(box, x + box.x, y + box.y, is_file, out)
    if is_file:
        out.extend([edge(line, x, y, is_file) for line in scene.lines if line.is_capture])      # over the boxes


def draw_box(box: Box, x: float, y: float, is_file: bool, out: list[str]) -> None:
    """Draw a box and its content."""
    opens = f' data-opens="{markup(box.opens)}"' if box.opens else ""
    keys = markup(SEPARATOR.join([box.key, *box.members]))
    out.append(f'<g class="box {box.kind}" data-keys="{keys}"{opens}>')
    out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="5"/>')
    for i, row in enumerate(box.rows):
        out.append(text(row, x + PADDING, y + LINE * (i + 1), "head" if i == 0 else "quiet" if row[:1] != "%" else ""))
    if box.absent:
        names = ", ".join([f"%{name}" for name in box.absent])
        shown = names if text_width(names) <= box.width else names[:int(box.width / CHARACTER) - 1] + "\u2026"
        out.append(text(shown, x, y - 3, "quiet absent", names))
    for scene in box.inner:
        draw(scene, x + scene.x, y + scene.y, is_file, out)
    out.append("</g>")


def edge(line: Line, x: float, y: float, is_file: bool) -> str:
    """An edge. For a page, with the keys of its boxes and its points in place of the path."""
    points = [(x + px, y + py) for px, py in line.points]
    kind = "edge capture" if line.is_capture else "edge"
    if is_file:
        shape = f'd="{arc(*points) if line.is_capture else curve(points)}"'
    else:
        shape = f'data-ends="{markup(SEPARATOR.join(line.ends))}" data-points="{" ".join([f"{px:.1f} {py:.1f}" for px, py in points])}"'
    return f'<path class="{kind}" data-values="{markup(SEPARATOR.join(line.keys))}" {shape}/>'


def curve(points: list[Point]) -> str:
    """A smooth path: straight through layers, bent between them."""
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for i in range(1, len(points)):
        (x0, y0), (x1, y1) = points[i - 1], points[i]
        if i % 2:
            parts.append(f"L{x1:.1f} {y1:.1f}")
        else:
            middle = (y0 + y1) / 2
            parts.append(f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}")
    return "".join(parts)


def arc(start: Point, end: Point) -> str:
    """An arrow from box to box."""
    (x0, y0), (x1, y1) = start, end
    bend, rise = (max(30.0, (x1 - x0) / 2), 0.0) if y0 != y1 else (0.0, ARC)
    return f"M{x0:.1f} {y0:.1f}C{x0 + bend:.1f} {y0 - rise:.1f} {x1 - bend:.1f} {y1 - rise:.1f} {x1:.1f} {y1:.1f}"


def text(words: str, x: float, y: float, kind: str, hint: str = "") -> str:
    """A line of text. hint: shown while the pointer is on it."""
    title = f"<title>{markup(cut(hint, 1000))}</title>" if hint else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{title}{markup(words)}</text>'
