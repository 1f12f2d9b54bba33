"""What a large study is remembered by is never believed against its files."""

import os
import pickle
from io import BytesIO

import pytest

from made_result import result_of
from scalestudy.launch import status as looking
from scalestudy.launch.status import study_status
from scalestudy.study import remembered, store
from scalestudy.study.expand import expand
from scalestudy.study.parse import parse_study
from scalestudy.study.store import StudyFolder

TEXT = 'task = "cnn"\n[sweep]\nworkers = [1, 2]\nseed = [0, 1]\n'


@pytest.fixture
def folder(tmp_path, monkeypatch) -> StudyFolder:
    """A study of four points that is large by these limits, three of them done long ago."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(looking, "WORTH", 1)
    monkeypatch.setattr(looking, "NEW", 0)
    monkeypatch.setattr(store, "LARGE", 1)
    monkeypatch.setattr(remembered, "SETTLED", -1.0)
    study = parse_study(TEXT, tmp_path / "study.toml")
    made = StudyFolder.create_or_open(tmp_path / "results", study, expand(study, gpus=0, cores=8), TEXT)
    for point in made.points()[:3]:
        made.new_run(point).write_result(result_of(point))
    return made


def states(folder: StudyFolder) -> list[str]:
    return [each.state for each in study_status(StudyFolder.open(folder.path)).points]


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the records that are parsed from here on."""
    from scalestudy.study import run_folder

    found: list[str] = []
    for module in (run_folder, store):

        def read(path, kind, before=module.read_record):
            found.append(path.name)
            return before(path, kind)

        monkeypatch.setattr(module, "read_record", read)
    return found


def test_finished_runs_are_not_parsed_twice_and_are_the_same(folder, monkeypatch):
    first = study_status(StudyFolder.open(folder.path))
    monkeypatch.setattr(remembered, "_last", None)  # as in a new process
    parsed = reads(monkeypatch)
    again = study_status(StudyFolder.open(folder.path))
    assert again == first and [each.state for each in again.points] == ["done"] * 3 + ["missing"]
    assert "result.json" not in parsed and "point.json" not in parsed and "study.json" not in parsed


@pytest.mark.parametrize("name", ["result.json", "point.json"])
def test_a_record_that_was_altered_since_is_found_corrupt(folder, name):
    assert states(folder)[0] == "done"
    run = study_status(folder).points[0].run
    file = run.path / name
    file.write_text(file.read_text().replace('"seed": 0', '"seed": 7'))
    assert states(folder)[0] == "corrupt"


def test_a_run_that_was_removed_or_added_since_counts(folder):
    assert states(folder)[:2] == ["done", "done"]
    first, second = folder.points()[:2]
    os.rename(folder.path / "points" / first.name, folder.path / "points" / "elsewhere")
    newer = folder.new_run(second)
    newer.write_result(result_of(second, quality=0.5))
    found = study_status(StudyFolder.open(folder.path))
    assert found.points[0].state == "missing" and found.points[1].result.quality == 0.5


def test_what_was_just_written_is_not_kept(folder, monkeypatch):
    monkeypatch.setattr(remembered, "SETTLED", 3600.0)
    study_status(folder)
    assert remembered.recall(folder.path).runs == {}


@pytest.mark.parametrize("harm", ["torn", "foreign", "open", "of another version"])
def test_a_cache_that_cannot_be_gone_by_is_gone_without(folder, harm, monkeypatch):
    expected = states(folder)
    (file,) = (folder.path.parent / "cache" / "scalestudy" / "studies").iterdir()
    monkeypatch.setattr(remembered, "_last", None)
    if harm == "torn":
        os.truncate(file, 50)
    elif harm == "foreign":
        file.write_bytes(pickle.dumps(os.getcwd))
    elif harm == "open":
        file.chmod(0o666)
    else:
        monkeypatch.setattr(remembered, "FORM", 99)
    assert remembered.recall(folder.path).runs == {}
    assert states(folder) == expected


def test_nothing_but_records_is_made_of_a_cache(folder):
    states(folder)
    (file,) = (folder.path.parent / "cache" / "scalestudy" / "studies").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    with pytest.raises(pickle.UnpicklingError, match="system"):
        remembered._Reader(BytesIO(pickle.dumps(os.system))).load()
    with pytest.raises(pickle.UnpicklingError, match="rmtree"):  # what a module of ours imports
        remembered._Reader(BytesIO(b"\x80\x04\x8c\x16scalestudy.study.store\x8c\rshutil.rmtree\x93.")).load()


def test_a_cache_that_cannot_be_written_is_no_error(folder, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert states(folder) == ["done"] * 3 + ["missing"]
