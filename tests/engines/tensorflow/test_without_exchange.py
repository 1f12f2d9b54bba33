import numpy as np

from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow.replicas import CompiledReplicas, TensorGroup, without_exchange


class Summing(CompiledReplicas):
    """Doubles each value, as a sum over two equal workers does."""

    def sum_gradients(self, gradients, buckets):
        return [2 * each for each in gradients]

    def sync_sum(self, tensor):
        return 2 * tensor


def test_silent_workers_keep_their_gradients_and_the_others_still_sum():
    replicas = Summing(TensorGroup(), 2, slices=[(0, 1)])
    joined = Joined(replicas.group, replicas)
    quiet = without_exchange(joined).replicas
    assert quiet.sum_gradients([np.ones(2)], [(0,)])[0].tolist() == [1, 1]
    assert replicas.sum_gradients([np.ones(2)], [(0,)])[0].tolist() == [2, 2]


def test_what_layers_sum_over_workers_keeps_its_size():
    replicas = Summing(TensorGroup(), 3, slices=[(0, 1)])
    assert without_exchange(Joined(replicas.group, replicas)).replicas.sync_sum(1.5) == 4.5


def test_a_step_of_silent_workers_applies_each_ones_own_gradients():
    replicas = Summing(TensorGroup(), 2, slices=[(0, 1)])
    applied = []
    quiet = without_exchange(Joined(replicas.group, replicas)).replicas
    losses = quiet.step(lambda part: ([part], 7.0), applied.append, [3.0], None, buckets=[(0,)])
    assert (applied, losses) == ([[3.0]], 7.0)
