"""Properties of strategies with one process."""

import pytest

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    ("communication", "mirrored", "central"), [("nccl", True, False), ("ring", False, False)]
)
def test_gradients_go_in_halves_where_only_the_first_sum_is_hidden(
    framework, communication, mirrored, central
):
    from scalestudy.engines.tensorflow.distribute import CentralReplicas, MirroredReplicas
    from scalestudy.engines.tensorflow.replicas import TensorGroup

    group = TensorGroup(communication=communication)
    assert MirroredReplicas(None, group, 2).in_halves == mirrored
    assert CentralReplicas(None, group, 2).in_halves == central
