"""Command lines: every command with invalid options and arguments."""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hostile.case import Case

WORDS = (
    "",
    "\x00",
    "\udcff",
    "n" * 5000,
    "-",
    "--",
    "--nonsense",
    "/dev/null",
    "/dev/zero",
    "/",
    "../..",
    "~",
    "*",
    "%s",
)
COMMANDS = (
    "run",
    "submit",
    "status",
    "logs",
    "cancel",
    "report",
    "data prepare",
    "init",
    "nonsense",
)
LINES = (
    "run",
    "run a b c",
    "run --out",
    "report . --format nonsense",
    "report . --format",
    "logs . --rank -1",
    "logs . --rank x",
    "status --live",
    "submit x.toml --at-most 0",
    "submit x.toml --resubmit -1",
    "status . --verify --format nonsense",
    "check --format x",
    "data prepare digits --image-size 0 0",
    "data prepare digits --image-size 1000000 1000000",
    "data prepare digits --image-size -1 4",
    "data prepare indents:0",
    "data prepare indents:-5",
    "data prepare indents:" + "9" * 40,
    "data prepare indents:x",
    "data prepare indents: ",
    "data prepare digits:7",
    "data nonsense",
    "site nonsense",
    "init --task nonsense",
    "init /dev/null/x",
    "init .",
    "check none.toml",
    "check /dev/null",
)


def cases(random: random.Random) -> Iterator[Case]:
    for command in COMMANDS:
        for word in WORDS:
            name = f"{command} {word[:20]!r}"
            # `init` may accept one of these as a file name, and `--` only ends the options.
            yield Case(
                "command line: argument",
                name,
                partial(_given, [*command.split(), word]),
            )
    for line in LINES:
        arguments = [word.replace("''", "") for word in line.split(" ")]
        yield Case(
            "command line: option", line[:60], partial(_given, arguments), must=True
        )


def _given(arguments: list[str], folder: Path) -> list[str]:
    return arguments
