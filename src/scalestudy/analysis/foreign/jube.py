"""Tables drawn with | between cells: `jube result`, and those of Markdown."""

import re
from pathlib import Path

from scalestudy.analysis.foreign.base import Head, Reader, Reading, Wanted
from scalestudy.analysis.foreign.rows import Row, read_rows
from scalestudy.analysis.foreign.text import lines

_RULE = re.compile(r"[\s|+:=-]*[-=]{2,}[\s|+:=-]*|[|+\s:-]*")


def _recognises(head: Head) -> bool:
    drawn = [line for line in head.lines if "|" in line or "+" in line]
    rules = [line for line in drawn if _RULE.fullmatch(line) and "-" in line]
    return bool(rules) and sum("|" in line and not _RULE.fullmatch(line) for line in drawn) > 1


def _read(path: Path, wanted: Wanted) -> Reading:
    header: list[str] | None = None
    rows: list[Row] = []
    skipped: list[str] = []
    for number, line in enumerate(lines(path), start=1):
        if "|" not in line or _RULE.fullmatch(line):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if header is None:
            header = cells
        elif cells == header:
            continue
        elif len(cells) != len(header):
            skipped.append(f"line {number}: {len(cells)} cells where the header has {len(header)}")
        else:
            rows.append(Row(number, dict(zip(header, cells, strict=True))))
    found = read_rows(path.name, "JUBE or Markdown table", rows, wanted)
    return Reading(found.facts, found.remarks, (*skipped, *found.skipped))


READER = Reader("JUBE result table", _recognises, _read, "jube result's output")
