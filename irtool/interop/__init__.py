"""Other formats than IR: arrays in files and on the command line.

    npz, npy, safetensors   formats, none of which executes or believes what a file says
    array_files             arrays by name in either of them
    whole_file              files that are written completely or not at all
    literal                 values on a command line: `2x3xf32=0`
    binding, cotangents     the inputs of a graph to which arrays belong; the outputs to which gradients belong
    constant_archives       tensor constants that a text cannot contain, in a file beside it; beside: the line that names that file
    spelling                tensor constants in full precision in the text
"""
