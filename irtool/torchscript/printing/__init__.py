"""Graphs as TorchScript source that one reads.

    to_python           the entry, `to_script(graph)`
    call_expressions    nodes as expressions; literals: constants and types
    legal_names         names; gradient_functions: functions that graphs call by name
"""
