"""What `irtool.save` writes, irtool and torch load: with the same results, the state of today, and shared memory shared."""
from __future__ import annotations

import io
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_archives import FOLDER, NAMES, arguments, leaves

import irtool


def saved(module: Any) -> bytes:
    stream = io.BytesIO()
    irtool.save(module, stream)
    return stream.getvalue()


def results(module: Any, name: str) -> list[Any]:
    """Leaves of the results of the calls of a case."""
    with np.load(FOLDER / f"{name}.npz") as arrays:
        return [np.asarray(each) for call in range(2) for each in leaves(module(*arguments(arrays, call)))]


def same(first: list[Any], second: list[Any]) -> None:
    for one, other in zip(first, second, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_module_computes_the_same(name: str) -> None:
    data = saved(irtool.load(FOLDER / f"{name}.pt"))
    same(results(irtool.load(FOLDER / f"{name}.pt"), name), results(irtool.load(data), name))
    assert saved(irtool.load(data)) == data


@pytest.mark.parametrize("name", NAMES)
def test_code_is_copied_and_state_is_that_of_today(name: str) -> None:
    module = irtool.load(FOLDER / f"{name}.pt")
    results(module, name)
    copy = irtool.load(saved(module))
    assert copy.code() == module.code()
    same(results(module, name), results(copy, name))


def test_a_module_may_be_saved_over_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    shutil.copy(FOLDER / "state.pt", path)
    module = irtool.load(path)
    before = results(module, "state")
    irtool.save(module, path)
    assert list(tmp_path.iterdir()) == [path]
    same(results(module, "state"), results(irtool.load(path), "state"))
    assert before


def test_views_of_one_memory_stay_so() -> None:
    module = irtool.load(saved(irtool.load(FOLDER / "shared.pt")))
    arrays = list(module.state_dict().values())
    pairs = [(i, j) for i in range(len(arrays)) for j in range(i) if np.shares_memory(arrays[i], arrays[j])]
    original = list(irtool.load(FOLDER / "shared.pt").state_dict().values())
    assert pairs
    assert pairs == [(i, j) for i in range(len(original)) for j in range(i) if np.shares_memory(original[i], original[j])]


def test_tensors_lie_where_they_can_be_mapped() -> None:
    data = saved(irtool.load(FOLDER / "net_train.pt"))
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        for info in file.infolist():
            if "/data/" in info.filename:
                name, extra = (int.from_bytes(data[info.header_offset + at:info.header_offset + at + 2], "little") for at in (26, 28))
                assert (info.header_offset + 30 + name + extra) % 64 == 0


def test_what_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    module = irtool.load(FOLDER / "net_train.pt")
    name, array = next(iter(module.named_parameters()))
    owner = module
    for part in name.split(".")[:-1]:
        owner = getattr(owner, part)
    owner._instance.attributes[name.rpartition(".")[2]] = array.astype(np.longdouble)
    with pytest.raises(irtool.Error, match="cannot be saved"):
        irtool.save(module, tmp_path / "no.pt")
    assert not list(tmp_path.iterdir())
    with pytest.raises(irtool.UnsupportedError, match="asks for text"):
        irtool.save(module, tmp_path / "no.ir")
    with pytest.raises(irtool.Error, match="expected a path"):
        irtool.save(module, 3)      # type: ignore[arg-type]


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_torch_loads_what_was_saved(name: str) -> None:
    torch = pytest.importorskip("torch")
    data = saved(irtool.load(FOLDER / f"{name}.pt"))
    original, copy = (torch.jit.load(each) for each in (FOLDER / f"{name}.pt", io.BytesIO(data)))
    with np.load(FOLDER / f"{name}.npz") as arrays, torch.no_grad():
        for call in range(2):
            both = [module(*[torch.tensor(each) if isinstance(each, np.ndarray) else each for each in arguments(arrays, call)])
                    for module in (original, copy)]
            same(*[[np.array(each) for each in leaves(result)] for result in both])
    assert [name for name, each in copy.named_parameters() if each.requires_grad] == [
        name for name, each in original.named_parameters() if each.requires_grad]


GRAPHS = {
    "control": '''
def control(x, n: int = 3):
    y = x * torch.tensor([1.0, 2.0])
    for i in range(n):
        if bool(y.sum() > 3):
            y = torch.div(y, 2)
        else:
            y = y + torch.tensor([1.0, 2.0])
    with torch.no_grad():
        z = y * 2
    return y, z, [x, y]
''',
    "functions": '''
def helper(x, k: float):
    return torch.nn.functional.gelu(x) * k

def functions(x):
    waiting = torch.jit.fork(helper, x, 2.0)
    return helper(x, 3.0) + torch.jit.wait(waiting) + torch.full([2], 1.5)
''',
    "containers": '''
def containers(x):
    table = {"a": x, "b": x.t()}
    pairs = [(x, 1), (x + 1, 2)]
    table["c"] = pairs[1][0]
    return table, pairs, torch.empty([0], dtype=torch.int64)
'''}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_becomes_a_module(name: str) -> None:
    graph = irtool.from_script(GRAPHS[name], name).graph()
    data = saved(graph)
    assert saved(irtool.load(data)) == data
    x = np.array([1.0, 2.0], np.float32)
    flat = [np.asarray(each) for each in leaves(list(irtool.run(graph, [x])))] if name != "containers" else []
    result = irtool.load(data)(x)
    if name == "containers":
        table, pairs, empty = result
        assert list(table) == ["a", "b", "c"] and pairs[1][1] == 2 and empty.dtype == np.int64
    else:
        same(flat, [np.asarray(each) for each in leaves(result)])


def test_a_gradient_pair_becomes_two_methods() -> None:
    pair = irtool.PassManager("differentiate").run(irtool.from_script("def f(x, y):\n    return torch.tanh(x) * y\n"))
    module = irtool.load(saved(pair))
    assert module.methods() == ["forward", "backward"]
    x, y = np.array([1.0, 2.0], np.float32), np.array([3.0, 4.0], np.float32)
    results = module(x, y)
    np.testing.assert_array_equal(results[0], np.tanh(x) * y)


@pytest.mark.oracle
@pytest.mark.parametrize("name", GRAPHS)
def test_torch_runs_a_saved_graph(name: str) -> None:
    torch = pytest.importorskip("torch")
    data = saved(irtool.from_script(GRAPHS[name], name).graph())
    x = np.array([1.0, 2.0], np.float32)
    expected, result = irtool.load(data)(x), torch.jit.load(io.BytesIO(data))(torch.from_numpy(x))
    if name == "containers":
        expected, result = [each[0]["c"] for each in (expected, result)]
    for one, other in zip(leaves(expected), leaves(result), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_what_has_no_source_is_refused(tmp_path: Path) -> None:
    module = irtool.load(FOLDER / "state.pt")
    with pytest.raises(irtool.UnsupportedError):
        irtool.save(module.graph(), tmp_path / "no.pt")
    assert not list(tmp_path.iterdir())
