"""Partial evaluation: a graph is evaluated as far as its inputs are known, and only the rest becomes nodes of another graph.

    evaluate       the evaluator
    reading        what is asked about a node of the evaluated graph, found once
    items          what stands for a value: a value of the target graph, or what is known about it
    fold_rules     results computed from what is known of the operands, by kind
    result_shapes  shapes of results from shapes of operands
"""
