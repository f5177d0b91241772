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

from tests.shared_memory import arrays_in, calls, copied, overloads, shared_pairs


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


def gradients_in_torch(function: Any, args: list[Any], place: int) -> tuple[list[Any], list[int], list[Any]]:
    """A call on copies of the operands, then a write into one of the operands and results: cotangents for all of these, the operands that
    have gradients, and those. Raises RuntimeError where torch refuses."""
    leaves = [torch.from_numpy(array.copy(order="K")).requires_grad_(array.dtype.kind in "fc") for array in arrays_in(args)]
    copies = [leaf.clone() if leaf.dtype == torch.bool else leaf * 1 for leaf in leaves]
    rest = iter(copies)
    tensors = [next(rest) if isinstance(value, np.ndarray) else [next(rest) if isinstance(each, np.ndarray) else each for each in value]
               if isinstance(value, list) else value for value in args]
    torch.manual_seed(0)
    results = function(**{argument.name: value for argument, value in zip(function._schema.arguments, tensors, strict=True)})
    outputs = [*copies, *arrays_in(results, torch.Tensor)]
    target = outputs[place]
    outputs[place] = target.logical_not_() if target.dtype == torch.bool else target.mul_(3)
    generator = np.random.default_rng(0)
    cotangents = [generator.standard_normal(each.shape).astype(str(each.dtype).removeprefix("torch.")) for each in outputs]
    reached = [(each, torch.from_numpy(cotangent)) for each, cotangent in zip(outputs, cotangents, strict=True) if each.requires_grad]
    wrt = [at for at, leaf in enumerate(leaves) if leaf.requires_grad]
    found = torch.autograd.grad([each for each, _ in reached], [leaves[at] for at in wrt], [one for _, one in reached], allow_unused=True)
    seeds = [one if one.dtype.kind in "fc" else None for one in cotangents]
    return seeds, wrt, [None if each is None else each.resolve_conj().numpy() for each in found]


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
