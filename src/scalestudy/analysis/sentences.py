"""The sentences of the advice; each function says one thing, or nothing."""

from collections.abc import Mapping, Sequence

from scalestudy import units
from scalestudy.analysis.certainty import is_undecided
from scalestudy.analysis.measures import Measures
from scalestudy.analysis.quality import Verdict, signed
from scalestudy.analysis.runs import Key, metric_label
from scalestudy.analysis.scaling.model import Model
from scalestudy.analysis.scaling.words import model_sentences
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.table import Row
from scalestudy.study.strategies import is_timed


def nothing(rows: Sequence[Row], timed: Sequence[Row], undecided: Sequence[Row], target: float) -> str:
    """Headline when no row can be advised."""
    if all(row.verdict.failed for row in rows):
        return "No point has learned anything, so there is nothing to advise."
    if undecided:
        return "What was measured is too uncertain to advise a number of workers."
    if not timed:
        return "No speed-up could be computed, so no worker count can be advised."
    return f"No point keeps an efficiency of {target:g} without losing quality."


def headline(choice: Row, verdict: Verdict, target: float, rows: Sequence[Row]) -> str:
    """The decision itself; provisional as long as quality or chance is open. `rows` are all that finished."""
    details = f", {choice.key.details}" if choice.key.swept else ""
    if all(row.workers == 1 for row in rows):
        return "Only 1 worker has been tried: sweep larger counts to see what they gain."
    if choice.is_baseline:
        noun = "worker" if choice.workers == 1 else "workers"
        why = f"no larger count tried keeps an efficiency of {target:g} without losing quality"
        text = f"stay with {choice.workers} {noun} ({choice.strategy}{details}): {why}."
    else:
        text = f"ask for {choice.workers} workers with {choice.strategy}{details}."
    open_ = verdict.kind in ("unclear", "no-reference", "no-direction", "unknown")
    provisional = not choice.is_baseline and (choice.runs < 2 or open_)
    return f"Provisionally, {text}" if provisional else text[0].upper() + text[1:]


def speed(choice: Row, baseline: Row | None) -> str:
    """What the choice gains and costs; empty for the baseline."""
    if choice.is_baseline:
        return ""
    found, value = choice.speed.steady, choice.efficiency.value
    assert found.value is not None
    assert value is not None
    assert choice.speed.baseline is not None
    gains = {
        "throughput": "processes {} times as many samples per second as",
        "epoch": "passes through an epoch {} times as fast as",
        "training": "trains {} times as fast as",
    }
    text = (
        f"It {gains[choice.basis].format(f'{found.value:.2f}')}"
        f" {choice.speed.baseline.label}{_interval(found)}, an efficiency of {value:.2f}"
        + (f" (relative to {choice.speed.against} workers)" if choice.speed.against > 1 else "")
    )
    ours, theirs = choice.worker_hours, baseline.worker_hours if baseline else None
    if not ours or not theirs:
        return text + "."
    return text + (
        f"; one training costs {units.cost(ours, 'worker')} instead of {units.cost(theirs, 'worker')},"
        f" {ours / theirs:.2f} times as much."
    )


def quality(choice: Row, verdict: Verdict) -> str:
    """What is known of the quality of the choice; empty for the reference itself."""
    if verdict.kind == "unknown":
        return "Its quality is not known: whether the model learns as well is left open."
    if verdict.kind == "reference" or choice.quality.value is None:
        return ""
    digits, lower = choice.digits, " (lower is better)" if choice.sense.better == "lower" else ""
    value = f"Its {metric_label(choice.metric)}{lower} is {choice.quality.value:.{digits}f}"
    value += _interval(choice.quality, digits)
    against = f" (against {verdict.reference.label})" if verdict.reference else ""
    return f"{value}; {verdict.sentence}{against}."


