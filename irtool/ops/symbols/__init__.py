"""Kernels run on arrays without elements: which NumPy calls an operator makes, with which dtypes, shapes and strides.

A `Traced` has a dtype, a shape and strides, passes for an array, and records every NumPy function and operator that is called on it.
A kernel cannot be traced (`Untraceable`) if it reads elements (`if x.any()`), writes into an operand, or calls a function that is not in
the tables here; its nodes are then called as the interpreter calls them. So the recorded calls depend on dtypes, shapes and constants
alone, and running them again computes the kernel's results, bit for bit.

    array_layout     dtype, shape and strides of an array that does not exist yet
    elementwise      kernels on symbols: pointwise operators as short programs of array functions
    array_symbol     the array without elements
    recorder         the calls of one kernel, on stand-ins for arrays
    ufuncs           elementwise functions and products of matrices
    array_functions  NumPy's other functions: choices, reductions, joining, views
    probing          functions that NumPy runs on zeros, to learn the facts of their results
    recorded_writes  writes into arrays that the kernel has made itself, and into targets of in-place operators
    overload_facts   whether an overload is pointwise, and the dtype of its result
    recorded_calls   running a kernel on such arrays
"""
