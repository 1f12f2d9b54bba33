"""How training times scale: a scaling model for each series of runs, and its predictions."""
