"""Determinism: where TensorFlow is asked for it, and what it says where an operation has none."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from scalestudy.util.errors import RunError

_REFUSAL = re.compile(
    r"[^.\n]*(?:\b(?:not|cannot|require)\b[^.\n]*determinis|determinis[^.\n]*\b(?:not|cannot)\b)[^.\n]*",
    re.IGNORECASE,
)
"""The sentence in which TensorFlow or XLA refuses an operation. There are several wordings:
"A deterministic GPU implementation of X is not currently available", "Determinism is not yet supported for
X", "X ops do not yet have a deterministic XLA implementation", "HLO instruction X does not have a
deterministic implementation", "X cannot be called when determinism is enabled", "Random ops require a seed
to be set when determinism is enabled"."""


def op_determinism(*, deterministic: bool, xla: bool, device: str) -> bool:
    """Whether TensorFlow is asked for determinism.

    On GPUs it hands that on to XLA, which else chooses kernels by their times and adds up in any order. On
    CPUs XLA computes in one order anyway, and refuses max-pooling when told to be deterministic.
    """
    return deterministic and not (xla and device == "cpu")


@contextmanager
def explained() -> Iterator[None]:
    """Within, an operation that TensorFlow refuses for its want of determinism ends the run by name.

    Raises:
        RunError: If one is refused; names the key to change.
    """
    try:
        yield
    except (tf.errors.OpError, RuntimeError) as error:
        sentence = refusal_in(str(error))
        if sentence is None:
            raise
        key = "deterministic = false, or xla = false," if "XLA" in sentence else "deterministic = false"
        raise RunError(
            "operations that can repeat bit for bit, as train.deterministic = true asks",
            f"one that cannot: {sentence}",
            f"Set {key} under [train], or do without that operation in the task.",
        ) from error


def refusal_in(message: str) -> str | None:
    """The sentence of an error's message that refuses an operation for want of determinism, if any."""
    found = _REFUSAL.search(message)
    return found.group().strip() if found else None
