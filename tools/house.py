"""The shape of the code in figures: what is said twice, where imports run in circles, which words tell nothing. `make house`.

    python tools/house.py [--json] [--list NAME] [--tests] [--root FOLDER]

`--list NAME` prints the places that a figure counts, `--tests` also collects the tests (a minute), `--root` measures another checkout.
"Before" is the figure of commit c4c428e, "aim" is what the moves are to reach. Only irtool/ and passes/ are read; only two operators run.

On c4c428e this gives the figures that were counted there by hand: 44 `sets`, 27 `tables`, 15 `circles`, 13 `loop` files. What is exact:
- a circle is a strongly connected component of modules; `from irtool.ir import types` reads irtool.ir and irtool.ir.types;
- `found-text` counts comments and docstrings too, `names` and `names-four` only identifiers;
- where it differs: `set-names` is 642 (a name in two parts of one union counts once), `names-four` is 2,430 (2,669 is a later commit's).
"""
from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from lines import count

KNOWING = ("irtool/ops/", "irtool/ir/", "irtool/text/")
"""Where operators may be named: what one is, its schema, its text."""
FACETS = ("gradients", "batching", "samples", "kernels")
"""Packages that say one thing about every family of operators, under the family's name."""
WORDS = ("found", "told", "kept", "given", "made", "there", "own", "lies")
FEW = 3
"""Fewer operators than this are no set."""
SHARE = 2 / 3
"""A set is of operators if this much of its strings names some: names of Python methods are often names of operators too."""


@dataclass(frozen=True, order=True)
class Place:
    """A line that a figure counts, and why."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@dataclass
class Figure:
    """One number; `before` is that of c4c428e."""

    name: str
    definition: str
    value: int
    before: int | None = None
    aim: int | None = None
    places: list[Place] = field(default_factory=list)


class Source:
    """One file, parsed when asked for."""

    def __init__(self, path: Path, file: str, module: str) -> None:
        self.path = path
        self.file = file
        self.module = module
        self.text = path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def names(self) -> list[tuple[str, int, str]]:
        """Identifiers with their lines and the token behind each."""
        tokens = list(tokenize.generate_tokens(io.StringIO(self.text).readline))
        return [(token.string, token.start[0], after.string) for token, after in zip(tokens, tokens[1:], strict=False)
                if token.type == tokenize.NAME]

    @property
    def package(self) -> str:
        return self.file.rpartition("/")[0]


class House:
    """The sources of a checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sources: dict[str, Source] = {}
        """By name of the module; passes/ is irtool.passes, to which irtool/passes is a link."""
        for base, prefix in (("irtool", "irtool"), ("passes", "irtool.passes")):
            for path in sorted((root / base).rglob("*.py")):
                inner = path.relative_to(root / base).with_suffix("").parts
                if (base, inner[0]) == ("irtool", "passes"):
                    continue
                module = ".".join((prefix, *[part for part in inner if part != "__init__"]))
                self.sources[module] = Source(path, path.relative_to(root).as_posix(), module)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Operators that have a schema."""
        return frozenset(re.findall(r"(?:aten|prim)::\w+", (self.root / "irtool/ir/schemas.txt").read_text(encoding="utf-8")))

    def outside(self) -> Iterator[Source]:
        """Files that should ask what an operator is."""
        return (source for source in self.sources.values() if not source.file.startswith(KNOWING))

    # -- operators named
    def operators(self, node: ast.AST) -> tuple[set[str], int]:
        """Operators that the strings below a node name, and the number of other words in them."""
        named: set[str] = set()
        others: set[str] = set()
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                for word in each.value.split():
                    if word.startswith(("aten::", "prim::")):
                        named.update([word] if not word.endswith("::") else [])
                    elif "aten::" + word.partition(".")[0] in self.kinds:
                        named.add(word)
                    else:
                        others.add(word)
        return named, len(others)

    def are_operators(self, node: ast.AST) -> int:
        """How many operators a collection names; 0 where it is of something else."""
        named, others = self.operators(node)
        return len(named) if len(named) >= FEW and len(named) >= SHARE * (len(named) + others) else 0


def assignments(tree: ast.Module) -> Iterator[tuple[str, int, ast.expr]]:
    """Constants of a module: (name, line, value)."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield ast.unparse(node.targets[0]), node.lineno, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield ast.unparse(node.target), node.lineno, node.value


