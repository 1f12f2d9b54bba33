"""Engines, which compute a worker's slice of a batch: one interface, and one folder per framework."""
