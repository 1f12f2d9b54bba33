"""Scalestudy: train one Keras model on many workers, and know what each worker bought you."""

__version__ = "0.1.0"
