"""How workers combine their gradients: one file per strategy, behind one interface."""
