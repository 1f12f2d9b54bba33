"""Quote texts for bash and for options of a job script, so that each stays one word."""

import itertools
import re
import shlex

_VARIABLE = re.compile(r"(\$\$|\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})")
_BINARY = re.compile("[\x01\x7f\udc80-\udcff]")
"""Bytes that are not valid text, and two that bash uses internally."""


def literal(text: str) -> str:
    """Quote a text, which may hold newlines and invalid bytes, as a word that bash does not change."""
    if not _BINARY.search(text):
        return shlex.quote(text)
    data = text.encode("utf-8", "surrogateescape")
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b"\\'" else f"\\x{byte:02x}" for byte in data)
    return f"$'{''.join(plain)}'"


def expandable(text: str) -> str:
    """Quote a text as a word in which bash expands only $NAME and ${NAME}; $$ is a plain $."""
    words = []
    parts = ((part, index % 2 == 1 and part != "$$") for index, part in enumerate(_VARIABLE.split(text)))
    for is_variable, group in itertools.groupby(parts, key=lambda part: part[1]):
        joined = [part for part, _ in group]
        if is_variable:
            words += [f'"{part}"' for part in joined]
        else:
            words.append("".join("$" if part == "$$" else part for part in joined))
            words[-1] = literal(words[-1]) if words[-1] else ""
    return "".join(words) or "''"


def one_line(text: str) -> str:
    """Return a text for a comment: unprintable characters, which could end or hide it, become "?"."""
    return "".join(character if character.isprintable() else "?" for character in text)


def job_name(text: str) -> str:
    """Return a job name of at most 60 plain characters, which Slurm accepts and shows in full."""
    return re.sub(r"[^A-Za-z0-9._=+-]+", "_", text)[:60].strip("_") or "scalestudy"


def directive(option: str) -> str:
    """Return an option for an #SBATCH line, quoted if sbatch would split or strip it."""
    name, equals, value = option.partition("=")
    if not equals or re.fullmatch(r"[^\s\"'\\#]+", value):
        return option
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}"'
