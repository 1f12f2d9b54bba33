"""Read and write TOML: the text and table of a file, and values on one line."""

import textwrap
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from scalestudy.util.errors import UserError, explain
from scalestudy.util.files import contents

LARGEST = 2**20
"""Largest study file or site profile that is read, in bytes."""
NUMBERS = ("a file of numbers", "Report it: scalestudy report --from {}")
YAML = ("which is YAML", "Write it as TOML; `scalestudy init` shows how.")
OTHERS = {
    ".py": ("a Python script", "Train with it: scalestudy launch -n 2 {}"),
    ".sh": ("a shell script", "Name the study file; `scalestudy init` writes one."),
    ".yaml": YAML,
    ".yml": YAML,
    ".csv": NUMBERS,
    ".json": NUMBERS,
}
"""Other files that users pass as study files: a description and a remedy, by suffix."""
_COMMENT = textwrap.TextWrapper(
    100,
    initial_indent="# ",
    subsequent_indent="# ",
    break_long_words=False,
    break_on_hyphens=False,
)


def one_line(text: str | None) -> str:
    """Replace line breaks by spaces."""
    return " ".join((text or "").split())


def comment(text: str) -> list[str]:
    """Wrap a text into lines of a TOML comment."""
    return _COMMENT.wrap(text)


def toml_line(key: str, value: Any) -> str:
    """`key = value`, with the key quoted if necessary."""
    # The library quotes the key, if that is needed.
    written = tomli_w.dumps({key: 0}).removesuffix(" = 0\n")
    return f"{written} = {toml_value(value)}"


def toml_value(value: Any) -> str:
    """Write a value on one line; tomli-w would put each item of an array on its own line.

    Raises:
        TypeError: TOML has no such value (None).
    """
    if isinstance(value, Mapping):
        lines = [toml_line(key, inner) for key, inner in value.items()]
        if not lines:
            return "{}"
        return f"{{ {', '.join(lines)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    # The library writes only whole tables.
    line = tomli_w.dumps({"value": value})
    return line.removeprefix("value = ").removesuffix("\n")


def read_text(path: Path) -> str:
    """Read the text of a study file; raises UserError if it cannot be read."""
    try:
        data = contents(path, LARGEST)
        if path.suffix in OTHERS:
            what, action = OTHERS[path.suffix]
            raise UserError(
                "a study file (.toml)",
                f"{path}, {what}",
                action.format(path),
            )
        # Some editors put a byte order mark at the beginning.
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        action = f"Write one with `scalestudy init {path}`."
        raise UserError(
            "a study file",
            f"{path}, which does not exist",
            action,
        ) from None
    except IsADirectoryError:
        action = "Name the .toml file; `status` and `report` take folders."
        raise UserError("a study file", f"{path}, which is a folder", action) from None
    except OSError as error:
        raise explain(error) or error from None
    # Bytes that are no UTF-8, or a NUL byte in the path.
    except ValueError as error:
        raise UserError(
            "a readable text file (UTF-8)",
            f"{path}: {error}",
            "Save it as UTF-8.",
        ) from None


def toml_table(text: str, file: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        UserError: The text is not TOML; the error names the line.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise UserError(
            f"lists and tables nested a few times in {file}",
            "more",
            "Correct the file.",
        ) from None
    except ValueError as error:
        # tomllib ends its messages in "(at line 3, column 1)" or "(at end of document)".
        last_line = f"(at line {len(text.splitlines())})"
        message = str(error).replace("(at end of document)", last_line)
        what, _, place = message.rpartition(" (at ")
        # An integer with thousands of digits, which Python does not parse.
        if not what:
            what, place = message, "somewhere"
        action = 'Correct the line: keys read `name = value`, strings are "quoted", lists are [1, 2].'
        # \d or \u in a Windows path.
        if "\\" in what or "hex value" in what:
            action = "Write / in paths, or put the string in '...', where a backslash is literal."
        received = f"{what[:1].lower()}{what[1:]} ({file}, {place.removesuffix(')')})"
        raise UserError("valid TOML", received, action) from None
