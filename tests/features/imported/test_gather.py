"""Several files at once."""

from pathlib import Path

import pytest

from scalestudy.analysis.findings import analyse
from scalestudy.analysis.frames import as_frame
from scalestudy.errors import UserError
from scalestudy.features.imported.gather import gather

TABLE = "gpus,seconds\n1,100\n2,55\n"


def test_a_folder_is_read_and_what_is_no_numbers_is_named(read):
    found = read(
        {"a.csv": TABLE, "notes.md": "# Notes\n", "x/secret_8.csv": "nothing\n", ".hidden.csv": TABLE}
    )
    assert len(found.runs) == 2
    assert "notes.md" in found.readings[-1]
    assert "secret_8.csv" in found.readings[-1]


def test_patterns_and_several_sources_are_read_each_file_once(tmp_path: Path):
    for count in (1, 2, 8):
        (tmp_path / f"log_{count}.csv").write_text(
            f"epoch,time_per_epoch,loss\n0,{9 / count},1\n1,{8 / count},.5\n"
        )
    found = gather([str(tmp_path / "log_*.csv"), str(tmp_path / "log_8.csv")])
    assert sorted(run.result.workers for run in found.runs) == [1, 2, 8]


def test_files_that_hold_the_same_points_are_studies_of_their_own(read):
    found = read({"juwels.csv": TABLE, "lumi.csv": "gpus,seconds\n1,90\n2,60\n"})
    assert {str(run.result.swept["source"]) for run in found.runs} == {"juwels.csv", "lumi.csv"}
    rows = analyse("both", found.runs).rows
    assert [row.speed.steady.value for row in rows if row.workers == 2] == pytest.approx([100 / 55, 1.5])


def test_one_point_in_several_files_is_repeated(read):
    log = "epoch,time_per_epoch,loss\n0,9,1\n1,{},.5\n"
    found = read({"a/log_2.csv": log.format(8), "b/log_2.csv": log.format(8.2)})
    rows = analyse("repeats", found.runs).rows
    assert [row.runs for row in rows] == [2]
    assert sorted(str(run.source) for run in found.runs) == [
        "a/log_2.csv, lines 2-3",
        "b/log_2.csv, lines 2-3",
    ]


def test_a_line_that_was_written_twice_counts_once_and_one_seed_twice_is_no_pair(read):
    found = read({"t.csv": "gpus,seed,seconds\n1,0,10\n1,0,10\n1,0,11\n2,0,6\n"})
    assert [run.result.training_seconds for run in found.runs] == [10, 11, 6]
    assert [run.result.seed for run in found.runs] == [None, None, 0]
    assert "t.csv, line 3 says what t.csv, line 2 does" in " ".join(found.readings)


def test_a_study_of_ours_a_name_that_is_nothing_and_an_empty_folder_are_refused(tmp_path: Path):
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(UserError, match="scalestudy report DIR --from FILE"):
        gather([str(tmp_path)])
    with pytest.raises(UserError, match="a file that exists"):
        gather([str(tmp_path / "no.csv")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="which holds none"):
        gather([str(tmp_path / "empty")])


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path):
    for name, content in (("run.png", b"\x89PNG\r\n\x1a\n\0\0"), ("empty.csv", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=name):
            gather([str(tmp_path / name)])


def test_terminals_are_shown_no_control_characters_of_others(read):
    found = read({"t.csv": "gpus,seconds,strategy\n1,2,\x1b[31mred\x07\n"})
    assert "\x1b" not in found.runs[0].result.strategy + " ".join(found.readings)


def test_columns_of_others_that_are_called_like_ours_are_no_swept_keys(read):
    rows = ["1,a,\x07,10", "1,b,y,11", "2,a,\x07,6", "2,b,y,7"]
    found = read({"t.csv": "\n".join(["gpus,taken_from,\x1b[31mkey,seconds", *rows])})
    assert [list(run.result.swept) for run in found.runs] == [["key"]] * 4
    assert "taken_from" in found.readings[0]
    frame = as_frame(analyse("t", found.runs).rows)
    assert frame["taken_from"][0] == "t.csv, line 2"


def test_of_many_runs_a_row_names_the_first(read):
    rows = analyse(
        "t", read({"t.csv": "gpus,seconds\n" + "".join(f"1,{k + 1}\n" for k in range(50))}).runs
    ).rows
    assert (rows[0].source or "").endswith("t.csv, line 9 and 42 more")


def test_it_is_said_how_to_name_a_strategy_that_no_line_names(read):
    def asks(found):
        return any("--strategy NAME" in said for said in found.readings)

    assert asks(read({"times.csv": TABLE}))
    assert not asks(read({"named.csv": "strategy,gpus,seconds\nhorovod,1,100\nhorovod,2,55\n"}))
