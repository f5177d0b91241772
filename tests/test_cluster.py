"""Cases on a Dask cluster: a real scheduler and two workers on this machine, one of them killed on the way."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed", reason="needs pip install 'irtool[cluster]'")
pytestmark = pytest.mark.cluster

SLOW = """
import os, signal, time
import irtool

def slow(x):
    with open("runs", "a") as file:
        file.write("x")
    time.sleep(0.1)
    return x

def crash(x):
    os.kill(os.getpid(), signal.SIGSEGV)

irtool.register_python_op("slow", slow)
irtool.register_python_op("crash", crash)
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
COUNT = 60


class Cluster:
    """A scheduler and two workers, each a process without a nanny that would start it again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.processes = [self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file",
                                     str(self.file))]
        wait_for(lambda: self.file.exists() and self.file.read_text())
        self.address: str = json.loads(self.file.read_text())["address"]
        for name in ("first", "second"):
            self.processes.append(self.start("worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard", "--name", name,
                                             "--local-directory", str(folder)))

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-m", "dask", *words], cwd=self.folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    for process in reversed(cluster.processes):
        process.kill()
        process.wait()


def wait_for(condition: object) -> None:
    end = time.monotonic() + 60
    while not condition():          # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.05)


def run_cases(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "irtool", "run", "cases", "--load", "load.py", "--json", *words], cwd=folder,
                            env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def report(process: subprocess.Popen[str]) -> dict[str, object]:
    out, err = process.communicate(timeout=200)
    assert out, err
    data = json.loads(out)
    return {"counts": data["counts"], "cases": [(row["name"], row["status"], row["code"]) for row in data["cases"]]}


def test_a_worker_is_killed_and_nothing_is_lost_or_there_twice(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "load.py").write_text(SLOW)
    (tmp_path / "cases").mkdir()
    for i in range(COUNT):
        op = "crash" if i == 7 else "slow"
        (tmp_path / f"cases/{i:02}.ir").write_text(f"graph(%x : Float(2)):\n  %1 : Float(2) = ^{op}()(%x)\n  return (%1)\n")
        np.savez(tmp_path / f"cases/{i:02}.npz", x=np.float32([i, 1]))
        np.savez(tmp_path / f"cases/{i:02}.expected.npz", output0=np.float32([i, 1 + (i == 9)]))
    local = report(run_cases(tmp_path, "--jobs", "2"))
    assert local["counts"] == {"ok": COUNT - 2, "failed": 1, "crashed": 1, "timeout": 0, "lost": 0}

    (tmp_path / "runs").unlink()
    done = tmp_path / "done.jsonl"
    process = run_cases(tmp_path, "--scheduler", cluster.address, "--resume", "done.jsonl", "-o", "out")
    wait_for(lambda: done.exists() and done.read_bytes().count(b"\n") >= 10)
    cluster.processes[1].send_signal(signal.SIGKILL)
    assert done.read_bytes().count(b"\n") < COUNT
    assert report(process) == local
    names = [json.loads(line)["name"] for line in done.read_text().splitlines()]
    assert sorted(names) == [f"{i:02}.ir" for i in range(COUNT)]
    assert len(list((tmp_path / "out").iterdir())) == COUNT - 1         # what crashed has no result
    runs = len((tmp_path / "runs").read_text())
    assert COUNT - 1 <= runs <= COUNT + 20      # what the worker was at, or had not handed over, is run again

    assert report(run_cases(tmp_path, "--scheduler", cluster.address, "--resume", "done.jsonl", "-o", "out")) == local
    assert len((tmp_path / "runs").read_text()) == runs                 # all were done


def test_nobody_at_the_address(tmp_path: Path) -> None:
    (tmp_path / "load.py").write_text(SLOW)
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases/a.ir").write_text("graph(%x : Float(2)):\n  return (%x)\n")
    process = run_cases(tmp_path, "--scheduler", "tcp://127.0.0.1:9")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2 and out == "" and "--scheduler tcp://127.0.0.1:9" in err and "Traceback" not in err
