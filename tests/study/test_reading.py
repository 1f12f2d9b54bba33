"""Sound, without checksum, missing, corrupt and newer are different words, whatever lies in the place."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from scalestudy.study.reading import read_record, write_record
from scalestudy.study.records import Result


def altered(file: Path) -> None:
    file.write_text(file.read_text().replace('"quality": 0.5', '"quality": 0.9'))


def newer(file: Path) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema_version": 99}))


def older(file: Path) -> None:
    file.write_text(
        json.dumps({key: value for key, value in json.loads(file.read_text()).items() if key != "sha256"})
    )


def no_workers(file: Path) -> None:
    older(file)
    file.write_text(file.read_text().replace('"workers": 1', '"workers": 0'))


def replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        file.unlink()
        make(file)

    return change


CHANGES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "nothing": (lambda file: None, "sound", ""),
    "a re-indented file": (
        lambda file: file.write_text(json.dumps(json.loads(file.read_text()))),
        "sound",
        "",
    ),
    "an older one": (older, "without checksum", ""),
    "no file": (Path.unlink, "missing", ""),
    "half a file": (lambda file: os.truncate(file, 100), "corrupt", "no whole JSON"),
    "an empty file": (lambda file: os.truncate(file, 0), "corrupt", "it is empty"),
    "zeroes": (lambda file: file.write_bytes(b"\0" * 300), "corrupt", "no whole JSON"),
    "an altered figure": (altered, "corrupt", "its checksum is not that of its content"),
    "no workers": (no_workers, "corrupt", "workers: Input should be greater than 0"),
    "another record": (replaced(lambda file: file.write_text("{}")), "corrupt", "Field required"),
    "a list": (replaced(lambda file: file.write_text("[]")), "corrupt", "no JSON table"),
    "a later schema": (newer, "newer", "is of schema 99, and this version knows 1"),
    "a folder": (replaced(Path.mkdir), "corrupt", "it is a folder"),
    "a pipe": (replaced(os.mkfifo), "corrupt", "no regular file"),
    "a loop of links": (replaced(lambda file: file.symlink_to(file)), "corrupt", "symbolic links"),
    "a huge file": (lambda file: os.truncate(file, 2**40), "corrupt", "bytes are more than"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_has_its_word_and_its_reason(tmp_path: Path, records, change: str) -> None:
    file = tmp_path / "result.json"
    write_record(file, records.result())
    act, word, why = CHANGES[change]
    act(file)
    found = read_record(file, Result)
    assert (found.word, found.damaged) == (word, word in ("corrupt", "newer"))
    assert why in found.why
    assert found.record == (records.result() if word in ("sound", "without checksum") else None)


def test_a_file_in_the_place_of_a_folder_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "run-1").touch()
    found = read_record(tmp_path / "run-1" / "result.json", Result)
    assert (found.word, found.why) == ("corrupt", "result.json cannot be read: Not a directory")


def test_a_person_can_read_the_record(tmp_path: Path, records) -> None:
    write_record(tmp_path / "a.json", records.result())
    lines = (tmp_path / "a.json").read_text().splitlines()
    assert ' "quality": 0.5,' in lines
    assert lines[-2].startswith(' "sha256": "')
