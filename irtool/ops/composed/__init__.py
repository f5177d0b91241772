"""Functions made of operators, as TorchScript: one text each, which Python runs on tensors and `irtool.torchscript` compiles.

    functional, functional_nets   torch.nn.functional
    several_forms                 functions that have several forms; reductions: what words for reductions mean
    autodiff_functions            functions that torch's gradient graphs call by name
    script_types                  names of types that TorchScript knows and Python does not
"""
