import json
from dataclasses import replace

import pytest

from scalestudy.analysis.findings import analyse
from scalestudy.features.diagnose.diagnosis_record import diagnoses, write_diagnosis
from scalestudy.features.diagnose.diagnosis_section import (
    StoredDiagnosis,
    diagnosis_section,
    render,
    stored_diagnosis,
)
from scalestudy.features.diagnose.suggestions import suggestions
from scalestudy.report.formats import sections
from scalestudy.store.study_folder import StudyFolder
from synthetic import run, summarise
from synthetic_diagnosis import TERMS, WHOLE, made, point

FINE = replace(
    WHOLE,
    whole=0.052,
    without_input=0.051,
    without_exchange=0.050,
    slowest=0.05,
    together=(0.05, 0.05),
    alone=0.05,
    full=0.1,
    reference=0.1,
)
UNEQUAL = replace(
    FINE, whole=0.07, without_input=0.07, without_exchange=0.07, slowest=0.07
)
CROWDED = replace(
    FINE,
    whole=0.09,
    without_input=0.09,
    without_exchange=0.09,
    slowest=0.09,
    together=(0.09, 0.09),
)
CORES, BATCH, STEPS = (
    "launch.cpus_per_worker = 2",
    "train.batch_size = 128",
    "train.steps_per_call = 8",
)


@pytest.mark.parametrize(
    ("times", "terms", "expected"),
    [
        (FINE, TERMS, []),
        (replace(FINE, whole=0.074), TERMS, [("input", 31, CORES)]),
        (
            replace(FINE, whole=0.08, without_input=0.08),
            TERMS,
            [("exchange", 38, "sweep.strategy"), ("exchange", 38, BATCH)],
        ),
        (replace(UNEQUAL, together=(0.05, 0.07)), TERMS, [("imbalance", 29, "")]),
        (UNEQUAL, TERMS, [("imbalance", 29, "")]),
        (CROWDED, TERMS, [("contention", 44, "")]),
        (
            replace(CROWDED, alone=0.09),
            TERMS,
            [("fixed", 44, STEPS), ("fixed", 44, BATCH)],
        ),
        (replace(FINE, whole=0.1, reference=0.2), TERMS, [("input", 49, CORES)]),
    ],
)
def test_each_part_has_its_settings_the_largest_gain_first(times, terms, expected):
    found = suggestions(made([times] * 2, terms))
    assert [
        (each.part, round(100 * each.share), each.setting) for each in found
    ] == expected
    for each in found:
        reduced = each.share / 2 if each.setting == BATCH else each.share
        assert each.most == pytest.approx(1 / (1 - reduced))


def test_the_slow_rank_is_named_where_there_is_one():
    (slow,) = suggestions(made([replace(UNEQUAL, together=(0.05, 0.07))] * 2))
    (none,) = suggestions(made([UNEQUAL] * 2))
    assert (
        "rank 1 on node" in slow.why and "1.40" in slow.why and "rank 1" not in none.why
    )


def test_nothing_is_advised_against_what_may_be_nothing():
    assert (
        suggestions(made([replace(FINE, whole=whole) for whole in (0.06, 0.12, 0.055)]))
        == []
    )
    assert (
        suggestions(made([replace(FINE, whole=0.12, without_input=0.08)])) == []
    )  # a single round


ROUNDS = [replace(WHOLE, whole=0.10 + 0.001 * i) for i in range(3)]


class Folder:
    """A study folder with these points."""

    def __init__(self, path, *points):
        self.path, self._points = path, points

    def points(self):
        return list(self._points)


def test_the_newest_readable_diagnosis_is_the_one_of_the_study(tmp_path):
    assert diagnoses(tmp_path) == []
    old = made(of=point(name="old")).model_copy(
        update={"made": "2020-01-01T00:00:00+00:00"}
    )
    write_diagnosis(tmp_path, old)
    file = write_diagnosis(tmp_path, made())
    assert file == tmp_path / "diagnosis" / "horovod-w2-s0" / "diagnosis.json"
    assert [each.point for each in diagnoses(tmp_path)] == ["horovod-w2-s0", "old"]
    file.write_text("{")
    assert [each.point for each in diagnoses(tmp_path)] == ["old"]


def test_a_diagnosis_is_compared_with_what_the_study_measured_and_with_its_point(
    tmp_path,
):
    rows = summarise(
        [run("horovod", 1, 0, throughput=100.0), run("horovod", 2, 0, throughput=120.0)]
    )
    found = stored_diagnosis(made(), Folder(tmp_path, point()), rows)
    assert not found.changed
    assert found.measured.value == pytest.approx(0.6)
    for points in (
        [point(batch="per-worker")],
        [],
    ):  # the study has changed or dropped it
        assert stored_diagnosis(made(), Folder(tmp_path, *points), []).changed


def test_the_report_shows_the_last_diagnosis_among_its_sections(tmp_path, monkeypatch):
    findings = replace(analyse("made", ()), folder=tmp_path)
    assert diagnosis_section(findings) is diagnosis_section(analyse("made", ())) is None
    write_diagnosis(tmp_path, made(ROUNDS))
    monkeypatch.setattr(StudyFolder, "open", lambda path: Folder(path, point()))
    (section,) = [each for each in sections(findings) if each.name == "diagnosis"]
    assert section.title == "Why efficiency is lost: horovod-w2-s0"


def test_json_holds_the_record_with_its_schema_and_the_advice():
    table = json.loads(render(StoredDiagnosis(made(ROUNDS)), "json"))
    assert table["schema_version"] == 1
    total = sum(part["share"]["value"] for part in table["parts"])
    assert total == pytest.approx(1 - table["efficiency"]["value"])
    assert table["advice"][0]["setting"]
    assert table["advice"][0]["sentence"].startswith(table["advice"][0]["part"])


def test_times_that_do_not_count_advise_nothing():
    shared = made(ROUNDS).model_copy(update={"oversubscribed": "2 workers on 1 core"})
    assert "What to change" in render(StoredDiagnosis(made(ROUNDS)), "table")
    text = render(StoredDiagnosis(shared), "table")
    assert "What to change" not in text and "nothing is advised" in text
    assert json.loads(render(StoredDiagnosis(shared), "json"))["advice"] == []


def test_a_part_that_may_be_anything_is_not_printed_as_a_share():
    diagnosis = made(ROUNDS)
    part = diagnosis.parts[0]
    wide = part.model_copy(
        update={
            "share": part.share.model_copy(
                update={"value": -0.35, "low": -1.42, "high": 0.72}
            )
        }
    )
    text = render(
        StoredDiagnosis(
            diagnosis.model_copy(update={"parts": [wide, *diagnosis.parts[1:]]})
        ),
        "table",
    )
    assert "not resolved" in text and "107" not in text
