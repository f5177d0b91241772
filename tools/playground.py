"""The playground's folder: a static page with Python in it, which any web server can hand out. `make playground`.

    python tools/playground.py [--pyodide FOLDER-OR-TGZ] [--numpy WHEEL...] [-o build/playground]

Pyodide's core comes from the npm package `pyodide` (`npm pack`), wheels of irtool and click from pip. With `--numpy`, wheels compiled for
Pyodide (NumPy, SciPy) are put into the folder, too, and the page can run graphs. The page loads nothing from elsewhere.
"""
from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from irtool.drawing.page import digest, page_script, template

ROOT = Path(__file__).parent.parent
PAGES = Path(__file__).parent / "playground"
PYODIDE = "314.0.7"
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
FUNCTION = """import torch
from typing import List


def newton(x: torch.Tensor, rounds: int):
    # the square root of x, by Newton's method
    guess = x
    for i in range(rounds):
        guess = (guess + x / guess) / 2
    return guess
"""
WRONG = """graph(%x : Float(2, 3), %w : Float(3, 4)):
  %y : Tensor = aten::mm(%x, %w)
  %z : Tensor = aten::tanh(%yy)
  return (%z)
"""
EXAMPLES = {"a cell of an LSTM": "lstm_cell.ir", "a net of two layers": "mlp.ir", "a loop": "collatz.ir",
            "a text of 2018": "mul_add_2018.ir", "hard swish": "hard_swish.ir"}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Build the playground's folder.")
    parser.add_argument("--pyodide", type=Path, help="the npm package, packed or not (default: npm pack pyodide)")
    parser.add_argument("--numpy", type=Path, nargs="*", default=[], help="wheels for Pyodide with which graphs can run")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "playground")
    arguments = parser.parse_args(words)
    folder: Path = arguments.output
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "pyodide").mkdir(parents=True)
    lock = put_core(arguments.pyodide, folder / "pyodide")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, "click"], check=True)
    wheels = sorted(path.name for path in folder.glob("*.whl"))
    for wheel in arguments.numpy:
        shutil.copy(wheel, folder)
    compiled = [wheel.name for wheel in arguments.numpy]
    examples = {name: (ROOT / "examples" / file).read_text() for name, file in EXAMPLES.items()}
    examples |= {"a Python function": FUNCTION, "an error": WRONG}
    put_pages(folder)
    (folder / "folder.json").write_text(json.dumps({"wheels": wheels, "compiled": compiled, "examples": examples, "lock": lock,
                                                    "has_numpy": any(name.startswith("numpy-") for name in compiled)}))
    subprocess.run(["node", PAGES / "prepare.mjs", folder], check=True)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 1e6:.1f} MB")
    return 0


def put_core(source: Path | None, folder: Path) -> dict[str, object]:
    """Copy Pyodide's core; returns its lock file, without packages."""
    if source is None:
        packed = ROOT / "build" / f"pyodide-{PYODIDE}.tgz"
        if not packed.exists():
            subprocess.run(["npm", "pack", "--silent", f"pyodide@{PYODIDE}", "--pack-destination", packed.parent], check=True)
        source = packed
    if source.is_dir():
        for name in (*CORE, "pyodide-lock.json"):
            shutil.copy(source / name, folder)
    else:
        with tarfile.open(source) as packed_files:
            for name in (*CORE, "pyodide-lock.json"):
                (folder / name).write_bytes(packed_files.extractfile(f"package/{name}").read())     # type: ignore[union-attr]
    place = folder / "pyodide-lock.json"
    lock = json.loads(place.read_text())
    place.unlink()
    return {**lock, "packages": {}}


def put_pages(folder: Path) -> None:
    """Write the page, with a policy that allows only what is in the folder, and the script and style of a graph's page in a frame."""
    policy = "; ".join((
        "default-src 'none'", "connect-src 'self'", "worker-src 'self'", "img-src data:", "base-uri 'none'", "form-action 'none'",
        f"script-src 'self' 'wasm-unsafe-eval' '{digest(page_script())}'", f"style-src 'self' '{digest(template('page.css'))}'"))
    for name in ("playground.css", "playground.js", "worker.js", "answer.py"):
        shutil.copy(PAGES / name, folder)
    (folder / "index.html").write_text((PAGES / "index.html").read_text().replace("{{policy}}", policy))
    for name in ("page.css", "colours.js"):
        (folder / name).write_text(template(name))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
