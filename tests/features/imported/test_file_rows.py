"""Rows of files: separators, decimal marks, headers, comments."""

from pathlib import Path

import pytest

from scalestudy.features.imported.file_rows import read_file_rows
from scalestudy.util.errors import UserError


def rows(path: Path, text: str) -> list[list[object]]:
    path.write_text(text)
    return [list(row.cells.values()) for row in read_file_rows(path).rows]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_any_usual_separator_is_found(tmp_path: Path, separator: str):
    text = "# by hand, on 1;2 nodes\n" + "GPUs,Time (s)\n1,75\n".replace(",", separator)
    assert rows(tmp_path / "t.csv", text) == [["1", "75"]]


def test_decimal_commas_are_found_and_said(tmp_path: Path):
    path = tmp_path / "t.csv"
    assert rows(path, "GPUs;Time (s);IoU\n1;7.535,2;0,964\n2;3.829;0,951\n") == [
        ["1", "7535.2", "0.964"],
        ["2", "3829", "0.951"],
    ]
    assert read_file_rows(path).form == "Separated by semicolons, with decimal commas."


def test_percentages_may_have_a_decimal_comma(tmp_path: Path):
    assert rows(tmp_path / "t.csv", "GPUs;accuracy\n1;76,2 %\n2;75,9%\n") == [
        ["1", "76.2 %"],
        ["2", "75.9%"],
    ]


def test_numbers_with_a_comma_and_others_with_a_point_are_refused(tmp_path: Path):
    with pytest.raises(UserError, match=r"0,964 and 3\.829 in t\.csv"):
        rows(tmp_path / "t.csv", "GPUs;Time (s);IoU\n1;7535;0,964\n2;3.829;0,951\n")


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("#GPUs,Images/sec\n1,100\n", ["#GPUs", "Images/sec"]),
        ("# made by hand\n# workers,seconds\n1,100\n", ["# workers", "seconds"]),
        ("# a comment, with a comma\nworkers,seconds\n1,100\n", ["workers", "seconds"]),
        ("# 1,2\nworkers,seconds\n1,100\n", ["workers", "seconds"]),
        (",seconds,,\n0,9,,\n", ["", "seconds"]),
    ],
)
def test_the_header_is_the_first_line_or_the_comment_above_numbers(
    tmp_path: Path, text: str, header: list
):
    (tmp_path / "t.csv").write_text(text)
    found = read_file_rows(tmp_path / "t.csv")
    assert (found.header, len(found.rows)) == (header, 1)


def test_json_is_a_list_of_objects_or_an_object_of_lists(tmp_path: Path):
    for text in (
        '[{"a": 1, "b": 2}]',
        '{"rows": [{"a": 1, "b": 2}]}',
        '{"a": [1], "b": [2]}',
    ):
        assert rows(tmp_path / "t.json", text) == [[1, 2]]
    with pytest.raises(UserError, match="list of objects"):
        rows(tmp_path / "t.json", '{"a": [1], "b": [2, 3]}')
