"""Arrays on a GPU, through CuPy.

    device_executor  an executor whose arrays are CuPy's
    device_plan      a graph run on them, with groups as kernels
    cupy_kernels     a group of pointwise operators as one kernel
"""
