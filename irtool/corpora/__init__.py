"""Many graphs by one command: selection.py lists them, children.py runs each in a process that may crash, outcomes.py collects the rows.

Nothing here knows what a case does: it is a function and the words it takes, and both pickle.
"""
