"""A run with damaged records is neither counted nor trained again."""

import json
import os
from pathlib import Path

import pytest

from scalestudy.store.run_folder import RunFolder
from scalestudy.store.state import RunFiles, read_deciding_run, state_of_runs
from scalestudy.util.errors import RunError


def another_schema(file: Path) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema_version": 99}))


DAMAGES = {
    "truncated": lambda file: os.truncate(file, 60),
    "of another schema": another_schema,
}


@pytest.fixture
def done(make, records) -> RunFolder:
    folder = make()
    run = folder.new_run(folder.points()[0])
    run.append_epoch(records.epoch(1))
    run.append_epoch(records.epoch(2))
    run.write_result(records.result())
    return run


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["result.json", "point.json"])
def test_a_finished_run_with_a_damaged_record_is_called_so(
    done: RunFolder, damage: str, name: str
) -> None:
    DAMAGES[damage](done.path / name)
    assert state_of_runs([done]) == "corrupt"
    assert name in RunFiles.of(done).damage
    assert ("backup" in RunFiles.of(done).damage) == (
        damage == "truncated"
    )  # a newer version can read it


def test_a_result_that_was_edited_is_never_reported(done: RunFolder, records) -> None:
    done.write_checksums(records.result())
    assert done.result() is not None
    file = done.path / "result.json"
    stored = json.loads(file.read_text())
    file.write_text(json.dumps(stored | {"quality": 0.999}, indent=1) + "\n")
    assert done.result() is None
    assert state_of_runs([done]) == "corrupt"
    assert "result.json" in RunFiles.of(done).damage
    (done.path / "SHA256SUMS").write_text(
        "no checksum\n"
    )  # which `status --verify` names
    assert done.result().quality == 0.999


@pytest.mark.parametrize("name", ["launcher.json", "job.json"])
def test_nobody_starts_a_run_anew_while_its_owner_is_unknown_or_a_file_is_there(
    make, name: str
) -> None:
    folder = make()
    run, other = folder.new_run(folder.points()[0]), folder.points()[1]
    (run.path / name).write_text("{")
    assert state_of_runs([run]) == "corrupt"
    (folder.path / "points" / other.name).mkdir()
    (folder.path / "points" / other.name / "run-1").touch()
    assert state_of_runs(folder.runs(other.name)) == "corrupt"


def test_another_finished_run_of_the_point_counts(
    make, done: RunFolder, records
) -> None:
    DAMAGES["truncated"](done.path / "result.json")
    folder = make()
    second = folder.new_run(folder.points()[0])
    assert read_deciding_run([done, second]).run == second  # running
    second.write_failure(records.failure())
    assert read_deciding_run([done, second]).run == done
    second.write_result(records.result())
    assert read_deciding_run([done, second]).run == second


def test_a_line_that_cannot_be_parsed_is_left_out_and_no_run_goes_on_from_it(
    done: RunFolder,
) -> None:
    file = done.path / "epochs.jsonl"
    before = file.read_text().replace('"loss":1.0', '"loss":', 1)
    file.write_text(before)
    assert [record.epoch for record in done.epochs()] == [2]
    first, second = done.found_epochs()
    assert (first.word, second.word) == ("corrupt", "sound")
    assert first.why.startswith("epochs.jsonl, line 1:")
    with pytest.raises(RunError, match=r"epochs\.jsonl, line 1"):
        done.keep_epochs(2)
    assert file.read_text() == before


@pytest.mark.parametrize(
    "name", ["run-²", "run-0", "run-", "run-1e3", "run-" + "9" * 200]
)
def test_what_is_not_numbered_as_a_run_is_none(make, name: str) -> None:
    folder = make()
    point = folder.points()[0]
    (folder.path / "points" / point.name / name).mkdir(parents=True)
    assert folder.runs(point.name) == []
    assert folder.new_run(point).number == 1
