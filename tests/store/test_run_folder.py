import json
import math
import os
import shutil
from collections import Counter

import pytest

from scalestudy.cluster.placement import Placement
from scalestudy.measure.heartbeat import Heartbeat
from scalestudy.measure.rank_environment import rank_record
from scalestudy.measure.watchdog import EVERY, EVERY_IN_JOB, Watchdog
from scalestudy.plugins.engines import DEFAULT, engine_traits
from scalestudy.store.records import Cause, JobRecord
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import RunError


@pytest.fixture
def run(make) -> RunFolder:
    folder = make()
    return folder.new_run(folder.points()[0])


def test_what_is_written_is_read_and_what_is_not_there_is_none(
    run: RunFolder, records
) -> None:
    assert (run.result(), run.progress(), run.failure()) == (None, None, None)
    assert (run.epochs(), run.ranks()) == ([], [])
    run.write_progress(records.progress())
    run.write_failure(records.failure())
    run.write_result(records.result())
    run.append_epoch(records.epoch(1))
    run.append_epoch(records.epoch(2))
    assert run.progress() == records.progress()
    assert run.failure() == records.failure()
    assert run.result() == records.result()
    assert run.epochs() == [records.epoch(1), records.epoch(2)]
    assert not list(run.path.glob(".*"))


def test_a_diverged_run_is_a_result_too(run: RunFolder, records) -> None:
    run.write_result(
        records.result().model_copy(
            update={"quality": math.nan, "best_quality": -math.inf}
        )
    )
    run.append_epoch(
        records.epoch().model_copy(
            update={"loss": math.nan, "validation": {"loss": math.nan}}
        )
    )
    result = run.result()
    assert result is not None
    assert math.isnan(result.quality)
    assert result.best_quality == -math.inf
    assert math.isnan(run.epochs()[0].loss)
    assert json.loads((run.path / "result.json").read_text())["quality"] == "NaN"


def test_a_torn_last_epoch_is_left_out_and_does_not_swallow_the_next(
    run: RunFolder, records
) -> None:
    run.append_epoch(records.epoch(1))
    with open(run.path / "epochs.jsonl", "a") as file:
        file.write(records.epoch(2).model_dump_json()[:30])
    assert run.epochs() == [records.epoch(1)]
    run.append_epoch(records.epoch(3))
    assert run.epochs() == [records.epoch(1), records.epoch(3)]


def test_a_run_that_goes_on_keeps_the_epochs_it_goes_on_from(
    run: RunFolder, records
) -> None:
    assert run.keep_epochs(0) == []
    for number in (1, 2, 3):
        run.append_epoch(records.epoch(number))
    with open(run.path / "epochs.jsonl", "a") as file:
        file.write('{"epoch": 4, "st')
    kept = [records.epoch(1), records.epoch(2)]
    assert run.keep_epochs(2) == kept
    assert run.epochs() == kept
    run.append_epoch(records.epoch(3))
    assert [record.epoch for record in run.epochs()] == [1, 2, 3]


def test_a_job_writes_nothing_into_a_folder_that_is_another_jobs_or_gone(
    run: RunFolder, records
) -> None:
    given = JobRecord(
        job="7", submission="a", submitted=0.0, site="here", script="x.sh"
    )
    run.write_job(given)
    mine = RunFolder(run.path, "a")
    mine.write_progress(records.progress())
    mine.append_epoch(records.epoch(1))
    run.write_job(given.model_copy(update={"job": "8", "submission": "b"}))
    progress = records.progress().model_copy(update={"epoch": 9})
    for write in (
        lambda: mine.write_progress(progress),
        lambda: mine.write_result(records.result()),
        lambda: mine.append_epoch(records.epoch(2)),
        lambda: mine.keep_epochs(0),
        lambda: mine.write_cause(Cause(rank=0, time=0.0, kind="exit", exit_code=1)),
        mine.refuse_other_job,
    ):
        with pytest.raises(RunError, match="belongs to job 8"):
            write()
    assert (run.progress(), run.epochs(), run.result()) == (
        records.progress(),
        [records.epoch(1)],
        None,
    )
    shutil.rmtree(run.path)
    with pytest.raises(RunError, match="gone"):
        mine.write_progress(progress)
    assert not run.path.exists()


def test_epochs_and_heartbeats_ask_little_of_a_shared_file_system(
    run: RunFolder, records, monkeypatch
):
    """Neither waits for the disk; a heartbeat creates and renames a file, in a folder made once."""
    calls = Counter()

    def counted(name: str) -> None:
        original = getattr(os, name)
        monkeypatch.setattr(
            os,
            name,
            lambda *given, **more: (calls.update([name]), original(*given, **more))[1],
        )

    for name in ("fsync", "mkdir", "replace", "stat"):
        counted(name)
    run.write_sign(records.sign())
    calls.clear()
    for number in range(1, 21):
        run.write_sign(records.sign())
        run.append_epoch(records.epoch(number))
    assert calls == {"replace": 20}
    run.sync_epochs()
    assert calls["fsync"] == 1


def test_a_run_that_ends_keeps_as_few_files_for_many_ranks_as_for_one(
    run: RunFolder,
) -> None:
    placement = Placement(0, 1, 0, 1, 0, ("n1",), "test")
    record = rank_record(
        placement, engine_traits(DEFAULT), threads=1, devices=[], build={}
    )
    for rank in range(40):
        run.write_rank(record.model_copy(update={"rank": rank}))
    ranks = run.ranks()
    assert [record.rank for record in ranks] == list(range(40))
    before = {file.name for file in run.path.iterdir()} - {"ranks"}
    run.write_checksums()
    assert {file.name for file in run.path.iterdir()} - before == {
        "SHA256SUMS",
        "ranks.jsonl",
    }
    assert run.ranks() == ranks
    late = record.model_copy(update={"rank": 40})  # its file was not visible yet
    run.write_rank(late)
    assert run.ranks() == [*ranks, late]


def test_ranks_of_a_job_write_heartbeats_less_often(run: RunFolder) -> None:
    intervals = [
        Watchdog(RunFolder(run.path, submission), 0, 4, Heartbeat(), 600.0).interval
        for submission in ("", "5a7e")
    ]
    assert intervals == [EVERY, EVERY_IN_JOB]
