"""Data: sources, preparation, splits, the order of samples and the loader."""
