"""`scalestudy report --from`: imported numbers."""

import csv
import json
from io import StringIO
from pathlib import Path

import pytest

import synthetic

TABLE = "GPUs,T [min],iou\n1,125.6,0.964\n2,63.8,0.951\n4,37.3,0.951\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "native.csv"
    path.write_text(TABLE)
    return path


def test_a_table_of_others_is_printed_like_a_study(call, table: Path):
    code, text, _ = call(
        *(
            "report",
            "--from",
            table,
            "--column",
            "training_seconds=T [min]",
            "--strategy",
            "native",
        ),
        *("--format", "markdown"),
    )
    assert code == 0
    assert "native" in text
    assert "3.37" in text
    assert "How the numbers were read" in text


def test_it_comes_in_every_form_and_goes_to_a_file(call, table: Path, tmp_path: Path):
    said = ("--from", table, "--column", "training_seconds=T [min]")
    rows = list(csv.DictReader(StringIO(call("report", *said, "--format", "csv")[1])))
    assert [row["taken_from"] for row in rows] == [
        f"native.csv, line {line}" for line in (2, 3, 4)
    ]
    assert (
        json.loads(call("report", *said, "--format", "json")[1])["rows"][0]["metric"]
        == "iou"
    )
    file = tmp_path / "table.csv"
    assert call("report", *said, "--format", "csv", "--out", file)[0] == 0
    assert "native.csv, line 3" in file.read_text()


@pytest.mark.parametrize(
    ("words", "way"),
    [
        (("--from", "no.csv"), "Correct the name after --from."),
        (("--from", "{table}", "--better", "best"), "higher"),
        (("--from", "{table}", "--column", "workers"), "Correct --column."),
        (
            ("--from", "{table}", "--column", "training_seconds=T"),
            "Correct --column training_seconds=NAME.",
        ),
        (
            (
                "--from",
                "{table}",
                "--column",
                "training_seconds=T [min]",
                "--format",
                "html",
            ),
            "--out report.html",
        ),
        (
            ("--from", "{table}", "--format", "csv", "--out", "{table}"),
            "Name another with --out.",
        ),
        ((), "Name a study file or a results folder"),
        (("--strategy", "native"), "Name a study file or a results folder"),
    ],
)
def test_what_is_wrong_ends_with_2_and_the_way_out(
    call, table: Path, words: tuple[str, ...], way: str
):
    code, _, errors = call(
        "report", *(word.replace("{table}", str(table)) for word in words)
    )
    assert code == 2
    assert way in " ".join(errors.split())


def test_imported_numbers_are_decided_for_a_goal_as_studies_are(
    call, tmp_path: Path, published_logs
):
    for name, log in published_logs.items():
        (tmp_path / name).write_text(log)
    given = (
        "advise",
        "--from",
        tmp_path,
        "--strategy",
        "native",
        "--bill",
        "gpu",
        "--format",
        "json",
    )
    answer = json.loads(call(*given, "--deadline", "40min")[1])
    best = answer["best"]
    assert (best["strategy"], best["workers"], best["seconds"]["value"]) == (
        "horovod",
        6,
        1292,
    )
    assert (answer["cost_unit"], best["cost"]["value"]) == (
        "gpu-hours",
        pytest.approx(6 * 1292 / 3600),
    )
    strict = json.loads(call(*given, "--efficiency", "0.99")[1])
    assert (strict["best"]["strategy"], strict["best"]["workers"]) == ("native", 1)
    assert any("Not used: test_time." in text for text in strict["readings"])


def test_a_deadline_needs_the_time_of_a_whole_training(call, tmp_path: Path):
    (tmp_path / "t.csv").write_text("gpus,time_per_epoch\n1,100\n2,55\n")
    assert "No row states the time of a whole training" in call(
        "advise", "--from", tmp_path / "t.csv", "--deadline", "1h"
    )[1].replace("\n", " ")


def test_columns_say_which_time_is_known(call, tmp_path: Path):
    table = tmp_path / "t.csv"
    table.write_text("gpus,img/s\n1,100\n2,190\n")
    assert " time " not in call("report", "--from", table)[1]
    table.write_text("gpus,time_per_epoch\n1,100\n2,55\n")
    text = call("report", "--from", table)[1]
    assert " epoch s " in text and " time " not in text


def test_the_printed_report_names_what_was_left_out_and_not_used(call, tmp_path: Path):
    table = tmp_path / "t.csv"
    table.write_text("gpus,host,time,accuracy\n1,a,100,.9\n2,b,ERROR,.9\n4,c,30,.91\n")
    text = " ".join(call("report", "--from", table)[1].split())
    assert "left out: line 3: training_seconds is ERROR, which is not a number." in text
    assert "Not used: host." in text


def test_an_option_on_numbers_of_others_needs_some(call, tmp_path: Path):
    own = synthetic.write(
        tmp_path / "ours", "ours", synthetic.seeded((1,), ("horovod",))
    )
    code, _, errors = call("report", own.path, "--strategy", "native")
    assert code == 2
    assert "Add --from" in errors
    table = tmp_path / "t.csv"
    table.write_text(TABLE)
    assert (
        call(
            "report", own.path, "--from", table, "--column", "training_seconds=T [min]"
        )[0]
        == 2
    )


def test_a_metric_that_is_neither_a_column_nor_known_is_refused_unless_its_direction_is_said(
    call, tmp_path
):
    table = tmp_path / "t.csv"
    table.write_text("workers,throughput,quality\n1,100,0.5\n2,190,0.5\n")
    words = ("report", "--from", table, "--format", "csv", "--metric")
    assert call(*words, "acuracy")[0] == 2
    assert (
        call(*words, "accuracy")[0]
        == call(*words, "acuracy", "--better", "higher")[0]
        == 0
    )
