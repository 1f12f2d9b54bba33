"""The quoted strings of a study file: what they may hold, and `~` and environment variables in them."""

import os
import re

_VARIABLE = re.compile(r"\$(?:\$|(\w+)|\{(\w+)\})")


LONGEST = 4096
"""Characters of a text: what a path may have."""
PLAIN = f"a text of at most {LONGEST} characters, in UTF-8 and without NUL,"


def is_plain(text: str) -> bool:
    """Whether files can hold the text, and paths: a command line may bring bytes that are no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text and len(text) <= LONGEST


class UndefinedVariable(ValueError):
    """A string names an environment variable that is not set; the text is its name."""


def expanded(text: str) -> str:
    """`text` with a leading `~` and each `$NAME` or `${NAME}` replaced; `$$` stands for one `$`.

    Raises:
        UndefinedVariable: If a variable is not set.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name is None:
            return "$"
        if name not in os.environ:
            raise UndefinedVariable(name)
        return os.environ[name]

    return _VARIABLE.sub(value, os.path.expanduser(text))
