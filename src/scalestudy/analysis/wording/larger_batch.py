"""Sentences on what the larger global batch of more workers costs: quality, its cause and cure, and samples."""

from collections.abc import Mapping, Sequence

from scalestudy.analysis.larger_batch import LEAST_BATCHES, fit_critical_batch
from scalestudy.analysis.measures import Measures, find_baseline, gather_keys
from scalestudy.analysis.quality import Verdict
from scalestudy.analysis.runs import Key, metric_label
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.study_table import Row

MISFIT = 0.1
"""Relative deviation of a mean from the curve that is worth a sentence."""
HOLDS = ("no-worse", "reference")


def quality_holds(verdicts: Mapping[Key, Verdict]) -> list[str]:
    """Up to how many workers quality holds: a sentence for each series, the furthest first."""
    found: list[tuple[int, str]] = []
    for members in gather_keys(verdicts, lambda key: key.series).values():
        rising = sorted(members, key=lambda key: key.workers)
        kinds = [verdicts[key].kind for key in rising]
        if len(rising) < 2 or {"unknown", "no-direction", "no-margin"} & {*kinds}:
            continue
        held = next(
            (place for place, kind in enumerate(kinds) if kind not in HOLDS),
            len(rising),
        )
        most = rising[held - 1].workers if held else 0
        text = (
            f"Quality holds up to {most} workers"
            if most > 1
            else "Quality holds on no larger number of workers"
        )
        text += f" with {rising[0].details}" if rising[0].swept else ""
        if held < len(rising):
            text += f"; on {rising[held].workers}: {verdicts[rising[held]].sentence}"
        found.append((most, f"{text}."))
    return [text for _, text in sorted(found, key=lambda pair: -pair[0])]


def causes(verdicts: Mapping[Key, Verdict], measures: Measures) -> list[str]:
    """Why rows with a larger global batch are worse, and what cures it: one sentence for each variant."""
    worse = [
        key
        for key, verdict in verdicts.items()
        if verdict.seems_worse and key.workers > 1
    ]
    sentences = []
    for members in gather_keys(worse, lambda key: key.variant).values():
        key = min(members, key=lambda key: key.workers)
        baseline = find_baseline(key, measures.groups)
        ours = measures.groups[key][0].result
        theirs = measures.groups[baseline][0].result if baseline else None
        if (
            not baseline
            or not theirs
            or not ours.global_batch
            or not theirs.global_batch
        ):
            continue
        factor = ours.global_batch / theirs.global_batch
        if factor <= 1:
            continue
        on = f"{key.workers} workers{f' ({key.details})' if key.swept else ''}"
        text = (
            f"On {on} the global batch is {factor:g} times that of {baseline.workers}"
        )
        if ours.updates and theirs.updates:
            text += f", so a training makes {ours.updates:,} updates instead of {theirs.updates:,}"
        cured = next(
            (
                other.details
                for other, verdict in verdicts.items()
                if other.workers == key.workers
                and other.swept
                and verdict.kind == "no-worse"
            ),
            None,
        )
        if cured:
            cure = f"With {cured}, {key.workers} workers are no worse"
        else:
            counts = ",".join(map(str, sorted({other.workers for other in members})))
            cure = f"Search a rate and a warm-up: `scalestudy recipe STUDY --workers {counts}`"
        sentences.append(f"{text}. {cure}.")
    return sentences


def usefulness(row: Row) -> str:
    """A sentence on the useful speed-up of the chosen row; empty if it is unknown or equals the speed-up."""
    useful = row.useful
    if (
        useful is None
        or useful.speedup.value is None
        or useful.by_construction
        or useful.source == useful.baseline
    ):
        return ""
    return (
        f"It is {_words(useful.speedup)} times as useful as {useful.baseline.label}: it needs"
        f" {_words(useful.ratio)} times the samples to {metric_label(row.metric)}"
        f" {useful.target:.{row.digits}f}."
    )


def samples_needed(rows: Sequence[Row]) -> list[str]:
    """Samples to the target quality on each number of workers, and the critical batch, one list item each."""
    found = {
        row.key: row.useful
        for row in rows
        if row.useful and not row.useful.by_construction
    }
    by_source = {useful.source: useful for useful in found.values()}
    digits = {row.key: row.digits for row in rows}
    metric = next((metric_label(row.metric) for row in rows), "")
    sentences = []
    for members in gather_keys(by_source, lambda key: key.variant).values():
        others = [key for key in members if key != by_source[key].baseline]
        unreached = [key for key in others if by_source[key].reached == 0]
        for key in others:
            useful = by_source[key]
            goal = f"{metric} {useful.target:.{digits[key]}f}"
            if useful.ratio.value is not None:
                sentences.append(
                    f"{key.label}: {_words(useful.ratio)} times the samples of {useful.baseline.label} to {goal}."
                )
            elif key not in unreached:
                sentences.append(
                    f"{key.label}: {useful.reached} of {useful.runs} runs reached {goal}."
                )
        if unreached:
            goal = f"{metric} {by_source[unreached[0]].target:.{digits[unreached[0]]}f}"
            runs = sum(by_source[key].runs for key in unreached)
            sentences.append(
                f"{_together(unreached)}: 0 of {runs} runs reached {goal}."
            )
        sentences += _critical([row for row in rows if row.key in members])
    return sentences


def _together(keys: Sequence[Key]) -> str:
    """A label for rows that differ in their workers: "native on 2, 4 and 8 workers (batch_size = 8)"."""
    first, *others = keys
    if not others:
        return first.label
    *counts, last = (str(key.workers) for key in keys)
    details = f" ({first.details})" if first.details else ""
    return f"{first.strategy} on {', '.join(counts)} and {last} workers{details}"


def _critical(rows: Sequence[Row]) -> list[str]:
    """The critical batch of rows that differ in their workers; nothing if the global batch is the same."""
    complete = {
        row.global_batch: row.useful.samples
        for row in rows
        if row.useful and row.global_batch and row.useful.reached == row.useful.runs
    }
    counts = sorted(row.workers for row in rows)
    if len(counts) < 2 or len({row.global_batch for row in rows}) < 2:
        return []
    if len(complete) < LEAST_BATCHES:
        missing = LEAST_BATCHES - len(counts)
        more = [str(n) for power in range(12) if (n := 2**power) not in counts][
            : max(0, missing)
        ]
        remedy = (
            f"add {' and '.join(more)} workers (`virtual` will do)"
            if more
            else "train for more epochs"
        )
        return [
            f"A critical batch takes {LEAST_BATCHES} global batches with which all runs reach the target, and"
            f" there are {len(complete)}: {remedy}."
        ]
    fitted = fit_critical_batch(complete)
    if fitted is None:
        return [
            f"Up to a global batch of {max(complete):,}, larger batches need no more samples."
        ]
    first, last = (
        min(rows, key=lambda row: row.workers),
        max(rows, key=lambda row: row.workers),
    )
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


def _words(estimate: Estimate) -> str:
    value, low, high = (
        "" if x is None else f"{x:,.0f}" if x >= 100 else f"{x:.3g}"
        for x in (estimate.value, estimate.low, estimate.high)
    )
    return (
        f"{value} ({low} to {high or 'any number'})" if low and low != high else value
    )
