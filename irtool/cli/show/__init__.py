"""Output for people and programs.

    values, results         values, and the results of runs
    watching, value_statistics      what happens during a run, and what its values are
    reports                 what passes did; alias_report: which values share memory
    chrome_trace, instruction_table times
    tree                    a module as a tree
    tables, progress        on a terminal
    highlight               IR and Python in colour; pygments_lexer: IR in the colours of Pygments
"""
