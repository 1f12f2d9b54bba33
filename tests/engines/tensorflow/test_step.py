"""How a step is cut out of a call, and on which device."""

import numpy as np
import pytest

from scalestudy.data.samples import Slice

pytestmark = pytest.mark.engine


def test_a_step_is_numbered_and_cut_out_on_the_device_of_its_rows(framework):
    """Otherwise this would be the first GPU, and all others would fetch the step number from it."""
    from scalestudy.engines.tensorflow.tensorflow_trainer import step_of

    tf, placed = framework, {}

    @tf.function
    def cut(inputs, targets, first, index):
        part = step_of(Slice(inputs, targets, 0, 2, 2, step=first), index, "CPU:1")
        placed.update(
            {name: getattr(part, name).device[-5:] for name in ("inputs", "targets", "step")},
        )
        return part.inputs, part.targets, part.step

    inputs = tf.constant(np.arange(6, dtype=np.uint8).reshape(3, 2))
    targets = tf.constant(np.arange(6, dtype=np.int32).reshape(3, 2))
    row, labels, step = cut(inputs, targets, tf.constant(40, tf.int64), tf.constant(2))
    assert placed == dict.fromkeys(("inputs", "targets", "step"), "CPU:1")
    assert (row.numpy().tolist(), labels.numpy().tolist(), int(step)) == ([4, 5], [4, 5], 42)
