"""PyTorch: Keras models on Keras's torch backend, computed by one process for each worker."""
