"""`irtool.torch`: torch's functions by torch's names, over irtool's tensors and layers.

    namespace           operators; torch_names: what else `torch` has: dtypes, random numbers, transformations
    torch_functional    `torch.nn.functional`, as far as its functions are no operators; low_rank: others
    higher_order        `cond`, `while_loop`, `scan`, `map`; grad_mode: `no_grad`
    signatures.pyi      signatures for editors and mypy, written by tools/stubs.py
"""
