"""Questions about graphs. Nothing here changes a graph, but for the removal of dead nodes in `liveness`; nothing knows arrays.

    alias, alias_roots, memory_classes    which values may share memory, and who writes into it
    liveness                              which nodes are needed
    list_changes                          which lists are changed after they were made, and by which nodes
    definedness, undefined_values         which gradients may be the undefined tensor
    shape_facts, shape_rules, shape_sizes, shape_changes    types of results from types of operands
    autodiff_groups                       which nodes torch would differentiate together
"""
