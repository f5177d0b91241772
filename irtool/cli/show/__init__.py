"""What is shown: values and results of runs, reports of passes, what happens in a run."""
