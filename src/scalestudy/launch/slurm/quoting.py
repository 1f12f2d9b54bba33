"""Texts as words of a bash script."""

import re
import shlex


def literal(text: str) -> str:
    """A word that bash leaves as it is, whatever is in it, newlines too."""
    if "$" not in text and "`" not in text:
        return shlex.quote(text)
    # In single quotes it would do as well, but look to readers and linters like a forgotten variable.
    return '"' + re.sub(r'([\\"`$])', r"\\\1", text) + '"'


def expandable(text: str) -> str:
    """A word in which bash puts in $NAME and ${NAME}, and runs nothing."""
    if not re.search(r"\$(\w|\{\w+\})", text):
        return literal(text)
    escaped = re.sub(r'([\\"`])', r"\\\1", text)
    return '"' + re.sub(r"\$(?!\w|\{\w+\})", r"\\$", escaped) + '"'


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
