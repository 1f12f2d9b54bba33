"""Faults that `soak.py` injects into real runs, and checks of their effects."""
