"""Use a trained model: `predict`, `evaluate`, `samples` and `export`."""
