"""What the live view draws: a study's heading, its points, and the chosen point's losses and last words."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from scalestudy.analysis.epochs import read_epochs
from scalestudy.analysis.remaining import Remaining
from scalestudy.app.point_line import STYLES, PointLine, figure, line_of, silence
from scalestudy.features.watch.state import StudyState
from scalestudy.launch.base import PointStatus
from scalestudy.launch.failures import log_files
from scalestudy.util import units
from scalestudy.util.escaping import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

URGENCY = ("running", "failed", "corrupt", "cancelled", "queued", "missing", "done")
"""What is shown first: what runs, then what went wrong."""
SORTS = ("state", "name", "throughput", "quality")
PAGE = 10
KEYS = "↑↓ point · s sort · q quit"
DETAIL = 9
"""Lines of the chosen point, where the screen has room for them."""
LEAST = 18
"""Lines of a screen from which on it has."""
CLOCK_FROM = 1800
"""Seconds left from which on the time of day is said too."""
SILENT = 30
"""Seconds without progress that are worth a word."""
SPARKLINE, METER = 16, 6
WIDE, MIDDLE = 110, 72
"""Columns of a screen from which on all is shown, and all but meters."""
LOG_TAIL = 2**16
"""Bytes of a log that are read for its last lines."""
BLOCKS = "▁▂▃▄▅▆▇█"
EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class View:
    """What a person has chosen to see: a point by name (None: the first), and what points are sorted by."""

    point: str | None = None
    sort: str = "state"

    def ordered(self, points: Sequence[PointStatus]) -> list[PointStatus]:
        """The points as they are shown: those alike in the study's order, unknown values last."""
        if self.sort == "name":
            return sorted(points, key=lambda status: status.name)
        by_state = sorted(points, key=lambda status: URGENCY.index(status.state))
        if self.sort == "state":
            return by_state
        values = {status.name: getattr(line_of(status), self.sort) for status in points}
        known = [status for status in by_state if values[status.name] is not None]
        known.sort(key=lambda status: -values[status.name])
        return known + [status for status in by_state if values[status.name] is None]

    def chosen(self, points: Sequence[PointStatus]) -> int:
        """Place of the chosen point as they are shown, which changes; the first if it is not there."""
        names = [status.name for status in self.ordered(points)]
        return names.index(self.point) if self.point in names else 0

    def after(self, key: str, points: Sequence[PointStatus]) -> "View":
        """The view after a key."""
        if key in ("s", "S"):
            return replace(self, sort=SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)])
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -PAGE, "page down": PAGE}
        steps |= {"home": -len(points), "end": len(points)}
        if key not in steps or not points:
            return self
        place = min(max(self.chosen(points) + steps[key], 0), len(points) - 1)
        return replace(self, point=self.ordered(points)[place].name)


def picture(state: StudyState, view: View, width: int, height: int | None) -> "RenderableType":
    """The whole screen.

    Args:
        state: The study as it stands.
        view: What is chosen.
        width: Columns.
        height: Lines; None for as many as it takes, without a chosen point.
    """
    from rich.console import Group
    from rich.text import Text

    lines: list[RenderableType] = [_heading(state), *_errors(state)]
    if height is None:
        return Group(*lines, _table(state, view, width, len(state.points)))
    detail = DETAIL if height >= LEAST else 0
    if state.points:
        lines.append(_table(state, view, width, max(height - len(lines) - 4 - detail, 1), marked=True))
        if detail:
            lines += [Text(""), *_detail(state, view, width)]
    keys = Text(f"{KEYS} · sorted by {view.sort}", style="dim", no_wrap=True, overflow="ellipsis")
    return Group(*lines, keys)


def _heading(state: StudyState) -> "Text":
    from rich.text import Text

    text = Text(state.name, style="bold", no_wrap=True, overflow="ellipsis")
    states: list[str] = [status.state for status in state.points]
    if states:
        done = states.count("done")
        text.append(f"  {meter(100 * done / len(states), 10)} {done}/{len(states)} done", style="green")
    for name, style in STYLES.items():
        if name != "done" and name in states:
            text.append(f" · {states.count(name)} {name}", style=style)
    if state.remaining is not None:
        moving = "running" in states or "queued" in states
        text.append("  " + remaining_text(state.remaining, moving=moving), style="not bold")
    return text


def remaining_text(left: Remaining, *, moving: bool) -> str:
    """`ends in 1:05:00 h (0:50:00 h … 2:00:00 h), 12.1 of about 31 worker-hours`."""
    parts = []
    if left.seconds is not None:
        low, likely, high = left.seconds
        span = "" if high - low < 0.02 * likely else f" ({units.duration(low)} … {units.duration(high)})"
        least = "at least " if left.unknown else ""
        parts.append(f"{'ends in' if moving else 'not run yet:'} {least}{units.duration(likely)}{span}")
        if moving and likely >= CLOCK_FROM:
            parts[-1] += time.strftime(", %a %H:%M", time.localtime(time.time() + likely))
    elif left.unknown and moving:
        parts.append("end not known yet")
    spent = f"{left.hours:.3g}"
    if left.expected is not None and left.expected > 1.005 * left.hours:
        parts.append(f"{spent} of about {left.expected:.3g} worker-hours")
    elif left.hours:
        parts.append(f"{spent} worker-hours")
    return " · ".join(parts)


def _errors(state: StudyState) -> "list[Text]":
    from rich.text import Text

    texts = [Text(printable(state.error), style="red")] if state.error else []
    if state.overview is not None and state.overview.error:
        texts.append(Text(silence(state.overview), style="yellow"))
    return texts


