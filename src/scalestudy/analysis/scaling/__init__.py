"""What times follow as workers grow: one file a law, and what is chosen among them, predicted and advised."""
