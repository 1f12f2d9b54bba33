"""A Keras script of the user's own on several workers: `scalestudy launch` and `scalestudy.workers()`."""
