"""Keys of a terminal, one by one, without Enter and without echo."""

import os
import re
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SEQUENCES = {
    b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "right", b"\x1b[D": "left", b"\x1bOA": "up",
    b"\x1bOB": "down", b"\x1bOC": "right", b"\x1bOD": "left", b"\x1b[5~": "page up", b"\x1b[6~": "page down",
    b"\x1b[Z": "back tab", b"\t": "tab", b"\x1b[H": "home", b"\x1b[F": "end",
}  # fmt: skip
"""What terminals send for keys that are no characters, in both of their modes."""
ESCAPE = re.compile(rb"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])?")


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


def pressed(wake: int, seconds: float) -> list[str]:
    """Keys pressed since the last call, by name or character; waits for one, for `wake`, or so many seconds.

    Args:
        wake: A file descriptor that becomes readable when there is something else to do; it is emptied.
        seconds: How long to wait at most.
    """
    keyboard = sys.stdin.fileno()
    ready, _, _ = select.select([keyboard, wake], [], [], seconds)
    if wake in ready:
        os.read(wake, 4096)
    if keyboard not in ready:
        return []
    sent = os.read(keyboard, 1024)
    return ["q"] if not sent else list(names(sent))  # a terminal that is gone sends nothing, for ever


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
