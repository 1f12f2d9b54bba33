"""Keras's `fit` and `evaluate` with batches divided among several workers, and `predict` in each process."""
