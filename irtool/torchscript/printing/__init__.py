"""Graphs -> TorchScript source that people read.

    to_python           the entry, `to_script(graph)`
    call_expressions    nodes as expressions; literals: constants and types
    legal_names         names; gradient_functions: functions that graphs call by name
"""
