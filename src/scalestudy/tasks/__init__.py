"""What is trained: a model, a loss, metrics."""
