"""Compiled plans: a graph as one Python function over NumPy calls, made for the dtypes, shapes and strides of its inputs.

A graph is *lowered* to a program of calls, the program is rewritten, what it makes is given its place in memory, and it is run from slots
or written as source.

    predicted_dtypes  dtypes of tensors, from a program that is not run
    compiled          the plan of a graph: a variant per kind of inputs, its first runs, its errors
    program           what a program is made of: variables, calls, visits, branches, loops
    lower             nodes as calls (kernels are run on arrays without elements: `irtool.ops.symbols`)
    lowered_blocks    branches and loops
    opaque_calls      nodes that are called as the interpreter calls them
    loop_numbers      whole numbers and their bounds
    filled_lists      lists that loops fill, and other ways to their items
    known_lists       lists that a block makes and adds to, known item by item
    list_stacks       lists that loops fill as one array, with a row for each iteration
    plan_passes       which of the following rewrite a program, in which order, when and why
    program_listing   a program as text
    copies            copies that can be left out because original and copy never both leave the plan
    constant_results  arrays that are the same in every run, and results that nobody reads
    round_products    products in a loop that are computed for several iterations at once
    in_place_loops    loop-carried arrays updated in place; inputs that every iteration would broadcast
    batch_slices      equal calls on slices of one array, computed at once
    large_results     results that NumPy would allocate, written where the plan wants them
    row_functions     functions along short rows, by a loop in C
    row_reductions    sums, means and extremes of short rows, by a loop in C
    costs             estimated time of an instruction
    parallel          instructions that run at the same time, on several threads
    memory            the place of each result: lifetimes, results over operands that die
    placement         buffers in one piece of memory
    buffers           the memory itself, between runs
    slots             a program run without source
    python_source     a program as Python
"""
