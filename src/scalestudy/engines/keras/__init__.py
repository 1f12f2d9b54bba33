"""What all engines that train Keras models have in common."""
