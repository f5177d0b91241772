"""Record with torch which results share memory with operands: python -m tests.record_shared_memory (needs torch 2.13)."""
from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.shared_memory import calls, copied, overloads, shared_pairs


def to_torch(value: Any) -> Any:
    """Arrays as tensors on their memory."""
    if isinstance(value, list | tuple):
        return [to_torch(each) for each in value]
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def function_of(name: str) -> Any:
    """torch's function for an overload; None for those that only its JIT has."""
    kind, _, variant = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, kind, None), variant or "default", None)


def storage(tensor: Any) -> Any:
    """What identifies the memory of a tensor; None if it has no elements, or is no array."""
    return tensor.untyped_storage().data_ptr() if tensor.layout == torch.strided and tensor.numel() else None


def shared_in_torch(function: Any, args: list[Any]) -> list[str]:
    """What shares memory after a call. Raises RuntimeError and others where torch refuses it."""
    torch.manual_seed(0)
    tensors = to_torch(copied(args))
    names = [argument.name for argument in function._schema.arguments]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = function(**dict(zip(names, tensors, strict=True)))
    return shared_pairs(results, tensors, torch.Tensor, storage)


def recorded(name: str) -> dict[str, list[str]]:
    """Call -> what shares memory, of those that torch takes; empty if nothing ever does."""
    function, found = function_of(name), {}
    for call, args in calls(name) if function is not None else ():
        try:
            found[call] = shared_in_torch(function, args)
        except Exception:       # torch refuses it, in its own classes of errors and Python's
            continue
    return found if any(found.values()) else {}


def in_a_process(name: str) -> dict[str, list[str]]:
    """As `recorded`, in a process of its own: torch does not check the operands of all operators, and may crash."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        with os.fdopen(writer, "w") as stream:
            json.dump(recorded(name), stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    if not text:
        print(f"{name}: torch crashed", file=sys.stderr)
    return json.loads(text or "{}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    rows = [f"{json.dumps(name)}: {json.dumps(found)}" for name in overloads() if (found := in_a_process(name))]
    (Path(__file__).parent / "data" / "shared_memory.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
