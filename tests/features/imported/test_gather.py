"""Several imported files at once."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from imported_runs import cassava
from scalestudy.analysis.findings import analyse
from scalestudy.features.imported.gather import about, gather, section
from scalestudy.report.formats import sections
from scalestudy.report.study_document import report_document
from scalestudy.report.write_document import markdown
from scalestudy.util.errors import UserError
from synthetic import seeded

TABLE = "gpus,seconds\n1,100\n2,55\n"


def test_files_that_hold_the_same_points_are_studies_of_their_own(read):
    imported = read({"juwels.csv": TABLE, "lumi.csv": "gpus,seconds\n1,90\n2,60\n"})
    assert {str(run.result.swept["source"]) for run in imported.runs} == {"juwels.csv", "lumi.csv"}
    rows = analyse("both", imported.runs).rows
    assert [row.speed.steady.value for row in rows if row.workers == 2] == pytest.approx([100 / 55, 1.5])


def test_one_point_in_several_files_is_repeated(read):
    imported = read({"a/w2.csv": "gpus,seconds\n2,17\n", "b/w2.csv": "gpus,seconds\n2,17.2\n"})
    assert [row.runs for row in analyse("repeats", imported.runs).rows] == [2]
    first, second = (run.source.file for run in imported.runs)
    assert first.endswith("a/w2.csv") and second.endswith("b/w2.csv")


def test_a_seed_that_two_runs_of_a_point_state_pairs_with_none(read):
    imported = read({"t.csv": "gpus,seed,seconds\n1,0,10\n1,0,11\n2,0,6\n"})
    assert [run.result.seed for run in imported.runs] == [None, None, 0]
    assert any("same seed" in text for text in imported.readings)


def test_what_is_no_file_of_numbers_is_refused_by_name(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "run.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (tmp_path / "folder").mkdir()
    for name, action in {
        "no.csv": "Correct the name after --from.",
        "pipe.csv": "Correct the name after --from.",
        "folder": "Correct the name after --from.",
        "run.png": "Write a CSV file",
    }.items():
        with pytest.raises(UserError, match=name) as refused:
            gather([str(tmp_path / name)])
        assert action in refused.value.action


def test_terminals_are_shown_no_control_characters_of_others(read):
    imported = read({"t.csv": "gpus,seconds,strategy\n1,2,\x1b[31mred\x07\n"})
    assert "\x1b" not in imported.runs[0].result.strategy + " ".join(imported.readings)


def test_the_readings_come_first_in_a_report_and_name_what_is_assumed():
    imported = analyse("imported", cassava())
    _, basis, seeds = about(imported)
    assert "whole training times" in basis and "4 of them" in seeds
    findings = replace(imported, readings=("times.csv: seconds from T.",))
    assert sections(findings)[0] == section(findings)
    assert "times.csv: seconds from T." in markdown(report_document(findings, drawn=False))
    ours = analyse("ours", seeded((1, 2)))
    assert section(ours) is None and about(ours) == []
