"""The picture of `watch`: studies, points, and the chosen run's curve or logs, which alone it reads."""

import time
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Literal

from scalestudy import units
from scalestudy.conduct.point_line import STYLES, PointLine, figure, line_of, silence
from scalestudy.features.watch.curves import braille, meter, sparkline
from scalestudy.features.watch.view import View, chosen, ordered
from scalestudy.launch.failures import log_files
from scalestudy.printable import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from scalestudy.analysis.remaining import Remaining
    from scalestudy.features.watch.watcher import Watched
    from scalestudy.launch.base import PointStatus

KEYS = "↑↓ point · tab study · l logs · s sort · q quit"
DETAIL = 9
"""Lines of the chosen run, where the screen has room for them."""
LEAST = 18
"""Lines of a screen from which on it has."""
AHEAD = 1800
"""Seconds from which on the time of day is said too."""
MANY = 40
"""Points that are shown where nothing scrolls."""
SILENT = 30
"""Seconds without progress that are worth a word."""
CURVE = 16
BAR = 6
WIDE, MIDDLE = 110, 72
"""Columns from which on all is shown, and all but curve and meters."""


def picture(studies: "Sequence[Watched]", view: View, width: int, height: int | None) -> "RenderableType":
    """The whole screen.

    Args:
        studies: As they stand.
        view: What is chosen.
        width: Columns.
        height: Lines; None for as many as it takes, without keys.
    """
    from rich.console import Group
    from rich.text import Text

    if not studies:
        return Text("Looking …", style="dim")
    place = min(view.study, len(studies) - 1)
    if height is None:
        return Group(*(each for study in studies for each in _alone(study, width)))
    lines: list[RenderableType] = [
        _heading(study, marked=len(studies) > 1 and index == place) for index, study in enumerate(studies)
    ]
    study = studies[place]
    lines += _wrong(study)
    if study.points:
        lines.append(_table(study, view, width, max(height - len(lines) - 4 - _detail(height), 1)))
    status = chosen(view, studies)
    if status is not None and _detail(height):
        lines += [Text(""), *_chosen(studies[place], status, view, width)]
    keys = Text(f"{KEYS} · sorted by {view.sort}", style="dim", no_wrap=True, overflow="ellipsis")
    return Group(*lines, keys)


def _alone(study: "Watched", width: int) -> "list[RenderableType]":
    """A study on paper: without keys, and without a chosen run."""
    from rich.text import Text

    table = [_table(study, View(), width, MANY)] if study.points else []
    return [_heading(study, marked=False), *_wrong(study), *table, Text("")]


def _detail(height: int) -> int:
    return DETAIL if height >= LEAST else 0


def _heading(study: "Watched", *, marked: bool) -> "Text":
    from rich.text import Text

    text = Text("▶ " if marked else "", no_wrap=True, overflow="ellipsis")
    text.append(study.name, style="bold")
    states: list[str] = [each.state for each in study.points]
    if states:
        done = states.count("done")
        text.append(f"  {meter(100 * done / len(states), 10)} {done}/{len(states)} done", style="green")
    for state, style in STYLES.items():
        if state != "done" and states.count(state):
            text.append(f" · {states.count(state)} {state}", style=style)
    if study.remaining is not None:
        text.append("  " + cost(study.remaining, moving=any(s in ("running", "queued") for s in states)))
    return text


def cost(found: "Remaining", *, moving: bool) -> str:
    """`ends in 1:05:00 h (0:50:00 h … 2:00:00 h), 12.1 of about 31 worker-hours`."""
    parts = []
    if found.seconds is not None:
        low, likely, high = found.seconds
        span = "" if high - low < 0.02 * likely else f" ({units.duration(low)} … {units.duration(high)})"
        least = "at least " if found.unknown else ""
        parts.append(f"{'ends in' if moving else 'not run yet:'} {least}{units.duration(likely)}{span}")
        if moving:
            clock = time.strftime("%a %H:%M", time.localtime(time.time() + likely))
            parts[-1] += f", {clock}" if likely >= AHEAD else ""
    elif found.unknown and moving:
        parts.append("end not known yet")
    spent = f"{found.hours:.3g}"
    if found.expected is not None and found.expected > 1.005 * found.hours:
        parts.append(f"{spent} of about {found.expected:.3g} worker-hours")
    elif found.hours:
        parts.append(f"{spent} worker-hours")
    return " · ".join(parts)


def _wrong(study: "Watched") -> "list[Text]":
    from rich.text import Text

    found = []
    if study.wrong:
        found.append(Text(printable(study.wrong), style="red"))
    if study.overview is not None and study.overview.error:
        found.append(Text(silence(study.overview), style="yellow"))
    return found


