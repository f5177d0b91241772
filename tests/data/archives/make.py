"""Writes the archives of this folder and examples/model.pt with torch (2.13.0), each with what torch gives for some calls: `python tests/data/archives/make.py`.

`NAME.npz` holds, of call N, the arguments `N.0`, `N.1`, ... and the tensors of the result `N.out.0`, ..., in order.
"""

import enum
import pickletools
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

HERE = Path(__file__).parent


class Net(nn.Module):
    """Layers of torch.nn, batch norm that trains."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.0))
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).mean((2, 3)))


class Bars(nn.Module):
    """What `examples/train.py` trains: bars across, bars down, and none."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(72, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).flatten(1))


class Colour(enum.Enum):
    """Members of a class."""

    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    """Fields of a tuple."""

    first: torch.Tensor
    second: int


class State(nn.Module):
    """Attributes that calls change, in branches and loops; numbers, lists and dicts among them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.steps = 0
        self.seen: list[int] = [0]
        self.words: dict[str, float] = {"a": 0.5}
        self.colour = Colour.BLUE

    def forward(self, x: torch.Tensor, k: int = 2) -> Pair:
        for i in range(k):
            if i % 2 == 0:
                self.total.add_(x)
            else:
                self.total = self.total * 2
            self.steps += 1
        self.seen.append(k)
        scale = self.words["a"]
        if self.colour == Colour.BLUE:
            scale = scale + 1.0
        return Pair(self.total * scale, self.steps + len(self.seen))

    @torch.jit.export
    def reset(self) -> torch.Tensor:
        self.steps = 0
        self.total.zero_()
        return self.total


@torch.jit.script
class Counter:
    """An object that calls change."""

    def __init__(self, n: int) -> None:
        self.n = n

    def up(self, k: int) -> int:
        self.n += k
        return self.n


class Aliases(nn.Module):
    """Attributes, lists, dicts and tuples that hold the same memory, and methods that write into it or hold other tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("base", torch.ones(3))
        self.other = torch.zeros(3)
        self.cache: list[torch.Tensor] = [self.base, torch.ones(3)]
        self.table: dict[str, torch.Tensor] = {"a": self.base}
        self.pair: tuple[torch.Tensor, torch.Tensor] = (self.base, self.other)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.base.add_(x)
        return self.base

    @torch.jit.export
    def write_cache(self, x: torch.Tensor) -> list[torch.Tensor]:
        self.cache[-1].add_(x)
        return self.cache

    @torch.jit.export
    def rebind(self, x: torch.Tensor) -> torch.Tensor:
        self.cache[0] = x * 1
        self.table["a"] = self.cache[-1]
        return self.base

    @torch.jit.export
    def push(self, x: torch.Tensor) -> int:
        self.cache.append(self.base)
        if len(self.cache) > 4:
            self.cache = self.cache[2:]
        return len(self.cache)

    @torch.jit.export
    def alias(self, x: torch.Tensor) -> torch.Tensor:
        self.other = self.base
        self.base.mul_(0.5)
        self.pair = (self.cache[0], self.other)
        return self.other

    @torch.jit.export
    def view(self, x: torch.Tensor) -> torch.Tensor:
        self.other = self.cache[0][:2]
        return self.pair[0] + 1

    @torch.jit.export
    def write_other(self, x: torch.Tensor) -> torch.Tensor:
        self.other.mul_(-1)
        self.pair[1].add_(1)
        return self.table["a"]

    @torch.jit.export
    def store(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.table["b"] = x * 1
        self.table["a"].sub_(x)
        return self.pair

    @torch.jit.export
    def fresh(self, x: torch.Tensor) -> torch.Tensor:
        self.base = self.base + x
        self.other = x * 1
        self.other.mul_(2)
        return self.other


class Objects(nn.Module):
    """Objects, members of enumerations and named tuples as attributes, arguments and results."""

    def __init__(self) -> None:
        super().__init__()
        self.counter = Counter(3)
        self.colour = Colour.RED
        self.scale: float = 1.0
        self.size: int = 1
        self.names: list[str] = ["a"]
        self.weight = nn.Parameter(torch.ones(2))
        self.line = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, k: int) -> tuple[torch.Tensor, int]:
        return x * self.weight * self.scale, self.counter.up(k)

    @torch.jit.export
    def mixed(self, c: Colour, p: Pair) -> tuple[Colour, list[Pair]]:
        if c == Colour.BLUE:
            return self.colour, [p]
        return Colour.BLUE, [Pair(p.first + 1, p.second), p]

    @torch.jit.export
    def the_counter(self) -> Counter:
        return self.counter

    @torch.jit.export
    def count(self, counter: Counter, k: int) -> int:
        return counter.up(k)


