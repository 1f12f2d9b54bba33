"""Measurements of a run: phases, step times, utilisation, environment and hangs."""