def is_set(value: ast.expr) -> bool:
    """`frozenset(...)`, `{...}`, and what unions and `split` make."""
    if isinstance(value, ast.BinOp):
        return is_set(value.left) or is_set(value.right)
    return isinstance(value, ast.Set | ast.SetComp) or isinstance(value, ast.Call) and (
        isinstance(value.func, ast.Name) and value.func.id in ("frozenset", "set", "tuple")
        or isinstance(value.func, ast.Attribute) and value.func.attr == "split")


def is_table(value: ast.expr) -> bool:
    """A dict, or a union of dicts."""
    if isinstance(value, ast.BinOp):
        return is_table(value.left) or is_table(value.right)
    return isinstance(value, ast.Dict | ast.DictComp)


def sets_of_operators(house: House) -> tuple[list[Place], int]:
    """Constants of modules that are sets of operators, and how many names they hold together."""
    places: list[Place] = []
    total = 0
    for source in house.outside():
        for name, line, value in assignments(source.tree):
            size = house.are_operators(value) if is_set(value) else 0
            if size:
                places.append(Place(source.file, line, f"{name}: {size} operators"))
                total += size
    return places, total


def unnamed_sets(house: House) -> list[Place]:
    """Sets and tuples of operators inside functions, and strings of operators' names."""
    places: list[Place] = []
    for source in house.outside():
        for name, line, value in assignments(source.tree):
            if isinstance(value, ast.Constant) and house.are_operators(value):
                places.append(Place(source.file, line, f"{name}: {house.are_operators(value)} operators in a string"))
        named = {id(each) for _, _, value in assignments(source.tree) for each in ast.walk(value)}
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Set | ast.Tuple) and id(node) not in named and house.are_operators(node) \
                    and all(isinstance(each, ast.Constant) for each in node.elts):
                places.append(Place(source.file, node.lineno, ast.unparse(node)))
    return sorted(set(places))


def tables_of_operators(house: House) -> list[Place]:
    """Constants of modules that are dicts and name operators."""
    places: list[Place] = []
    for source in house.outside():
        for name, line, value in assignments(source.tree):
            if is_table(value):
                named, others = house.operators(value)
                if len(named) > FEW and len(named) > others:
                    places.append(Place(source.file, line, f"{name}: {len(named)} operators"))
    return places


# -- imports
def imports(house: House, source: Source) -> dict[str, int]:
    """Modules of the house that a module reads, also later and for types only, and the line where each is first named."""
    lines: dict[str, int] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *[f"{node.module}.{alias.name}" for alias in node.names]]
        else:
            continue
        for name in names:
            if name in house.sources and name != source.module:
                lines[name] = min(lines.get(name, node.lineno), node.lineno)
    return lines


def circles(graph: dict[str, dict[str, int]]) -> list[list[str]]:
    """Strongly connected components of two modules or more: each reaches each."""
    reached = {module: reachable(graph, module) for module in graph}
    rest = dict.fromkeys(graph)
    groups = []
    while rest:
        first = next(iter(rest))
        group = [first, *[each for each in rest if each != first and each in reached[first] and first in reached[each]]]
        for each in group:
            del rest[each]
        if len(group) > 1:
            groups.append(sorted(group))
    return groups


