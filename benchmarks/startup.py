"""Start-up: CPU time of short processes, interleaved; irtool against Python itself, `import click`, and xdsl-opt.

    python benchmarks/startup.py [--quick]

The bars, in CPU time of `import click` (docs/adr/0003-command-line-on-click.md, tests/test_startup.py): `irtool --version` 1.3,
`irtool opt` on 100 nodes 2.0.
"""
from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import generate
import harness


def cpu_seconds(command: Sequence[str]) -> float:
    """User and system time of one process. Raises CalledProcessError."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    arguments = harness.parser(__doc__).parse_args()
    harness.pin()
    root = str(Path(__file__).resolve().parent.parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    scripts = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as folder:
        graph, module = Path(folder, "g.ir"), Path(folder, "g.mlir")
        graph.write_text(generate.torch_text("uniform", 100))
        module.write_text(generate.mlir_text("uniform", 100))
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "import click": [sys.executable, "-c", "import click"],
            "irtool --version": [sys.executable, "-m", "irtool", "--version"],
            "irtool opt --passes=dce, 100 nodes": [sys.executable, "-m", "irtool", "opt", "--passes=dce", str(graph)],
            "xdsl-opt -p dce, 100 nodes": [str(scripts / "xdsl-opt"), "-p", "dce", str(module)],
        }
        samples: dict[str, list[float]] = {}
        for turn in range(arguments.rounds or (5 if arguments.quick else 31)):
            names = list(commands)
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                try:
                    samples.setdefault(name, []).append(cpu_seconds(commands[name]))
                except (OSError, subprocess.CalledProcessError) as error:
                    print(f"  {name}: {error}", file=sys.stderr)
                    del commands[name]
    for name in commands:
        median, spread = harness.middle(samples[name])
        ratio, ratio_spread = harness.middle([one / other for one, other in zip(samples[name], samples["import click"])])
        print(f"  {name:38}{median * 1e3:8.1f} ms ±{spread:4.0%}   {ratio:6.3f} x import click ±{ratio_spread:4.0%}")


if __name__ == "__main__":
    main()
