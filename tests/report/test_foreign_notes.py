"""Reports of numbers that were taken elsewhere: what is not known is blank, and nothing is claimed of it."""

import csv
import json
from io import StringIO

import pytest
from elsewhere import cassava, foreign
from made import seeded

from scalestudy.analysis.findings import Findings, analyse
from scalestudy.analysis.runs import Run
from scalestudy.report.formats import FORMATS, Medium
from scalestudy.report.notes import notes

APART = {"source": "published"}
LITTLE: dict[str, list[Run]] = {
    "seconds": cassava(),
    "throughput": [foreign(n, throughput=90.0 * n) for n in (1, 2)],
    "nothing but counts": [foreign(1), foreign(2)],
    "quality": [foreign(n, quality=0.9, metric="iou", seed=0) for n in (1, 2)],
    "beside ours": [*seeded((1, 2)), *(foreign(n, training_seconds=9 / n, swept=APART) for n in range(1, 5))],
}  # fmt: skip


@pytest.mark.parametrize("runs", LITTLE.values(), ids=LITTLE)
def test_every_form_is_written_whatever_is_unknown(runs: list[Run]):
    findings = analyse("elsewhere", runs)
    for name in FORMATS.names():
        if name == "extrap":  # which refuses fewer than five counts
            continue
        text = FORMATS.get(name).render(findings, Medium(width=120, pictures=()))
        if isinstance(text, bytes):
            continue
        assert "times.csv" in text or "not known" in text, name
        assert "None" not in text.replace("NoneType", ""), name
        assert "nan" not in text.lower().replace("finance", "").split(), name


def rows_of(findings: Findings) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(FORMATS.get("csv").render(findings, Medium()))))


def test_what_is_not_known_is_an_empty_cell_and_null():
    findings = analyse("elsewhere", cassava())
    assert {row["throughput"] for row in rows_of(findings)} == {""}
    assert {row["quality"] for row in rows_of(findings)} == {""}
    assert rows_of(findings)[0]["taken_from"] == "times.csv, line 2"
    document = json.loads(FORMATS.get("json").render(findings, Medium()))
    assert document["rows"][0]["seeds"] == [None]
    assert document["rows"][0]["global_batch"] is None


def test_nothing_is_claimed_of_numbers_from_elsewhere():
    text = " ".join(notes(analyse("elsewhere", cassava())))
    assert "All runs were measured elsewhere, and taken from times.csv (table)" in text
    assert "whole training times, which takes for granted that all did the same work" in text
    assert "really processed" not in text
    assert "each sample once, whatever" not in text


def test_beside_ours_it_is_said_which_are_from_elsewhere():
    text = " ".join(notes(analyse("both", LITTLE["beside ours"])))
    assert "4 of 16 runs were measured elsewhere" in text
    assert "Throughput counts the samples really processed" in text
    assert not any("elsewhere" in note for note in notes(analyse("ours", seeded((1, 2)))))
