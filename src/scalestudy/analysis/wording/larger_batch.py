"""Sentences on what the larger global batch of more workers costs: quality, its cause and cure, and samples."""

from collections.abc import Collection, Mapping, Sequence

from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.larger_batch import LEAST_BATCHES, fit_critical_batch
from scalestudy.analysis.measures import Measures, find_baseline, gather_keys
from scalestudy.analysis.quality import Verdict
from scalestudy.analysis.runs import Key, metric_label
from scalestudy.analysis.study_table import Row
from scalestudy.analysis.to_target import Useful
from scalestudy.analysis.wording.verdicts import describe_verdict
from scalestudy.util.text import join_words

MISFIT = 0.1
"""Relative deviation of a mean from the curve that is worth a sentence."""
HOLDS = ("no-worse", "reference")
UNDECIDABLE = ("unknown", "no-direction", "no-margin")
"""Verdicts on qualities that cannot be compared."""


def quality_holds(verdicts: Mapping[Key, Verdict]) -> list[str]:
    """Up to how many workers quality holds: a sentence for each series, the furthest first."""
    found: list[tuple[int, str]] = []
    for members in gather_keys(verdicts, lambda key: key.series).values():
        rising = sorted(members, key=lambda key: key.workers)
        kinds = {verdicts[key].kind for key in rising}
        # A single row has no number of workers up to which anything holds.
        if len(rising) < 2 or not kinds.isdisjoint(UNDECIDABLE):
            continue
        most, lost = 0, None
        for key in rising:
            if verdicts[key].kind not in HOLDS:
                lost = key
                break
            most = key.workers
        text = "Quality holds on no larger number of workers"
        if most > 1:
            text = f"Quality holds up to {most} workers"
        if rising[0].swept:
            text += f" with {rising[0].details}"
        if lost is not None:
            text += f"; on {lost.workers}: {describe_verdict(verdicts[lost])}"
        found.append((most, f"{text}."))
    found.sort(key=lambda pair: -pair[0])
    return [text for _, text in found]


def causes(verdicts: Mapping[Key, Verdict], measures: Measures) -> list[str]:
    """Why rows with a larger global batch are worse, and what cures it: one sentence for each variant."""
    worse = []
    for key, verdict in verdicts.items():
        if verdict.seems_worse and key.workers > 1:
            worse.append(key)
    sentences = []
    for members in gather_keys(worse, lambda key: key.variant).values():
        key = min(members, key=lambda key: key.workers)
        cause = _cause(key, measures)
        if not cause:
            continue
        cured = _cured_by(key.workers, verdicts)
        if cured:
            cure = f"With {cured}, {key.workers} workers are no worse"
        else:
            others = sorted({other.workers for other in members})
            counts = ",".join(map(str, others))
            cure = f"Search a rate and a warm-up: `scalestudy recipe STUDY --workers {counts}`"
        sentences.append(f"{cause}. {cure}.")
    return sentences


def _cause(key: Key, measures: Measures) -> str:
    """How much larger a row's global batch is than its baseline's; "" if it is not, or is unknown."""
    baseline = find_baseline(key, measures.groups)
    if not baseline:
        return ""
    ours = measures.groups[key][0].result
    theirs = measures.groups[baseline][0].result
    if not ours.global_batch or not theirs.global_batch:
        return ""
    factor = ours.global_batch / theirs.global_batch
    if factor <= 1:
        return ""
    workers = f"{key.workers} workers"
    if key.swept:
        workers += f" ({key.details})"
    text = (
        f"On {workers} the global batch is {factor:g} times that of {baseline.workers}"
    )
    if ours.updates and theirs.updates:
        text += f", so a training makes {ours.updates:,} updates instead of {theirs.updates:,}"
    return text


def _cured_by(workers: int, verdicts: Mapping[Key, Verdict]) -> str:
    """The first swept values with which as many workers are no worse; "" if there are none."""
    for key, verdict in verdicts.items():
        if key.workers == workers and key.swept and verdict.kind == "no-worse":
            return key.details
    return ""


def usefulness(row: Row) -> str:
    """A sentence on the useful speed-up of the chosen row; empty if it is unknown or equals the speed-up."""
    useful = row.useful
    if useful is None or useful.speedup.value is None:
        return ""
    # Then U(n) is S(n), which the sentence on costs has said.
    if useful.by_construction or useful.source == useful.baseline:
        return ""
    return (
        f"It is {_words(useful.speedup)} times as useful as {useful.baseline.label}: it needs"
        f" {_words(useful.ratio)} times the samples to {metric_label(row.metric)}"
        f" {useful.target:.{row.digits}f}."
    )


