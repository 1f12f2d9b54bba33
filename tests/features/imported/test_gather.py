"""Several imported files at once."""

import os
from cProfile import Profile
from dataclasses import replace
from pathlib import Path

import pytest

from imported_runs import cassava
from scalestudy.analysis.findings import analyse
from scalestudy.features.imported.assumptions import about, section
from scalestudy.features.imported.gather import gather_runs, import_findings
from scalestudy.report.formats import sections
from scalestudy.report.study_document import render_text, report_document
from scalestudy.report.write_document import markdown
from scalestudy.util.errors import UserError
from synthetic import seeded

TABLE = "gpus,seconds\n1,100\n2,55\n"


def test_files_that_hold_the_same_points_are_studies_of_their_own(read):
    imported = read({"juwels.csv": TABLE, "lumi.csv": "gpus,seconds\n1,90\n2,60\n"})
    assert {str(run.result.swept["source"]) for run in imported.runs} == {
        "juwels.csv",
        "lumi.csv",
    }
    rows = analyse("both", imported.runs).rows
    assert [
        row.speed.steady.value for row in rows if row.workers == 2
    ] == pytest.approx([100 / 55, 1.5])


def test_one_point_in_several_files_is_repeated(read):
    imported = read(
        {"run1/w2.csv": "gpus,seconds\n2,17\n", "run2/w2.csv": "gpus,seconds\n2,17.2\n"}
    )
    assert [row.runs for row in analyse("repeats", imported.runs).rows] == [2]
    assert [run.source.file for run in imported.runs] == ["run1/w2.csv", "run2/w2.csv"]
    assert any(
        "run1/w2.csv, line 2; run2/w2.csv, line 2" in text for text in imported.readings
    )


def test_folders_of_other_names_hold_other_studies_not_repeats(read):
    imported = read(
        {"juwels/w2.csv": "gpus,seconds\n2,17\n", "lumi/w2.csv": "gpus,seconds\n2,11\n"}
    )
    assert {str(run.result.swept["source"]) for run in imported.runs} == {
        "juwels",
        "lumi",
    }


def test_a_table_beside_logs_of_the_same_points_is_a_study_of_its_own(read):
    log = ",time_per_epoch,loss,iou\n0,9,1,.5\n1,8,.5,.5\n"
    imported = read(
        {"log_1.csv": log, "log_2.csv": log, "table.csv": "gpus,epoch_time\n1,8\n2,5\n"}
    )
    assert [run.result.swept["source"] for run in imported.runs] == [
        "single files"
    ] * 2 + ["table.csv"] * 2


def test_a_folder_is_read_and_what_is_no_numbers_is_named(read, tmp_path: Path):
    files = {
        "a.csv": TABLE,
        "notes.md": "# Notes\n",
        "x/secret_8.csv": "nothing\n",
        ".hidden.csv": TABLE,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    imported = gather_runs([str(tmp_path)])
    assert [run.source.file for run in imported.runs] == ["a.csv", "a.csv"]
    assert (
        "notes.md" in imported.readings[-1] and "secret_8.csv" in imported.readings[-1]
    )


def test_patterns_and_several_sources_are_read_each_file_once(tmp_path: Path):
    for count in (1, 2, 10):
        log = f"epoch,time_per_epoch,loss\n0,{9 / count},1\n1,{8 / count},.5\n"
        (tmp_path / f"log_{count}.csv").write_text(log)
    imported = gather_runs([str(tmp_path / "log_*.csv"), str(tmp_path / "log_10.csv")])
    assert [run.result.workers for run in imported.runs] == [1, 2, 10]


def test_a_folder_of_a_study_is_no_file_of_numbers(tmp_path: Path):
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(UserError, match="scalestudy compare"):
        gather_runs([str(tmp_path)])


def _calls(path: Path, strategies: int) -> int:
    """The calls of functions that a report on a table of so many strategies takes."""
    rows = "".join(
        f"s{s},{n},{100 / n},.9\n" for s in range(strategies) for n in (1, 2)
    )
    path.write_text(f"strategy,gpus,time,accuracy\n{rows}")
    profile = Profile()
    profile.runcall(import_findings, [str(path)])
    return sum(entry.callcount for entry in profile.getstats())


def test_the_work_of_a_report_grows_linearly_with_the_rows(tmp_path: Path):
    _calls(tmp_path / "t.csv", 1)  # imports modules
    assert _calls(tmp_path / "t.csv", 160) < 2.2 * _calls(tmp_path / "t.csv", 80)


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
        "pipe.csv": "Save its contents to a file first.",
        "folder": "Name another with --from.",
        "run.png": "Write a CSV file",
    }.items():
        with pytest.raises(UserError, match=name) as refused:
            gather_runs([str(tmp_path / name)])
        assert action in refused.value.action


def test_terminals_are_shown_no_control_characters_of_others(read):
    imported = read({"t.csv": "gpus,seconds,strategy\n1,2,\x1b[31mred\x07\n"})
    assert "\x1b" not in imported.runs[0].result.strategy + " ".join(imported.readings)


def test_the_readings_come_first_in_a_report_and_name_what_is_assumed():
    imported = analyse("imported", cassava())
    _, basis, seeds = about(imported)
    assert "whole training times" in basis and "4 of them" in seeds
    readings = ("times.csv: seconds from T.",)
    findings = replace(imported, readings=readings, assumptions=tuple(about(imported)))
    assert sections(findings)[0] == section(findings)
    assert basis in markdown(report_document(findings, drawn=False))
    assert "times.csv: seconds from T." in render_text(findings)
    ours = analyse("ours", seeded((1, 2)))
    assert section(ours) is None and about(ours) == []
