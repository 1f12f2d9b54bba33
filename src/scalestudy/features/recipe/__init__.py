"""`scalestudy recipe`: learning rate and warm-up for each number of workers, found with equal effort."""
