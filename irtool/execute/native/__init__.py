"""C: loops over elements, and whole loops of a graph, through the system's compiler.

    source      pointwise steps as C
    building    the compiler, and what it made, on disk and in memory
    products    small products of matrices
    stages      what a round of a loop is made of: steps over elements, products, sums
    rounds      a round of a loop as stages
    loops       a loop of a graph as one function
"""
