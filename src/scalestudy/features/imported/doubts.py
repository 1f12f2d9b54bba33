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
        alike: list[Reading] = []
        runs: list[Run] = []
        for reading in readings:
            if reading.throughput and reading.per_worker == per_worker:
                alike.append(reading)
                runs += reading.runs
        growths = _growths(runs, per_worker=per_worker)
        if not growths:
            continue
        column = printable_name(alike[0].throughput)
        source = alike[0].runs[0].source
        where = ""
        if source:
            where = source.file
        # The throughput of all workers rises with them, that of one does not. All series must speak against the
        # column's name: one that does not scale, beside one that does, is a slow strategy and no doubt.
        least = min(growths)
        most = max(growths)
        if not per_worker and most <= FLAT:
            wanted = f"{column} that rises with the workers, as the throughput of all of them does"
            growth = most
            other = "one worker"
        elif per_worker and least >= RISING:
            wanted = f"{column} that does not rise with the workers, as the throughput of one worker"
            growth = least
            other = "all of them"
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
        stated = result.throughput
        if stated is None:
            continue
        if per_worker:
            stated /= result.workers
        by_workers = series[result.strategy, repr(result.swept)]
        # One run of each number of workers shows a growth.
        by_workers.setdefault(result.workers, stated)
    growths = []
    for by_workers in series.values():
        if len(by_workers) > 1:
            on_most = by_workers[max(by_workers)]
            on_fewest = by_workers[min(by_workers)]
            growths.append(on_most / on_fewest)
    return growths


def refuse_mixed_units(runs: Sequence[Run]) -> None:
    """Refuse qualities of which some are shares and others per cent: .9 beside 90.1.

    Values of one unit on both sides of 1 are no doubt if those below, in per cent, lie far from those above:
    errors of 0.8 and 1.2 %.

    Raises:
        UserError: A metric has both.
    """
    shares: dict[str, list[tuple[float, Run]]] = defaultdict(list)
    percents: dict[str, list[tuple[float, Run]]] = defaultdict(list)
    for run in runs:
        quality = run.result.quality
        metric = run.result.metric
        # Only what lies in [0, 1] is written as a share or in per cent; other metrics may well be .9 and 90.
        if quality is None or not known(metric).bounded:
            continue
        if 0 < quality <= 1:
            shares[metric].append((quality, run))
        elif 1 < quality <= 100:
            percents[metric].append((quality, run))
    for metric, percent_runs in percents.items():
        above = [quality for quality, _ in percent_runs]
        low = min(above) / NEAR
        high = max(above) * NEAR
        for share, one in shares[metric]:
            as_percent = 100 * share
            if not low <= as_percent <= high:
                continue
            percent, other = percent_runs[0]
            seen = f"{share:g} ({one.source}) and {percent:g} ({other.source})"
            wanted = f"{metric_label(metric)} in one unit, shares or per cent"
            raise UserError(wanted, seen, "Write all in the same unit.")
