"""Training runs: epochs, learning rates, records, checkpoints and results. Independent of any framework."""
