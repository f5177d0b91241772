"""A module as scenes: boxes and edges with places. A large graph is folded into boxes that can be opened.

A scene shows the nodes of a block, in order. If there are more than MOST, neighbours of one scope are one box; where there are no scopes,
runs of neighbours are. Only neighbours in text order are folded, so that what a fold reads is above it. Small inner blocks are drawn in the
box of their node, larger ones are scenes of their own.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from math import isqrt
from unicodedata import east_asian_width

from irtool.drawing import labels
from irtool.drawing.escaping import cut
from irtool.drawing.layers import Point, arrange
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.module import Module
from irtool.ir.pair import GradientPair, pairs

MOST, NESTED, DEEPEST = 120, 40, 3
"""Boxes of a scene; nodes, and levels, of blocks that are drawn in the box of their node."""
INPUTS, CAPTURED, FIRST = 12, 40, 3
"""If there are more inputs, most of them parameters of a model, or of what df captures, those after the first ones are one box without
edges."""
CHARACTER, LINE, PADDING, HEADER, SIGN = 6.7, 14.0, 8.0, 18.0, 10.0
"""Pixels: a character, a line of text, around the content of a box, the line above an inner scene, the sign by which a page opens a box."""
LONGEST_SCOPE = 30


class Box:
    """One box. Its corner is relative to its scene."""

    def __init__(self, key: str, kind: str, rows: Iterable[str]) -> None:
        self.key = key
        self.kind = kind
        """How it is drawn: op, input, result, fold or graph."""
        self.rows = list(rows)
        self.inner: list[Scene] = []
        self.opens = ""
        """The scene that the box opens; empty: none."""
        self.absent: list[str] = []
        """Names of values that it reads, and to which no edge is drawn."""
        self.members: list[str] = []
        """Keys of further nodes that this box represents, besides its own."""
        self.x = self.y = 0.0
        self.width = max([text_width(row) for row in self.rows], default=0) + 2 * PADDING + SIGN * (kind == "fold")
        self.height = LINE * len(self.rows) + PADDING

    def put_in(self, scenes: list[Scene]) -> None:
        """Draw scenes in the box, side by side."""
        self.inner = scenes
        left = PADDING
        top = self.height
        for scene in scenes:
            scene.x, scene.y = left, top
            left += max(scene.width, text_width(scene.title)) + PADDING
        self.width = max(self.width, left)
        self.height = top + max([scene.height for scene in scenes]) + PADDING


class Line:
    """An edge from a box to a box, for one value or several, by points: straight to the second one, bent to the third, and so on."""

    def __init__(self, keys: list[str], ends: tuple[str, str], points: list[Point], is_capture: bool = False) -> None:
        self.keys = keys
        self.ends = ends
        """The keys of the two boxes; of a capture, those of the values."""
        self.points = points
        self.is_capture = is_capture


class Scene:
    """Boxes and edges with places; x and y are its place in a box."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.boxes: list[Box] = []
        self.lines: list[Line] = []
        self.x = self.y = self.width = self.height = 0.0

    def all_boxes(self) -> Iterator[Box]:
        """All boxes, inner ones too."""
        for box in self.boxes:
            yield box
            for scene in box.inner:
                yield from scene.all_boxes()


class Fold:
    """Neighbouring nodes that are drawn as one box."""

    def __init__(self, title: str, nodes: list[Node], level: int) -> None:
        self.title = title
        self.nodes = nodes
        self.level = level
        """The level of the scope by which its nodes are folded."""


def text_width(text: str) -> float:
    """The width of a text in pixels, in the fixed font of pictures."""
    return CHARACTER * (len(text) if text.isascii() else sum([2 if east_asian_width(char) in "WF" else 1 for char in text]))


class Keys:
    """Names for nodes and values that are the same before and after a pass, and different in each graph of a module."""

    def __init__(self, module: Module) -> None:
        self.graphs: dict[Graph, str] = {}
        self.nodes: dict[Node, str] = {}
        pending = deque(zip(module.names(), module.graphs))
        while pending:
            name, graph = pending.popleft()
            self.graphs[graph] = name
            seen: dict[str, int] = {}
            for node in graph.walk():
                self.nodes[node] = key = f"{name} {self.base(node, seen)}"
                for attribute, inner in node.graphs.items():
                    pending.append((f"{key}.{attribute}", inner))

    def base(self, node: Node, seen: dict[str, int]) -> str:
        """The part of a node's key that is unique in its graph."""
        if node.outputs and node.outputs[0].name:
            return f"%{node.outputs[0].name}"
        words = " ".join([node.kind, *[f"%{value.name}" for value in node.inputs[:8]]])     # so that others may go before it
        seen[words] = seen.get(words, 0) + 1
        return f"{words} #{seen[words]}"

    def value(self, value: Value) -> str:
        """The key of a value."""
        return f"{self.of_graph(value.node)} %{value.name}"

    def of_graph(self, part: Node | Block) -> str:
        """The key of the graph that contains a node or block."""
        return self.graphs[part.graph] if part.graph is not None else ""


