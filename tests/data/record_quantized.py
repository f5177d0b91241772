"""Writes quantized.npz with torch (2.13.0): what the calls of tests/test_quantized.py give. `PYTHONPATH=.:tests python tests/data/record_quantized.py`."""

import numpy as np
import torch
from test_quantized import CALLS, FILE, given

torch.backends.quantized.engine = "fbgemm"
random = np.random.default_rng(0)
arrays = {"a": random.normal(0, 2, (2, 4, 6, 6)).astype(np.float32), "b": random.normal(0, 2, (2, 4, 6, 6)).astype(np.float32),
          "w": random.uniform(0.5, 2, 4).astype(np.float32)}
tensors = {"a": torch.quantize_per_tensor(torch.tensor(arrays["a"]), 0.04, 50, torch.quint8),
           "b": torch.quantize_per_tensor(torch.tensor(arrays["b"]), 0.06, 20, torch.quint8), "w": torch.tensor(arrays["w"])}
for name, arguments in CALLS.items():
    space, _, operator = name.partition("::")
    result = getattr(getattr(torch.ops, space), operator)(*[given(each, tensors) for each in arguments])
    arrays[f"{name}.ints"] = result.int_repr().numpy()
    arrays[f"{name}.how"] = np.array([result.q_scale(), result.q_zero_point()])
np.savez_compressed(FILE, **arrays)