def reachable(graph: dict[str, dict[str, int]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for each in graph[waiting.pop()]:
            if each not in seen:
                seen.add(each)
                waiting.append(each)
    return seen


def circle_places(house: House) -> tuple[list[list[str]], list[Place]]:
    """The circles, and what closes each: imports that run later or for types only, and those of the package that the module stands in."""
    graph = {module: imports(house, source) for module, source in house.sources.items()}
    groups = circles(graph)
    places: list[Place] = []
    for number, group in enumerate(groups, 1):
        for module in group:
            source = house.sources[module]
            early = {node.lineno for node in source.tree.body if isinstance(node, ast.Import | ast.ImportFrom)}
            for target, line in sorted(graph[module].items()):
                if target in group and (line not in early or module.startswith(target + ".")):
                    text = f"circle {number}, {len(group)} modules: reads {target.removeprefix('irtool.')}"
                    places.append(Place(source.file, line, text))
    return groups, places


# -- the gradient of a loop
def loop_files(house: House) -> list[Place]:
    """What one reads to mend the gradient of a loop: its handler, the modules of the state that it takes (the class of its first parameter,
    its bases, the classes of its attributes), and every module that names that class or a base."""
    package = "irtool/autodiff" if any(each.package == "irtool/autodiff" for each in house.sources.values()) else "irtool/script"
    rooms = [source for source in house.sources.values() if source.package == package]
    classes = {node.name: (source, node) for source in rooms for node in source.tree.body if isinstance(node, ast.ClassDef)}
    states: list[str] = []
    files: dict[str, Place] = {}
    for source in rooms:
        for node in source.tree.body:
            if isinstance(node, ast.FunctionDef) and "loop" in node.name and node.args.args and _makes_loop(node) \
                    and "gradient" in ast.unparse(node):
                state = ast.unparse(node.args.args[0].annotation or ast.Constant(None))
                if state in classes:
                    files[source.file] = Place(source.file, node.lineno, f"{node.name}({state}, ...)")
                    states.append(state)
    for state in states:     # grows by bases
        source, node = classes[state]
        files.setdefault(source.file, Place(source.file, node.lineno, f"class {state}"))
        states += [base.id for base in node.bases if isinstance(base, ast.Name) and base.id in classes and base.id not in states]
        for part in _parts(node):
            for other in rooms:
                for name, line in _defined(other):
                    if name == part:
                        files.setdefault(other.file, Place(other.file, line, f"{part}, which {state} holds"))
    for source in rooms:
        for word, line, _ in source.names:
            if word in states:
                files.setdefault(source.file, Place(source.file, line, f"takes {word}"))
    return sorted(files.values())


def _makes_loop(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Constant) and each.value == "prim::Loop" for each in ast.walk(node))


def _parts(node: ast.ClassDef) -> set[str]:
    """Names of classes in the annotations and calls of the class's `__init__`."""
    made = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    return {each.id for function in made for statement in function.body for each in ast.walk(statement)
            if isinstance(each, ast.Name) and each.id[0].isupper() and not each.id.isupper()}


def _defined(source: Source) -> Iterator[tuple[str, int]]:
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name, node.lineno
    yield from ((name, line) for name, line, _ in assignments(source.tree))


# -- words
def uses(house: House, words: Iterable[str]) -> list[Place]:
    """Identifiers that are one of these words."""
    return [Place(source.file, line, word) for source in house.sources.values() for word, line, _ in source.names if word in set(words)]


def uses_in_text(house: House, word: str) -> list[Place]:
    pattern = re.compile(rf"\b{word}\b")
    return [Place(source.file, line, text.strip()) for source in house.sources.values()
            for line, text in enumerate(source.text.split("\n"), 1) for _ in pattern.findall(text)]


def assigned(house: House, word: str) -> list[Place]:
    return [Place(source.file, line, f"{word} = ...") for source in house.sources.values()
            for name, line, after in source.names if name == word and after == "="]


def shared_names(house: House) -> list[Place]:
    """Names of modules that stand in two packages, but for one family of operators in several facets."""
    homes: dict[str, list[Source]] = {}
    for source in house.sources.values():
        if source.path.stem not in ("__init__", "__main__"):
            homes.setdefault(source.path.stem, []).append(source)
    places: list[Place] = []
    for name, sources in sorted(homes.items()):
        families = [each for each in sources if each.package == "irtool/ops" or each.package.rpartition("/")[2] in FACETS]
        if len(sources) - max(len(families) - 1, 0) > 1:
            places.append(Place(sources[0].file, 1, f"{name}: {', '.join(each.package for each in sources)}"))
    return places


def collected(root: Path) -> int:
    """Tests that pytest collects."""
    done = subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-q"], cwd=root, capture_output=True, text=True, check=False)
    total = re.search(r"^(\d+) tests? collected", done.stdout, re.MULTILINE) or re.search(r"^(\d+)/\d+ tests collected", done.stdout, re.M)
    if total is None:
        raise SystemExit(f"pytest collected nothing:\n{done.stdout[-500:]}{done.stderr[-500:]}")
    return int(total[1])


CALLS = """
import sys
import numpy as np
import irtool

module = irtool.parse('''graph(%x : Tensor, %y : Tensor):
  %1 : Tensor = aten::mul(%x, %y)
  %2 : Tensor = aten::tanh(%1)
  return (%2)
''')
x = np.ones((2, 3), np.float32)

def counted(call):
    for _ in range(6):
        call()
    calls = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_qualname) if event == "call" else None)
    call()
    sys.setprofile(None)
    return calls[1:]        # without `call` itself

for call in (lambda: irtool.run(module, [x, x]), lambda: irtool.vjp(module, [x, x], [x], [0, 1])):
    print(*counted(call))
"""


def steady_calls(root: Path) -> list[list[str]]:
    """The Python functions that a steady `irtool.run`, and a steady `irtool.vjp`, of a graph of two operators call; none where nothing
    runs."""
    if not (root / "irtool/execute/run.py").exists():
        return []
    done = subprocess.run([sys.executable, "-c", CALLS], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"two operators did not run:\n{done.stderr[-500:]}")
    return [line.split() for line in done.stdout.splitlines()]


def measure(root: Path, tests: bool = False) -> list[Figure]:
    """All figures of a checkout."""
    house = House(root)
    sizes = [Place(source.file, 1, f"{count(source.path)[0]} lines") for source in house.sources.values()]
    sets, names = sets_of_operators(house)
    unnamed = unnamed_sets(house)
    tables = tables_of_operators(house)
    groups, closing = circle_places(house)
    loop = loop_files(house)
    words, four = uses(house, WORDS), uses(house, ("found", "told", "kept", "lies"))
    text, equals, shared = uses_in_text(house, "found"), assigned(house, "found"), shared_names(house)
    rooms = [Place(house.sources[each].file, 1, f"circle {number}, {len(group)} modules")
             for number, group in enumerate(groups, 1) for each in group]
    figures = [
        Figure("lines", "lines of code in irtool/ and passes/, as tools/lines.py counts",
               sum(int(each.text.split()[0]) for each in sizes), 56437, 68000, sizes),
        Figure("sets", f"sets of {FEW} operators or more that are constants of modules outside ops/, ir/, text/", len(sets), 44, 6, sets),
        Figure("set-names", "operators in them, each once per set", names, 635, None, sets),
        Figure("unnamed-sets", "such sets inside functions, and strings of names", len(unnamed), None, None, unnamed),
        Figure("tables", f"dicts that name more than {FEW} operators and are constants of modules there", len(tables), 27, 15, tables),
        Figure("circles", "strongly connected components of modules; late imports and those for types count", len(groups), 15, 8, closing),
        Figure("circle-modules", "modules in them", len(rooms), None, None, rooms),
        Figure("loop", "files to read for the gradient of a loop: handler, the state it takes, who else takes it", len(loop), 13, 6, loop),
        Figure("names", f"identifiers that are one of: {', '.join(WORDS)}", len(words), 4091, 200, words),
        Figure("names-four", "identifiers that are found, told, kept or lies", len(four), 2669, None, four),
        Figure("found-text", "`found` as a word, in comments and docstrings too", len(text), 2237, None, text),
        Figure("found-set", "`found = ...`", len(equals), 581, None, equals),
        Figure("shared-names", "names of modules in two packages, facets of ops apart", len(shared), 24, 3, shared),
    ]
    for name, before, aim, calls in zip(("run-calls", "vjp-calls"), (45, 98), (20, 45), steady_calls(root), strict=False):
        definition = f"Python calls in a steady irtool.{name.partition('-')[0]} of two operators, by sys.setprofile"
        places = [Place("irtool/execute/run.py", number, each) for number, each in enumerate(calls, 1)]
        figures.append(Figure(name, definition, len(calls), before, aim, places))
    if tests:
        figures.append(Figure("tests", "items that pytest collects", collected(root), 24112, 15000))
    return figures


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/house.py", description="The shape of the code in figures.")
    parser.add_argument("--json", action="store_true", help="one object per figure")
    parser.add_argument("--list", metavar="NAME", help="the places that a figure counts")
    parser.add_argument("--tests", action="store_true", help="collect the tests, too")
    parser.add_argument("--root", type=Path, default=Path(__file__).parent.parent, metavar="FOLDER", help="another checkout")
    options = parser.parse_args(words)
    figures = measure(options.root.resolve(), options.tests)
    if options.list is not None:
        chosen = [each for each in figures if each.name == options.list]
        if not chosen:
            parser.error(f"no figure {options.list!r}; there are {', '.join(each.name for each in figures)}")
        print(*chosen[0].places, sep="\n")
    elif options.json:
        print(json.dumps([{"name": each.name, "value": each.value, "before": each.before, "aim": each.aim, "definition": each.definition}
                          for each in figures], indent=2))
    else:
        print(f"{'':16}{'now':>8}{'before':>8}{'aim':>8}")
        for each in figures:
            before, aim = ("" if number is None else f"{number:,}" for number in (each.before, each.aim))
            print(f"{each.name:16}{each.value:8,}{before:>8}{aim:>8}   {each.definition}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
