"""Reverse differentiation of graphs: f becomes f with what it saves, and df.

    reverse           the entry, `differentiate_graph`, and the table of handlers: kind of a node -> who hands its gradients on
    sweep             the walk from the outputs of f back to its inputs, node by node
    gradients         the state that handlers work on: which value of f has which gradient so far, and where nodes of df go
    captures          what df takes from f; loop_captures: what loops leave behind for it
    refusals          what is refused, with the line of the graph

    formula_gradients, formula_graphs, saved_values      operators: formulas as pairs of graphs, and what f computes for them
    branch_gradients, loop_gradients                     control flow
    structure_gradients, list_gradients, list_zeros      tuples and lists
    verbatim_gradients, groups                           nodes that own a gradient, or a graph

    reach             which values a gradient can reach
    recompute         which captured values df computes again instead; min_cut finds the cheapest choice
    saved_sizes       sizes that df reads, and who asks for them
    in_place, hidden_writes, versions                    writes into tensors, as values that are never written into
"""
