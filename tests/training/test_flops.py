"""The operations that a session counts for its training step."""

import pytest

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(("workers", "steps"), [(1, 2), (2, 1)])
def test_a_session_counts_its_model_however_its_steps_are_shared_out(
    session, workers, steps
):
    """`cnn` on 8 x 8 digits: two 3 x 3 convolutions, then 2 x 2 pooling, and two dense layers."""
    made = session(
        implementation="mirrored" if workers > 1 else "single",
        workers=workers,
        steps_per_call=steps,
    )
    shapes = [tuple(each.shape) for each in made.trainer.task.model.trainable_variables]
    (a, b, c, d) = (shape for shape in shapes if len(shape) > 1)
    first, second = 6 * 6 * 9 * a[3], 4 * 4 * 9 * b[2] * b[3]
    dense = c[0] * c[1], d[0] * d[1]
    assert made.trainer.flops() == (2 * (2 * first + 3 * (second + sum(dense))), ())
