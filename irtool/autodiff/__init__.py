"""Reverse differentiation of graphs: from a graph f, the pair of f with temporaries and df.

    reverse           the entry, `differentiate_graph`, and the tables of handlers: kind of a node -> the function that differentiates it
    sweep             the walk over the nodes of f, from its results back to its inputs
    gradients         the state that handlers share: the gradients of values of f so far, and the place where new nodes of df go
    captures          values of f that df reads; loop_captures: those computed in loops, saved in lists
    refusals          errors for graphs that cannot be differentiated, with the line of the graph

    formula_gradients, formula_graphs, saved_values      operators: formulas as pairs of graphs, and the values that f saves for them
    branch_gradients, loop_gradients                     control flow
    structure_gradients, list_gradients, list_zeros      tuples and lists
    verbatim_gradients, groups                           nodes that have a gradient of their own, or an inner graph

    reach             which values a gradient can reach
    recompute         which values df computes again instead of capturing them; min_cut finds the cheapest choice
    saved_sizes       sizes that df reads: whether f or df asks for them
    in_place, unread_writes, hidden_writes, versions     writes into tensors, as values that are never written into
    own_parts, later_readers                             whether anything reads the memory after a write
    overwritten       captured values that f overwrites later
    gradient_modes    `no_grad` in graphs
    gradient_questions                                   `x.requires_grad` in graphs
    inlined_forks     what forks compute in their places, before anything else
"""
