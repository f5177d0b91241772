"""Models that users of torch write run by `irtool run model.pt inputs.npz --expect out.npz`, as torch runs them."""
from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main
from irtool.interop.npz import Archive, encode


def written(path: Path, values: dict[str, Any]) -> str:
    """The name of an npz of values by key, tensors of torch among them."""
    archive = Archive()
    for key, value in values.items():
        archive.put(key, as_arrays(value))
    path.write_bytes(encode(archive))
    return str(path)


def as_arrays(value: Any) -> Any:
    """A value with arrays for tensors."""
    if isinstance(value, list | tuple):
        return [as_arrays(each) for each in value]
    if isinstance(value, dict):
        return {key: as_arrays(each) for key, each in value.items()}
    return value.detach().numpy() if hasattr(value, "detach") else value


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_models_of_users(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("archive_models", Path(__file__).parent / "data" / "archive_models.py")
    assert spec is not None and spec.loader is not None
    models = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = models     # torch looks there for the sources
    spec.loader.exec_module(models)
    failed = []
    for name, module, method, arguments in models.cases():
        path = str(tmp_path / f"{name}.pt")
        torch.jit.save(module, path)
        names = [each.name for each in getattr(module, method).schema.arguments][1:]
        inputs = written(tmp_path / "inputs.npz", dict(zip(names, arguments, strict=False)))
        expected = written(tmp_path / "out.npz", {"output0": getattr(torch.jit.load(path), method)(*arguments)})
        out, err = io.StringIO(), io.StringIO()
        file = path if method == "forward" else f"{path}:{method}"
        if main(["run", file, inputs, "--expect", expected], io.BytesIO(), out, err):
            failed.append(f"{name}: {(out.getvalue() + err.getvalue())[-300:]}")
    assert not failed, "\n".join(failed)
