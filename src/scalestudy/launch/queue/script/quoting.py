"""Texts as words of a bash script."""

import re
import shlex

_VARIABLE = re.compile(r"(\$\$|\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})")
_MARKS = re.compile("[\x01\x7f]+")
"""Characters that bash uses itself: 5.2 puts a 1 before each in double quotes within NAME=(…)."""


def literal(text: str) -> str:
    """A word that bash leaves as it is, whatever is in it: newlines, and bytes that are no text."""
    if _MARKS.search(text) or any(0xDC80 <= ord(each) <= 0xDCFF for each in text):
        return _ansi(text)
    if "$" not in text and "`" not in text:
        return shlex.quote(text)
    # In single quotes it would do as well, but look to readers and linters like a forgotten variable.
    return f'"{_escaped(text)}"'


def expandable(text: str) -> str:
    """A word in which bash puts in $NAME and ${NAME}, and runs nothing; $$ is one plain $."""
    parts = _VARIABLE.split(text)  # text, variable, text, variable, …, text
    if all(part == "$$" for part in parts[1::2]):
        return literal(text.replace("$$", "$"))
    for index, part in enumerate(parts):
        if part == "$$" or index % 2 == 0:
            escaped = _escaped("$" if index % 2 else part)
            parts[index] = _MARKS.sub(lambda found: f'"{_ansi(found[0])}"', escaped)
    return f'"{"".join(parts)}"'


def _escaped(text: str) -> str:
    return re.sub(r'([\\"`$])', r"\\\1", text)


def _ansi(text: str) -> str:
    data = text.encode("utf-8", "surrogateescape")
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b"\\'" else f"\\x{byte:02x}" for byte in data)
    return f"$'{''.join(plain)}'"


def one_line(text: str) -> str:
    """A text for a comment: on one line, without what could end or hide it."""
    return "".join(each if each.isprintable() else "?" for each in text)


def job_name(text: str) -> str:
    """A name that Slurm takes and shows whole: plain characters, at most 60."""
    return re.sub(r"[^A-Za-z0-9._=+-]+", "_", text)[:60].strip("_") or "scalestudy"


def directive(option: str) -> str:
    """An option for an #SBATCH line, quoted where sbatch would split or strip it."""
    name, equals, value = option.partition("=")
    if not equals or re.fullmatch(r"[^\s\"'\\#]+", value):
        return option
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}"'
