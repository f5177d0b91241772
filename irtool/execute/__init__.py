"""Running graphs: plans, executors, gradients."""
