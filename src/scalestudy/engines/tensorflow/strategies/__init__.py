"""How TensorFlow's workers combine their gradients: one file per strategy."""
