"""`data show`: a data set before it is trained on."""
