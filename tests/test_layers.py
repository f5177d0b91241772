"""The floors of the house: an import goes up the list, never down. Imports inside functions and under TYPE_CHECKING count too."""
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.laws import over

ROOT = Path(__file__).parent.parent
FLOORS = (
    ("irtool.ir",),
    ("irtool.text",),
    ("irtool.ops",),
    ("irtool.interpret", "irtool.accepted_values", "irtool.shared_inputs"),
    ("irtool.analysis",),
    ("irtool.torchscript",),
    ("irtool.partial",),
    ("irtool.autodiff",),
    ("irtool.dispatch",),
    ("irtool.passes", "irtool.passmanager", "irtool.pipelines"),
    ("irtool.interop",),
    ("irtool.execute",),
    ("irtool.archives",),
    ("irtool.testing",),
    ("irtool.corpora",),
    ("irtool.checking",),
    ("irtool.drawing",),
    ("irtool.cli", "irtool.__main__"),
    ("irtool.expect",),
)
"""Top floor first; a floor imports itself and what stands before it."""
EXCEPTION = ("irtool.ir.graph", "irtool.ir.module"), "irtool.text.printer", ("__str__", "__repr__")
"""The one named exception: the IR classes print themselves."""
USES_ARRAYS = ("irtool.ops", "irtool.interpret", "irtool.accepted_values", "irtool.shared_inputs", "irtool.dispatch", "irtool.interop",
               "irtool.execute", "irtool.archives", "irtool.testing", "irtool.checking", "irtool.cli.show.values",
               "irtool.cli.show.watching", "irtool.cli.show.value_statistics")
"""Where a module may import NumPy when it is loaded; elsewhere only inside a function."""
GIVES_NUMPY = "irtool.ops.array_library"
"""The one module that imports NumPy when it is loaded; others take `np` from it, and so load without NumPy, too."""
USES_CLICK = ("irtool.cli.command", "irtool.cli.group")
"""The face of click: the entry point imports it when Ctrl-C is listened to, and everybody else goes through these two."""
HEAVY = ("numpy", "scipy", "cupy", "rich", "click", "torch")


def modules() -> list[tuple[str, Path]]:
    """Every module of the package by name; passes/ is irtool.passes."""
    found = []
    for base, prefix in ((ROOT / "irtool", "irtool"), (ROOT / "passes", "irtool.passes")):
        for path in sorted(base.rglob("*.py")):
            parts = path.relative_to(base).with_suffix("").parts
            if base.name == "irtool" and parts[0] == "passes":
                continue
            found.append((".".join((prefix, *(part for part in parts if part != "__init__"))), path))
    return found


MODULES = modules()
NAMES = {name for name, _ in MODULES}


class Import:
    """One import: what, on which line, inside which function."""

    def __init__(self, target: str, line: int, function: str, level: int) -> None:
        self.target = target
        self.line = line
        self.function = function
        self.level = level


def imports(tree: ast.AST, function: str = "") -> Iterator[Import]:
    """All imports of a module, nested ones included."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, function, 0)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield Import(whole if whole in NAMES else node.module or "", node.lineno, function, node.level)
        else:
            inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
            yield from imports(node, inner)


def floor(module: str) -> int:
    """Position in FLOORS; -1 for the package itself."""
    for i, names in enumerate(FLOORS):
        if any(module == name or module.startswith(name + ".") for name in names):
            return i
    return -1


def package(name: str, path: Path) -> str:
    """`irtool.ops` of irtool.ops.kernels.conv."""
    return ".".join(name.split(".")[:2]) if len(path.relative_to(ROOT).parts) > 2 else path.parent.name


@over("name, path", [pytest.param(name, path, id=name) for name, path in MODULES], package)
def test_imports_go_up(name: str, path: Path) -> None:
    problems = []
    own = floor(name)
    assert own >= 0 or name == "irtool", f"{name} stands on no floor: add it to FLOORS and to docs/architecture.md"
    for found in imports(ast.parse(path.read_text())):
        where = f"{path.relative_to(ROOT)}:{found.line}: {found.target}"
        if found.level:
            problems.append(f"{where}: relative import")
        elif found.target == "passes" or found.target.startswith("passes."):
            problems.append(f"{where}: the passes are irtool.passes")
        elif found.target.startswith("irtool.") and name != "irtool" and floor(found.target) > own:
            allowed = name in EXCEPTION[0] and found.target == EXCEPTION[1] and found.function in EXCEPTION[2]
            if not allowed:
                problems.append(f"{where}: imported from a floor above it")
        elif found.target == "torch" or found.target.startswith("torch."):
            problems.append(f"{where}: torch is for tests and benchmarks")
        elif found.target.partition(".")[0] == "click" and name in USES_CLICK:
            pass
        elif (found.target.partition(".")[0] in HEAVY or found.target == GIVES_NUMPY) and not found.function and floor(name) >= 0 \
                and not name.startswith(USES_ARRAYS):
            problems.append(f"{where}: at module level; import it inside the function that needs it")
        elif found.target.partition(".")[0] in ("numpy", "scipy") and not found.function and name != GIVES_NUMPY:
            problems.append(f"{where}: at module level; take np from {GIVES_NUMPY}")
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("folder", ["", "plan", "native", "device"])
def test_folders_of_execute_say_what_stands_where(folder: str) -> None:
    base = ROOT / "irtool" / "execute" / folder
    there = {path.stem for path in base.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} - {"__init__"}
    text = ast.get_docstring(ast.parse((base / "__init__.py").read_text()), clean=False) or ""
    assert {line.split()[0] for line in text.split("\n") if line.startswith("    ")} == there


def test_the_test_sees_imports_inside_functions() -> None:
    tree = ast.parse("def f():\n    from irtool.cli.main import main\n")
    assert [(found.target, found.function) for found in imports(tree)] == [("irtool.cli.main", "f")]


BY_NAME = (*(f"irtool.ops.{facet}" for facet in ("kernels", "gradients", "batching", "samples")), "irtool.cli.commands", "irtool.passes")
"""Packages of modules that are called like what they are for, and that a table names."""


@pytest.mark.parametrize("path", [
    pytest.param(path, id=name) for name, path in MODULES if path.name == "__init__.py" and name not in BY_NAME])
def test_a_package_says_what_its_modules_are_for(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    inside = [each.stem for each in path.parent.iterdir() if each.suffix == ".py" and not each.stem.startswith("__")]
    inside += [each.parent.name for each in path.parent.glob("*/__init__.py") if each.parent.name != "passes"]
    assert not [name for name in sorted(inside) if not re.search(rf"\b{name}\b", text)]
