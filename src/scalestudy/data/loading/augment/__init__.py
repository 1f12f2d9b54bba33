"""What is done anew to training samples in each epoch: drawn from the seed, the epoch and the sample."""
