"""Arithmetic of the model: Keras's policies."""

import keras


def set_precision(precision: str) -> None:
    """Make `precision` the policy of all layers made from now on; "tf32" is float32 to Keras."""
    keras.config.set_floatx("float64" if precision == "float64" else "float32")
    keras.config.set_dtype_policy("float32" if precision == "tf32" else precision)
