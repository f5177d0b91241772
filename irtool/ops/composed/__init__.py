"""Functions made of operators, as TorchScript: one text each, which Python runs on tensors and `irtool.torchscript` compiles.

    functional, functional_nets     torch.nn.functional, the second with attention, pools, resizing
    several_forms                   functions of torch of which an argument or its type chooses a form, and more of torch.nn.functional
    initializers                    torch.nn.init
    ntuples                         torch.nn.modules.utils
    reductions                      the numbers of the words "none", "mean" and "sum"
    autodiff_functions              functions that torch's gradient graphs call by name
    script_types                    types and functions that TorchScript knows and Python does not
"""
