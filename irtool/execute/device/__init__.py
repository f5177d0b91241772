"""Arrays on a GPU, through CuPy.

    executor    an executor whose arrays are CuPy's
    plan        a graph run on them, with groups as kernels
    kernels     a group of pointwise operators as one kernel
"""
