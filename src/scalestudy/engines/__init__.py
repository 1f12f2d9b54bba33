"""What computes a worker's slice of a batch: one small interface, one folder for each framework."""
