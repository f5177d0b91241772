"""Record with torch what the programs of tests/data/script give: python tests/record_script.py (needs torch 2.13)."""
from __future__ import annotations

import importlib.util
import json
import linecache
import re
import sys
import tempfile
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests import script_decisions
from tests.script_programs import FOLDER, PROGRAMS, as_json, cases, inputs_of


def to_torch(value: Any) -> Any:
    """Arrays as tensors."""
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


def from_torch(value: Any) -> Any:
    """Tensors as arrays."""
    if isinstance(value, torch.Tensor):
        return value.detach().numpy()
    if isinstance(value, tuple):
        return tuple(from_torch(each) for each in value)
    if isinstance(value, list):
        return [from_torch(each) for each in value]
    if isinstance(value, dict):
        return {key: from_torch(each) for key, each in value.items()}
    return value


def operators(graph: Any) -> dict[str, int]:
    """How many nodes of each kind, constants and casts of types left out."""
    found: Counter[str] = Counter()

    def block(nodes: Any) -> None:
        for node in nodes:
            found[node.kind()] += 1
            for inner in node.blocks():
                block(inner.nodes())

    block(graph.nodes())
    return dict(sorted(found.items()))


def loaded(program: str) -> Any:
    """A program as a Python module."""
    spec = importlib.util.spec_from_file_location(f"script_{program}", FOLDER / f"{program}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def printed(program: str) -> dict[str, str]:
    """The graphs of a program's functions as torch prints them, calls inlined; those that fork others have calls left."""
    module = loaded(program)
    texts = {name: str(torch.jit.script(getattr(module, name)).inlined_graph) for name, _ in cases(program)}
    return {name: text for name, text in texts.items() if "prim::CallFunction" not in text}


def record(program: str) -> dict[str, Any]:
    """Results and node kinds of every function of a program."""
    module = loaded(program)
    out: dict[str, Any] = {}
    for name, lines in cases(program):
        try:
            compiled = torch.jit.script(getattr(module, name))
        except Exception as error:
            print(f"{program}.{name}: torch refuses: {str(error).strip()[:300]}")
            continue
        results = []
        for line in lines:
            try:
                results.append(as_json(from_torch(compiled(*[to_torch(value) for value in inputs_of(line)]))))
            except Exception as error:
                results.append({"error": str(error).strip().split("\n")[-1]})
        out[name] = {"results": results, "operators": operators(compiled.inlined_graph)}
    return out


HEADER = "from typing import *\nimport torch\nfrom torch import Tensor\n"


def refusal(source: str) -> dict[str, Any] | None:
    """torch's message for a rejected program: its first line, and the line of the program it points to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rejected.py"
        path.write_text(HEADER + source)
        try:
            spec = importlib.util.spec_from_file_location("script_rejected", path)
            assert spec is not None and spec.loader is not None
            module = sys.modules["script_rejected"] = importlib.util.module_from_spec(spec)       # where torch looks for classes
            spec.loader.exec_module(module)
            linecache.checkcache()
            torch.jit.script(module.f)
        except Exception as error:
            text = str(error)
        else:
            return None
        found = re.search(r'", line (\d+)\n((?:.*\n)*?.*<--- HERE)', text)
        if not found:
            try:        # torch's own parser says it better than Python
                torch.jit.CompilationUnit(source)
            except RuntimeError as error:
                own = re.search(r'", line (\d+)\n(?:.*\n)*?.*<--- HERE', str(error))
                if own and any(word in text for word in ("is not defined", "loop", "starred")):
                    return located(str(error), source)
            return {"message": text.strip().split("\n")[0].rstrip(":").partition(" (rejected.py")[0], "line": 0}
        return located(text, source)


def located(text: str, source: str) -> dict[str, Any]:
    """A message of torch: its first line, and the line of the program that is marked."""
    found = re.search(r'", line (\d+)\n((?:.*\n)*?.*<--- HERE)', text)
    assert found is not None
    shown = found[2].split("\n")
    marked = next(i for i, line in enumerate(shown) if line.strip().startswith("~") or "<--- HERE" in line)
    at = [i + 1 for i, each in enumerate(source.split("\n")) if each == shown[marked - 1]]
    return {"message": text.strip().split("\n")[0].strip().rstrip(":"), "line": at[0] if at else 0}


def record_refusals() -> list[dict[str, Any]]:
    """What torch says to each program of rejected.txt."""
    out = []
    for source in (FOLDER / "rejected.txt").read_text().split("# ====\n"):
        found = refusal(source)
        if found is None:
            print("torch takes:", source)
        out.append(found or {"message": "", "line": 0})
    return out


NUMBERS = count()


def decision(source: str) -> list[Any] | None:
    """What torch gives for a small program; None if it refuses it."""
    name = f"script_decided_{next(NUMBERS)}"        # torch keeps the classes of a module
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decided.py"
        path.write_text(script_decisions.HEADER + source)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        linecache.checkcache()
        try:
            spec.loader.exec_module(module)
            compiled = torch.jit.script(module.f)
        except Exception:
            return None
    results: list[Any] = []
    for line in script_decisions.runs_of(source):
        try:
            results.append(as_json(from_torch(compiled(*[to_torch(value) for value in inputs_of(line)]))))
        except Exception:
            results.append("error")
    return results


def record_decisions() -> list[list[Any] | None]:
    """What torch gives for each of the small programs."""
    return [decision(source) for source in script_decisions.programs()]


if __name__ == "__main__":
    recorded = {program: record(program) for program in PROGRAMS if (FOLDER / f"{program}.py").exists()}
    text = json.dumps(recorded, separators=(",", ":")).replace('},"', '},\n"')
    (FOLDER / "recorded.json").write_text(text + "\n")
    (FOLDER / "rejected.json").write_text("[\n" + ",\n".join(json.dumps(each) for each in record_refusals()) + "\n]\n")
    decisions = [json.dumps(each, separators=(",", ":")) for each in record_decisions()]
    (FOLDER / "decisions.json").write_text("[\n" + ",\n".join(decisions) + "\n]\n")
    print(sum(len(functions) for functions in recorded.values()), "functions")
