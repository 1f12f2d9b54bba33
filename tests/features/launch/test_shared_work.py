"""Processes that do not share the work of a script are found out."""

import pytest

from scalestudy.features.launch.shared_work import (
    Share,
    find_grown,
    find_other_set,
    grown_error,
    refuse_apart,
)
from scalestudy.util.errors import RunError


def share(samples=100, steps=10, loss=0.5, *, shared=False, joined=2):
    return Share(samples, steps, loss, shared, joined)


@pytest.mark.parametrize(
    ("strategy", "line"),
    [
        ("ddp", "DistributedDataParallel"),
        ("horovod", "hvd.init"),
        ("multiworker", "MultiWorkerMirroredStrategy"),
    ],
)
def test_processes_that_never_join_are_named_with_the_line_to_write(strategy, line):
    with pytest.raises(
        RunError, match=f"(?s)each trains on its own.*100 samples.*{line}"
    ):
        refuse_apart(strategy, 2, [share(joined=1), share(joined=1)])


def test_a_smaller_group_than_the_workers_is_named():
    with pytest.raises(RunError, match="a group of 2"):
        refuse_apart(
            "horovod", 4, [share(loss=rank / 10, joined=2) for rank in range(4)]
        )
    with pytest.raises(RunError, match=r"MirroredStrategy\(\)"):
        refuse_apart("mirrored", 4, [share(joined=1)])


def test_the_same_samples_on_all_workers_show_in_the_same_loss():
    with pytest.raises(RunError, match=r"(?s)the same mean loss.*DistributedSampler"):
        refuse_apart("ddp", 2, [share(), share(loss=0.5 + 1e-9)])
    with pytest.raises(RunError, match=r"(?s)the same mean loss.*dataset\.shard"):
        refuse_apart("horovod", 2, [share(), share()])


@pytest.mark.parametrize(
    "shares",
    [
        [share(loss=0.5), share(loss=0.51)],
        [share(loss=None), share(loss=None)],
        [share(loss=float("nan")), share(loss=float("nan"))],
        [share(samples=100), share(samples=96)],
        [share(shared=True), share(shared=True)],
        [share(joined=None, loss=0.1), share(joined=None)],
    ],
)
def test_workers_that_may_share_the_work_are_accepted(shares):
    refuse_apart("ddp", 2, shares)
    refuse_apart("single", 1, [share(joined=1)])


def test_epochs_that_grow_with_the_workers_are_those_of_workers_that_read_everything():
    assert find_grown(2, 120_000, 1, 60_000)
    assert find_grown(8, 480_000 - 64, 2, 120_000)
    assert find_grown(1, 60_000, 2, 120_000)
    assert not find_grown(2, 60_000, 1, 60_000)
    assert not find_grown(2, 59_904, 1, 60_000)
    assert not find_grown(2, 120_000, 2, 120_000)
    error = grown_error("horovod", 2, 120_000, 1, 60_000)
    for word in ("60,000", "120,000", "dataset.shard", "--weak-scaling"):
        assert word in str(error)


def test_a_quality_of_fewer_samples_is_of_another_set():
    assert find_other_set(8, 16, 1, 224)  # the remainder of each worker was dropped
    assert find_other_set(1, 224, 8, 16)
    assert not find_other_set(8, 224, 1, 224)
    assert not find_other_set(3, 201, 1, 200)  # filled up
    assert not find_other_set(4, 800, 1, 200)  # each worker evaluates everything
