"""What one node does, as NumPy calls: its kernel is run once on arrays without elements, and the calls it makes are written down.

A `Traced` has a dtype, a shape and strides, says it is an array, and answers every NumPy function and operator by noting the call.
A kernel that wants to see elements (`if x.any()`), that writes into what it was given, or that calls what is not in the tables here,
cannot be traced: `Untraceable`, and the node is called as the interpreter calls it. So what is noted depends on dtypes, shapes and
constants alone, and running it again gives, bit for bit, what the kernel gives.

    recorder    the calls of one kernel, and what is known of each array among them
    ufuncs      elementwise functions and products of matrices
    functions   NumPy's other functions: choices, reductions, joining, views
    probing     functions of which NumPy itself is asked, on zeros, what comes out
    writes      into what the kernel has made itself
    traced      the array without elements
    kernels     running a kernel on such arrays
"""
