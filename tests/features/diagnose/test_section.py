import json
from dataclasses import replace

import pytest
from made_diagnosis import WHOLE, made

from scalestudy.analysis.findings import analyse
from scalestudy.analysis.statistics import Estimate
from scalestudy.features.diagnose.forms import rendered
from scalestudy.features.diagnose.kept import Kept
from scalestudy.features.diagnose.section import diagnosis_section
from scalestudy.report.sections import sections

ROUNDS = [replace(WHOLE, whole=0.10 + 0.001 * i) for i in range(3)]


def test_a_study_without_a_diagnosis_has_no_such_section():
    assert diagnosis_section(analyse("made", ())) is None


def test_the_report_shows_the_last_diagnosis_among_its_sections():
    findings = replace(analyse("made", ()), diagnosis=Kept(made(ROUNDS)))
    (section,) = [each for each in sections(findings) if each.name == "diagnosis"]
    assert section.title == "Why efficiency is lost: horovod-w2-s0"


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_form_says_the_parts_the_factors_the_advice_and_how_it_was_measured(form):
    text = rendered(Kept(made(ROUNDS)), None, form)
    for word in ("Contention", "Load balance", "launch.cpus_per_worker = 2", "jackknife", "Their product"):
        assert word in text
    assert "changed since" not in text


def test_a_study_that_has_changed_since_is_said():
    assert "The study has changed since: diagnose it again." in rendered(Kept(made(), True), None, "table")


def test_what_the_studys_own_runs_measured_stands_beside_the_twins():
    text = rendered(Kept(made(), measured=Estimate(0.48, 0.46, 0.50)), None, "table")
    assert "The study's own runs measured 48.0 ± 2.0 %." in text.replace("\n", " ")


def test_json_holds_the_record_with_its_schema_and_the_advice():
    table = json.loads(rendered(Kept(made(ROUNDS)), None, "json"))
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
    assert "No part is certain" in rendered(Kept(made([fine])), None, "table")
