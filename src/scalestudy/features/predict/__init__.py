"""`predict`, `evaluate`, `samples` and `export`: what a trained model is used for."""
