"""The playground's folder: a static page with Python in it, which any web server can hand out. `make playground`.

    python tools/playground.py [--pyodide VERSION] [--numpy FILE...] [-o build/playground]

Pyodide's core comes from the npm package `pyodide` (`npm pack`), wheels of irtool and click from pip. With `--numpy`, files of the release
of Pyodide (NumPy, SciPy, OpenBLAS) are put into the folder, too, and the page can run graphs. The page loads nothing from elsewhere.
"""
from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from irtool.drawing.page import digest, page_script, template

ROOT = Path(__file__).parent.parent
PAGES = Path(__file__).parent / "playground"
PYODIDE = "314.0.7"
CORE = re.compile(r"pyodide\.mjs|pyodide\.asm\.(?:m?js|wasm)|python_stdlib\.zip|pyodide-lock\.json")
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
    parser.add_argument("--pyodide", default=PYODIDE, help=f"a version, or the npm package, packed or not ({PYODIDE})")
    parser.add_argument("--numpy", type=Path, nargs="*", default=[],
                        help="files of NumPy and SciPy in the release of Pyodide, with which graphs can run")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "playground")
    arguments = parser.parse_args(words)
    folder: Path = arguments.output
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "pyodide").mkdir(parents=True)
    put_core(arguments.pyodide, folder / "pyodide")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, "click"], check=True)
    wheels = sorted(path.name for path in folder.glob("*.whl"))
    compiled = put_packages(arguments.numpy, folder / "pyodide")
    examples = {name: (ROOT / "examples" / file).read_text() for name, file in EXAMPLES.items()}
    examples |= {"a Python function": FUNCTION, "an error": WRONG}
    put_pages(folder)
    (folder / "folder.json").write_text(json.dumps({"wheels": wheels, "compiled": compiled, "examples": examples,
                                                    "has_numpy": any(path.name.startswith("numpy-") for path in arguments.numpy)}))
    subprocess.run(["node", PAGES / "prepare.mjs", folder], check=True)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 1e6:.1f} MB")
    return 0


def put_core(source: str, folder: Path) -> None:
    """Copy Pyodide's core of a version, or from its npm package, packed or not."""
    if re.fullmatch(r"[\d.]+", source):
        version, source = source, str(ROOT / "build" / f"pyodide-{source}.tgz")
        if not Path(source).exists():
            subprocess.run(["npm", "pack", "--silent", f"pyodide@{version}", "--pack-destination", Path(source).parent], check=True)
    with TemporaryDirectory() as unpacked:
        if Path(source).is_file():
            shutil.unpack_archive(source, unpacked, filter="data")
            source = f"{unpacked}/package"
        for path in Path(source).iterdir():
            if CORE.fullmatch(path.name):
                shutil.copy(path, folder)


def put_packages(files: list[Path], folder: Path) -> list[str]:
    """Copy compiled packages, which remain of Pyodide's lock file; returns their names, or the name of a file that it lacks."""
    place = folder / "pyodide-lock.json"
    lock = json.loads(place.read_text())
    names = {package["file_name"]: name for name, package in lock["packages"].items()}
    for path in files:
        shutil.copy(path, folder)
    compiled = [names.get(path.name, path.name) for path in files]
    lock["packages"] = {name: package for name, package in lock["packages"].items() if name in compiled}
    place.write_text(json.dumps(lock))
    return compiled


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