@torch.jit.interface
class OneInput(nn.Module):
    """What several modules have."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Twice(nn.Module):
    """One of them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Negative(nn.Module):
    """Another."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -x


class Choice(nn.Module):
    """Modules by number, futures, and an attribute named by a word of Python."""

    chosen: OneInput

    def __init__(self) -> None:
        super().__init__()
        self.all = nn.ModuleList([Twice(), Negative()])
        self.chosen = Twice()
        setattr(self, "lambda", nn.Linear(2, 2))

    def part(self, x: torch.Tensor, k: int) -> torch.Tensor:
        return self.chosen.forward(x) * k

    def forward(self, x: torch.Tensor, i: int) -> torch.Tensor:
        module: OneInput = self.all[i]
        future = torch.jit.fork(self.part, x, 3)
        y = module.forward(x) + torch.jit.wait(future)
        return getattr(self, "lambda")(y)    # noqa: B009


class Shared(nn.Module):
    """Weights that are one, a view of another, and of other dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3, bias=False)
        self.b = nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight
        whole = torch.arange(12.0)
        self.register_buffer("whole", whole)
        self.register_buffer("part", whole[2:8].view(2, 3).t())
        self.register_buffer("narrow", torch.tensor([0.5, 2.0]).to(torch.float16))
        self.register_buffer("mask", torch.tensor([True, False, True]))
        self.register_buffer("phase", torch.tensor([1 + 2j, 3j]))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        self.whole.add_(1)
        y = self.b(self.a(x)) + self.part.sum(1) * self.mask
        return y, self.narrow * 2, self.phase.abs()


class Hooked(nn.Module):
    """Hooks, weights in a list, attributes that are assigned what comes in and what goes out."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 4), nn.Linear(4, 2)
        self.register_buffer("total", torch.zeros(2))
        self.last = torch.zeros(2)
        self.steps = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() != 3:
            raise ValueError("expected 3 dimensions, not " + str(x.dim()))
        y, _ = self.lstm(x)
        self.last = x
        self.steps += 1
        self.total = self.total + self.head(y).sum((0, 1))
        return self.total


def doubled(self: Hooked, input: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
    """Runs before `forward`."""
    return (input[0] * 2,)


def shifted(self: Hooked, input: tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
    """Runs after `forward`."""
    return output + 100


class Steps(nn.Module):
    """Integers from end to end: convolution, pooling, a sum, joined halves, a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = torch.ao.quantization.QuantStub(), torch.ao.quantization.DeQuantStub()
        self.conv, self.relu = nn.Conv2d(2, 4, 3, padding=1, groups=2), nn.ReLU()
        self.line = nn.Conv1d(4, 4, 2)
        self.pool, self.mean, self.head = nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2), nn.Linear(16, 3)
        self.sum = torch.ao.nn.quantized.FloatFunctional()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.relu(self.conv(self.quant(x)))
        x = self.sum.add(self.pool(x), self.mean(x)[:, :, 0:1, 0:1].repeat([1, 1, 3, 3]))
        rows = self.line(x.flatten(2))
        return self.dequant(self.head(self.mean(x).flatten(1))), self.dequant(rows)


