import itertools

import numpy as np
import pytest

from scalestudy.data.loading.slices import Slice
from scalestudy.features.diagnose.ablation import IN_FLIGHT, calls_of_block, timed, without_exchange
from scalestudy.features.diagnose.plan import FEWEST, MOST
from scalestudy.measure.heartbeat import Heartbeat
from scalestudy.strategies.group import Group
from scalestudy.strategies.replicas import Joined, Replicas

CALL = (Slice(None, None, 0, 1, 1),)


class Device:
    """Takes calls at once, and says which were waited for."""

    def __init__(self):
        self.taken, self.waited = 0, 0

    def train(self, call):
        self.taken += 1
        return self

    def __float__(self):
        self.waited += 1
        assert self.taken - self.waited <= IN_FLIGHT + 1
        return 0.0


def test_a_block_has_as_many_calls_as_asked_and_waits_for_all_of_them():
    device = Device()
    found = timed(device.train, itertools.repeat(CALL), 10, Heartbeat())
    assert device.taken == device.waited == len(found.begin) == len(found.end) == 10
    assert found.seconds >= found.end[-1] - found.begin[0]


def test_what_a_call_waits_for_is_told_from_what_it_computes():
    times = iter(range(100))

    def slow():
        while True:
            next(times)
            yield CALL

    found = timed(Device().train, slow(), 3, Heartbeat())
    assert found.begin[1] >= found.end[0]
    assert found.arrived[0] >= found.begin[0]


@pytest.mark.parametrize(
    ("seconds", "each", "calls"), [(2.0, 0.02, 100), (2.0, 10.0, FEWEST), (2.0, 1e-6, MOST), (2.0, 0.0, MOST)]
)
def test_a_block_is_as_long_as_asked_within_bounds(seconds, each, calls):
    assert calls_of_block(seconds, each) == calls


class Summing(Replicas):
    """Doubles what it sums, as two equal workers would."""

    def sum_gradients(self, gradients, buckets):
        return [2 * each for each in gradients]

    def sync_sum(self, tensor):
        return 2 * tensor


def test_workers_without_exchange_keep_their_gradients_and_the_others_still_sum():
    replicas = Summing(Group(), 2, slices=[(0, 1)])
    joined = Joined(replicas.group, replicas)
    replicas_alone = without_exchange(joined).replicas
    assert replicas_alone.sum_gradients([np.ones(2)], [(0,)])[0].tolist() == [1, 1]
    assert replicas.sum_gradients([np.ones(2)], [(0,)])[0].tolist() == [2, 2]


def test_what_layers_sum_over_workers_keeps_its_size():
    replicas = Summing(Group(), 3, slices=[(0, 1)])
    assert without_exchange(Joined(replicas.group, replicas)).replicas.sync_sum(1.5) == 4.5


def test_a_step_without_exchange_applies_each_ones_own_gradients():
    replicas = Summing(Group(), 2, slices=[(0, 1)])
    applied = []
    replicas_alone = without_exchange(Joined(replicas.group, replicas)).replicas
    losses = replicas_alone.step(lambda part: ([part], 7.0), applied.append, [3.0], None, buckets=[(0,)])
    assert (applied, losses) == ([[3.0]], 7.0)
