"""Measuring a run: phases, utilisation, environment."""
