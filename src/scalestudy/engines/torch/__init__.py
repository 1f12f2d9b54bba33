"""The PyTorch engine: PyTorch modules, and Keras models on Keras's torch backend."""
