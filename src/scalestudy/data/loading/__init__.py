"""Batches: their order, and reading them in advance."""
