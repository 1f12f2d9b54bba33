"""A record is sound, missing or corrupt, whatever is in its place; reading it never raises."""

import json
import os
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from scalestudy.store.record_file import (
    CHECKSUMS,
    read_checksums,
    read_record,
    write_checksums,
    write_record,
)
from scalestudy.store.records import Result


def replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        file.unlink()
        make(file)

    return change


def changed(key: str, value: object) -> Callable[[Path], object]:
    return lambda file: file.write_text(
        json.dumps(json.loads(file.read_text()) | {key: value})
    )


CHANGES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "nothing": (lambda file: None, "sound", ""),
    "an unknown key": (changed("unknown", 1), "sound", ""),
    "no file": (Path.unlink, "missing", ""),
    "half a file": (
        lambda file: os.truncate(file, 100),
        "corrupt",
        "result.json: Invalid JSON",
    ),
    "an empty file": (
        lambda file: os.truncate(file, 0),
        "corrupt",
        "result.json: Invalid JSON",
    ),
    "zeroes": (
        lambda file: file.write_bytes(b"\0" * 300),
        "corrupt",
        "result.json: Invalid JSON",
    ),
    "endless lists": (
        lambda file: file.write_text("[" * 10**6),
        "corrupt",
        "result.json: Invalid JSON",
    ),
    "no workers": (changed("workers", 0), "corrupt", "result.json: workers:"),
    "no schema": (
        changed("schema_version", 0),
        "corrupt",
        "result.json: schema_version:",
    ),
    "a newer schema": (
        changed("schema_version", 99),
        "corrupt",
        "result.json: a newer version",
    ),
    "another record": (
        replaced(lambda file: file.write_text("{}")),
        "corrupt",
        "result.json: ",
    ),
    "a list": (
        replaced(lambda file: file.write_text("[]")),
        "corrupt",
        "result.json: ",
    ),
    "a folder": (replaced(Path.mkdir), "corrupt", "it is a folder"),
    "a pipe": (replaced(os.mkfifo), "corrupt", "no regular file"),
    "a loop of links": (
        replaced(lambda file: file.symlink_to(file)),
        "corrupt",
        "symbolic links",
    ),
    "a huge file": (
        lambda file: os.truncate(file, 2**40),
        "corrupt",
        "bytes are more than",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_has_its_word_and_its_reason(
    tmp_path: Path, records, change: str
) -> None:
    file = tmp_path / "result.json"
    write_record(file, records.result())
    act, word, why = CHANGES[change]
    act(file)
    result = read_record(file, Result)
    assert (result.word, result.damaged) == (word, word == "corrupt")
    assert why in result.why
    assert result.newer == (change == "a newer schema")
    assert result.record == (records.result() if word == "sound" else None)


def test_a_file_in_the_place_of_a_folder_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "run-1").touch()
    assert read_record(tmp_path / "run-1" / "result.json", Result).word == "corrupt"


def test_a_person_can_read_the_record(tmp_path: Path, records) -> None:
    write_record(tmp_path / "a.json", records.result())
    assert ' "quality": 0.5,' in (tmp_path / "a.json").read_text().splitlines()


def test_what_is_written_is_read_and_checked_by_sha256sum(tmp_path):
    (tmp_path / "ranks").mkdir()
    for name in ("result.json", "ranks/0.json"):
        (tmp_path / name).write_text(name)
    write_checksums(tmp_path, ["result.json", "ranks/0.json"])
    expected = {
        name: sha256(name.encode()).hexdigest()
        for name in ("ranks/0.json", "result.json")
    }
    assert read_checksums(tmp_path) == expected
    check = ["sha256sum", "--check", "--strict", "--status", CHECKSUMS]
    assert subprocess.call(check, cwd=tmp_path) == 0
    (tmp_path / "result.json").write_text("altered")
    assert subprocess.call(check, cwd=tmp_path) == 1


@pytest.mark.parametrize("text", ["noise", "0" * 64, "00  result.json\n", "\x00"])
def test_damaged_checksums_are_refused(tmp_path, text):
    (tmp_path / CHECKSUMS).write_text(text)
    with pytest.raises(ValueError, match="line 1 "):
        read_checksums(tmp_path)
