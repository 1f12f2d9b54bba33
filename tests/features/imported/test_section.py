"""What a report says of imported numbers, and what it does not claim of them."""

from dataclasses import replace

from elsewhere import cassava, foreign
from made import seeded

from scalestudy.analysis.findings import analyse
from scalestudy.features.imported.section import about, section


def test_it_names_the_files_what_speed_up_is_the_ratio_of_and_unknown_seeds():
    first, basis, seeds = about(analyse("imported", cassava()))
    assert first.startswith("All runs")
    assert "times.csv" in first
    assert "whole training times" in basis
    assert "4 of them" in seeds


def test_beside_ours_it_says_how_many_runs_are_meant_and_of_ours_alone_nothing():
    theirs = [foreign(n, training_seconds=9 / n, swept={"source": "published"}) for n in (1, 2)]
    assert about(analyse("both", [*seeded((1, 2)), *theirs]))[0].startswith("2 of 14 runs")
    assert about(analyse("ours", seeded((1, 2)))) == []


def test_the_section_holds_the_readings_and_is_left_out_without_any():
    findings = analyse("imported", cassava())
    assert section(findings) is None
    made = section(replace(findings, readings=("times.csv (table): …",)))
    assert made is not None
    assert made.blocks[0].items == ("times.csv (table): …",)
