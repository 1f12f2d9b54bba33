"""Files are written whole or not at all, with the user's permissions; kills do not mix up lines."""

import contextlib
import errno
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalestudy.util.files import append_line, replacing, spare_space, write_atomically


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(tmp_path / "a", "\ud800")
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@settings(deadline=None, derandomize=True)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])), max_size=5
    )
)
def test_lines_come_back_as_they_were_appended(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    file = tmp_path_factory.mktemp("lines") / "a"
    for line in lines:
        append_line(file, line)
    assert (file.read_text().split("\n")[:-1] if lines else []) == lines


def test_texts_and_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", "ä\r\n")
    write_atomically(tmp_path / "b", b"\x00\xff")
    assert (tmp_path / "a").read_bytes() == "ä\r\n".encode()
    assert (tmp_path / "b").read_bytes() == b"\x00\xff"


@pytest.mark.parametrize("beside", [None, ".a.half"])
def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, beside: str | None
) -> None:
    def torn() -> None:
        with replacing(tmp_path / "a", tmp_path / beside if beside else None) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    write_atomically(tmp_path / "a", "old")
    with pytest.raises(KeyboardInterrupt):
        torn()
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_temporary_file_has_the_name_asked_for_and_what_a_kill_left_of_it_is_no_obstacle(
    tmp_path: Path,
) -> None:
    half = tmp_path / ".a.half"
    half.write_bytes(b"longer than what comes")
    with replacing(tmp_path / "a", half) as file:
        file.write(b"new")
        assert half.exists()
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_bytes() == b"new"
    assert not half.exists()


@pytest.mark.parametrize(
    ("mask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)]
)
def test_a_file_is_shared_as_the_umask_says(
    tmp_path: Path, mask: int, mode: int
) -> None:
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "a", "new")
        with replacing(tmp_path / "b", tmp_path / "half") as file:
            file.write(b"new")
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in "ab"] == [mode, mode]


def test_a_reader_never_finds_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    texts = [letter * 200_000 for letter in "xy"]
    write_atomically(path, texts[0])
    writer = threading.Thread(
        target=lambda: [write_atomically(path, text) for text in texts * 20]
    )
    writer.start()
    while writer.is_alive():
        assert path.read_text() in texts
    writer.join()


def test_a_torn_last_line_is_closed_before_the_next(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"whole\nto")
    append_line(tmp_path / "a", "next")
    assert (tmp_path / "a").read_text() == "whole\nto\nnext\n"


def fill(disk: Path) -> None:
    with contextlib.suppress(OSError), open(disk / "filler", "wb", buffering=0) as file:
        while True:
            file.write(b"0" * 4096)


def test_an_error_of_a_full_disk_names_the_file_that_could_not_be_written(
    small_disk: Path,
) -> None:
    (small_disk / "lines").touch()
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as whole:
        write_atomically(small_disk / "file", b"0" * 2**21)
    fill(small_disk)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as line:
        append_line(small_disk / "lines", "one")
    for error, name in ((whole, "file"), (line, "lines")):
        assert error.value.filename == str(small_disk / name)


def test_spare_space_has_room_for_a_record_on_a_disk_that_was_filled_meanwhile(
    small_disk: Path,
) -> None:
    with spare_space(small_disk):
        fill(small_disk)
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            write_atomically(small_disk / "record", "why")
    write_atomically(small_disk / "record", "why")
    assert sorted(path.name for path in small_disk.iterdir()) == ["filler", "record"]
