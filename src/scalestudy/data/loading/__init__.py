"""Batches in their order, read ahead."""
