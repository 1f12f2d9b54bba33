"""TensorFlow's strategies, which combine the workers' gradients: one file per strategy."""
