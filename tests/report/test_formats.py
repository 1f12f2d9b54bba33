import csv
import io
import json
import math

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.study_table import columns
from scalestudy.report.formats import to_csv, to_json


def test_csv_holds_the_contract_and_nothing_else():
    findings = analyse("made", synthetic.oversubscribed())
    rows = list(csv.DictReader(io.StringIO(to_csv(findings.rows))))
    assert list(rows[0]) == columns()
    assert [row["workers"] for row in rows] == ["1", "2", "4"]
    assert rows[2]["speedup"] == ""
    assert float(rows[2]["throughput"]) == 140
    assert float(rows[1]["speedup_low"]) < float(rows[1]["speedup"])


def test_csv_keeps_awkward_values_whole():
    runs = [synthetic.run(swept={"train.note": 'a,"b"\nc', "train.xla": True})]
    (row,) = csv.DictReader(io.StringIO(to_csv(analyse("made", runs).rows)))
    assert row["train.note"] == 'a,"b"\nc'
    assert row["train.xla"] == "true"


def test_json_has_a_version_notes_advice_and_states():
    document = json.loads(
        to_json(analyse("made", synthetic.seeded(), synthetic.unfinished()))
    )
    assert document["schema_version"] == 1
    assert document["rows"][0]["seeds"] == [0, 1, 2]
    advice = document["advice"]
    assert (advice["strategy"], advice["workers"], advice["kind"]) == (
        "mirrored",
        2,
        "ask",
    )
    assert advice["reference"] == {"strategy": "horovod", "workers": 1, "swept": {}}
    assert (advice["time_of"], advice["cost_unit"]) == ("wall", "worker-hours")
    assert advice["cost_efficiency"]["value"] >= advice["cost_efficiency_target"] == 0.7
    assert {
        (each["strategy"], each["workers"], each["why"])
        for each in advice["passed_over"]
    } == {
        ("mirrored", 4, "cost"),
        ("mirrored", 8, "cost"),
        ("horovod", 4, "cost"),
        ("horovod", 8, "cost"),
    }
    assert {point["state"] for point in document["points"]} == {
        "failed",
        "missing",
        "running",
    }
    assert any("all but the first" in note for note in document["notes"])


def test_json_is_strict_even_for_diverged_runs():
    runs = [
        synthetic.run(quality=math.nan),
        synthetic.run("horovod", 2, quality=math.inf, throughput=0.0),
    ]
    document = json.loads(
        to_json(analyse("made", runs)), parse_constant=lambda name: 1 / 0
    )
    assert [row["quality"] for row in document["rows"]] == [None, None]


def test_json_tells_what_each_verdict_is_and_which_way_is_better():
    runs = synthetic.rows(
        "horovod", "quality", {1: (0.1, 0.101), 2: (0.2, 0.201)}, metric="mse"
    )
    reference, other = json.loads(to_json(analyse("made", runs)))["quality"]
    assert (reference["verdict"], other["verdict"]) == ("reference", "worse")
    assert reference["better"] == other["better"] == "lower"
    assert other["change"]["value"] > 0


@pytest.mark.parametrize(
    "text", ["=HYPERLINK(1)", "+1+cmd", "-1+cmd", "@SUM(A1)", "\t=1"]
)
def test_a_text_is_no_formula_in_a_spreadsheet(text):
    runs = [synthetic.run(swept={"train.note": text})]
    (row,) = csv.DictReader(io.StringIO(to_csv(analyse("made", runs).rows)))
    assert row["train.note"] == f"'{text}"


def test_json_holds_the_scaling_model_of_each_series_with_its_predictions():
    document = json.loads(
        to_json(analyse("made", synthetic.seeded((1, 2, 4, 8, 16), ("horovod",))))
    )
    (model,) = document["scaling"]
    assert model["terms"].keys() == {"compute", "fixed"}
    assert (model["update"], model["lack_of_fit"]) == ("growing", False)
    assert [each["workers"] for each in model["predicted"]] == [32, 64]
    first = model["predicted"][0]["seconds"]
    assert first["low"] < first["value"] < first["high"]
