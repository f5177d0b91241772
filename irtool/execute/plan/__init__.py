"""Compiled plans: a graph as one Python function over NumPy calls, made for the dtypes, shapes and strides of its inputs.

A graph is *lowered* to a program of calls; passes rewrite the program; each result gets a place in memory; the program runs from slots
(without source), or is written as Python source.

    predicted_dtypes  dtypes of tensors, from a program that is not run
    compiled          the plan of a graph: a variant per dtypes, shapes and strides of inputs; first runs, errors
    program           the parts of a program: variables, calls, visits, branches, loops
    lower             nodes as calls (kernels run on arrays without elements: `irtool.ops.symbols`)
    lowered_blocks    branches and loops
    opaque_calls      nodes that cannot be lowered and are called as the interpreter calls them
    convolution_epilogues  pointwise operators behind a convolution, part by part of its result
    convolutions      convolutions and their gradients as calls of loops in C
    loop_numbers      integers that differ per iteration, and their bounds
    filled_lists      lists that loops fill, whose items may be available without the list
    known_lists       lists that a block constructs and appends to, known item by item
    list_stacks       lists that loops fill as one array, with a row for each iteration
    plan_passes       which of the following rewrite a program, in which order, when and why
    program_listing   a program as text
    copies            copies that can be left out because original and copy never both leave the plan
    constant_results  results that are the same in every run, and unused results
    round_products    products in a loop that are computed for several iterations at once
    in_place_loops    loop-carried arrays updated in place; inputs that every iteration would broadcast
    batch_slices      equal calls on slices of one array, computed at once
    large_results     results that NumPy would allocate, written into buffers of the plan
    row_functions     elementwise functions of broadcast short rows, by a loop in C
    row_reductions    sums, means and extremes of short rows, by a loop in C
    costs             estimated time of an instruction
    timing            measured time of an instruction
    parallel          instructions that run at the same time, on several threads
    memory            a buffer for each result: lifetimes, results that overwrite dead operands
    placement         offsets of buffers in shared memory
    buffers           allocating that memory, and keeping it between runs
    slots             a program run without source
    python_source     a program as Python
"""
