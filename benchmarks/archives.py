"""Archives: a large one, many classes and methods, and, beside torch, real ones up to the first result and from then on.

    python benchmarks/archives.py --corpus FOLDER           # of NAME.pt, NAME.json, NAME.npz and CASES.tsv
    python benchmarks/archives.py --only large,classes,methods

large: an archive of 1 GB, of which a method touches one small tensor; time and memory up to its result. classes, methods: generated
archives of more and more of them; loading alone, and with a call. corpus: loading and the first call in a fresh process, beside
torch.jit.load and its first call; later calls beside `irtool.compile` of the same graph. All is CPU time on one thread, after the
imports; each figure comes from a process of its own, forked when the imports were done, and the candidates take turns.
"""
from __future__ import annotations

import os

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
os.environ.update(dict.fromkeys(THREADS, "1"))
os.environ["IRTOOL_CACHE_DIR"] = os.devnull     # nothing is read from earlier runs

import argparse  # noqa: E402  NumPy reads the number of threads when it is imported
import csv  # noqa: E402
import gc  # noqa: E402
import importlib  # noqa: E402
import json  # noqa: E402
import pkgutil  # noqa: E402
import statistics  # noqa: E402
import struct  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from harness import peak_bytes  # noqa: E402

import irtool  # noqa: E402
from irtool.archives.zip_writer import ZipWriter  # noqa: E402

GROUPS = ("torchvision", "timm", "transformers")
FIRST, LATER = 2.5, 1.05
SECONDS, BYTES = 1.0, 100e6
GROWTH = 1.3
"""Times the time per class that ten times as many classes may take."""
Row = dict[str, float]


