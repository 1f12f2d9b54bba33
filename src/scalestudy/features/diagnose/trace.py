"""A trace of a diagnosis for Perfetto (https://ui.perfetto.dev) and Chrome: Trace Event Format, JSON.

Source: "Trace Event Format", Google, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from scalestudy.features.diagnose.twin import AblationTimes
from scalestudy.files import write_atomically

LANES = {"phase": 1, "step": 2}
TITLES = {"phase": "phases and blocks", "step": "input and steps"}


def write_trace(file: Path, joined: Sequence[AblationTimes], apart: Sequence[AblationTimes]) -> Path:
    """Write the marks of all processes on one time line; the file."""
    write_atomically(file, json.dumps({"traceEvents": list(events(joined, apart)), "displayTimeUnit": "ms"}))
    return file


def events(joined: Sequence[AblationTimes], apart: Sequence[AblationTimes]) -> Iterator[dict[str, Any]]:
    """The events of all processes, in microseconds from the first.

    Args:
        joined: Of the point's own processes, by rank.
        apart: Of its workers as processes of their own.
    """
    named = [(f"rank {each.rank}, joined", each) for each in joined]
    named += [(f"worker {each.rank}, apart", each) for each in apart]
    first = min((mark.begun for _, times in named for mark in times.marks), default=0.0)
    for process, (name, times) in enumerate(named, start=1):
        title = f"{name} ({times.host})"
        yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": title}}
        yield {"ph": "M", "name": "process_sort_index", "pid": process, "args": {"sort_index": process}}
        for lane, thread in LANES.items():
            yield {
                "ph": "M", "name": "thread_name", "pid": process, "tid": thread,
                "args": {"name": TITLES[lane]},
            }  # fmt: skip
        for mark in times.marks:
            yield {
                "ph": "X", "name": mark.name, "cat": mark.lane, "pid": process, "tid": LANES[mark.lane],
                "ts": round(1e6 * (mark.begun - first), 1), "dur": round(1e6 * (mark.ended - mark.begun), 1),
            }  # fmt: skip
