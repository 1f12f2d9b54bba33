"""The checkpoint of a run: whole or absent, and only for the same run."""

import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_points import made_point
from scalestudy.config.point import Point
from scalestudy.engines.group import Group
from scalestudy.engines.interface import Variable
from scalestudy.store.records import Failure
from scalestudy.store.run_folder import RunFolder
from scalestudy.training import checkpoint, session
from scalestudy.training.checkpoint import UnusableError
from scalestudy.training.checkpoint_consensus import (
    ASK_EVERY,
    KEEP_EVERY,
    KEEP_WITHIN,
    LOOK_EVERY,
    CheckpointConsensus,
)
from scalestudy.training.position import Position

PLACE = Position(
    epoch=2,
    step=3,
    updates=19,
    samples=75,
    losses=(0.1 + 0.2, 1e-300),
    spent=1.5,
    waited=0.25,
    elapsed=7.0,
    restarts=1,
    wall=20.0,
    phases={"steps": 8.25, "input": 0.25},
    began=1.7e9 + 0.1,
    hosts=("n1", "n2"),
)


def values() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [
        generator.random((3, 2), np.float32),
        generator.random(4),
        np.array(7, np.int64),
        np.zeros((0, 2)),
        *map(np.array, range(12)),  # more than ten, whose names sort otherwise
    ]


def fingerprint(
    of: Point, rows: int = 8, shape: tuple[int, ...] = (3, 2), dtype: str = "float32"
) -> str:
    split = SimpleNamespace(
        train=np.arange(rows), validation=np.arange(2), test=np.arange(0)
    )
    return session.fingerprint(of, split, [Variable(dtype, shape, own=False)])


def test_what_was_written_is_read_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    checkpoint.write_checkpoint(path, PLACE, values(), "me")
    assert checkpoint.read_position(path, "me") == PLACE
    found = checkpoint.read_values(path)
    assert [(v.dtype, v.shape, v.tobytes()) for v in found] == [
        (v.dtype, v.shape, v.tobytes()) for v in values()
    ]


def test_without_a_file_there_is_no_place(tmp_path: Path) -> None:
    assert checkpoint.read_position(tmp_path / "checkpoint.npz", "me") is None


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    checkpoint.write_checkpoint(path, PLACE, values(), "another")
    with pytest.raises(UnusableError, match="another point"):
        checkpoint.read_position(path, "me")


@pytest.mark.parametrize("kept", [0, 1, 100, 0.5, -1])
def test_a_torn_file_is_refused_and_not_half_read(tmp_path: Path, kept: float) -> None:
    path = tmp_path / "checkpoint.npz"
    checkpoint.write_checkpoint(path, PLACE, values(), "me")
    whole = path.read_bytes()
    path.write_bytes(
        whole[: int(kept * len(whole)) if isinstance(kept, float) else kept]
    )
    with pytest.raises(UnusableError, match="cannot be read"):
        checkpoint.read_position(path, "me")


def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    with open(path, "wb") as file:
        np.savez(file, place='{"epoch": 1, "shard": 2, "losses": []}', fingerprint="me")
    with pytest.raises(UnusableError, match="cannot be read"):
        checkpoint.read_position(path, "me")


def test_a_reader_finds_a_whole_checkpoint_while_it_is_being_replaced(
    tmp_path: Path,
) -> None:
    path = tmp_path / "checkpoint.npz"
    checkpoint.write_checkpoint(path, Position(updates=0), [np.full(50_000, 0)], "me")
    writer = threading.Thread(
        target=lambda: [
            checkpoint.write_checkpoint(
                path, Position(updates=n), [np.full(50_000, n)], "me"
            )
            for n in range(1, 30)
        ]
    )
    writer.start()
    seen = 0
    while writer.is_alive():
        position = checkpoint.read_position(path, "me")
        assert position is not None
        assert position.updates >= seen
        seen = position.updates
        assert len(set(checkpoint.read_values(path)[0])) == 1
    writer.join()


