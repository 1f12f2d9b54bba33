"""Columns without a role: which of them tell rows of one point apart, so that these are no repeats."""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from scalestudy.config.metric_senses import known
from scalestudy.features.imported.cells import (
    ParsedRow,
    by_point_and_cells,
    cells_of,
    number_of,
    of_several_rows,
)
from scalestudy.features.imported.columns import BATCHES, metric_name, normalise
from scalestudy.features.imported.file_rows import printable_name

# By these, people and queues count or date their runs.
_REPEATS = """
    run runs run_id rep reps repeat repetition replicate trial attempt id index job job_id jobid slurm_job_id
    date day time_of_day timestamp started finished start end file log path comment comments note notes
"""
_MEASURED = """
    time times seconds sec secs ms duration elapsed runtime loss memory mem util utilization utilisation usage
    power energy watt watts joule joules speedup speed up efficiency scaling cost flops tflops mfu bytes
    temperature throughput overhead latency std stdev stddev min max mean avg median percent error
"""
REPEATS = frozenset(_REPEATS.split())
"""Normalised names of columns that count or describe repeats of a point."""
MEASURED = frozenset(_MEASURED.split())
"""Words in the names of columns that hold further measurements."""


def counts_rows(values: Sequence[Any]) -> bool:
    """Whether values count rows: 0, 1, 2, … or 1, 2, 3, …, in their order."""
    numbers = [number_of(value) for value in values]
    first = numbers[0]
    # An index begins at 0 as pandas writes it, or at 1 as people count.
    if first not in (0, 1):
        return False
    start = int(first)
    counted = range(start, start + len(numbers))
    return numbers == list(counted)


def recurring_texts(values: Sequence[Any]) -> bool:
    """Whether values are several texts that recur."""
    if number_of(values[0]) is not None:
        return False
    distinct = set(map(str, values))
    return 1 < len(distinct) <= len(values) / 2


def is_swept_by_name(name: str) -> bool:
    """Whether a column's name says that it holds a setting: a key with a dot, or a batch of some kind."""
    return "." in name.strip(".") or normalise(name) in BATCHES


def separating(rows: Sequence[ParsedRow], names: Sequence[str]) -> list[str]:
    """Return the columns without a role that tell rows of one point apart.

    Numbers that hardly ever recur are measurements; other differing values are settings, such as the CPUs of
    a task. Texts that recur are settings also where no point has two of them: rows of two clusters or of two
    kinds of GPU cannot be compared.
    """
    found = list(filter(is_swept_by_name, names))
    groups = by_point_and_cells(rows, found)
    several = of_several_rows(groups)
    for name in names:
        if not name or name in found or _describes_repeats(name):
            continue
        values = cells_of(rows, name)
        differs = _differs(name, several) or recurring_texts(values)
        if not differs or _is_measured(name, values):
            continue
        # A count that runs on over several points is the index of the table, and tells nothing of any point.
        counts_all = len(groups) > 1 and counts_rows(values)
        if not counts_all:
            found.append(name)
    # In the order of the file, not in that of their discovery.
    return [name for name in names if name in found]


def _differs(name: str, groups: Sequence[Sequence[ParsedRow]]) -> bool:
    """Whether a column has two values at one point."""
    for group in groups:
        distinct = set(map(str, cells_of(group, name)))
        if len(distinct) > 1:
            return True
    return False


def _describes_repeats(name: str) -> bool:
    return normalise(name) in REPEATS


def _is_measured(name: str, values: Sequence[Any]) -> bool:
    """Whether a column holds a further measurement, by its name or by its values."""
    words = set(re.split(r"[_.]+", normalise(name)))
    if words & MEASURED:
        return True
    if known(metric_name(name)).better is not None:
        return True
    numbers = set()
    fractions = False
    for value in values:
        number = number_of(value)
        if number is None:
            return False
        numbers.add(number)
        # From 2**53 on every float is whole, and infinities and NaN have no `int`.
        if abs(number) < 2**53 and number != int(number):
            fractions = True
    # Settings recur, at least in every other row; measured values hardly ever do.
    return fractions and len(numbers) > len(values) / 2


def set_swept(rows: Sequence[ParsedRow], names: Sequence[str]) -> None:
    """Give rows their values of the columns that tell them apart."""
    for row in rows:
        for name in names:
            row.swept[printable_name(name)] = plain_value(row.cell(name))


def plain_value(value: Any) -> Any:
    """Return a swept value as in a study file; cells of CSV files are numbers, true, false or texts."""
    if not isinstance(value, str):
        if isinstance(value, bool | int | float) or value is None:
            return value
        return printable_name(str(value))
    as_text = printable_name(value.strip())
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        # Cells come from anyone: "[[[[…" nests deeper than the parser does.
        return as_text
    if isinstance(parsed, bool | int | float | str):
        return parsed
    return as_text


def sweep_roles(rows: Sequence[ParsedRow]) -> list[str]:
    """Tell rows apart whose batch or number of epochs differs at one point, and return these roles."""
    found: list[str] = []
    for role in ("per_worker_batch", "global_batch", "epochs"):
        # The global batch says nothing more than the batch of a worker: its rows stand at one number of workers.
        if role == "global_batch" and found:
            continue
        seen: dict[tuple[Any, ...], set[Any]] = defaultdict(set)
        for row in rows:
            # Without the seed: repeats of one point have one batch.
            strategy, workers, _ = row.point
            settings = map(repr, row.swept.items())
            value = row.values.get(role)
            seen[strategy, workers, *settings].add(value)
        # A batch that only differs between numbers of workers grows with them: it tells no rows apart.
        differs = any(len(values) > 1 for values in seen.values())
        if not differs:
            continue
        found.append(role)
        for row in rows:
            row.swept[role] = row.values.get(role)
    return found
