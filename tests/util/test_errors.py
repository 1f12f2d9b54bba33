"""Errors in a user's files become messages; an internal error does not."""

import errno

import pytest
from pydantic import ValidationError

from scalestudy.config.settings import DataSettings
from scalestudy.util.errors import RunError, UserError, explain


def test_an_error_of_ours_stays_as_it_is() -> None:
    error = RunError("a", "b", "c")
    assert explain(error) is error


@pytest.mark.parametrize(
    ("error", "received", "action"),
    [
        (
            FileNotFoundError(errno.ENOENT, "No such file", "a/b"),
            "a/b: No such file",
            "Look after",
        ),
        (
            OSError(errno.ENAMETOOLONG, "File name too long", "x" * 300),
            "x" * 200 + "…: File name",
            "255 bytes",
        ),
        (
            OSError(errno.ELOOP, "Too many levels", "a"),
            "a: Too many levels",
            "leads back to itself",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "a"),
            "Permission denied",
            "permissions",
        ),
        (OSError(errno.ENOSPC, "No space left"), "No space left", "Make space"),
        (
            OSError(errno.EXDEV, "Cross-device", "a", None, "b"),
            "a and b: Cross-device",
            "Look after",
        ),
        (
            MemoryError("Unable to allocate 8 TiB"),
            "Unable to allocate 8 TiB",
            "smaller",
        ),
        (RecursionError("maximum"), "thousands of times", "Correct"),
        (
            UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
            "surrogates",
            "Rename",
        ),
        (
            UnicodeEncodeError("utf-8", "a/\udcff.png", 2, 3, "no"),
            r"a/\udcff.png",
            "Rename",
        ),
        (ValueError("embedded null byte"), "one with it", "Correct"),
        (
            RuntimeError("Symlink loop from 'a'"),
            "Symlink loop from 'a'",
            "mend the link",
        ),
        (
            RuntimeError("Could not determine home directory."),
            "home directory",
            "Correct the path",
        ),
    ],
)
def test_what_comes_of_the_users_files_has_three_parts(
    error: Exception, received: str, action: str
) -> None:
    told = explain(error)
    assert isinstance(told, UserError)
    assert received in told.received
    assert action in told.action


def test_an_argument_whose_bytes_are_no_utf8_is_told_though_pydantic_meets_it_first() -> (
    None
):
    with pytest.raises(ValidationError) as caught:
        DataSettings(source="a/\udcff")
    told = explain(caught.value)
    assert r"'a/\udcff'" in told.received
    assert "Rename" in told.action


@pytest.mark.parametrize(
    "error", [KeyError("x"), ValueError("x"), TypeError("x"), AssertionError()]
)
def test_a_bug_is_not_explained_away(error: Exception) -> None:
    assert explain(error) is None
