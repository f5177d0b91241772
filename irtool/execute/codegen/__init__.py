"""Compiled plans: a graph as one Python function over NumPy calls, made for the dtypes, shapes and strides of its inputs.

A graph is *lowered* to a program of calls, the program is rewritten, what it makes is given its place in memory, and it is run from slots
or written as source.

    plan        the plan of a graph: a variant per kind of inputs, its first runs, its errors
    program     what a program is made of: variables, calls, visits, branches, loops
    lower       nodes as calls (kernels are run on arrays without elements: `irtool.execute.trace`)
    blocks      branches and loops
    visits      nodes that are called as the interpreter calls them
    numbers     whole numbers and their bounds
    lists       lists that loops fill, and other ways to their items
    known_lists lists that a block makes and adds to, known item by item
    stacks      lists that loops fill as one array, with a row for each round
    copies      copies that nobody would miss
    constants   arrays that are the same in every run, and what nobody reads
    loops       products of a loop that are made for several rounds at once
    carried     what goes around a loop stays where it is; inputs that its rounds would broadcast
    siblings    equal calls on parts of one array, made at once
    results     results that NumPy makes anew, written where the plan wants them
    rows        functions along short rows, by a loop in C
    folds       sums, means and extremes of short rows, by a loop in C
    costs       what an instruction takes
    beside      what runs beside what, on several threads
    memory      which result lies where: lifetimes, results over operands that die
    places      buffers in one piece of memory
    buffers     the memory itself, between runs
    slots       a program run without source
    source      a program as Python
"""
