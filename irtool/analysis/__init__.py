"""Analyses of graphs. Only `liveness`, which removes dead nodes, and `constant_folding` change a graph; nothing knows arrays.

    alias, alias_roots, memory_classes    which values may share memory, and which nodes write into it
    overlaps                              whether a write may read the memory that it writes
    memory_orders                         whether a graph can tell how its tensors lie in memory
    liveness                              which nodes are needed
    certain                               which values every run computes, or computes without an error
    constant_folding                      what is computed of constants alone
    list_changes                          which lists change after their construction, and by which nodes
    definedness, undefined_values         which gradients may be undefined
    made_dtypes                           which floating dtypes a graph makes, whatever its inputs are
    shape_facts, shape_rules, shape_sizes, shape_changes    types of results from types of operands
    gradients_off                         where a graph switches gradients off and on
    refinements                           which integers a graph has compared
    autodiff_groups                       which nodes torch would differentiate together
"""
