"""Columns without a role: which of them tell rows of one point apart, so that these are no repeats."""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from scalestudy.config.metric_senses import known
from scalestudy.features.imported.cells import ParsedRow, number_of
from scalestudy.features.imported.columns import BATCHES, metric_name, normalise
from scalestudy.features.imported.file_rows import printable_name

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
    if first not in (0, 1):
        return False
    return numbers == list(range(int(first), int(first) + len(numbers)))


def recurring_texts(values: Sequence[Any]) -> bool:
    """Whether values are several texts that recur."""
    distinct = len(set(map(str, values)))
    return number_of(values[0]) is None and 1 < distinct <= len(values) / 2


def is_swept_by_name(name: str) -> bool:
    """Whether a column's name says that it holds a setting: a key with a dot, or a batch of some kind."""
    return "." in name.strip(".") or normalise(name) in BATCHES


def separating(rows: Sequence[ParsedRow], names: Sequence[str]) -> list[str]:
    """Return the columns without a role that tell rows of one point apart.

    Numbers that hardly ever recur are measurements; other differing values are settings, such as the CPUs of
    a task. Texts that recur are settings also where no point has two of them: rows of two clusters or of two
    kinds of GPU cannot be compared.
    """
    found = [name for name in names if is_swept_by_name(name)]
    groups: dict[tuple[Any, ...], list[ParsedRow]] = defaultdict(list)
    for row in rows:
        settings = [str(row.cell(name)) for name in found]
        groups[*row.point, *settings].append(row)
    several = [group for group in groups.values() if len(group) > 1]
    for name in names:
        if not name or name in found or _describes_repeats(name):
            continue
        values = [row.cell(name) for row in rows]
        counts_all = len(groups) > 1 and counts_rows(values)
        differs = _differs(name, several) or recurring_texts(values)
        if differs and not _is_measured(name, values) and not counts_all:
            found.append(name)
    return [name for name in names if name in found]


def _differs(name: str, groups: Sequence[Sequence[ParsedRow]]) -> bool:
    for group in groups:
        cells = {str(row.cell(name)) for row in group}
        if len(cells) > 1:
            return True
    return False


def _describes_repeats(name: str) -> bool:
    return normalise(name) in REPEATS


def _is_measured(name: str, values: Sequence[Any]) -> bool:
    words = set(re.split(r"[_.]+", normalise(name)))
    if words & MEASURED or known(metric_name(name)).better is not None:
        return True
    numbers = set()
    fractions = False
    for value in values:
        number = number_of(value)
        if number is None:
            return False
        numbers.add(number)
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
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return printable_name(value.strip())
    if isinstance(parsed, bool | int | float | str):
        return parsed
    return printable_name(value.strip())


def sweep_roles(rows: Sequence[ParsedRow]) -> list[str]:
    """Tell rows apart whose batch or number of epochs differs at one point, and return these roles."""
    found: list[str] = []
    for role in ("per_worker_batch", "global_batch", "epochs"):
        if role == "global_batch" and found:
            continue
        seen: dict[tuple[Any, ...], set[Any]] = defaultdict(set)
        for row in rows:
            # Without the seed: repeats of one point have one batch.
            strategy, workers, _ = row.point
            settings = map(repr, row.swept.items())
            seen[strategy, workers, *settings].add(row.values.get(role))
        if any(len(values) > 1 for values in seen.values()):
            found.append(role)
            for row in rows:
                row.swept[role] = row.values.get(role)
    return found
