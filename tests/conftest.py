"""What all tests of one process share."""

from typing import Any

import pytest
from hypothesis import settings

DEVICES = 2

# A busy machine is no reason to fail.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def framework() -> Any:
    """TensorFlow with two logical CPUs and deterministic operations.

    Devices are fixed by the first operation of a process, so whatever computes asks for this first.
    """
    import tensorflow as tf

    from scalestudy.engines.tensorflow.setup import set_up

    set_up(cpu_devices=DEVICES)
    return tf
