"""`~` and environment variables in the quoted strings of a study file."""

import os
import re

_VARIABLE = re.compile(r"\$(?:\$|(\w+)|\{(\w+)\})")


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