class Recurrent(nn.Module):
    """Floats in and out, layers on integers between them."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True), nn.GRU(8, 5)
        self.cell, self.head = nn.GRUCell(5, 4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, (h, _) = self.lstm(x)
        z, last = self.gru(y)
        return self.head(self.cell(last[0])), h


def statically(module: nn.Module, batches: list[torch.Tensor]) -> nn.Module:
    """The module with observers, run on batches, and then converted."""
    module.eval().qconfig = torch.ao.quantization.get_default_qconfig("fbgemm")
    torch.ao.quantization.fuse_modules(module, [["conv", "relu"]], inplace=True)
    torch.ao.quantization.prepare(module, inplace=True)
    for each in batches:
        module(each)
    return torch.ao.quantization.convert(module)


def data_of_opcodes(data: bytes) -> list[bytes]:
    """The opcodes of a pickle, each with what belongs to it."""
    places = [place for _, _, place in pickletools.genops(data)]
    return [data[start:end] for start, end in zip(places, [*places[1:], len(data)], strict=True)]


def shortened(opcode: bytes) -> bytes:
    """The opcode of a string, with files in it by their names alone; others as they are."""
    if opcode[:1] != b"X":
        return opcode
    text = re.sub(rb"(?:/[\w.-]+)+/(?:site-packages/|(?=[\w.-]+\.py))", b"", opcode[5:])
    return b"X" + len(text).to_bytes(4, "little") + text


def without_folders(path: Path) -> None:
    """Write an archive anew, with source files by their names alone: where they were when it was written is nobody's business."""
    reader = torch._C.PyTorchFileReader(str(path))
    records = [(name, reader.get_record(name)) for name in reader.get_all_records()]
    writer = torch._C.PyTorchFileWriter(str(path))
    for name, data in records:
        if name.endswith(".debug_pkl"):
            data = b"".join(map(shortened, data_of_opcodes(data)))
        if name not in ("version", ".data/version", "byteorder", ".data/serialization_id"):
            writer.write_record(name, data, len(data))
    writer.write_end_of_file()


def tensors(value: Any) -> list[Any]:
    """The tensors and numbers of a result, in order."""
    if isinstance(value, list | tuple):
        return [each for item in value for each in tensors(item)]
    return [value]


def write(name: str, module: nn.Module, calls: list[tuple[Any, ...]], traced: bool = False) -> None:
    """One archive and its results."""
    script = torch.jit.trace(module, calls[0]) if traced else torch.jit.script(module)
    torch.jit.save(script, str(HERE / f"{name}.pt"))
    without_folders(HERE / f"{name}.pt")
    script = torch.jit.load(str(HERE / f"{name}.pt"))
    arrays: dict[str, Any] = {}
    for number, call in enumerate(calls):
        for index, each in enumerate(call):
            arrays[f"{number}.{index}"] = each.numpy() if isinstance(each, torch.Tensor) else np.array(each)
        for index, each in enumerate(tensors(script(*call))):
            arrays[f"{number}.out.{index}"] = np.array(each.detach() if isinstance(each, torch.Tensor) else each)      # a copy
    np.savez(HERE / f"{name}.npz", **arrays)


def main() -> None:
    """Write them all."""
    torch.manual_seed(0)
    example = HERE.parents[2] / "examples" / "model.pt"
    torch.jit.save(torch.jit.script(Bars()).eval(), str(example))
    without_folders(example)
    image = torch.randn(2, 2, 5, 5)
    write("net_train", Net().train(), [(image,), (image * 2,)])
    write("net_traced", Net().eval(), [(image,), (torch.randn(1, 2, 7, 4),)], traced=True)
    write("state", State(), [(torch.ones(2), 3), (torch.tensor([1.0, 2.0]), 2)])
    write("choice", Choice(), [(torch.randn(3, 2), 0), (torch.randn(3, 2), 1)])
    write("aliases", Aliases(), [(torch.ones(3),), (torch.ones(3),)])
    write("objects", Objects(), [(torch.ones(2), 2), (torch.ones(2), 3)])
    hooked = Hooked()
    hooked.register_forward_pre_hook(doubled)
    hooked.register_forward_hook(shifted)
    write("hooked", hooked, [(torch.randn(5, 2, 3),), (torch.randn(2, 1, 3),)])
    batch = torch.randn(2, 2, 6, 6)
    write("quantized_static", statically(Steps(), [batch]), [(batch,), (torch.randn(1, 2, 6, 6),)])
    layers = {nn.LSTM, nn.GRU, nn.GRUCell, nn.Linear}
    dynamic = torch.ao.quantization.quantize_dynamic(Recurrent().eval(), layers)
    write("quantized_dynamic", dynamic, [(torch.randn(2, 3, 3),), (torch.randn(1, 4, 3),)])
    write("shared", Shared(), [(torch.randn(3),), (torch.randn(3),)])


if __name__ == "__main__":
    main()
