"""A study as it runs, on the terminal's screen: what `scalestudy status --live` does."""

import os
import re
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.features.watch.screen import View, picture
from scalestudy.features.watch.state import StatePoller, StateReader, StudyState

if TYPE_CHECKING:
    from rich.console import Console

QUEUE_ANSWER = 5.0
"""Seconds that a single picture waits for a queue's answer."""
REDRAW = 0.25
"""Seconds between two looks for what is new: the study, the terminal's size."""
SEQUENCES = {
    b"\x1b[A": "up", b"\x1b[B": "down", b"\x1bOA": "up", b"\x1bOB": "down", b"\x1b[5~": "page up",
    b"\x1b[6~": "page down", b"\x1b[H": "home", b"\x1b[F": "end",
}  # fmt: skip
"""What terminals send for keys that are no characters, in both of their modes."""
ESCAPE = re.compile(rb"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])?")


def show(path: Path, console: "Console", interval: float = 1.0) -> bool:
    """Show a study live until q is pressed; without a terminal print one picture.

    Nothing is written to the folder; a queue is asked every ten seconds at most, and not waited for.

    Args:
        path: Folder of the study; on a terminal it may appear later, or vanish.
        console: Where to.
        interval: Least seconds between two readings of the folder.

    Returns:
        Whether the study could be read at last.
    """
    if console.is_terminal and sys.stdin.isatty():
        return _follow(path, console, interval)
    state = StateReader(path, wait=QUEUE_ANSWER).read()
    console.print(picture(state, View(), console.width, None))
    return not state.error


def _follow(path: Path, console: "Console", interval: float) -> bool:
    from rich.live import Live

    view, empty, drawn = View(), StudyState(path.name), None
    with (
        raw_keys(),
        Live("Reading …", console=console, screen=True, auto_refresh=False) as screen,
        StatePoller(StateReader(path), interval) as poller,
    ):
        while True:
            state = poller.state or empty
            if (id(state), view, console.size) != drawn:
                screen.update(picture(state, view, *console.size), refresh=True)
                drawn = (id(state), view, console.size)
            for key in pressed(REDRAW):
                if key in ("q", "Q"):
                    return not state.error
                view = view.after(key, state.points)


@contextmanager
def raw_keys() -> Iterator[None]:
    """Within, keys come as they are pressed; afterwards the terminal is as it was. Ctrl-C stays Ctrl-C."""
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def pressed(seconds: float) -> list[str]:
    """Keys pressed since the last call, by name or character; waits for one, or so many seconds."""
    keyboard = sys.stdin.fileno()
    if not select.select([keyboard], [], [], seconds)[0]:
        return []
    sent = os.read(keyboard, 1024)
    return list(names(sent)) if sent else ["q"]  # a terminal that is gone sends nothing, for ever


def names(sent: bytes) -> Iterator[str]:
    """Names of the keys behind what a terminal has sent."""
    while sent:
        escape = ESCAPE.match(sent)
        known = escape[0] if escape else sent[:1]
        if known in SEQUENCES:
            yield SEQUENCES[known]
        elif not escape:
            yield known.decode(errors="replace")
        sent = sent[len(known) :]
