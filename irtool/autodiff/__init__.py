"""Reverse differentiation of graphs: f becomes f with what it saves, and df.

    reverse           the sweep: from the outputs of f back to its inputs, node by node
    formula_graphs    gradient formulas of operators as pairs of graphs, compiled on first use
    reach             which values a gradient can reach
    captures          what df takes from f
    recompute         which of these values df computes again instead; min_cut finds the cheapest choice
    saved_values      what f computes for df
    branch_gradients, loop_gradients, loop_captures, list_gradients, list_zeros      control flow and lists
    custom_gradients, packed_gradients, groups       nodes that own a gradient, or a graph
    in_place, hidden_writes, versions                writes into tensors, as values that are never written into
"""
