"""The decision in a few sentences, each of which follows from the numbers and from nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalestudy.analysis.certainty import is_undecided
from scalestudy.analysis.gaps import gaps
from scalestudy.analysis.measures import Measures
from scalestudy.analysis.quality import Verdict, judge
from scalestudy.analysis.runs import Key, Planned
from scalestudy.analysis.scaling.model import Model
from scalestudy.analysis.sentences import (
    convergence,
    failures,
    headline,
    limits,
    nothing,
    passed_over,
    quality,
    rivals,
    speed,
)
from scalestudy.analysis.table import Row
from scalestudy.study.metrics import gain


@dataclass(frozen=True)
class Advice:
    """What to do, why, and what the study leaves open."""

    headline: str
    sentences: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    """What could not be concluded, and which runs would settle it."""
    choice: Row | None = None
    verdict: Verdict | None = None
    """Quality of the choice, against the reference that the decision was made with."""
    worker_hours: float | None = None
    """Workers times hours of one training with the choice."""
    baseline_worker_hours: float | None = None
    """The same for the one-worker baseline, where it does the same work."""


def advise(
    rows: Sequence[Row],
    measures: Measures,
    planned: Sequence[Planned],
    models: Sequence[Model],
    target: float,
) -> Advice:
    """Advise the fastest row that keeps `target` efficiency and whose quality does not seem worse.

    Nothing is advised on rows that learned nothing, nor on speed-ups whose intervals tell too little.
    """
    questions = tuple(gaps(rows, planned, target))
    if not rows:
        return Advice("No run has finished, so there is nothing to advise yet.", (), questions)
    best = _best_singles(rows)
    verdicts = {row.key: _verdict(row, best, measures) for row in rows}
    timed = [row for row in rows if row.efficiency.value is not None]
    sound = [row for row in timed if _acceptable(row, verdicts)]
    undecided = [row for row in sound if is_undecided(row, target)]
    good = [row for row in sound if (row.efficiency.value or 0) >= target and row not in undecided]
    choice = max(good, key=lambda row: row.rate.value or 0.0, default=None)
    gained = [row for row in timed if not row.is_baseline]
    untold = not gained and any(not row.is_baseline and not row.verdict.failed for row in rows)
    if choice is None or (choice.is_baseline and (undecided or untold)):
        why = nothing(rows, gained, undecided, target)
        return Advice(why, (*failures(rows), *convergence(rows)), questions)
    verdict = verdicts[choice.key]
    baseline = next((row for row in rows if row.key == choice.speed.baseline), None)
    same_work = baseline is not None and baseline.samples_processed == choice.samples_processed
    sentences = [
        speed(choice, baseline if same_work else None),
        quality(choice, verdict),
        *rivals(choice, good, measures),
        *passed_over(choice, timed, verdicts, target),
        *failures(rows),
        *limits(models, choice),
        *convergence(rows),
    ]
    return Advice(
        headline=headline(choice, verdict, target, rows),
        sentences=tuple(sentence for sentence in sentences if sentence),
        open_questions=questions,
        choice=choice,
        verdict=verdict,
        worker_hours=choice.worker_hours,
        baseline_worker_hours=baseline.worker_hours if baseline is not None and same_work else None,
    )


def _verdict(row: Row, best: Mapping[str, Row], measures: Measures) -> Verdict:
    """The row's verdict; with other values swept, the stricter one against the best one-worker row.

    A batch size that ruins the model at one worker too must not pass for being "no worse".
    """
    if not row.key.swept or row.strategy not in best or row.sense.better is None:
        return row.verdict
    against_best = judge(row.key, measures, best[row.strategy].key)
    return against_best if against_best.seems_worse else row.verdict


def _best_singles(rows: Sequence[Row]) -> dict[str, Row]:
    """The one-worker row of each strategy with the best quality."""
    found: dict[str, Row] = {}
    for row in rows:
        if row.workers == 1 and not row.verdict.failed and row.sense.better is not None:
            before = found.get(row.strategy)
            if before is None or _gain(row) > _gain(before):
                found[row.strategy] = row
    return found


def _gain(row: Row) -> float:
    return gain(row.quality.value or 0.0, row.sense.better or "higher")


def _acceptable(row: Row, verdicts: Mapping[Key, Verdict]) -> bool:
    known = row.quality.value is not None or verdicts[row.key].kind == "unknown"
    return known and not verdicts[row.key].seems_worse
