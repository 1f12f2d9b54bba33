"""A run: epochs, order, rates, tallies, records, checkpoints, proof. Knows no framework."""
