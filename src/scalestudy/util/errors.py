"""The errors a user can meet: what was expected, what was received, what to do."""

import errno
from collections.abc import Callable

LONGEST = 200
"""Characters of a name that a message shows."""


class ScalestudyError(Exception):
    """An error that a user can act on; the command line prints it without a traceback.

    Args:
        expected: What would have been right, as a sentence without its full stop.
        received: What was found instead, naming the file, key or value.
        action: What the user can do about it.
    """

    exit_code = 1

    def __init__(self, expected: str, received: str, action: str) -> None:
        self.expected = expected
        self.received = received
        self.action = action
        super().__init__(f"Expected {expected}. Received {received}. {action}")


class UserError(ScalestudyError):
    """The user's input is wrong: nothing was started, nothing was written (exit code 2)."""

    exit_code = 2


class RunError(ScalestudyError):
    """A run failed (exit code 1)."""


def explained(error: BaseException) -> ScalestudyError | None:
    """What an error that comes of the user's files, names or machine means to the user; None for a bug.

    It stands at the end of every command, for what no reader closer to the file has put into words.
    """
    if isinstance(error, ScalestudyError):
        return error
    if isinstance(error, OSError):
        return _of_the_system(error)
    if isinstance(error, ValueError) and "embedded null" in str(error):
        return UserError("names of files without a NUL byte", "one with it", "Correct the name.")
    if isinstance(error, RuntimeError) and str(error).startswith(_OF_PATHS):
        return UserError("paths that lead somewhere", str(error), "Correct the path, or mend the link.")
    return next((say(error) for kind, say in _OTHERS.items() if isinstance(error, kind)), None)


_OF_PATHS = ("Symlink loop", "Could not determine home directory")
"""What `pathlib` says of a path as a RuntimeError."""
_OTHERS: dict[type[BaseException], Callable[[BaseException], UserError]] = {
    MemoryError: lambda error: UserError(
        "data and settings that fit into memory",
        f"more than this machine grants: {str(error) or 'out of memory'}",
        "Choose smaller images, a smaller batch, or a machine with more memory.",
    ),
    RecursionError: lambda error: UserError(
        "a file whose parts are nested a few times", "one nested thousands of times", "Correct the file."
    ),
    UnicodeError: lambda error: UserError(
        "texts and names in UTF-8", str(error), "Rename the file, or correct the text that is named."
    ),
}


def _of_the_system(error: OSError) -> UserError:
    actions = {
        errno.ENAMETOOLONG: "Take a shorter name: most file systems end at 255 bytes.",
        errno.ELOOP: "Mend the symbolic link, which leads back to itself.",
        errno.EACCES: "Change its permissions, or name another.",
        errno.EPERM: "Change its permissions, or name another.",
        errno.ENOSPC: "Make space, or name another folder.",
        errno.EDQUOT: "Make space in your quota, or name another folder.",
        errno.EROFS: "Name a folder that can be written to.",
        errno.ENOTDIR: "A part of that path is a file: name another, or move the file away.",
        errno.EISDIR: "It is a folder where a file should be: name another, or move it away.",
        errno.EMFILE: "Raise the limit of open files: ulimit -n 4096.",
    }
    names = [_short(str(name)) for name in (error.filename, error.filename2) if name is not None]
    reason = error.strerror or str(error) or type(error).__name__
    return UserError(
        "files and folders that can be read and written",
        f"{' and '.join(names)}: {reason}" if names else reason,
        actions.get(error.errno or 0, "Look after that file or folder, then run the command again."),
    )


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"