class Scenes:
    """All scenes of a module by name: that of a graph has the graph's name, that of a pair the names of both."""

    def __init__(self, module: Module, types: str = "short") -> None:
        self.keys = Keys(module)
        self.types = types
        """Their form in boxes: short, full or none."""
        self.literals = labels.Literals()
        self.scenes: dict[str, Scene] = {}
        self.parents: dict[str, str] = {}
        """The scene in which a scene is opened."""
        self.roots: list[str] = []
        self.captures: dict[str, list[tuple[str, str]]] = {}
        """By the scene of a pair: keys of values of f, and of the inputs of df that take them."""
        self.pending: deque[tuple[str, Block, list[Node] | None, int, str]] = deque()
        for pair in pairs(module):
            name = f"{pair.f.name} | {pair.df.name}"
            self.roots.append(name)
            self.scenes[name] = self.beside(pair)
        for graph, name in list(self.keys.graphs.items()):
            if graph in module.graphs:
                self.roots.append(name)
            self.pending.append((name, graph.block, None, 0, name))
        while self.pending:
            name, block, nodes, level, title = self.pending.popleft()
            if name not in self.scenes:
                self.scenes[name] = self.scene(name, block, title, 0, nodes, level)

    # -- boxes
    def drawn(self, block: Block) -> list[Node]:
        """The nodes of a block that have boxes."""
        return [node for node in block if not self.literals.is_folded(node)]

    def scene(self, name: str, block: Block, title: str, depth: int, nodes: list[Node] | None = None, level: int = 0,
              most: int = INPUTS) -> Scene:
        """The scene of a block, or of some of its nodes. depth: in how many boxes of the picture it is drawn. most: inputs with boxes."""
        scene = Scene(title)
        is_part = nodes is not None
        items = folded(self.drawn(block) if nodes is None else nodes, level)
        sources: dict[Value, int] = {}
        reads: list[list[Value]] = []
        inputs = () if is_part else block.inputs
        count = len(inputs) if len(inputs) <= most else FIRST
        for value in inputs[:count]:
            sources[value] = len(scene.boxes)
            scene.boxes.append(Box(self.keys.value(value), "input", labels.results((value,), self.types)))
            reads.append([])
        if len(inputs) > count:
            scene.boxes.append(Box(self.keys.value(inputs[count]), "input", [f"{len(inputs) - count} more inputs"]))
            scene.boxes[-1].members = [self.keys.value(value) for value in inputs[count + 1:]]
            reads.append([])
        room = MOST - len(items)
        for item in items:
            box = self.fold_box(name, block, item) if isinstance(item, Fold) else self.box(name, item, depth, room)
            room -= sum(1 for inner in box.inner for _ in inner.all_boxes())
            inside = item.nodes if isinstance(item, Fold) else [item]
            for node in inside:
                for value in node.outputs:
                    sources[value] = len(scene.boxes)
            scene.boxes.append(box)
            reads.append(self.read_by(inside))
        last = None
        if not is_part:
            last = len(scene.boxes)
            owner = block.owning_node
            key = f"{self.keys.nodes[owner]} block{owner.blocks.index(block)}" if owner is not None else self.keys.of_graph(block)
            texts = [self.literals.text(value) or f"%{value.name}" for value in block.outputs]
            scene.boxes.append(Box(f"{key} return", "result", ["return " + cut(", ".join(texts), labels.LONGEST)]))
            reads.append([value for value in block.outputs if self.literals.text(value) is None])
        self.place(scene, sources, reads, last)
        return scene

    def place(self, scene: Scene, sources: dict[Value, int], reads: list[list[Value]], last: int | None) -> None:
        """Place the boxes, and draw the edges."""
        wanted = [(sources[value], j, value) for j, values in enumerate(reads) for value in values if sources.get(value, j) < j]
        arrangement = arrange([(box.width, box.height) for box in scene.boxes], [(i, j) for i, j, _ in wanted], last)
        for box, corner in zip(scene.boxes, arrangement.corners):
            box.x, box.y = corner
        values: dict[tuple[int, int], list[Value]] = {}
        for i, j, value in wanted:
            if (i, j) in arrangement.routes:
                values.setdefault((i, j), []).append(value)
        arrivals: dict[int, list[tuple[float, int]]] = {}
        for i, j in values:
            arrivals.setdefault(j, []).append((arrangement.routes[i, j][-1][0], i))
        for j, edges in arrivals.items():
            end = scene.boxes[j]
            for number, (_, i) in enumerate(sorted(edges), 1):      # in this order they do not cross
                start = scene.boxes[i]
                points = [(start.x + start.width / 2, start.y + start.height), *arrangement.routes[i, j],
                          (end.x + end.width * number / (len(edges) + 1), end.y)]
                scene.lines.append(Line([self.keys.value(value) for value in values[i, j]], (start.key, end.key), points))
        shown = {(j, value) for (_, j), several in values.items() for value in several}
        for j, several in enumerate(reads):
            scene.boxes[j].absent = [value.name for value in several
                                     if sources.get(value) != j and (j, value) not in shown and not labels.is_module(value)]
        header = HEADER + (LINE if any(box.absent and not box.y for box in scene.boxes) else 0)
        scene.width, scene.height = arrangement.width, arrangement.height + header
        for box in scene.boxes:
            box.y += header
        for line in scene.lines:
            line.points = [(x, y + header) for x, y in line.points]

    def read_by(self, nodes: list[Node]) -> list[Value]:
        """The values from outside that nodes and their blocks read, in order, without literals."""
        values: dict[Value, None] = {}
        inside: set[Value] = set()
        pending = list(reversed(nodes))
        while pending:
            node = pending.pop()
            inside.update(node.outputs)
            values.update(dict.fromkeys([value for value in node.inputs if self.literals.text(value) is None]))
            for block in reversed(node.blocks):
                inside.update(block.inputs)
                pending.append(block.return_node)
                pending += reversed(block.nodes)
        return [value for value in values if value not in inside]

    # -- boxes
    def box(self, name: str, node: Node, depth: int, room: int) -> Box:
        """The box of a node, with its blocks if they are small."""
        rows = [labels.title(node), *labels.results(node.outputs, self.types)]
        words = labels.arguments(node, self.literals)
        key = self.keys.nodes[node]
        parts = [(f"block{i}", block) for i, block in enumerate(node.blocks)]
        parts += [(attribute, graph.block) for attribute, graph in node.graphs.items()]
        box = Box(key, "graph" if parts else "op", rows + [words] * bool(words))
        box.members = [self.keys.value(value) for value in node.outputs[1:]]
        if not parts:
            return box
        count = sum(len(block.inputs) + 1 + len(self.drawn(block)) for _, block in parts)
        if depth < DEEPEST and count <= min(NESTED, room):
            box.put_in([self.scene(name, block, title, depth + 1) for title, block in parts])
            return box
        folds = [self.part_box(name, key, title, block) for title, block in parts]
        if len(folds) == 1:
            closed = Box(key, "fold", [*box.rows, *folds[0].rows[1:]])
            closed.opens, closed.members = folds[0].opens, box.members + folds[0].members
            return closed
        row = Scene("")
        for fold in folds:
            fold.x, fold.y = row.width, HEADER
            row.width += fold.width + PADDING
        row.boxes, row.height = folds, HEADER + folds[0].height
        box.put_in([row])
        return box

    def part_box(self, name: str, key: str, title: str, block: Block) -> Box:
        """The box of a block of a node, or of its graph, that opens as a scene."""
        inside = list(block.walk())
        box = Box(f"{key} {title}", "fold", [title, f"{len(inside)} nodes inside"])
        box.members = self.keys_of(inside)
        graph = block.graph
        box.opens = self.keys.graphs[graph] if graph is not None and block is graph.block else f"{key} {title}"
        self.parents[box.opens] = name
        self.pending.append((box.opens, block, None, 0, box.opens))
        return box

    def fold_box(self, name: str, block: Block, fold: Fold) -> Box:
        """The box of neighbouring nodes."""
        key = f"{self.keys.nodes[fold.nodes[0]]} fold {fold.level} {len(fold.nodes)}"
        kinds: dict[str, int] = {}
        for node in fold.nodes:
            kinds[labels.title(node)] = kinds.get(labels.title(node), 0) + 1
        most = sorted(kinds, key=lambda kind: -kinds[kind])[:3]
        box = Box(key, "fold", [cut(fold.title, LONGEST_SCOPE), f"{len(fold.nodes)} nodes",
                               ", ".join([f"{kinds[kind]} {cut(kind, 16)}" for kind in most])])
        box.opens = key
        box.members = self.keys_of(fold.nodes)
        self.parents[box.opens] = name
        self.pending.append((box.opens, block, fold.nodes, fold.level, fold.title))
        return box

    def keys_of(self, nodes: list[Node]) -> list[str]:
        """The keys of nodes and of their results."""
        return [key for node in nodes for key in (self.keys.nodes[node], *map(self.keys.value, node.outputs[1:]))]

    # -- pairs
    def beside(self, pair: GradientPair) -> Scene:
        """f beside df, with the captures of df as arrows."""
        scene = Scene("")
        left = 0.0
        for graph in (pair.f, pair.df):
            name = graph.name
            box = Box(f"{name} graph", "graph", [f"graph {name}"])
            if len(self.drawn(graph.block)) <= MOST:
                box.put_in([self.scene(name, graph.block, "", 1, most=INPUTS if graph is pair.f else CAPTURED)])
            else:
                box = Box(f"{name} graph", "fold", [f"graph {name}", f"{sum(1 for _ in graph.walk())} nodes"])
                box.opens = name
            box.x, box.y = left, HEADER
            left += box.width + 5 * PADDING
            scene.boxes.append(box)
        f, df = scene.boxes
        scene.width = left - 5 * PADDING
        scene.height = max(f.height, df.height) + HEADER
        self.captures[f"{pair.f.name} | {pair.df.name}"] = captures = []
        captured = [*(pair.f.inputs[i] for i in pair.captured_inputs), *(pair.f.outputs[i] for i in pair.captured_outputs)]
        for value, taken in zip(captured, pair.df.inputs[len(pair.input_vjps):]):
            ends = self.keys.value(value), self.keys.value(taken)
            captures.append(ends)
            start, end = place_in(f, ends[0]), place_in(df, ends[1])
            if start is not None and end is not None:
                points = [(start[0] + start[2], start[1]), (end[0], end[1])]
                if start[1] == end[1]:      # over the boxes between them, not through them
                    points = [(x + width / 2, middle - height / 2) for x, middle, width, height in (start, end)]
                scene.lines.append(Line([ends[0]], ends, points, True))
        return scene


