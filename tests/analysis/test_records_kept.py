"""What was read of a large study's runs is never believed against their files."""

from pathlib import Path

import pytest

from scalestudy.analysis import records_kept
from scalestudy.analysis.records import read_all
from scalestudy.analysis.records_kept import read_kept
from scalestudy.study import remembered
from scalestudy.study.records import EpochRecord, RankRecord
from scalestudy.study.run_folder import RunFolder


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Five runs of a study that is large by these limits, done long ago, one of them with a torn line."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(records_kept, "WORTH", 1)
    monkeypatch.setattr(remembered, "SETTLED", -1.0)
    found = []
    for number in range(5):
        run = RunFolder(tmp_path / "study" / "points" / f"point-{number}" / "run-1")
        (run.path / "ranks").mkdir(parents=True)
        for epoch in (1, 2):
            run.append_epoch(
                EpochRecord(
                    epoch=epoch, steps=1, samples=1, learning_rate=0.1, loss=number / epoch,
                    train_seconds=1.0, input_seconds=0.0, elapsed_training_seconds=1.0,
                    validation={"loss": 0.5},
                )
            )  # fmt: skip
        run.write_rank(_rank(number))
        found.append(run.path)
    with (found[3] / "epochs.jsonl").open("a") as file:
        file.write("{")
    return found


def _rank(number: int) -> RankRecord:
    return RankRecord(
        rank=0, size=1, local_rank=0, host=f"node{number}", pid=1, placement_source="single", cpus=[0],
        threads=1, devices=[], versions={}, build={},
    )  # fmt: skip


def parsed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders that are read from here on."""
    found: list[Path] = []

    def read(folders, before=read_all):
        found.extend(folders)
        return before(folders)

    monkeypatch.setattr(records_kept, "read_all", read)
    return found


def test_runs_are_not_read_twice_and_are_the_same(folders, tmp_path, monkeypatch):
    first = read_kept(tmp_path / "study", folders)
    read = parsed(monkeypatch)
    again = read_kept(tmp_path / "study", folders)
    assert read == [] and again == first == read_all(folders)
    assert again[3].wrong[0].startswith("epochs.jsonl, line 3") and again[4].ranks[0].host == "node4"
    assert list(again[2].epochs.column("loss")) == [2.0, 1.0]


def test_runs_that_changed_since_are_read_again(folders, tmp_path, monkeypatch):
    read_kept(tmp_path / "study", folders)
    with (folders[0] / "epochs.jsonl").open("a") as file:
        file.write("nothing of ours\n")
    rank = folders[1] / "ranks" / "0.json"
    rank.write_text(rank.read_text().replace("node1", "nodeX"))
    RunFolder(folders[2]).write_rank(_rank(7))
    (folders[4] / "ranks" / "0.json").unlink()
    read = parsed(monkeypatch)
    found = read_kept(tmp_path / "study", folders)
    assert read == [folders[0], folders[1], folders[2], folders[4]] and found == read_all(folders)
    assert found[0].wrong and found[1].ranks == () and found[2].ranks[0].host == "node7"


def test_what_was_just_written_is_read_again(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(remembered, "SETTLED", 3600.0)
    read_kept(tmp_path / "study", folders)
    read = parsed(monkeypatch)
    read_kept(tmp_path / "study", folders)
    assert read == folders


def test_small_studies_leave_nothing_in_the_cache(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(records_kept, "WORTH", 6)
    assert read_kept(tmp_path / "study", folders) == read_all(folders)
    assert not (tmp_path / "cache").exists()


def test_a_torn_cache_is_gone_without(folders, tmp_path):
    first = read_kept(tmp_path / "study", folders)
    (file,) = (tmp_path / "cache").rglob("*.records")
    file.write_bytes(file.read_bytes()[:-20])
    assert read_kept(tmp_path / "study", folders) == first
