"""Reports of imported numbers: unknown values are blank, and nothing is claimed about them."""

import csv
import json
import re
from io import StringIO

import pytest

from imported_runs import cassava, imported_run
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.runs import Run
from scalestudy.report.formats import to_csv, to_json
from scalestudy.report.study_document import figures, render_text, report_document
from scalestudy.report.write_document import html, markdown

APART = {"source": "published"}
LITTLE: dict[str, list[Run]] = {
    "seconds": cassava(),
    "throughput": [imported_run(n, throughput=90.0 * n) for n in (1, 2)],
    "nothing but counts": [imported_run(1), imported_run(2)],
    "quality": [imported_run(n, quality=0.9, metric="iou", seed=0) for n in (1, 2)],
}


@pytest.mark.parametrize("runs", LITTLE.values(), ids=LITTLE)
def test_every_form_is_written_whatever_is_unknown(runs: list[Run]):
    findings = analyse("elsewhere", runs)
    document = report_document(findings, drawn=False)
    forms = {
        "table": render_text(findings, 120, verbose=True),
        "csv": to_csv(findings.rows),
        "json": to_json(findings),
        "html": html(document),
        "markdown": markdown(document),
    }
    for name, whole in forms.items():
        text = re.sub(
            r"<script.*?</script>", "", whole, flags=re.DOTALL
        )  # third-party libraries
        assert re.search("times.csv|not known|unknown", text), name
        assert "None" not in text.replace("NoneType", ""), name
        assert "nan" not in text.lower().replace("finance", "").split(), name


def test_what_is_not_known_is_an_empty_cell_and_null():
    findings = analyse("elsewhere", cassava())
    rows = list(csv.DictReader(StringIO(to_csv(findings.rows))))
    assert {row["throughput"] + row["quality"] for row in rows} == {""}
    assert rows[0]["taken_from"] == "times.csv, line 2"
    first = json.loads(to_json(findings))["rows"][0]
    assert (first["seeds"], first["global_batch"]) == ([None], None)


def test_runs_of_numbers_from_elsewhere_are_called_imported():
    text = html(report_document(analyse("elsewhere", cassava()), drawn=False))
    assert f"Runs: {len(cassava())} imported" in text


def test_a_speed_up_from_times_is_not_drawn_as_one_of_throughput():
    drawn = [
        each
        for each in figures(analyse("elsewhere", cassava()))
        if each.group == "speedup"
    ]
    assert [(each.name, each.choice) for each in drawn] == [
        ("speedup", "of training time")
    ]
    assert "n times shorter training" in drawn[0].caption