def rivals(choice: Row, good: Sequence[Row], measures: Measures) -> list[str]:
    """Rows at the same worker count that the runs cannot tell apart from the choice."""
    alike = []
    for row in good:
        if (row.workers, row.basis) != (choice.workers, choice.basis) or row.key == choice.key:
            continue
        found = measures.rate.ratio(choice.key, row.key)
        if found.low is not None and found.low <= 1:
            alike.append(row.key.label)
    if not alike:
        return []
    return [f"The runs do not show it to be faster than {_listed(alike)}."]


def passed_over(
    choice: Row, timed: Sequence[Row], verdicts: Mapping[Key, Verdict], target: float
) -> list[str]:
    """Why up to three faster rows were not chosen."""
    speed = choice.rate.value or 0
    alike = [row for row in timed if row.basis == choice.basis]
    faster = [row for row in alike if (row.rate.value or 0) > speed and not row.verdict.failed]
    sentences = []
    for row in sorted(faster, key=lambda row: -(row.rate.value or 0))[:3]:
        value, metric = row.efficiency.value or 0.0, metric_label(row.metric)
        if is_undecided(row, target):
            why = f"too uncertain: {row.key.label}, speed-up {_ends(row.speed.steady)}"
        elif value < target:
            why = f"below {target:g}: {row.key.label}, efficiency {_below(value, target)}"
        elif verdicts[row.key].kind == "worse":
            why = f"{metric} is {verdicts[row.key].sentence}: {row.key.label}"
        else:
            change = signed(verdicts[row.key].change.value or 0.0, verdicts[row.key].digits)
            why = f"{metric} seems to suffer ({change} on average, for more runs to settle): {row.key.label}"
        sentences.append(f"Faster still, but {why}.")
    return sentences


def _below(value: float, target: float) -> str:
    """A value below the target in as many digits as show that it is."""
    return next((text for digits in (2, 3, 4) if float(text := f"{value:.{digits}f}") < target), f"{value}")


def failures(rows: Sequence[Row]) -> list[str]:
    """Which rows learned nothing, each sentence for all that failed in the same words."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.verdict.failed:
            found.setdefault(row.verdict.sentence, []).append(row.key.label)
    return [f"Nothing is advised on {_listed(names)}: {why}." for why, names in found.items()]


def limits(models: Sequence[Model], choice: Row) -> list[str]:
    """What the scaling model of the choice says about going further with its strategy."""
    for model in models:
        key = model.series.key
        if (key.strategy, key.variant) == (choice.strategy, choice.key.variant):
            return model_sentences(model)
    return []


def convergence(rows: Sequence[Row]) -> list[str]:
    """How far virtual workers can be added before quality is seen to fall."""
    series: dict[str, list[Row]] = {}
    for row in rows:
        if not is_timed(row.implementation):
            series.setdefault(row.key.variant, []).append(row)
    return [sentence for members in series.values() if (sentence := _until(members))]


def _until(members: Sequence[Row]) -> str | None:
    name = members[0].strategy + (f" ({members[0].key.details})" if members[0].key.swept else "")
    metric = metric_label(members[0].metric)
    worse = [row for row in members if row.verdict.kind == "worse"]
    if worse:
        first = worse[0]
        onwards = all(row.verdict.kind == "worse" for row in members if row.workers > first.workers)
        where = f"from {first.workers} workers on" if onwards else f"at {first.workers} workers"
        return f"With {name}, {metric} is {first.verdict.sentence} {where}."
    compared = [row for row in members if row.verdict.kind != "reference"]
    if compared and all(row.verdict.kind == "no-worse" for row in compared):
        return f"With {name}, {metric} holds up to {compared[-1].workers} workers."
    return None


def _interval(estimate: Estimate, digits: int = 2) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f" (95 % interval {estimate.low:.{digits}f} to {estimate.high:.{digits}f})"


def _ends(estimate: Estimate) -> str:
    return f"{estimate.low:.3g} to {estimate.high:.3g}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
