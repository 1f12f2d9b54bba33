"""Errors for users, which state what was expected, what was received, and what to do."""

import errno
import re

LONGEST = 200
"""Maximum number of characters of a name in a message."""
_RENAME = "Rename the file, or correct the text that is named."
_OF_PYDANTIC = re.compile("type=string_unicode, input_value=(.*), input_type=str")
"""What pydantic says of a text with surrogates, such as an argument whose bytes are no UTF-8."""
_OF_PATHS = ("Symlink loop", "Could not determine home directory")
"""Messages of RuntimeErrors that `pathlib` raises for a path."""
_ACTIONS = {
    errno.ENAMETOOLONG: "Take a shorter name: most file systems end at 255 bytes.",
    errno.ELOOP: "Mend the symbolic link, or remove it: it leads back to itself, or must not be followed.",
    errno.EACCES: "Change its permissions, or name another.",
    errno.EPERM: "Change its permissions, or name another.",
    errno.ENOSPC: "Make space, or name another folder.",
    errno.EDQUOT: "Make space in your quota, or name another folder.",
    errno.EROFS: "Name a folder that can be written to.",
    errno.ENOTDIR: "A part of that path is a file: name another, or move the file away.",
    errno.EISDIR: "It is a folder where a file should be: name another, or move it away.",
    errno.EMFILE: "Raise the limit of open files: ulimit -n 4096.",
}


class ScalestudyError(Exception):
    """An error that a user can act on. The command line prints it without a traceback.

    Args:
        expected: What was expected, without a full stop.
        received: What was found instead, naming the file, key or value.
        action: What the user can do about it.
    """

    exit_code = 1

    def __init__(
        self,
        expected: str,
        received: str,
        action: str,
    ) -> None:
        self.expected = expected
        self.received = received
        self.action = action
        super().__init__(f"Expected {expected}. Received {received}. {action}")


class UserError(ScalestudyError):
    """The user's input is wrong. Nothing was started or written (exit code 2)."""

    exit_code = 2


class RunError(ScalestudyError):
    """A run failed (exit code 1)."""


def explain(error: BaseException) -> ScalestudyError | None:
    """Convert an error caused by the user's files, names or machine to a UserError; return None for a bug.

    Every command calls it last, for errors that no code closer to their origin has converted.
    """
    if isinstance(error, ScalestudyError):
        return error
    text, parts = str(error), None
    # RecursionError is a RuntimeError and a UnicodeError is a ValueError, so that these come first.
    match error:
        case OSError():
            return _explain_os_error(error)
        case MemoryError():
            parts = (
                "data and settings that fit into memory",
                f"more than this machine grants: {text or 'out of memory'}",
                "Choose smaller images, a smaller batch, or a machine with more memory.",
            )
        case RecursionError():
            expected = "a file whose parts are nested a few times"
            parts = expected, "one nested thousands of times", "Correct the file."
        case UnicodeEncodeError() | UnicodeDecodeError():
            first = max(0, error.start - LONGEST // 2)
            part = error.object[first : error.end + LONGEST // 2]
            parts = "texts and names in UTF-8", f"{part!a}: {error.reason}", _RENAME
        case ValueError() if wrong := _OF_PYDANTIC.search(text):
            parts = (
                "texts and names in UTF-8",
                f"{wrong[1]}: surrogates not allowed",
                _RENAME,
            )
        case ValueError() if "embedded null" in text:
            parts = (
                "names of files without a NUL byte",
                "one with it",
                "Correct the name.",
            )
        case RuntimeError() if text.startswith(_OF_PATHS):
            parts = (
                "paths that lead somewhere",
                text,
                "Correct the path, or mend the link.",
            )
    return UserError(*parts) if parts else None


def _explain_os_error(error: OSError) -> UserError:
    names = []
    # A rename has two.
    for name in (error.filename, error.filename2):
        if name is None:
            continue
        shown = str(name)
        if len(shown) > LONGEST:
            shown = f"{shown[:LONGEST]}…"
        names.append(shown)
    received = error.strerror or str(error) or type(error).__name__
    if names:
        received = f"{' and '.join(names)}: {received}"
    otherwise = "Look after that file or folder, then run the command again."
    return UserError(
        "files and folders that can be read and written",
        received,
        _ACTIONS.get(error.errno or 0, otherwise),
    )
