import pytest
from made import run
from made_diagnosis import made, point

from scalestudy.analysis.table import summarise
from scalestudy.features.diagnose.kept import last_diagnosis
from scalestudy.features.diagnose.records import write_diagnosis


class Folder:
    """A study's folder that asks for these points."""

    def __init__(self, path, *points):
        self.path, self._points = path, points

    def points(self):
        return list(self._points)


def test_a_study_without_one_keeps_none(tmp_path):
    assert last_diagnosis(Folder(tmp_path), []) is None


def test_the_newest_diagnosis_is_kept_beside_what_the_study_measured(tmp_path):
    old = made(of=point(name="old")).model_copy(update={"made": "2020-01-01T00:00:00+00:00"})
    write_diagnosis(tmp_path, old)
    file = write_diagnosis(tmp_path, made())
    assert file == tmp_path / "diagnosis" / "horovod-w2-s0" / "diagnosis.json"
    rows = summarise([run("horovod", 1, 0, throughput=100.0), run("horovod", 2, 0, throughput=120.0)])
    found = last_diagnosis(Folder(tmp_path, point()), rows)
    assert found.diagnosis.point == "horovod-w2-s0"
    assert not found.changed
    assert found.measured.value == pytest.approx(0.6)


def test_a_point_that_the_study_asks_for_otherwise_by_now_has_changed(tmp_path):
    write_diagnosis(tmp_path, made())
    assert last_diagnosis(Folder(tmp_path, point(batch="per-worker")), []).changed
    assert last_diagnosis(Folder(tmp_path), []).changed


def test_a_torn_diagnosis_is_passed_over(tmp_path):
    write_diagnosis(tmp_path, made()).write_text("{")
    assert last_diagnosis(Folder(tmp_path, point()), []) is None
