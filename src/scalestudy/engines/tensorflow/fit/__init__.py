"""Keras's own `fit`, `evaluate` and `predict`, their batches shared by several workers."""
