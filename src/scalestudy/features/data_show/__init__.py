"""`data show`: inspect a data set before training."""