def samples_needed(rows: Sequence[Row]) -> list[str]:
    """Samples to the target quality on each number of workers, and the critical batch, one list item each."""
    by_source: dict[Key, Useful] = {}
    digits: dict[Key, int] = {}
    metric = ""
    for row in rows:
        digits[row.key] = row.digits
        metric = metric or metric_label(row.metric)
        if row.useful and not row.useful.by_construction:
            by_source[row.useful.source] = row.useful
    sentences = []
    for members in gather_keys(by_source, lambda key: key.variant).values():
        unreached = []
        for key in members:
            useful = by_source[key]
            if key == useful.baseline:
                continue
            goal = f"{metric} {useful.target:.{digits[key]}f}"
            if useful.ratio.value is not None:
                ratio = _words(useful.ratio)
                baseline = useful.baseline.label
                text = f"{ratio} times the samples of {baseline} to {goal}"
                sentences.append(f"{key.label}: {text}.")
            elif useful.reached == 0:
                unreached.append(key)
            else:
                text = f"{useful.reached} of {useful.runs} runs reached {goal}"
                sentences.append(f"{key.label}: {text}.")
        if unreached:
            # One sentence for all: a large sweep may hold a hundred such rows.
            first = unreached[0]
            goal = f"{metric} {by_source[first].target:.{digits[first]}f}"
            runs = 0
            for key in unreached:
                runs += by_source[key].runs
            sentences.append(
                f"{_together(unreached)}: 0 of {runs} runs reached {goal}."
            )
        of_variant = [row for row in rows if row.key in members]
        sentences += _critical(of_variant)
    return sentences


def _together(keys: Sequence[Key]) -> str:
    """A label for rows that differ in their workers: "native on 2, 4 and 8 workers (batch_size = 8)"."""
    first, *others = keys
    if not others:
        return first.label
    counts = join_words([str(key.workers) for key in keys])
    text = f"{first.strategy} on {counts} workers"
    if first.details:
        text += f" ({first.details})"
    return text


def _critical(rows: Sequence[Row]) -> list[str]:
    """The critical batch of rows that differ in their workers; nothing if the global batch is the same."""
    batches = {row.global_batch for row in rows}
    if len(batches) < 2:
        return []
    complete: dict[int, Sequence[float]] = {}
    for row in rows:
        useful = row.useful
        # The mean of those that did reach it would make a large batch look better than it is.
        if useful and row.global_batch and useful.reached == useful.runs:
            complete[row.global_batch] = useful.samples
    if len(complete) < LEAST_BATCHES:
        counts = {row.workers for row in rows}
        return [
            f"A critical batch takes {LEAST_BATCHES} global batches with which all runs reach the target, and"
            f" there are {len(complete)}: {_more_batches(counts, len(rows))}."
        ]
    fitted = fit_critical_batch(complete)
    if fitted is None:
        return [
            f"Up to a global batch of {max(complete):,}, larger batches need no more samples."
        ]
    first = min(rows, key=lambda row: row.workers)
    last = max(rows, key=lambda row: row.workers)
    assert first.global_batch is not None
    assert last.global_batch is not None
    predicted = fitted.ratio(2 * last.global_batch, first.global_batch)
    text = (
        f"The critical batch, at which training takes twice the fewest samples, is {_words(fitted.critical)}."
        f" Predicted, not run: {2 * last.workers} workers, {_words(predicted)} times the samples."
    )
    if fitted.misfit > MISFIT:
        text += f" The curve is off by {100 * fitted.misfit:.0f} % at a batch of {fitted.misfit_at:,}."
    return [text]


def _more_batches(counts: Collection[int], rows: int) -> str:
    """What gives a study enough global batches: the first powers of two of workers that it lacks."""
    missing = LEAST_BATCHES - rows
    more: list[str] = []
    for power in range(12):
        if 2**power not in counts and len(more) < missing:
            more.append(str(2**power))
    if not more:
        return "train for more epochs"
    return f"add {' and '.join(more)} workers (`virtual` will do)"


def _words(estimate: Estimate) -> str:
    value = _short(estimate.value)
    low = _short(estimate.low)
    high = _short(estimate.high)
    if not low or low == high:
        return value
    return f"{value} ({low} to {high or 'any number'})"


def _short(value: float | None) -> str:
    if value is None:
        return ""
    if value >= 100:
        # Numbers of samples: an exponent would be hard to compare with a batch.
        return f"{value:,.0f}"
    return f"{value:.3g}"