def _table(state: StudyState, view: View, width: int, room: int, *, marked: bool = False) -> "RenderableType":
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    points, place = view.ordered(state.points), view.chosen(state.points)
    start = min(max(place - room // 2, 0), max(len(points) - room, 0))
    progress = [status.progress for status in points if status.progress]
    columns: list[tuple[str, Literal["left", "right"], bool]] = [
        ("point", "left", True), ("state", "left", True), ("samples/s", "right", width >= 50),
        ("quality", "right", width >= 60), ("left", "right", bool(progress)),
        ("CPU", "left", width >= WIDE and any(each.cpu_percent is not None for each in progress)),
        ("GPU", "left", width >= WIDE and any(each.gpu_percent is not None for each in progress)),
        ("loss", "left", width >= MIDDLE and any(state.losses.values())),
    ]  # fmt: skip
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False, width=width)
    for name, justify, shown in columns:
        if shown:
            # Figures stay whole; names give way.
            ratio, least = (1, 8) if name == "point" else (None, None)
            table.add_column(name, justify=justify, no_wrap=True, ratio=ratio, min_width=least)
    for index, status in enumerate(points[start : start + room], start=start):
        cells = zip(_cells(state, status), columns, strict=True)
        style = "reverse" if marked and index == place else None
        table.add_row(*(cell for cell, (_, _, shown) in cells if shown), style=style)
    below = max(len(points) - start - room, 0)
    if not start + below:
        return table
    return Group(table, Text(f"{start} above, {below} below", style="dim"))


def _cells(state: StudyState, status: PointStatus) -> "list[Text]":
    from rich.text import Text

    line, progress = line_of(status), status.progress
    percents = [progress.cpu_percent, progress.gpu_percent] if progress else [None, None]
    return [
        Text(printable(status.name), overflow="ellipsis"),
        _state(line),
        Text(figure(line.throughput)),
        Text("" if line.quality is None else f"{line.quality:.4f}"),
        Text("" if line.seconds_left is None else units.duration(line.seconds_left)),
        *(Text("" if value is None else f"{meter(value, METER)} {value:3.0f} %") for value in percents),
        Text(sparkline(state.losses.get(status.name, ()), SPARKLINE)),
    ]


def _state(line: PointLine) -> "Text":
    from rich.text import Text

    words = line.state if line.state != "running" else f"{meter(100 * line.share, METER)} {line.phase}"
    if line.restarts and line.state == "running":
        words += f", restart {line.restarts}"
    if line.silent and line.silent >= SILENT:
        words += f", silent {units.duration(line.silent)}"
    return Text(words, style=STYLES.get(line.state, ""))


def _detail(state: StudyState, view: View, width: int) -> "list[Text]":
    """`DETAIL` - 1 lines of the chosen point: name and state, losses, and why it failed or its last words."""
    from rich.text import Text

    status = view.ordered(state.points)[view.chosen(state.points)]
    line, progress = line_of(status), status.progress
    head = Text(printable(status.name), style="bold", no_wrap=True, overflow="ellipsis")
    words = [f"{line.state} {line.phase}".strip(), line.job]
    if progress and progress.epoch:
        words.append(f"step {progress.step} of {progress.steps}, {progress.phase}")
    head.append("  " + ", ".join(filter(None, words)), style=STYLES.get(line.state, ""))
    losses: Sequence[float] = state.losses.get(status.name, ())
    if status.run and not losses:
        losses = read_epochs(status.run.path)[0].column("loss")
    body = (
        [f"loss {losses[0]:.3g} {sparkline(losses, max(width - 24, 1))} {losses[-1]:.3g}"] if losses else []
    )
    if status.reason:
        body += [status.reason, *(f"  | {each}" for each in (status.failure.tail if status.failure else []))]
    elif status.run:
        body += last_lines(log_files(status.run))[len(body) - DETAIL + 2 :]
    style = "red" if status.reason else ""
    body = [*body, *[""] * DETAIL][: DETAIL - 2]
    return [head, *(Text(printable(each), style=style, no_wrap=True, overflow="crop") for each in body)]


def last_lines(logs: Sequence[tuple[str, Path]]) -> list[str]:
    """The last lines of a run's logs, each with what stands before it; those of several one after another."""
    lines: list[str] = []
    for prefix, file in logs:
        try:
            if not file.is_file():  # a pipe in its place would be waited for
                continue
            with open(file, "rb") as stream:
                stream.seek(max(stream.seek(0, 2) - LOG_TAIL, 0))
                own = stream.read().decode(errors="replace").splitlines()
        except OSError:
            continue
        lines += [prefix + line for line in own[-max(1, DETAIL // len(logs)) :]]
    return lines


def sparkline(values: Sequence[float], width: int) -> str:
    """Values as one line of blocks, high ones high; more than fit as means of equal stretches.

    What is not finite is a gap.
    """
    if len(values) > width:
        edges = [index * len(values) // width for index in range(width + 1)]
        values = [sum(values[first:last]) / (last - first) for first, last in pairwise(edges)]
    finite = [value for value in values if isfinite(value)]
    if not finite:
        return ""
    low, span = min(finite), (max(finite) - min(finite)) or 1.0
    return "".join(
        BLOCKS[round((value - low) / span * (len(BLOCKS) - 1))] if isfinite(value) else " "
        for value in values
    )


def meter(percent: float, width: int) -> str:
    """A bar of `width` characters, filled to this many per cent."""
    eighths = round(min(max(percent, 0.0), 100.0) / 100 * width * 8)
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (EIGHTHS[part] if part else "")).ljust(width)
