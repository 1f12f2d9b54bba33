"""Reports of imported numbers: unknown values are blank, and nothing is claimed about them."""

import csv
import json
import re
from io import StringIO

import pytest

from elsewhere import cassava, foreign
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.runs import Run
from scalestudy.report.formats import FORMATS, Medium
from scalestudy.report.study_document import figures, report_document

APART = {"source": "published"}
LITTLE: dict[str, list[Run]] = {
    "seconds": cassava(),
    "throughput": [foreign(n, throughput=90.0 * n) for n in (1, 2)],
    "nothing but counts": [foreign(1), foreign(2)],
    "quality": [foreign(n, quality=0.9, metric="iou", seed=0) for n in (1, 2)],
}


@pytest.mark.parametrize("runs", LITTLE.values(), ids=LITTLE)
def test_every_form_is_written_whatever_is_unknown(runs: list[Run]):
    findings = analyse("elsewhere", runs)
    for name in FORMATS.names():
        text = FORMATS.get(name).render(
            findings, Medium(width=120, verbose=True, document=report_document(findings, drawn=False))
        )
        text = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)  # third-party libraries
        assert re.search("times.csv|not known|unknown", text), name
        assert "None" not in text.replace("NoneType", ""), name
        assert "nan" not in text.lower().replace("finance", "").split(), name


def test_what_is_not_known_is_an_empty_cell_and_null():
    findings = analyse("elsewhere", cassava())
    rows = list(csv.DictReader(StringIO(FORMATS.get("csv").render(findings, Medium()))))
    assert {row["throughput"] + row["quality"] for row in rows} == {""}
    assert rows[0]["taken_from"] == "times.csv, line 2"
    first = json.loads(FORMATS.get("json").render(findings, Medium()))["rows"][0]
    assert (first["seeds"], first["global_batch"]) == ([None], None)


def test_a_speed_up_from_times_is_not_drawn_as_one_of_throughput():
    drawn = [each for each in figures(analyse("elsewhere", cassava())) if each.group == "speedup"]
    assert [(each.name, each.choice) for each in drawn] == [("speedup", "of training time")]
    assert "n times shorter training" in drawn[0].caption
