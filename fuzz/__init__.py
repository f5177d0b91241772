"""Campaigns: generators of programs, gradients, laws, pipelines, texts and archives, and what must hold of each.

    python -m fuzz --seconds 600 --seed 1       # or: make fuzz FUZZ='--seconds 600 --seed 1'
    python -m fuzz --case programs:1000017      # one case, with all that can be said of it

    case.py         what a generator draws: text, inputs, options; as a file that a reader can follow
    values.py       inputs as literals; other values and other memory for them
    judge.py        running a case under a time limit; what counts as wrong; comparing results
    reduction.py    smaller cases that fail in the same way
    campaign.py     worker processes, the watch over them; report.py: counts, and the table of them
    kinds.py        the table of kinds; each is a module with `draw`, `check` and `smaller`
    expressions.py  operators with rules for dtype and shape; sampled.py: operators whose results are looked up
    calls.py        one call of any operator, drawn by called.py; changed.py: a sample of an operator with one argument changed
    source.py       functions made of both; structures.py and flow.py: their statements
    orders.py       writes, views and new shapes of tensors in several memory orders, in all ways
    laws.py         functions of irtool's tensors under transformations; layered.py: under several, and as control flow
    oracle.py       torch, where it is installed; comparisons are skipped and counted where it is not

A case is plain data and its check draws nothing: what failed once fails again, and its reduced form is a test below tests/fuzz_cases/.
"""
