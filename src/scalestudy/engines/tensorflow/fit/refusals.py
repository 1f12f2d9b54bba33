"""What of Keras's `compile` and subclassing several workers cannot share, refused by name."""

import keras

from scalestudy.engines.keras.private import compile_words
from scalestudy.util.errors import UserError

STEPS = ("train_step", "test_step", "compute_loss", "compute_metrics")


def refuse_other_loops(model: keras.Model) -> None:
    """Refuse a model that trains itself in another way than Keras does.

    Raises:
        UserError: If it is not compiled, is run eagerly, or has a step of its own.
    """
    if not getattr(model, "compiled", False):
        raise UserError("a compiled model", "one that is not", "Call model.compile(...) before.")
    own = next((name for name in STEPS if getattr(type(model), name) is not getattr(keras.Model, name)), None)
    if own:
        raise UserError(
            "a model trained by Keras's own step, whose gradients are summed over the workers",
            f"{type(model).__name__} with its own {own}",
            "Give its loss and metrics to compile(), or write it as a task with a step of its own.",
        )
    if model.run_eagerly:
        raise UserError(
            "compile(run_eagerly=False) on several workers",
            "run_eagerly=True",
            "Look for the error on one worker: python SCRIPT.",
        )


def uses_xla(model: keras.Model) -> bool:
    """Whether XLA was asked for, which Keras also takes unasked where it can."""
    return compile_words(model).get("jit_compile") is True
