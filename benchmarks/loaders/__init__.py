"""The parts of `compare_loaders.py`."""
