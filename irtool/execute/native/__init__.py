"""C: loops over elements, and whole loops of a graph, through the system's compiler.

    c_source    pointwise steps as C
    building    the compiler, and what it made, on disk and in memory
    small_products    small products of matrices
    stages      what a round of a loop is made of: steps over elements, products, sums
    loop_rounds a round of a loop as stages
    c_loops     a loop of a graph as one function
"""
