"""Code shared by all engines that train Keras models."""
