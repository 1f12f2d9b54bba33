"""Tasks: a model, a loss and metrics."""
