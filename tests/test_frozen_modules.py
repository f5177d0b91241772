"""Frozen modules and rewritten ones compute what the module computes, in irtool and in torch; what methods write stays an attribute."""
from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_archives import FOLDER, NAMES
from test_saving import results, same, saved

import irtool
from irtool.cli.main import main

PLAIN = [name for name in NAMES if name != "hooked"]


def evaluated(name: str) -> Any:
    return irtool.load(FOLDER / f"{name}.pt").eval()


@pytest.mark.parametrize("name", PLAIN)
def test_a_frozen_module_computes_the_same(name: str) -> None:
    frozen = evaluated(name).freeze()
    assert frozen.methods() == ["forward"]
    same(results(evaluated(name), name), results(frozen, name))
    data = saved(frozen)
    assert saved(irtool.load(data)) == data


def test_what_is_frozen_is_copied_and_what_is_written_stays() -> None:
    module = irtool.load(FOLDER / "state.pt").eval()
    frozen = module.freeze()
    assert list(frozen.state_dict()) or [name for name in dir(frozen) if not name.startswith("_")]
    before = results(frozen, "state")
    for array in module.state_dict().values():
        array[...] = 7
    module = irtool.load(FOLDER / "state.pt").eval()
    same(before, results(module.freeze(), "state"))
    assert list(evaluated("net_train").freeze().named_parameters()) == []


def test_preserve_keeps_attributes_and_methods() -> None:
    module = evaluated("net_train")
    name = next(name for name, _ in module.named_parameters())
    kept = module.freeze(preserve=[name])
    assert [each for each, _ in kept.named_parameters()] == [name]
    same(results(module, "net_train"), results(kept, "net_train"))
    dict(kept.named_parameters())[name][...] = 0
    assert any(not np.array_equal(*pair) for pair in zip(results(module, "net_train"), results(kept, "net_train"), strict=True))


def test_freezing_is_refused_where_torch_refuses() -> None:
    module = irtool.load(FOLDER / "net_train.pt")
    with pytest.raises(irtool.RunError, match="call eval"):
        module.train().freeze()
    with pytest.raises(irtool.RunError, match="no attribute or method 'nothing'"):
        module.eval().freeze(["nothing"])
    with pytest.raises(irtool.UnsupportedError, match="hooks"):
        evaluated("hooked").freeze()
    with pytest.raises(irtool.RunError, match="expected a list of names"):
        module.freeze("forward")


@pytest.mark.parametrize("name", [name for name in PLAIN if name != "objects"])      # its methods take and give objects
@pytest.mark.parametrize("passes", ["", "freeze,fold-batch-norm,dce", "peephole,cse"])
def test_opt_rewrites_an_archive(name: str, passes: str, tmp_path: Path) -> None:
    source, target = tmp_path / "in.pt", tmp_path / "out.pt"
    irtool.save(evaluated(name), source)
    assert main(["opt", "-q", f"--passes={passes}", str(source), "-o", str(target)]) == 0
    expected, result = results(irtool.load(source), name), results(irtool.load(target), name)
    for one, other in zip(expected, result, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    if "freeze" not in passes:
        assert list(irtool.load(target).state_dict()) or not list(irtool.load(source).state_dict())


def test_a_module_that_trains_is_frozen_as_eval_leaves_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = irtool.load(FOLDER / "net_train.pt").train()
    irtool.save(module, tmp_path / "in.pt")
    assert main(["opt", "-q", "--passes=freeze", str(tmp_path / "in.pt"), "-o", str(tmp_path / "out.pt")]) == 1
    assert "freeze{eval}" in capsys.readouterr().err
    assert main(["opt", "-q", "--passes=freeze{eval}", str(tmp_path / "in.pt"), "-o", str(tmp_path / "out.pt")]) == 0
    same(results(module.eval(), "net_train"), results(irtool.load(tmp_path / "out.pt"), "net_train"))


def test_a_text_becomes_an_archive(tmp_path: Path) -> None:
    (tmp_path / "in.ir").write_text("graph(%x : Tensor):\n  %y : Tensor = aten::tanh(%x)\n  return (%y)\n")
    assert main(["opt", "-q", "--passes=differentiate", str(tmp_path / "in.ir"), "-o", str(tmp_path / "out.pt")]) == 0
    assert irtool.load(tmp_path / "out.pt").methods() == ["forward", "backward"]


def test_a_pass_that_changes_what_a_method_takes_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.pt"
    assert main(["opt", "-q", "--passes=differentiate", str(FOLDER / "net_traced.pt"), "-o", str(target)]) == 1
    assert "with `freeze` as the first pass" in capsys.readouterr().err
    assert not target.exists()


@pytest.mark.oracle
@pytest.mark.parametrize("name", PLAIN)
def test_torch_loads_frozen_modules(name: str) -> None:
    torch = pytest.importorskip("torch")
    from test_archives import arguments, leaves

    frozen = torch.jit.load(io.BytesIO(saved(evaluated(name).freeze())))
    module = torch.jit.load(FOLDER / f"{name}.pt").eval()
    with np.load(FOLDER / f"{name}.npz") as arrays, torch.no_grad():
        for call in range(2):
            both = [each(*[torch.tensor(value) if isinstance(value, np.ndarray) else value for value in arguments(arrays, call)])
                    for each in (module, frozen)]
            for one, other in zip(*map(leaves, both), strict=True):
                np.testing.assert_allclose(np.array(one), np.array(other), rtol=1e-5, atol=1e-6)


@pytest.mark.oracle
@pytest.mark.parametrize("which", ["a tensor twice", "a view", "a tensor in a list", "in two submodules"])
def test_attributes_that_are_one_tensor_stay_one(which: str) -> None:
    """One tensor under two names was frozen under the name that nobody writes into, and so kept its first value."""
    torch = pytest.importorskip("torch")

    class Inner(torch.nn.Module):       # type: ignore[misc, name-defined]
        def __init__(self, held: Any) -> None:
            super().__init__()
            self.held = held

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.held

    class Outer(torch.nn.Module):       # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a = torch.zeros(3)
            self.items = [self.a if which == "a tensor in a list" else torch.ones(3)]
            self.b = self.a if which == "a tensor twice" else self.a[:] if which == "a view" else torch.ones(3)
            self.first = Inner(self.a)
            self.second = Inner(self.a if which == "in two submodules" else torch.ones(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.a.add_(x)
            return self.b * self.items[0] + self.first(x) + self.second(x)

    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Outer().eval()), file)
    theirs, ours = torch.jit.load(io.BytesIO(file.getvalue())), irtool.load(file.getvalue()).freeze()
    x = np.float32([1, 2, 3])
    for _ in range(3):
        np.testing.assert_allclose(ours(x), theirs(torch.tensor(x)).numpy(), rtol=1e-6)