def main() -> int:
    """Measure what is asked for; exit status 1 where a figure misses its bar."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--corpus", metavar="FOLDER", help="archives with recorded calls")
    flags.add_argument("--only", default="large,classes,methods,corpus", help="of large, classes, methods, corpus; separated by commas")
    flags.add_argument("--cases", default="", help="only cases of the corpus whose names contain this")
    flags.add_argument("--rounds", type=int, default=3)
    flags.add_argument("--quick", action="store_true", help="small sizes, one round")
    flags.add_argument("--json", metavar="FILE", help="write the figures of the corpus there")
    given = flags.parse_args()
    import_all()
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        for what in given.only.split(","):
            if what == "large":
                verdicts += large(Path(folder), 1 << (24 if given.quick else 30))
            elif what in ("classes", "methods"):
                verdicts += growth(Path(folder), what, (30, 100, 300) if given.quick else (100, 1000, 10000))
            elif given.corpus:
                verdicts += corpus(Path(given.corpus), given.cases, 1 if given.quick else given.rounds, given.json)
    return 0 if all(verdicts) else 1


def import_all() -> None:
    """Every module of irtool but the command line: imports are not counted."""
    for module in pkgutil.walk_packages(irtool.__path__, "irtool."):
        if not module.name.startswith(("irtool.cli", "irtool.expect", "irtool.passes.__main__", "irtool.__main__")):
            importlib.import_module(module.name)
    importlib.import_module("scipy.special")


def verdict(value: float, most: float, text: str) -> bool:
    """Print whether a bar is reached."""
    print(f"  {'reached' if value <= most else 'MISSED '} {text}", flush=True)
    return value <= most


def forked(action: Callable[[], Row]) -> Row:
    """What an action gives in a copy of this process. Raises RuntimeError."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            gc.collect()
            row: Any = action()
        except BaseException as error:
            row = f"{type(error).__name__}: {error}".splitlines()[0][:160]
        os.write(writing, json.dumps(row).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    row = json.loads(text or '"it died"')
    if isinstance(row, str):
        raise RuntimeError(row)
    return row


def seconds(action: Callable[[], object]) -> float:
    """CPU time of an action."""
    start = time.process_time()
    action()
    return time.process_time() - start


# -- generated archives
def large(folder: Path, size: int) -> list[bool]:
    """An archive of `size` bytes, of which a method reads 16."""
    path = folder / "large.pt"
    code = ("class M(Module):\n  __parameters__ = [\"big\", \"small\", ]\n  big : Tensor\n  small : Tensor\n"
            "  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n    return torch.add(x, self.small)\n"
            "  def everything(self: __torch__.M) -> Tensor:\n    return torch.sum(self.big)\n")
    write(path, {"__torch__": code}, instance("M", {"big": tensor("0", size // 4), "small": tensor("1", 4)}),
          {"0": np.zeros(size // 4, np.float32), "1": np.arange(4, dtype=np.float32)})

    def first_result() -> Row:
        before, start = peak_bytes(), time.perf_counter()
        result = irtool.load(path)(np.ones(4, np.float32))
        row = {"seconds": time.perf_counter() - start, "bytes": peak_bytes() - before}
        assert result.tolist() == [1, 2, 3, 4]
        return row

    print(f"archive of {path.stat().st_size / 1e9:.2f} GB", flush=True)
    row = forked(first_result)
    path.unlink()
    return [verdict(row["seconds"], SECONDS, f"first result: {row['seconds']:.3f} s (at most {SECONDS})"),
            verdict(row["bytes"], BYTES, f"memory: {row['bytes'] / 1e6:.1f} MB (at most {BYTES / 1e6:.0f})")]


def growth(folder: Path, what: str, sizes: tuple[int, ...]) -> list[bool]:
    """Archives of so many classes with an instance each, or of one class with so many methods."""
    print(f"archives of more and more {what}, ms per 1000", flush=True)
    times: dict[str, list[float]] = {}
    for size in sizes:
        path = folder / f"{what}.pt"
        if what == "classes":
            files = {f"__torch__/part{i}": class_text(f"__torch__.part{i}.Part", method(f"__torch__.part{i}.Part", "forward"))
                     for i in range(size)}
            files["__torch__"] = class_text("__torch__.M", "".join([f"  part{i} : __torch__.part{i}.Part\n" for i in range(size)]) + (
                "  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n    return (self.part0).forward(x, )\n"
                "  def everything(self: __torch__.M,\n    x: Tensor) -> Tensor:\n"
                + "".join([f"    x{i + 1} = (self.part{i}).forward({f'x{i}' if i else 'x'}, )\n" for i in range(size)])
                + f"    return x{size}\n"))
            state = instance("M", {"w": tensor("0", 4), **{f"part{i}": instance(f"part{i}.Part", {"w": tensor("0", 4)})
                                                           for i in range(size)}})
        else:
            files = {"__torch__": class_text("__torch__.M", "".join([method("__torch__.M", f"method{i}") for i in range(size)])
                                             + method("__torch__.M", "forward"))}
            state = instance("M", {"w": tensor("0", 4)})
        write(path, files, state, {"0": np.ones(4, np.float32)})
        for name in ("load", "load and call", "load and call all")[:None if what == "classes" and size <= 1000 else 2]:
            rows = [forked(lambda path=path, name=name: {"seconds": seconds(lambda: used(path, name))}) for _ in range(3)]
            times.setdefault(name, []).append(statistics.median([row["seconds"] for row in rows]) / size * 1e6)
    reached = []
    for name, each in times.items():
        text = ", ".join([f"{size}: {value:.0f}" for size, value in zip(sizes, each, strict=False)])
        reached.append(verdict(each[-1] / each[-2], GROWTH, f"{name}: {text}; the last over the one before {each[-1] / each[-2]:.2f} "
                                                            f"(at most {GROWTH})"))
    return reached


def used(path: Path, how: str) -> None:
    """Load an archive, and call it."""
    module = irtool.load(path)
    if how != "load":
        (module if how == "load and call" else module.everything)(np.ones(4, np.float32))


def class_text(name: str, body: str) -> str:
    """A class with a parameter."""
    return f"class {name.rpartition('.')[2]}(Module):\n  __parameters__ = [\"w\", ]\n  w : Tensor\n{body}"


def method(owner: str, name: str) -> str:
    """A method of some lines."""
    return (f"  def {name}(self: {owner},\n    x: Tensor) -> Tensor:\n    w = self.w\n    if bool(torch.gt(torch.sum(x), 0)):\n"
            "      y = torch.add(x, w, alpha=1)\n    else:\n      y = torch.mul(x, w)\n    return torch.relu(y)\n")


def instance(name: str, attributes: dict[str, bytes]) -> bytes:
    """The pickle of an instance of the class `name`."""
    module, _, last = f"__torch__.{name}".rpartition(".")
    return (f"c{module}\n{last}\n".encode() + b")\x81}("
            + b"".join([b"X" + struct.pack("<I", len(key)) + key.encode() + value for key, value in attributes.items()]) + b"ub")


def tensor(key: str, count: int) -> bytes:
    """The pickle of a tensor of `count` elements."""
    number = b"J" + struct.pack("<i", count)
    word = [b"X" + struct.pack("<I", len(each)) + each.encode() for each in ("storage", key, "cpu")]
    storage = b"(" + word[0] + b"ctorch\nFloatStorage\n" + word[1] + word[2] + number + b"tQ"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00(" + number + b"t(K\x01t\x89ccollections\nOrderedDict\n)RtR"


def write(path: Path, files: dict[str, str], state: bytes, arrays: dict[str, Any]) -> None:
    """An archive; of its arrays a piece is in memory at a time."""
    with open(path, "wb") as file:
        records = ZipWriter(file)
        for key, array in arrays.items():
            records.write(f"data/{key}", array)
        records.write("data.pkl", b"\x80\x02" + state + b".")
        for name, text in files.items():
            records.write(f"code/{name}.py", text.encode(), is_code=True)
        records.write("constants.pkl", b"\x80\x02).")
        records.write("version", b"3")
        records.close()


# -- archives of a corpus
def corpus(folder: Path, wanted: str, rounds: int, json_file: str | None) -> list[bool]:
    """The cases of GROUPS, beside torch."""
    import torch

    torch.set_num_threads(1)
    with open(folder / "CASES.tsv", encoding="utf-8") as file:
        cases = [row for row in csv.DictReader(file, delimiter="\t") if row["group"] in GROUPS and wanted in row["case"]]
    records = []
    print(f"{'load and first call, ms:':44} irtool   torch   ratio   later calls, us: module  compiled  ratio", flush=True)
    for case in cases:
        try:
            rows = [measured(folder, case, turn) for turn in range(rounds)]
        except RuntimeError as error:
            print(f"  {case['case']:42} {error}")
            continue
        record = {name: statistics.median([row[name] for row in rows]) for name in rows[0]}
        record["first_ratio"] = statistics.median([row["irtool"] / row["torch"] for row in rows])
        record["later_ratio"] = statistics.median([row["ratio"] for row in rows])
        print(f"  {case['case']:42} {record['irtool'] * 1e3:6.0f} {record['torch'] * 1e3:7.0f} {record['first_ratio']:7.2f}"
              f" {record['module'] * 1e6:23.0f} {record['compiled'] * 1e6:9.0f} {record['later_ratio']:6.2f}", flush=True)
        records.append({"case": case["case"], "group": case["group"], **record})
    reached = []
    for group in (*GROUPS, ""):
        of = [record for record in records if group in record["group"]]
        if of:
            first, later = [statistics.median([record[name] for record in of]) for name in ("first_ratio", "later_ratio")]
            text = f"{group or 'all'}, {len(of)} archives:"
            reached += [verdict(first, FIRST, f"{text} load and first call {first:.2f} x torch (at most {FIRST})"),
                        verdict(later, LATER, f"{text} later calls {later:.3f} x irtool.compile (at most {LATER})")]
    if json_file:
        Path(json_file).write_text(json.dumps({"schema": 1, "argv": sys.argv[1:], "records": records}, indent=1), encoding="utf-8")
    return reached


def measured(folder: Path, case: dict[str, str], turn: int) -> Row:
    """One round of a case: torch and irtool in processes of their own, in turns."""
    (call, *_) = json.loads((folder / f"{case['case']}.json").read_text(encoding="utf-8"))["calls"]
    with np.load(folder / f"{case['case']}.npz") as file:
        arrays = dict(file)
    inputs = [value(each, arrays) for each in call["inputs"]]
    named = {name: value(each, arrays) for name, each in call.get("kwargs", {}).items()}
    path, name = str(folder / case["archive"]), call["method"]
    runs = [lambda: in_torch(path, name, inputs, named), lambda: in_irtool(path, name, inputs, named)]
    rows = [forked(run) for run in runs[::-1 if turn % 2 else 1]]
    return {key: each for row in rows for key, each in row.items()}


def in_torch(path: str, name: str, inputs: list[Any], named: dict[str, Any]) -> Row:
    """CPU seconds of torch up to the first result."""
    import torch

    def first() -> None:
        with torch.no_grad():
            getattr(torch.jit.load(path), name)(*converted[0], **converted[1])

    converted = tensors(inputs), tensors(named)
    torch.ones(3).add(1)
    return {"torch": seconds(first)}


def tensors(given: Any) -> Any:
    """Values with tensors of torch for arrays."""
    import torch

    if isinstance(given, list | tuple):
        return type(given)([tensors(each) for each in given])
    if isinstance(given, dict):
        return {key: tensors(each) for key, each in given.items()}
    return torch.from_numpy(given.copy()) if isinstance(given, np.ndarray) else given


def in_irtool(path: str, name: str, inputs: list[Any], named: dict[str, Any]) -> Row:
    """CPU seconds of irtool up to the first result; of later calls, and of the graph that they run, compiled by itself."""
    modules = []

    def first() -> None:
        modules.append(irtool.load(path))
        getattr(modules[0], name)(*inputs, **named)

    row = {"irtool": seconds(first)}
    run = modules[0].method(name)
    lowered = run.variant().lowered
    values = [*run.parameters.bind(inputs, named), *[holder.attributes[attribute] for holder, attribute in lowered.sources]]
    compiled = irtool.compile(lowered.graph)
    later = {"module": lambda: run(*inputs, **named), "compiled": lambda: compiled.run(values, None)}      # both draw random numbers
    for call in later.values():
        call(), call()
    count = max(int(0.02 / max(seconds(later["compiled"]), 1e-6)), 1)
    times: dict[str, list[float]] = {"module": [], "compiled": []}
    for turn in range(15):
        for key in (list(times), list(times)[::-1])[turn % 2]:
            times[key].append(seconds(lambda key=key: [later[key]() for _ in range(count)]) / count)
    ratio = statistics.median([one / other for one, other in zip(*times.values(), strict=True)])
    return {**row, "ratio": ratio, **{key: statistics.median(each) for key, each in times.items()}}


def value(described: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The value of a description in a case's JSON."""
    kind = described["kind"]
    if kind == "tensor":
        return np.ascontiguousarray(arrays[described["key"]])
    if kind in ("list", "tuple"):
        items = [value(each, arrays) for each in described["items"]]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {value(key, arrays): value(each, arrays) for key, each in described["items"]}
    return None if kind == "none" else float(described["value"]) if kind == "float" else described["value"]


if __name__ == "__main__":
    sys.exit(main())
