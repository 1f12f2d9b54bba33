"""Tutorials of `docs/start`: their files and commands, run in a folder as a reader would.

A fenced block with a title is a file. A `console` block holds commands, each behind `$ `, and what they
print; a line `...` in it stands for lines that are left out. No other block is run. A comment before a
console block says what else holds of it: `<!-- output differs: WHY -->` (it is run, and not compared),
`<!-- not run: WHY -->`, or `<!-- needs torch -->`.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paths import PROJECT

FOLDER = PROJECT / "docs" / "start"
SECONDS = 600
"""A command that takes longer hangs."""
_BLOCK = re.compile(
    r"(?:^<!-- (?P<remark>[^>]*) -->\n)?^(?P<fence>```+)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_TIME = re.compile(r"(\d[\d.,:]*)( ?)(ms|s|min|h)\b")
_NUMBER = re.compile(r"[−+-]?\d[\d.,:]*( ?%)?|\bn/a\b")
_UNIT = re.compile(r"\b(time|cost) (ms|s|min|h)\b")
_INTERVAL = re.compile(r" ± N| \(N–N\)")


@dataclass(frozen=True)
class TutorialFile:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass(frozen=True)
class TutorialCommand:
    """A command, the lines that the page shows of its output, and the remark before its block."""

    line: str
    shown: tuple[str, ...]
    remark: str = ""

    @property
    def is_run(self) -> bool:
        """Whether a reader without a cluster can run it."""
        return not self.remark.startswith("not run")

    @property
    def needs_torch(self) -> bool:
        """Whether PyTorch trains."""
        return self.remark == "needs torch"

    @property
    def is_compared(self) -> bool:
        """Whether all readers see the same, numbers aside."""
        return self.is_run and not self.remark.startswith("output differs")


def steps(page: Path) -> Iterator[TutorialFile | TutorialCommand]:
    """What the reader of a page does, in order."""
    for block in _BLOCK.finditer(page.read_text()):
        info, text, remark = block["info"], block["text"], block["remark"] or ""
        if title := re.search(r'title="([^"]+)"', info):
            yield TutorialFile(title[1], text)
        elif info.startswith("console"):
            first, *others = re.split(r"^\$ ", text, flags=re.MULTILINE)
            assert not first, f"{page.name}: a console block begins with a command: {first!r}"
            for part in others:
                line, _, output = part.partition("\n")
                yield TutorialCommand(line, tuple(output.splitlines()), remark)


def do(step: TutorialFile | TutorialCommand, folder: Path) -> str:
    """Do a step in this folder; give what a command prints.

    Raises:
        AssertionError: The command failed.
    """
    if isinstance(step, TutorialFile):
        (folder / step.name).write_text(step.text)
        return ""
    words = shlex.split(step.line, comments=True)
    programs = {"scalestudy": [sys.executable, "-P", "-m", "scalestudy"], "python": [sys.executable]}
    done = subprocess.run(
        [*programs[words[0]], *words[1:]], cwd=folder, env=_environment(folder), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{step.line}\n{done.stdout}"
    return done.stdout


def _environment(folder: Path) -> dict[str, str]:
    """This one's; no other study is seen on the machine, and errors come where they are printed."""
    variables = {"PYTHONPATH": str(PROJECT / "src"), "XDG_RUNTIME_DIR": str(folder), "PYTHONUNBUFFERED": "1"}
    return os.environ | variables


def differing(shown: tuple[str, ...], printed: str) -> list[str]:
    """Lines that the page shows and the command did not print there, numbers and intervals aside.

    Lines without `...` between them have to follow each other.
    """
    lines = [_plain(line) for line in printed.splitlines()]
    place = 0
    for passage in _passages(shown):
        wanted = [_plain(line) for line in passage]
        starts = range(place, len(lines) - len(wanted) + 1)
        start = next((start for start in starts if lines[start : start + len(wanted)] == wanted), None)
        if start is None:
            return passage
        place = start + len(wanted)
    return []


def _passages(shown: tuple[str, ...]) -> Iterator[list[str]]:
    passage: list[str] = []
    for line in (*shown, "..."):
        if line.strip() == "...":
            if passage:
                yield passage
            passage = []
        else:
            passage.append(line)


def _plain(line: str) -> str:
    """The line without numbers, intervals, and the space and rules that align columns."""
    text = _INTERVAL.sub("", _NUMBER.sub("N", _TIME.sub("N s", _UNIT.sub(r"\1", line))))
    return " ".join(re.sub(r"[─━]+", "─", text).split())
