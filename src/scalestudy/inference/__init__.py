"""Use of a trained model: predictions, evaluation, galleries. Knows no framework."""
