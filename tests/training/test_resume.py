"""A run interrupted at any step ends like an uninterrupted run."""

import numpy as np
import pytest

from scalestudy.training import checkpoint

pytestmark = pytest.mark.engine

COMMON = {
    "batch_size": 12,
    "epochs": 2,
    "steps_per_call": 2,
    "schedule": "linear",
    "learning_rate": 0.01,
}


class LeftError(Exception):
    """Raised to interrupt a run."""


def left_after(session, updates: int, path) -> list:
    """Train until `updates` steps are done, within an epoch or at its end, and write a checkpoint."""
    records = []

    def leave() -> None:
        checkpoint.write_checkpoint(path, *session.checkpoint(), session.fingerprint())

    def watch(moment) -> None:
        if session.updates == updates and moment.step < moment.steps:
            with session.pause():
                leave()
                raise LeftError

    try:
        for record in session.epoch_records(watch):
            records.append(record)
            if session.updates == updates:
                leave()
                raise LeftError
    except LeftError:
        return records
    raise AssertionError("never left")


def taken_up(session, path) -> list:
    """Resume from the checkpoint, as another process would."""
    session.compile()
    position = checkpoint.read_position(path, session.fingerprint())
    assert position is not None
    session.restore(position, checkpoint.read_values(path))
    return list(session.epoch_records())


def learnt(records) -> list:
    return [
        (r.epoch, r.steps, r.samples, r.loss, r.learning_rate, r.validation)
        for r in records
    ]


CASES = [
    ("cnn", "single", 1, 2, {"optimizer": "adam"}),
    ("cnn", "single", 1, 10, {"optimizer": "adam"}),
    ("cnn", "virtual", 3, 4, {}),
    ("cnn", "mirrored", 2, 4, {"precision": "mixed_float16"}),
    ("unet", "single", 1, 2, {}),
    ("unet", "virtual", 2, 2, {"batch_size": 5}),
    ("unet", "mirrored", 2, 4, {"evaluate_every": 2, "batch_size": 5}),
]
"""Task, implementation, workers, updates before the interruption, settings."""


@pytest.mark.parametrize(
    ("task", "implementation", "workers", "updates", "train"), CASES
)
def test_weights_and_records_are_those_of_a_run_that_was_never_left(
    session, tmp_path, task, implementation, workers, updates, train
):
    settings = {**COMMON, **train}
    whole = session(task, implementation, workers, **settings)
    expected = list(whole.epoch_records())
    path = tmp_path / "checkpoint.npz"
    records = left_after(
        session(task, implementation, workers, **settings), updates, path
    )
    second = session(task, implementation, workers, **settings)
    records += taken_up(second, path)
    assert learnt(records) == learnt(expected)
    assert second.digests() == whole.digests()
    assert second.updates == whole.updates


def test_a_run_may_be_left_again_and_again(session, tmp_path):
    path = tmp_path / "checkpoint.npz"
    whole = session(**COMMON)
    expected = list(whole.epoch_records())
    records = left_after(session(**COMMON), 2, path)
    for updates in (4, 8, 12):
        again = session(**COMMON)
        position = checkpoint.read_position(path, again.fingerprint())
        again.restore(position, checkpoint.read_values(path))
        records += left_after(again, updates, path)
    last = session(**COMMON)
    records += taken_up(last, path)
    assert learnt(records) == learnt(expected)
    assert last.digests() == whole.digests()
    assert last.restarts == 4
    assert [record.resumed for record in records] == [True, True]


def test_times_of_all_processes_add_up(session, tmp_path):
    path = tmp_path / "checkpoint.npz"
    first = session(**COMMON)
    left_after(first, 4, path)
    position = checkpoint.read_position(path, first.fingerprint())
    second = session(**COMMON)
    records = taken_up(second, path)
    phases = second.clock.phases()
    assert 0 < position.spent < records[0].train_seconds
    assert records[0].input_seconds >= position.waited
    assert second.elapsed == pytest.approx(phases["steps"] + phases["input"])
    assert second.elapsed == pytest.approx(
        sum(record.train_seconds for record in records)
    )
    assert phases["build"] > position.phases["build"]
    assert sum(phases.values()) == pytest.approx(second.clock.wall, rel=0.01)


def test_training_time_stands_still_in_a_pause(session):
    one, pauses = session(**COMMON), []

    def watch(moment) -> None:
        with one.pause():
            one.clock.add("exchange", 0.0)
            before = one._counters.seconds
            sum(range(1_000_000))
            pauses.append(one._counters.seconds - before)

    records = list(one.epoch_records(watch))
    assert set(pauses) == {0.0}
    assert learnt(records) == learnt(session(**COMMON).epoch_records())


def test_a_run_that_was_trained_to_its_end_trains_no_more(session, tmp_path):
    path = tmp_path / "checkpoint.npz"
    first = session(**COMMON)
    list(first.epoch_records())
    checkpoint.write_checkpoint(path, *first.checkpoint(), first.fingerprint())
    second = session(**COMMON)
    assert taken_up(second, path) == []
    assert second.over
    assert second.digests() == first.digests()
    assert second.measure(second.split.validation) == first.measure(
        first.split.validation
    )


def test_the_statistics_that_each_worker_holds_are_kept_apart(session, tmp_path):
    path = tmp_path / "checkpoint.npz"
    settings = {**COMMON, "evaluate_every": 2, "batch_size": 5}
    first = session("unet", "mirrored", 2, **settings)
    left_after(first, 4, path)
    before = first.trainer.state.values().own
    assert any(np.abs(one - other).max() > 0 for one, other in before)
    second = session("unet", "mirrored", 2, **settings)
    second.restore(
        checkpoint.read_position(path, second.fingerprint()),
        checkpoint.read_values(path),
    )
    after = second.trainer.state.values().own
    assert np.array_equal(before[0], after[0])
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_the_checkpoint_of_another_seed_is_not_this_runs(session, tmp_path):
    path = tmp_path / "checkpoint.npz"
    left_after(session(**COMMON), 2, path)
    with pytest.raises(checkpoint.UnusableError):
        checkpoint.read_position(path, session(seed=1, **COMMON).fingerprint())


def test_a_new_process_forgets_how_the_last_one_failed_and_obeys_a_request_from_before_its_start(
    framework, tmp_path
):
    import os

    from scalestudy.store.run_folder import RunFolder
    from scalestudy.training.rank_run import forget_the_last_process

    folder = RunFolder(tmp_path)
    (tmp_path / "failure.json").touch()
    folder.stop.touch()
    os.utime(folder.stop, (0, 0))  # who starts a process removes an old request
    forget_the_last_process(folder)
    assert list(tmp_path.iterdir()) == [folder.stop]
