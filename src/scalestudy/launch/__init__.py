"""Launchers, which start the workers of runs."""
