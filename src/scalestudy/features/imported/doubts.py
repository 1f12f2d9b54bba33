"""Refuse imported numbers that can be understood in two ways, over all files together."""

from collections import defaultdict
from collections.abc import Sequence

from scalestudy.analysis.runs import Run, metric_label
from scalestudy.config.metric_senses import known
from scalestudy.features.imported.file_rows import printable_name
from scalestudy.features.imported.imported_table import Reading
from scalestudy.util.errors import UserError

FLAT = 1.1
"""Growth of a throughput over all numbers of workers, up to which it may be that of one worker."""
RISING = 1.5
"""Growth of the throughput of one worker from which it may be that of all."""

NEAR = 2.0
"""Factor within which a share, in per cent, is near the values above 1."""


def refuse_unclear_throughput(readings: Sequence[Reading]) -> None:
    """Refuse throughputs whose values do not say whether they are those of one worker or of all.

    Raises:
        UserError: A column may be either.
    """
    for per_worker in (False, True):
        alike = []
        for reading in readings:
            if reading.throughput and reading.per_worker == per_worker:
                alike.append(reading)
        growths = _growths(
            [run for reading in alike for run in reading.runs], per_worker=per_worker
        )
        if not growths:
            continue
        column, source = printable_name(alike[0].throughput), alike[0].runs[0].source
        where = source.file if source else ""
        if not per_worker and all(growth <= FLAT for growth in growths):
            wanted = f"{column} that rises with the workers, as the throughput of all of them does"
            growth, other = max(growths), "one worker"
        elif per_worker and all(growth >= RISING for growth in growths):
            wanted = f"{column} that does not rise with the workers, as the throughput of one worker"
            growth, other = min(growths), "all of them"
        else:
            continue
        seen = f"{where}: {growth:.2f} times as much on the most as on the fewest, as that of {other}"
        action = f'Say which: --column "throughput_per_worker={column}", or --column "throughput={column}".'
        raise UserError(wanted, seen, action)


def _growths(runs: Sequence[Run], *, per_worker: bool) -> list[float]:
    """Return, for each series, the stated throughput on the most workers over that on the fewest."""
    series: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for run in runs:
        result = run.result
        if result.throughput is not None:
            if per_worker:
                stated = result.throughput / result.workers
            else:
                stated = result.throughput
            series[result.strategy, repr(result.swept)].setdefault(
                result.workers, stated
            )
    several = [stated for stated in series.values() if len(stated) > 1]
    return [stated[max(stated)] / stated[min(stated)] for stated in several]


def refuse_mixed_units(runs: Sequence[Run]) -> None:
    """Refuse qualities of which some are shares and others per cent: .9 beside 90.1.

    Values of one unit on both sides of 1 are no doubt if those below, in per cent, lie far from those above:
    errors of 0.8 and 1.2 %.

    Raises:
        UserError: A metric has both.
    """
    by_metric: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        if run.result.quality is not None and known(run.result.metric).bounded:
            by_metric[run.result.metric].append(run)
    for metric, members in by_metric.items():
        shares = [run for run in members if 0 < (run.result.quality or 0.0) <= 1]
        percent = [run for run in members if 1 < (run.result.quality or 0.0) <= 100]
        if not shares or not percent:
            continue
        above = [run.result.quality or 0.0 for run in percent]
        low, high = min(above) / NEAR, max(above) * NEAR
        mixed = [
            run for run in shares if low <= 100 * (run.result.quality or 0.0) <= high
        ]
        if mixed:
            one, other = mixed[0], percent[0]
            seen = f"{one.result.quality:g} ({one.source}) and {other.result.quality:g} ({other.source})"
            wanted = f"{metric_label(metric)} in one unit, shares or per cent"
            raise UserError(wanted, seen, "Write all in the same unit.")
