"""The rows of a worker, from arrays and from streams, and the values that all workers agree on."""

import threading

import keras
import numpy as np
import pytest

from scalestudy.engines.keras.keras_trainer import share_values
from scalestudy.engines.keras.private import epoch_iterator
from scalestudy.engines.tensorflow.fit_rows import WorkerRows
from scalestudy.engines.tensorflow.replicas import CompiledReplicas, TensorGroup
from scalestudy.util.errors import RunError, UserError

pytestmark = pytest.mark.engine


class Threads(TensorGroup):
    """Two processes, played by two threads; each sum waits for both."""

    def __init__(self, rank, meeting, parts):
        super().__init__(rank, 2)
        self._meeting, self._parts = meeting, parts

    def host_sum(self, values):
        self._parts[self.rank] = values
        self._meeting.wait(timeout=600)
        total = self._parts[0] + self._parts[1]
        self._meeting.wait(timeout=600)
        return total


def on_two(work):
    """Return the results of both ranks, or the errors that they raise."""
    meeting, parts, found = threading.Barrier(2), [None, None], [None, None]

    def run(rank):
        try:
            found[rank] = work(Threads(rank, meeting, parts))
        except Exception as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def calls(group, **given):
    """Return the calls of one epoch."""
    together = given.pop("together", 1)
    replicas = CompiledReplicas(group, 2, slices=[(group.rank, group.rank + 1)], size=2)
    shared = WorkerRows(epoch_iterator(**given).data_adapter, replicas, together=together)
    return [batch.call[0] for batch in shared.get_numpy_iterator()]


def rows_of(parts):
    return [part.inputs["0"].numpy()[:, 0].tolist() if part.count else [] for part in parts]


def test_each_worker_takes_its_rows_of_every_batch_and_none_of_the_others(framework):
    x = np.arange(9, dtype=np.int64)[:, None]
    one, two = on_two(lambda group: calls(group, x=x, y=x, batch_size=4))
    assert rows_of(one) == [[0, 1], [4, 5], []]
    assert rows_of(two) == [[2, 3], [6, 7], [8]]
    assert [(part.start, part.count, part.total) for part in two] == [(2, 2, 4), (2, 2, 4), (0, 1, 1)]
    assert one[2].inputs["0"].numpy().tolist() == [[0]]  # a row of zeros with weight 0


def test_rows_are_shuffled_alike_whatever_each_process_would_draw(framework):
    framework.random.set_seed(1)  # required by determinism
    x = np.arange(8, dtype=np.int64)[:, None]
    one, two = on_two(lambda group: calls(group, x=x, batch_size=4, shuffle=True))
    seen = [row for batch in zip(rows_of(one), rows_of(two), strict=True) for part in batch for row in part]
    assert sorted(seen) == list(range(8))
    assert seen != list(range(8))


def test_a_batch_of_a_stream_is_each_workers_own_if_it_is_to_be(framework):
    x = np.arange(8, dtype=np.int64)[:, None]
    stream = framework.data.Dataset.from_tensor_slices((x, x)).batch(3)
    one, two = on_two(lambda group: calls(group, x=stream, together=2))
    assert rows_of(one) == [[0, 1, 2], [6, 7]]
    assert rows_of(two) == [[3, 4, 5], []]
    assert [(part.start, part.count, part.total) for part in two] == [(3, 3, 6), (2, 0, 2)]


def test_streams_that_differ_are_refused_on_every_rank(framework):
    def other(group, rows):
        x = np.arange(rows, dtype=np.int64)[:, None] + (100 if group.rank and rows == 8 else 0)
        return calls(group, x=framework.data.Dataset.from_tensor_slices(x).batch(4))

    for found in on_two(lambda group: other(group, 8)):
        assert isinstance(found, RunError)
        assert "other samples on rank 1 than on rank 0" in str(found)
    for found in on_two(lambda group: other(group, 8 - 2 * group.rank if group.rank else 7)):
        assert isinstance(found, RunError)
        assert "on rank 1 than on rank 0" in str(found)


def test_ragged_batches_are_refused_with_what_to_do(framework):
    ragged = framework.data.Dataset.from_tensors(framework.ragged.constant([[1], [2, 3]]))
    for found in on_two(lambda group: calls(group, x=ragged)):
        assert isinstance(found, UserError)
        assert ".to_tensor()" in found.action


def test_what_rank_0_has_is_had_by_all(framework):
    def work(group):
        variables = [keras.Variable([1.0 + group.rank]), keras.Variable([[group.rank, 7]], dtype="int64")]
        share_values(group, variables)
        history = group.share_object({"loss": [0.5, float("nan")]} if group.rank == 0 else {})
        return [v.numpy().tolist() for v in variables], str(history)

    assert on_two(work) == [([[1.0], [[0, 7]]], "{'loss': [0.5, nan]}")] * 2