def place_in(outer: Box, key: str) -> tuple[float, float, float, float] | None:
    """Left side, middle, width and height of the box of a value that is drawn directly in another box."""
    for scene in outer.inner:
        for box in scene.boxes:
            if box.key == key or key in box.members:
                return outer.x + scene.x + box.x, outer.y + scene.y + box.y + box.height / 2, box.width, box.height
    return None


def folded(nodes: list[Node], level: int) -> list[Node | Fold]:
    """At most about MOST nodes and folds for these nodes. level: of the scope by which they are folded first."""
    if len(nodes) <= MOST:
        return list(nodes)
    runs: list[tuple[str, list[Node]]] = []
    for node in nodes:
        words = node.scope.split("/")
        word = words[level] if level < len(words) else ""
        if runs and runs[-1][0] == word:
            runs[-1][1].append(node)
        else:
            runs.append((word, [node]))
    if len(runs) == 1 and runs[0][0]:
        return folded(nodes, level + 1)
    items: list[Node | Fold] = []
    for word, run in runs:
        if word and len(run) > 1:
            items.append(Fold(word, run, level + 1))
        else:
            items += run
    if len(items) <= MOST:
        return items
    return in_runs(nodes, level)


def in_runs(nodes: list[Node], level: int) -> list[Node | Fold]:
    """Runs of neighbours, whose number is about that of the nodes in each."""
    size = max(isqrt(len(nodes)), -(-len(nodes) // MOST))
    parts = [nodes[i:i + size] for i in range(0, len(nodes), size)]
    return [Fold(f"{place_of(part[0])} to {place_of(part[-1])}", part, level) for part in parts]


def place_of(node: Node) -> str:
    """The text for the first or last node of a fold."""
    return f"%{node.outputs[0].name}" if node.outputs else node.kind
