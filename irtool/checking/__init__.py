"""Tools to find out whether a pass is right, which pass is wrong, and where two graphs differ.

    computed        the results of a graph, gradients and writes included, as a list that can be compared
    validation      a pipeline whose results are compared after each pass
    changes         the fewest changes of a pass that are wrong
    reducing        a smaller graph that still shows a fault
    graph_diff      two graphs modulo the names of their values
    divergence      two graphs run side by side, up to the first value that differs
"""
