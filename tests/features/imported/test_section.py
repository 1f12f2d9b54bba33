"""What a report states about imported numbers, and what it does not claim."""

from dataclasses import replace

from elsewhere import cassava, foreign
from scalestudy.analysis.findings import analyse
from scalestudy.features.imported.section import about, section
from scalestudy.report.formats import FORMATS, Medium
from scalestudy.report.sections import sections
from synthetic import seeded


def test_it_names_the_files_what_speed_up_is_the_ratio_of_and_unknown_seeds():
    first, basis, seeds = about(analyse("imported", cassava()))
    assert first.startswith("All runs")
    assert "whole training times" in basis
    assert "4 of them" in seeds


def test_beside_ours_it_says_how_many_runs_are_meant_and_of_ours_alone_nothing():
    theirs = [foreign(n, training_seconds=9 / n, swept={"source": "published"}) for n in (1, 2)]
    assert about(analyse("both", [*seeded((1, 2)), *theirs]))[0].startswith("2 of 14 runs")
    assert about(analyse("ours", seeded((1, 2)))) == []


def test_the_readings_come_first_among_the_sections_of_a_report_and_are_left_out_without_any():
    findings = replace(analyse("imported", cassava()), readings=("times.csv: seconds from T.",))
    assert sections(findings)[0] == section(findings)
    assert "times.csv: seconds from T." in FORMATS.get("markdown").render(findings, Medium(pictures=()))
    assert section(analyse("ours", seeded((1, 2)))) is None
