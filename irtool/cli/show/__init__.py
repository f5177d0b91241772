"""Output for people and programs: values and results of runs, reports of passes, watchers of runs, tables, progress."""
