import json
from dataclasses import replace

import pytest

from scalestudy.analysis.findings import analyse
from scalestudy.analysis.statistics import Estimate
from scalestudy.features.diagnose.records import diagnoses, write_diagnosis
from scalestudy.features.diagnose.section import (
    StoredDiagnosis,
    bars,
    diagnosis_section,
    rendered,
    stored_diagnosis,
    waterfall,
)
from scalestudy.report.images import Picture
from scalestudy.report.sections import sections
from scalestudy.study.store import StudyFolder
from synthetic import run, summarise
from synthetic_diagnosis import WHOLE, made, point

ROUNDS = [replace(WHOLE, whole=0.10 + 0.001 * i) for i in range(3)]


class Folder:
    """A study folder with these points."""

    def __init__(self, path, *points):
        self.path, self._points = path, points

    def points(self):
        return list(self._points)


def test_the_newest_readable_diagnosis_is_the_one_of_the_study(tmp_path):
    assert diagnoses(tmp_path) == []
    old = made(of=point(name="old")).model_copy(update={"made": "2020-01-01T00:00:00+00:00"})
    write_diagnosis(tmp_path, old)
    file = write_diagnosis(tmp_path, made())
    assert file == tmp_path / "diagnosis" / "horovod-w2-s0" / "diagnosis.json"
    assert [each.point for each in diagnoses(tmp_path)] == ["horovod-w2-s0", "old"]
    file.write_text("{")
    assert [each.point for each in diagnoses(tmp_path)] == ["old"]


def test_a_diagnosis_is_compared_with_what_the_study_measured(tmp_path):
    rows = summarise([run("horovod", 1, 0, throughput=100.0), run("horovod", 2, 0, throughput=120.0)])
    found = stored_diagnosis(made(), Folder(tmp_path, point()), rows)
    assert not found.changed
    assert found.measured.value == pytest.approx(0.6)


def test_a_point_that_the_study_has_changed_or_dropped_has_changed(tmp_path):
    assert stored_diagnosis(made(), Folder(tmp_path, point(batch="per-worker")), []).changed
    assert stored_diagnosis(made(), Folder(tmp_path), []).changed


def test_the_report_shows_the_last_diagnosis_among_its_sections(tmp_path, monkeypatch):
    findings = replace(analyse("made", ()), folder=tmp_path)
    assert diagnosis_section(findings) is diagnosis_section(analyse("made", ())) is None
    write_diagnosis(tmp_path, made(ROUNDS))
    monkeypatch.setattr(StudyFolder, "open", lambda path: Folder(path, point()))
    (section,) = [each for each in sections(findings) if each.name == "diagnosis"]
    assert section.title == "Why efficiency is lost: horovod-w2-s0"


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_form_says_the_parts_the_advice_and_how_it_was_measured(form):
    text = rendered(StoredDiagnosis(made(ROUNDS)), form)
    for word in ("Contention", "launch.cpus_per_worker = 2", "jackknife", "Over the others"):
        assert word in text
    assert "changed since" not in text


def test_what_the_studys_own_runs_measured_stands_beside_the_ablations():
    text = rendered(StoredDiagnosis(made(), measured=Estimate(0.48, 0.46, 0.50)), "table")
    assert "The study's own runs measured 48.0 ± 2.0 %." in text.replace("\n", " ")


def test_json_holds_the_record_with_its_schema_and_the_advice():
    table = json.loads(rendered(StoredDiagnosis(made(ROUNDS)), "json"))
    assert table["schema_version"] == 1
    total = sum(part["share"]["value"] for part in table["parts"])
    assert total == pytest.approx(1 - table["efficiency"]["value"])
    assert table["advice"][0]["setting"]
    assert table["advice"][0]["sentence"].startswith(table["advice"][0]["part"])


def test_without_anything_certain_nothing_is_advised():
    fine = replace(
        WHOLE, whole=0.05, without_input=0.05, without_exchange=0.05, slowest=0.05, together=(0.05, 0.05),
        alone=0.05, full=0.1,
    )  # fmt: skip
    assert "No part certainly" in rendered(StoredDiagnosis(made([fine] * 2)), "table")


def test_bars_lead_from_the_ideal_to_the_efficiency_without_a_gap():
    found = bars(made())
    assert [bar["label"] for bar in found] == [
        "Ideal", "Input", "Exchange", "Imbalance", "Contention", "Fixed cost", "Rest", "E(2)",
    ]  # fmt: skip
    at = 100.0
    for bar in found[1:-1]:
        assert (bar["end"] if bar["kind"] == "lost" else bar["start"]) == pytest.approx(at)
        at = bar["start"] if bar["kind"] == "lost" else bar["end"]
    assert at == pytest.approx(found[-1]["end"]) == pytest.approx(50.0)


def test_a_part_that_gains_has_a_colour_of_its_own():
    found = bars(made([replace(WHOLE, without_exchange=0.09)]))
    exchange = next(bar for bar in found if bar["label"] == "Exchange")
    assert exchange["kind"] == "gained" and exchange["end"] - exchange["start"] == pytest.approx(10)


def test_the_figure_can_be_drawn():
    assert Picture(waterfall(made([WHOLE, replace(WHOLE, whole=0.11)]))).svg.count("E(2)") >= 1
