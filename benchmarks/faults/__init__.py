"""Faults that are planted into real runs, and what is made of them: used by `soak.py`."""
