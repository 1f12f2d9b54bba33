"""Texts that others wrote (names, messages, logs), so that a terminal only shows them."""

import re

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters of both blocks but tab and newline, and those that turn the direction of text."""


def printable(text: str) -> str:
    """The text without colours; of other control characters, the names: a terminal would obey them.

    They move its cursor, rewrite what stands there, set its title, or fill its clipboard.
    """
    return _UNSEEN.sub(_name, _COLOUR.sub("", text))


def _name(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def escaped(text: str) -> str:
    """The text with what no terminal should see, and UTF-8 cannot hold, as escapes of Python's."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )
