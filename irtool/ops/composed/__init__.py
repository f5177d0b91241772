"""Functions made of operators, as TorchScript: one text each, which Python runs on tensors and `irtool.torchscript` compiles.

`script_types` has names of types that TorchScript knows and Python does not.
"""
