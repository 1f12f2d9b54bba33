"""Run the files and commands of the tutorials in `docs/start` in a folder, as a reader would.

A fenced block with a title is a file. A `console` block holds commands, each after `$ `, and their output; a
line `...` in it marks omitted lines. No other block is run. A comment before a console block qualifies it:
`<!-- output differs: WHY -->` (it is run, but not compared), `<!-- not run: WHY -->`, or `<!-- needs torch
-->`.

`python tests/support/tutorials.py PAGE` prints what the commands of a page print on this machine.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paths import PROJECT

FOLDER = PROJECT / "docs" / "start"
SECONDS = 600
"""Time limit of a command."""
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
    """A command, the output lines that the page shows, and the remark before its block."""

    line: str
    shown: tuple[str, ...]
    remark: str = ""

    @property
    def is_run(self) -> bool:
        """Whether a reader without a cluster can run it."""
        return not self.remark.startswith("not run")

    @property
    def needs_torch(self) -> bool:
        """Whether it trains with PyTorch."""
        return self.remark == "needs torch"

    @property
    def is_compared(self) -> bool:
        """Whether all readers see the same output, apart from numbers."""
        return self.is_run and not self.remark.startswith("output differs")


def steps(page: Path) -> Iterator[TutorialFile | TutorialCommand]:
    """Yield the files and commands of a page, in order."""
    for block in _BLOCK.finditer(page.read_text()):
        info, text, remark = block["info"], block["text"], block["remark"] or ""
        if title := re.search(r'title="([^"]+)"', info):
            yield TutorialFile(title[1], text)
        elif info.startswith("console"):
            first, *others = re.split(r"^\$ ", text, flags=re.MULTILINE)
            assert not first, (
                f"{page.name}: a console block begins with a command: {first!r}"
            )
            for part in others:
                line, _, output = part.partition("\n")
                yield TutorialCommand(line, tuple(output.splitlines()), remark)


OTHERS = r"other programs used \d+% of its cores|cores shared with another study"
DISTURBED = re.compile(rf" \(disturbed\)(, its times are too long: ({OTHERS}))?")


def do(step: TutorialFile | TutorialCommand, folder: Path) -> str:
    """Execute a step in a folder and return the output of a command, without notes on a busy machine.

    Raises:
        AssertionError: The command failed.
    """
    if isinstance(step, TutorialFile):
        (folder / step.name).write_text(step.text)
        return ""
    # The pages show a quiet machine; on a busy one, runs are marked as disturbed.
    lines = DISTURBED.sub("", output_of(step, folder)).splitlines(keepends=True)
    return "".join(line for line in lines if "other programs used" not in line.lower())


def output_of(step: TutorialCommand, folder: Path) -> str:
    """Run a command in a folder and return all that it prints.

    Raises:
        AssertionError: The command failed.
    """
    words = shlex.split(step.line, comments=True)
    programs = {
        "scalestudy": [sys.executable, "-P", "-m", "scalestudy"],
        "python": [sys.executable],
    }
    done = subprocess.run(
        [*programs[words[0]], *words[1:]],
        cwd=folder,
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{step.line}\n{done.stdout}"
    return done.stdout


def _environment(folder: Path) -> dict[str, str]:
    """The environment without other studies on the machine and with unbuffered output."""
    variables = {
        "PYTHONPATH": str(PROJECT / "src"),
        "XDG_RUNTIME_DIR": str(folder),
        "PYTHONUNBUFFERED": "1",
    }
    return os.environ | variables


def differing(shown: tuple[str, ...], printed: str) -> list[str]:
    """Return lines that the page shows and the command did not print there, ignoring numbers and intervals.

    Lines without `...` between them must be consecutive.
    """
    lines = [_plain(line) for line in printed.splitlines()]
    place = 0
    for passage in _passages(shown):
        wanted = [_plain(line) for line in passage]
        starts = range(place, len(lines) - len(wanted) + 1)
        start = next(
            (start for start in starts if lines[start : start + len(wanted)] == wanted),
            None,
        )
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
    """The line without numbers, intervals, alignment, and the mark of the advised row.

    Which row is advised depends on the machine.
    """
    text = _INTERVAL.sub("", _NUMBER.sub("N", _TIME.sub("N s", _UNIT.sub(r"\1", line))))
    return " ".join(re.sub(r"[─━]+", "─", text.replace("←", "")).split())


if __name__ == "__main__":
    place = Path(tempfile.mkdtemp())
    for part in steps(FOLDER / f"{sys.argv[1]}.md"):
        if isinstance(part, TutorialFile):
            do(part, place)
        elif part.is_run:
            print(f"$ {part.line}\n{output_of(part, place)}", flush=True)
