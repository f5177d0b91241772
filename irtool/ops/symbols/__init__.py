"""Kernels run on arrays without elements: which NumPy calls an operator makes, with which dtypes, shapes and strides.

A `Traced` has a dtype, a shape and strides, says it is an array, and answers every NumPy function and operator by noting the call.
A kernel that wants to see elements (`if x.any()`), that writes into what it was given, or that calls what is not in the tables here,
cannot be traced: `Untraceable`, and the node is called as the interpreter calls it. So what is noted depends on dtypes, shapes and
constants alone, and running it again gives, bit for bit, what the kernel gives.

    array_layout     dtype, shape and strides of an array before there is one
    elementwise      kernels on symbols: pointwise operators as short programs of array functions
    array_symbol     the array without elements
    recorder         the calls of one kernel, and what is known of each array among them
    ufuncs           elementwise functions and products of matrices
    array_functions  NumPy's other functions: choices, reductions, joining, views
    probing          functions of which NumPy itself is asked, on zeros, what comes out
    recorded_writes  writes into arrays that the kernel has made itself
    overload_facts   whether an overload is pointwise, and the dtype of its result
    recorded_calls   running a kernel on such arrays
"""
