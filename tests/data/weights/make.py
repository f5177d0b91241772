"""Makes the files of weights beside it: `python tests/data/weights/make.py` in an environment with torch. `checkpoint.npz` says what is in them."""
from __future__ import annotations

import argparse
import collections
from pathlib import Path

import numpy as np
import torch

Net = type("Net", (torch.nn.Linear,), {"__module__": "__main__"})
"""A class without source: torch stores the source of others."""
HERE = Path(__file__).parent


def main() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    shared = torch.arange(6.0)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    checkpoint = {
        "epoch": 3, "net": net.state_dict(), "optimizer": optimizer.state_dict(), "args": argparse.Namespace(scale=torch.ones(2), name="x"),
        "more": collections.defaultdict(int, half=torch.tensor([1.5, -2]).half(), brain=torch.tensor([1.5, -2]).bfloat16()),
        "views": (shared[:3], [shared.reshape(2, 3).t()[1:]]), "unsigned": torch.tensor([1, 65535]).to(torch.uint16),
        "tiny": torch.tensor([1.5, -2]).to(torch.float8_e4m3fn), "conjugate": torch.tensor([1 + 2j]).conj(), "scalar": np.float64(0.5),
        "numpy": np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)), "objects": np.array([None]), (1, 2): "a key that is a pair",
        "parameter": torch.nn.Parameter(torch.tensor(2.0)), "flags": torch.tensor([True, False]),
    }
    torch.save(checkpoint, HERE / "checkpoint.pt")
    torch.save(checkpoint, HERE / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save({"net": net}, HERE / "module.pt")
    torch.save(Net(2, 3), HERE / "legacy_module.pt", _use_new_zipfile_serialization=False)
    arrays = {f"net.{name}": tensor.numpy() for name, tensor in net.state_dict().items()}
    arrays |= {f"optimizer.state.{number}.{name}": tensor.numpy() for number, state in optimizer.state_dict()["state"].items()
               for name, tensor in state.items()}
    arrays |= {
        "args.scale": np.ones(2, np.float32), "more.half": np.array([1.5, -2], np.float16), "more.brain": np.array([1.5, -2], np.float32),
        "views.0": shared[:3].numpy(), "views.1.0": shared.reshape(2, 3).t()[1:].numpy(), "unsigned": np.array([1, 65535], np.uint16),
        "tiny": np.array([1.5, -2], np.float32), "conjugate": np.array([1 - 2j], np.complex64), "scalar": np.array(0.5),
        "numpy": np.arange(6, dtype=np.int16).reshape(2, 3), "parameter": np.array(2, np.float32), "flags": np.array([True, False]),
    }
    np.savez(HERE / "checkpoint.npz", **arrays)


if __name__ == "__main__":
    main()
