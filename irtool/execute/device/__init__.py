"""Arrays on a GPU, through CuPy.

    device_executor  an executor for CuPy arrays
    device_plan      a plan on CuPy arrays: fused groups run as kernels
    cupy_kernels     a group of pointwise operators as one kernel
"""