def _table(study: "Watched", view: View, width: int, room: int) -> "RenderableType":
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    points = ordered(study.points, view.sort)
    mark = next((index for index, each in enumerate(points) if each.name == view.point), 0)
    start = min(max(mark - room // 2, 0), max(len(points) - room, 0))
    shown = points[start : start + room]
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    running = [each.progress for each in study.points if each.progress]
    columns: list[tuple[str, Literal["left", "right"], bool]] = [
        ("point", "left", True), ("state", "left", True), ("samples/s", "right", width >= 50),
        ("quality", "right", width >= 60), ("left", "right", bool(running)),
        ("CPU", "left", width >= WIDE and any(each.cpu_percent is not None for each in running)),
        ("GPU", "left", width >= WIDE and any(each.gpu_percent is not None for each in running)),
        ("loss", "left", width >= MIDDLE and any(study.losses.values())),
    ]  # fmt: skip
    rows = [
        [cell for cell, (_, _, there) in zip(_cells(study, each), columns, strict=True) if there]
        for each in shown
    ]
    for name, justify, there in columns:
        if there:
            table.add_column(name, justify=justify, no_wrap=True)
    # Figures stay whole; names give way.
    others = [max(map(len, column)) for column in list(zip(*rows, strict=True))[1:]]
    names = [name for name, _, there in columns if there][1:]
    taken = sum(max(cell, len(name)) + 2 for cell, name in zip(others, names, strict=True))
    for index, cells in enumerate(rows, start=start):
        cells[0].truncate(max(width - taken - 2, 8), overflow="ellipsis")
        table.add_row(*cells, style="reverse" if index == mark and view.point is not None else None)
    more = len(points) - len(shown)
    return Group(table, Text(f"{start} above, {more - start} below", style="dim")) if more else table


def _cells(study: "Watched", status: "PointStatus") -> "list[Text]":
    from rich.text import Text

    line, progress = line_of(status), status.progress
    told = [] if progress is None else [progress.cpu_percent, progress.gpu_percent]
    meters = [Text("" if value is None else f"{meter(value, BAR)} {value:3.0f} %") for value in told]
    left = "" if line.seconds_left is None else units.duration(line.seconds_left)
    return [
        Text(printable(status.name)),
        _state(line),
        Text(figure(line.throughput)),
        Text("" if line.quality is None else f"{line.quality:.4f}"),
        Text(left),
        *(meters or [Text(""), Text("")]),
        Text(sparkline(study.losses.get(status.name, ()), CURVE)),
    ]


def _state(line: PointLine) -> "Text":
    from rich.text import Text

    words = line.state if line.state != "running" else f"{meter(100 * line.share, BAR)} {line.phase}"
    if line.restarts and line.state == "running":
        words += f", restart {line.restarts}"
    if line.silent and line.silent >= SILENT:
        words += f", silent {units.duration(line.silent)}"
    return Text(words, style=STYLES.get(line.state, ""))


def _chosen(study: "Watched", status: "PointStatus", view: View, width: int) -> "list[Text]":
    """`DETAIL` - 1 lines: the point's name, then its reason and curve, or its logs."""
    from rich.text import Text

    line, room = line_of(status), DETAIL - 2
    head = Text(printable(status.name), style="bold", no_wrap=True, overflow="ellipsis")
    words = [line.state + (f" {line.phase}" if line.phase else ""), line.job, _step(status)]
    head.append("  " + ", ".join(filter(None, words)), style=STYLES.get(line.state, ""))
    style = ""
    if view.logs:
        body = [printable(each) for each in _last(study, status, room)]
    elif status.reason:
        body, style = [printable(each) for each in [status.reason, *_tail(status)]][:room], "red"
    else:
        body = _curve(study.losses.get(status.name, ()), width, room)
    body += [""] * (room - len(body))
    return [head, *(Text(each, style=style, no_wrap=True, overflow="crop") for each in body)]


def _curve(losses: Sequence[float], width: int, room: int) -> list[str]:
    if not losses:
        return [""]
    drawn = braille(losses, min(width - 12, 60), room)
    finite = [value for value in losses if isfinite(value)]
    labels = {0: max(finite, default=0.0), room - 1: min(finite, default=0.0)}
    return [(f"{labels[row]:>9.3g} " if row in labels else " " * 10) + text for row, text in enumerate(drawn)]


def _step(status: "PointStatus") -> str:
    progress = status.progress
    if progress is None or not progress.epoch:
        return ""
    return f"step {progress.step} of {progress.steps}, {progress.phase}"


def _tail(status: "PointStatus") -> list[str]:
    return [f"  | {each}" for each in status.failure.tail] if status.failure else []


def _last(study: "Watched", status: "PointStatus", room: int) -> list[str]:
    from scalestudy.features.watch.watcher import last_lines

    if status.run is None:
        return ["no logs yet"]
    return last_lines(log_files(status.run))[-room:] or ["no logs yet"]