def test_removing_leaves_nothing_even_of_a_half_written_one(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    checkpoint.write_checkpoint(path, PLACE, values(), "me")
    half = checkpoint._temporary(path)
    half.write_bytes(b"half")
    checkpoint.remove_checkpoint(path)
    checkpoint.remove_checkpoint(path)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_nothing_half_written_behind(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    checkpoint.write_checkpoint(run.checkpoint, PLACE, values(), "me")
    checkpoint._temporary(run.checkpoint).write_bytes(b"half")
    (tmp_path / ".half.model.keras").write_bytes(b"half")
    run.write_failure(Failure(rank=0, exit_code=1, reason="killed"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint.npz",
        "failure.json",
    ]


def test_where_it_runs_makes_no_other_run() -> None:
    moved = made_point(
        terms={
            "implementation": "single",
            "launch": {"cpus_per_worker": 4},
            "oversubscribed": "yes",
        },
        files={"prepared": "/scratch/x", "split": "/scratch/y"},
        data={"source": "digits", "cache": "/scratch"},
        name="q",
    )
    assert fingerprint(moved) == fingerprint(made_point())


@pytest.mark.parametrize(
    "other",
    [
        fingerprint(made_point(seed=1)),
        fingerprint(made_point(workers=2)),
        fingerprint(made_point(task="unet")),
        fingerprint(made_point(data={"source": "digits", "seed": 1})),
        fingerprint(made_point(), rows=9),
        fingerprint(made_point(), shape=(2, 3)),
        fingerprint(made_point(), dtype="float64"),
    ],
)
def test_whatever_changes_the_answer_makes_another_run(other: str) -> None:
    assert other != fingerprint(made_point())


class Time:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Threads(Group):
    """Ranks that are threads of this process and really wait for each other."""

    def __init__(
        self, rank: int, size: int, barrier: threading.Barrier, table: np.ndarray
    ) -> None:
        super().__init__(rank, size)
        self._barrier, self._table = barrier, table

    def host_sum(self, values):
        self._table[self.rank] = values
        self._barrier.wait(20)
        total = self._table.sum(0)
        self._barrier.wait(20)
        return total


def alone(time: Time, asked=lambda: False) -> CheckpointConsensus:
    return CheckpointConsensus(asked, Group(), time)


def test_a_process_alone_looks_after_the_first_call_and_then_once_a_second():
    time = Time()
    agreement = alone(time)
    looked = []
    for call in range(1, 30):
        time.now += LOOK_EVERY / 8
        if agreement.due():
            agreement.within_epoch()
            looked.append(call)
    assert looked == [1, 9, 17, 25]


def test_a_request_stops_the_run_with_a_checkpoint():
    agreement = alone(Time(), asked=lambda: True)
    assert agreement.within_epoch() == (True, True)
    assert agreement.after_epoch() == (True, True)


def test_checkpoints_follow_epochs_once_a_minute():
    time = Time()
    agreement = alone(time)
    assert agreement.after_epoch() == (False, False)
    time.now += KEEP_EVERY
    assert agreement.within_epoch() == (False, False)
    assert agreement.after_epoch() == (False, True)
    assert agreement.after_epoch() == (False, False)


def test_a_long_epoch_is_kept_on_the_way():
    time = Time()
    agreement = alone(time)
    time.now += KEEP_WITHIN
    assert agreement.within_epoch() == (False, True)
    assert agreement.within_epoch() == (False, False)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.floats(1e-6, 60), min_size=2, max_size=5),
    st.integers(0, 400),
    st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=1, max_size=6),
)
def test_every_rank_leaves_at_the_same_call_however_their_speeds_differ(
    paces, request_at, drift
):
    ranks, barrier = len(paces), threading.Barrier(len(paces))
    table, left, asks = np.zeros((ranks, 3)), [-1] * ranks, [0] * ranks

    def work(rank: int) -> None:
        time, call = Time(), 0
        agreement = CheckpointConsensus(
            lambda: call >= request_at if rank == 0 else True,
            Threads(rank, ranks, barrier, table),
            time,
        )
        while left[rank] < 0:
            call += 1
            time.now += paces[rank] * drift[call % len(drift)]
            if agreement.due():
                asks[rank] += 1
                if agreement.within_epoch().stop:
                    left[rank] = call
            elif (
                call > request_at and call % 1000 == 0 and agreement.after_epoch().stop
            ):
                left[rank] = call

    threads = [
        threading.Thread(target=work, args=(rank,), daemon=True)
        for rank in range(ranks)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert len(set(left)) == 1
    assert left[0] >= request_at
    assert len(set(asks)) == 1


def test_several_processes_ask_after_the_first_call_and_then_every_few_seconds():
    time = Time()

    class Two(Group):
        def host_sum(self, values):
            return values * [1, 1, 2]  # the other rank is as fast

    agreement = CheckpointConsensus(lambda: False, Two(0, 2), time)
    asked = []
    for call in range(1, 200):
        time.now += 0.1
        if agreement.due():
            agreement.within_epoch()
            asked.append(call)
    step = round(ASK_EVERY / 0.1)
    assert asked[0] == 1
    assert asked[1:] == pytest.approx([1 + step, 1 + 2 * step, 1 + 3 * step], abs=3)
