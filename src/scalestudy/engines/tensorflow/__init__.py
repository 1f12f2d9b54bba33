"""TensorFlow as an engine."""
