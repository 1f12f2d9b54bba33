"""The checkpoint of a run: whole or absent, and only for the same run."""

import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from scalestudy.config.point import Point
from scalestudy.engines.interface import Variable
from scalestudy.store.records import Failure
from scalestudy.store.run_folder import RunFolder
from scalestudy.training import checkpoint, session
from scalestudy.training.checkpoint import UnusableError
from scalestudy.training.session import Position

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
    ]


def point(**changes) -> Point:
    settings = {
        "epochs": 2,
        "batch_size": 8,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "schedule": "constant",
    }
    return Point.model_validate(
        {
            "name": "p",
            "study": "s",
            "task": "cnn",
            "strategy": "single",
            "terms": {"implementation": "single"},
            "workers": 1,
            "seed": 0,
            "data": {"source": "digits"},
            "train": settings,
            **changes,
        }
    )


def fingerprint(of: Point, rows: int = 8, shape: tuple[int, ...] = (3, 2), dtype: str = "float32") -> str:
    split = SimpleNamespace(train=np.arange(rows), validation=np.arange(2), test=np.arange(0))
    return session.fingerprint(of, split, [Variable(dtype, shape, own=False)])


def test_what_was_written_is_read_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    checkpoint.write_checkpoint(path, PLACE, values(), "me")
    assert checkpoint.read_position(path, "me") == PLACE
    found = checkpoint.read_values(path)
    assert [(v.dtype, v.shape, v.tobytes()) for v in found] == [
        (v.dtype, v.shape, v.tobytes()) for v in values()
    ]


def test_more_than_ten_values_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    checkpoint.write_checkpoint(path, PLACE, [np.array(number) for number in range(25)], "me")
    assert [int(value) for value in checkpoint.read_values(path)] == list(range(25))


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
    path.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    with pytest.raises(UnusableError, match="cannot be read"):
        checkpoint.read_position(path, "me")


def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    with open(path, "wb") as file:
        np.savez(file, place='{"epoch": 1, "shard": 2, "losses": []}', fingerprint="me")
    with pytest.raises(UnusableError, match="cannot be read"):
        checkpoint.read_position(path, "me")


def test_a_reader_finds_a_whole_checkpoint_while_it_is_being_replaced(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    checkpoint.write_checkpoint(path, Position(updates=0), [np.full(50_000, 0)], "me")
    writer = threading.Thread(
        target=lambda: [
            checkpoint.write_checkpoint(path, Position(updates=n), [np.full(50_000, n)], "me")
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
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.npz", "failure.json"]


def test_where_it_runs_makes_no_other_run() -> None:
    moved = point(
        terms={"implementation": "single", "launch": {"cpus_per_worker": 4}, "oversubscribed": "yes"},
        files={"prepared": "/scratch/x", "split": "/scratch/y"},
        data={"source": "digits", "cache": "/scratch"},
        name="q",
    )
    assert fingerprint(moved) == fingerprint(point())


@pytest.mark.parametrize(
    "other",
    [
        fingerprint(point(seed=1)),
        fingerprint(point(workers=2)),
        fingerprint(point(task="unet")),
        fingerprint(point(data={"source": "digits", "seed": 1})),
        fingerprint(point(), rows=9),
        fingerprint(point(), shape=(2, 3)),
        fingerprint(point(), dtype="float64"),
    ],
)
def test_whatever_changes_the_answer_makes_another_run(other: str) -> None:
    assert other != fingerprint(point())
