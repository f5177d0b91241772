"""tools/house.py on a house of a few files: what each figure counts, and what it leaves out."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "house.py"
SCHEMAS = "".join(f"aten::{name}(Tensor self) -> Tensor\n" for name in ("abs", "neg", "view", "t"))
FILES = {
    "irtool/ir/schemas.txt": SCHEMAS,
    "irtool/ir/kinds.py": 'VIEWS = frozenset("view t abs".split())\n',      # may name operators
    "irtool/autodiff/__init__.py": "",
    "irtool/autodiff/facts.py": '''VIEWS = frozenset(f"aten::{name}" for name in "view t abs".split())
FEW = frozenset(("aten::view", "aten::t"))
METHODS = frozenset("view t abs copy item tolist".split())      # names of something else
RULES = {"aten::view": abs, "aten::t": abs, "aten::neg": abs, "aten::abs": abs}

def f(kind):
    return kind in ("aten::view", "aten::t", "aten::neg")
''',
    "irtool/autodiff/sweep.py": '''class Base:
    pass

class Sweep(Base):
    def __init__(self):
        from irtool.autodiff.lists import Changes
        self.changes = Changes()
''',
    "irtool/autodiff/loops.py": '''from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from irtool.autodiff.sweep import Sweep

def loop(sweep: Sweep, node):
    """The gradient."""
    return "prim::Loop"
''',
    "irtool/autodiff/lists.py": "import irtool.autodiff.loops\n\nclass Changes:\n    pass\n",
    "passes/facts.py": "# found twice: found\nfound = given = 1\nfound_later = found\n",
    "passes/view.py": "",
    "irtool/ops/view.py": "",
    "irtool/ops/gradients/view.py": "",
    "irtool/ops/gradients/t.py": "",
    "irtool/ops/samples/t.py": "",
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("house")
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def house(root: Path, *words: str) -> str:
    line = [sys.executable, str(TOOL), "--root", str(root), *words]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_figures(small: Path) -> None:
    values = {each["name"]: each["value"] for each in json.loads(house(small, "--json"))}
    assert values == {"lines": 24, "sets": 1, "set-names": 3, "unnamed-sets": 1, "tables": 1, "circles": 1, "circle-modules": 3, "loop": 3,
                      "names": 3, "names-four": 2, "found-text": 4, "found-set": 1, "shared-names": 2}


@pytest.mark.parametrize("name, places", [
    ("sets", ["irtool/autodiff/facts.py:1: VIEWS: 3 operators"]),
    ("tables", ["irtool/autodiff/facts.py:4: RULES: 4 operators"]),
    ("circles", ["irtool/autodiff/loops.py:4: circle 1, 3 modules: reads autodiff.sweep",
                 "irtool/autodiff/sweep.py:6: circle 1, 3 modules: reads autodiff.lists"]),
    ("loop", ["irtool/autodiff/lists.py:3: Changes, which Sweep holds", "irtool/autodiff/loops.py:6: loop(Sweep, ...)",
              "irtool/autodiff/sweep.py:4: class Sweep"]),
    ("shared-names", ["irtool/autodiff/facts.py:1: facts: irtool/autodiff, passes",
                      "irtool/ops/gradients/view.py:1: view: irtool/ops/gradients, irtool/ops, passes"]),
])
def test_places(small: Path, name: str, places: list[str]) -> None:
    assert house(small, "--list", name).splitlines() == places


def test_calls_of_steady_runs() -> None:
    """What runs again and again costs few Python calls; `tools/house.py --list run-calls` says which."""
    code = "import house; print(*(len(calls) for calls in house.steady_calls(house.Path('..'))))"
    done = subprocess.run([sys.executable, "-c", code], cwd=TOOL.parent, capture_output=True, text=True, check=True, timeout=120)
    run, vjp = map(int, done.stdout.split())
    assert 5 < run <= 20
    assert 5 < vjp <= 45
