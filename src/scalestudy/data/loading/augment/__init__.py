"""Augmentation of training samples, determined by the seed, the epoch and the sample."""
