"""The decision as a few sentences derived from the numbers, and the open questions of the study."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.decision import Decision, NoSingle, PassedOver
from scalestudy.analysis.estimate import ONE, Estimate
from scalestudy.analysis.measures import Measures, gather_keys, is_virtual
from scalestudy.analysis.neighbours import nearest_passed_over
from scalestudy.analysis.price import Price, is_undecided
from scalestudy.analysis.quality import Verdict
from scalestudy.analysis.runs import Key, Planned, metric_label
from scalestudy.analysis.scaling_model import Model
from scalestudy.analysis.study_table import Row
from scalestudy.analysis.switching import Switch
from scalestudy.analysis.wording.doubts import describe_doubt
from scalestudy.analysis.wording.larger_batch import causes, quality_holds, usefulness
from scalestudy.analysis.wording.neighbours import beyond_the_edge, next_smaller
from scalestudy.analysis.wording.speed_up import describe_reason
from scalestudy.analysis.wording.verdicts import describe_verdict, format_signed
from scalestudy.config.metric_senses import gain
from scalestudy.store.state import State
from scalestudy.util import units
from scalestudy.util.text import join_first, join_words, plural

MOST_PASSED_OVER = 3
"""How many faster rows the advice mentions, with the reason why each was not chosen."""
NAMED_RIVALS = 3
"""How many rows that tie with the choice the headline names; the rest are counted."""
UNDONE: tuple[State, ...] = ("failed", "cancelled", "running", "queued", "missing")
LEAST_SEEDS, MOST_SEEDS = 2, 10
"""Numbers of trainings of which it is said how many failures they cannot exclude."""
RATE_RULES = {"none": "constant", "linear": "linear", "sqrt": "square-root"}
"""Words for the rules by which the learning rate follows the global batch."""
MUCH_FASTER = 1.5
"""A row about the target that is as many times as fast as the choice is a matter of preference."""


@dataclass(frozen=True)
class Advice:
    """What to do, why, and which questions are open.

    Attributes:
        cost: Time and cost of the choice; empty if there is no choice.
        sentences: Quality, and faster rows that were not chosen.
        open_questions: Open questions, each with the runs that would settle it.
    """

    decision: Decision
    headline: str
    cost: str = ""
    sentences: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    choice: Row | None = None


def advise(
    rows: Sequence[Row],
    decision: Decision,
    measures: Measures,
    planned: Sequence[Planned] = (),
    *,
    rate_rule: str = "",
    switch: Switch | None = None,
    models: Sequence[Model] = (),
    about_runs: Sequence[str] = (),
) -> Advice:
    """Put a decision into words.

    Args:
        rows: Finished rows.
        decision: The decision about `rows`.
        measures: Measures of all runs of the study.
        planned: All points of the study.
        rate_rule: Rule by which the learning rate grew with the batch; "" if the rate was tuned.
        switch: The length of training from which the decision is another one.
        models: How the times of each series scale.
        about_runs: Sentences on runs that were left out or stand apart, the first of the open questions.
    """
    choice = None
    for row in rows:
        if row.key == decision.choice:
            choice = row
    sentences = _failures(rows)
    headline, cost = _nothing(decision), ""
    if choice is not None:
        headline = _headline(choice, decision, RATE_RULES.get(rate_rule, ""))
        cost = _cost(decision)
        sentences = [
            usefulness(choice),
            *_about_choice(choice, rows, decision, measures, switch, models),
            *sentences,
            _failing_share(choice, measures),
        ]
    virtual = {}
    for key, verdict in decision.verdicts.items():
        if is_virtual(measures.groups[key]):
            virtual[key] = verdict
    holds = quality_holds(virtual)
    # A study of virtual workers alone has no times: what it found is how far quality holds.
    if holds and len(virtual) == len(measures.groups):
        headline, *holds = holds
    sentences += [*holds, *causes(decision.verdicts, measures)]
    return Advice(
        decision,
        headline,
        cost,
        tuple(sentence for sentence in sentences if sentence),
        # What speaks against the table comes before what would refine it.
        (
            *about_runs,
            *map(describe_doubt, decision.doubts),
            *_open_questions(rows, planned, decision),
        ),
        choice,
    )


def _about_choice(
    choice: Row,
    rows: Sequence[Row],
    decision: Decision,
    measures: Measures,
    switch: Switch | None,
    models: Sequence[Model],
) -> list[str]:
    """Sentences on the quality of the choice and on the rows beside it; "" where there is nothing to say."""
    passed_over = []
    for row in nearest_passed_over(decision, MOST_PASSED_OVER):
        passed_over.append(_passed_over(row, decision))
    return [
        _quality(choice, decision.verdicts[choice.key]),
        _length_of_quality(choice, decision, measures),
        _unlike_work(rows, decision),
        _switching(switch),
        *passed_over,
        next_smaller(decision),
        beyond_the_edge(decision, [row.key for row in rows], models),
        _better(rows, decision),
    ]


def _nothing(decision: Decision) -> str:
    """Why no row is advised; "" if one is."""
    sentences = {
        "no-runs": "No run has finished, so there is nothing to advise yet.",
        "nothing-learned": "No point has learned anything, so there is nothing to advise.",
        "uncertain": "The measurements are too uncertain to advise a number of workers.",
        "unlike-devices": "Rows ran on unlike GPUs, so nothing can be advised.",
        "no-timing": "No times could be compared, so no number of workers can be advised.",
        "none": f"No point keeps a cost efficiency of {decision.target:g} without losing quality.",
    }
    return sentences.get(decision.kind, "")


def _headline(choice: Row, decision: Decision, rate_rule: str) -> str:
    workers = f"{choice.workers} {plural('worker', choice.workers)}"
    if decision.kind == "only-smallest":
        return f"Only {workers} tried. Sweep larger numbers to see what they gain."
    details = ""
    if choice.key.swept:
        details = f", {choice.key.details}"
    if decision.kind == "stay":
        why = f"nothing faster keeps a cost efficiency of {decision.target:g} without losing quality"
        if "faster-may-learn" in decision.provisional:
            why = "faster rows are worth their cost, but are not shown to learn as well"
        text = f"stay with {workers} ({choice.strategy}{details}): {why}"
    else:
        text = f"ask for {workers} with {choice.strategy}{details}"
        if decision.rivals:
            text += f"; the runs do not show that it is faster than {_others(choice, decision.rivals)}"
        if rate_rule:
            text += f", with a learning rate by the {rate_rule} rule, not tuned"
    if "failures" in decision.provisional:
        text += f"; {_failed_rows(decision)}"
    if not decision.provisional:
        return f"{text[0].upper()}{text[1:]}."
    kinds = {verdict.kind for verdict in decision.verdicts.values()}
    if kinds <= {"unknown"}:
        return f"By speed alone, {text}."
    return f"Provisionally, {text}."


def _failed_rows(decision: Decision) -> str:
    """How many runs failed of rows that were passed over, then of rows that learned nothing."""
    keys = []
    for row in decision.passed_over:
        if row.key in decision.failures:
            keys.append(row.key)
    for key in decision.failures:
        if decision.verdicts[key].failed and key not in keys:
            keys.append(key)
    texts = []
    for key in keys:
        texts.append(f"{decision.failures[key]} of {key.label} failed")
    return ", ".join(texts)


def _others(choice: Row, rivals: Sequence[Key]) -> str:
    """Names of rows that tie with the choice: only the strategy if nothing else differs."""
    names = [key.strategy for key in rivals]
    variants = {key.variant for key in rivals}
    if not variants <= {choice.key.variant}:
        names = [key.label for key in rivals]
    # A number is never longer than the one name it stands for.
    if len(names) > NAMED_RIVALS + 1:
        left = len(names) - NAMED_RIVALS
        names = [*names[:NAMED_RIVALS], f"{left} others"]
    return join_words(names, "or")


def _cost(decision: Decision) -> str:
    """Time and cost of one training with the choice, compared with the reference."""
    price, reference = decision.price, decision.reference
    assert price is not None
    assert reference is not None
    efficiency = f"cost efficiency of {_efficiency(price, decision)}"
    if decision.relative:
        efficiency += f" (relative to {reference.workers} workers)"
    if price.basis == "rate":
        if price.key == reference:
            return ""
        return f"It is {_number(price.speedup)} times as fast as {reference.label}, at a {efficiency}."
    first = decision.prices[reference]
    of = "(without start-up and evaluation)"
    if price.basis == "wall":
        of = "from start to result"
    which = _planned_training(decision) or "One training"
    took = f"{which} takes {units.duration(price.duration)} {of} and costs {_billed(price, first)}"
    if price.key == reference:
        return f"{took}."
    their_time = units.duration(first.duration)
    other = f"{reference.label} ({their_time}, {_billed(first, price)})"
    # Cost efficiency is the inverse of the ratio of costs.
    ratio = 1 / (price.efficiency.value or 1)
    times = f"{_number(price.speedup)} times as fast at {ratio:.2f} times the cost"
    return f"{took}. Compared with {other} it is {times}: a {efficiency}."


def _planned_training(decision: Decision) -> str:
    """The planned training as the subject of a sentence; "" if it is as long as the measured ones."""
    planned, lengths = decision.criteria.planned, []
    if planned.epochs is not None:
        lengths.append(f"{planned.epochs:,} epochs")
    if planned.samples is not None:
        lengths.append(f"{planned.samples:,} samples")
    if not lengths:
        return ""
    return f"The planned training ({' of '.join(lengths)})"


def _length_of_quality(choice: Row, decision: Decision, measures: Measures) -> str:
    """At which length the quality was measured, if another one is planned."""
    planned = decision.criteria.planned
    measured = set()
    for run in measures.trained[choice.key]:
        measured.add((run.result.epochs, run.result.training_samples))
    # Trainings of several lengths have none that could be named.
    if planned.as_measured or choice.quality.value is None or len(measured) != 1:
        return ""
    epochs, samples = measured.pop()
    if planned.epochs is not None and planned.epochs != epochs:
        return f"Its quality was measured at {epochs} epochs; {planned.epochs:,} are planned."
    if planned.samples is not None and planned.samples != samples:
        return f"Its quality was measured with {samples:,} samples; {planned.samples:,} are planned."
    return ""


def _unlike_work(rows: Sequence[Row], decision: Decision) -> str:
    """What unlike work of the rows means for their times and qualities; "" if it is equal or unknown."""
    amounts = set()
    for row in rows:
        if row.samples_processed is not None:
            amounts.add(row.samples_processed)
    price = decision.price
    if price is None or price.basis != "rate" or len(amounts) < 2:
        return ""
    # A run that ended before its first step has processed none.
    some = [amount for amount in amounts if amount]
    low = min(some)
    high = max(some)
    return (
        f"Trainings processed {low:,} to {high:,} samples, so the time of a sample is compared, and qualities"
        " are of unlike work (weak scaling)."
    )


def _billed(price: Price, beside: Price) -> str:
    cost = price.cost.value or 0.0
    other = beside.cost.value or 0.0
    # Two costs that stand beside each other have one unit.
    return units.cost(cost, price.bill, other)


def _efficiency(price: Price, decision: Decision) -> str:
    """A cost efficiency with its interval; if that lies in the indifference zone, the interval alone."""
    estimate = price.efficiency
    if decision.is_about_target(estimate):
        low = f"{estimate.low:.2f}"
        high = f"{estimate.high:.2f}"
        if low != high:
            return f"{low} to {high}, about the target {decision.target:g}"
    return _number(estimate)


def _number(estimate: Estimate, digits: int = 2) -> str:
    text = f"{estimate.value:.{digits}f}"
    if estimate.low is None:
        return text
    return f"{text} (95 % interval {estimate.low:.{digits}f} to {estimate.high:.{digits}f})"


def _quality(choice: Row, verdict: Verdict) -> str:
    """Quality of the choice; empty for the reference itself."""
    if verdict.kind == "unknown":
        return "Its quality is unknown, so it is open whether the model learns as well."
    if verdict.kind == "reference" or choice.quality.value is None:
        return ""
    metric = metric_label(choice.metric)
    if choice.sense.better == "lower":
        metric += " (lower is better)"
    against = "Compared"
    if verdict.reference:
        against = f"Compared with {verdict.reference.label}"
    digits = max(choice.digits, verdict.digits)
    # Without a verdict there is nothing that the margin was compared with.
    margin = ""
    words = describe_verdict(verdict)
    if verdict.margin is not None and "margin" not in words:
        margin = f", with a margin of {verdict.margin:.{verdict.digits}f}"
    return (
        f"Its {metric} is {_number(choice.quality, digits)}."
        f" {against}: {words}{margin}."
    )


def _passed_over(row: PassedOver, decision: Decision) -> str:
    """Why a faster row was not chosen."""
    price = decision.prices[row.key]
    verdict = decision.verdicts[row.key]
    # The words for each reason in `decision.Objection`.
    if row.why == "cost":
        why = _too_costly(price, decision)
    elif row.why == "uncertain":
        why = f"too uncertain, {_number(price.speedup)} times as fast"
    elif row.why == "samples":
        useful = decision.useful(price)
        ratio = decision.samples.get(row.key, ONE)
        why = (
            f"it needs {_number(ratio)} times the samples, a cost efficiency of"
            f" {useful.efficiency.value:.2f} instead of {price.efficiency.value:.2f} for the same quality"
        )
    elif row.why == "fails":
        why = f"{decision.failures[row.key]} failed"
    elif row.why == "worse":
        why = f"its quality is {describe_verdict(verdict)}"
    elif row.why == "fewer-worse":
        why = "fewer workers seem to learn worse already"
    elif row.why == "not-shown" and verdict.given_up:
        why = f"not shown to be as good, and more seeds would hardly show it: {describe_verdict(verdict)}"
    elif row.why == "not-shown":
        why = f"whether it learns as well is open: {describe_verdict(verdict)}"
    else:
        change = format_signed(verdict.change.value or 0.0, verdict.digits)
        why = f"its quality seems worse, {change} on average"
    return f"Faster but not chosen: {row.key.label} ({why})."


def _too_costly(price: Price, decision: Decision) -> str:
    value = price.efficiency.value or 0.0
    shown = f"{value}"
    # With enough digits to show that it is below the target.
    for digits in (2, 3, 4):
        rounded = f"{value:.{digits}f}"
        if float(rounded) < decision.target:
            shown = rounded
            break
    text = f"cost efficiency {shown}"
    close = value >= decision.target - decision.criteria.zone
    if close or decision.is_about_target(price.efficiency):
        text += f", about the target {decision.target:g}{_preference(price, decision)}"
    return text


def _switching(switch: Switch | None) -> str:
    if switch is None:
        return ""
    return (
        f"For trainings of {switch.epochs:,} epochs ({units.duration(switch.seconds)}) or more:"
        f" {switch.choice.label}. Say what you plan: [plan], or --epochs."
    )


def _failing_share(choice: Row, measures: Measures) -> str:
    """What few trainings without a failure cannot exclude (Clopper and Pearson, Biometrika 26, 1934)."""
    runs = len(measures.trained[choice.key])
    if (
        not LEAST_SEEDS <= runs <= MOST_SEEDS
        or measures.failed[choice.key]
        or measures.fails_everywhere
    ):
        return ""
    # The share of failures with which no failure in so many trainings has a chance of 5 %.
    most = 1 - 0.05 ** (1 / runs)
    return f"0 of {runs} of its trainings failed: up to {most:.0%} may (95 % limit)."


def _better(rows: Sequence[Row], decision: Decision) -> str:
    """Rows with several workers that certainly learn better than what they are compared with."""
    named = []
    for row in rows:
        change = decision.verdicts[row.key].change
        better = row.sense.better
        if row.workers == 1 or better is None:
            continue
        if change.low is None or change.high is None:
            continue
        if min(gain(change.low, better), gain(change.high, better)) > 0:
            by = format_signed(change.value or 0.0, row.digits)
            named.append(f"{row.key.label} ({by})")
    if not named:
        return ""
    return f"Learns better than what it is compared with: {_short(named)}."


def _preference(price: Price, decision: Decision) -> str:
    """How to prefer a much faster row about the target; "" if it is hardly faster than the choice."""
    chosen = decision.price
    if chosen is None or chosen.duration < MUCH_FASTER * price.duration:
        return ""
    lower = max(0.05, decision.target - decision.criteria.zone)
    return (
        f", and {chosen.duration / price.duration:.1f} times as fast as the choice: a deadline, or"
        f" efficiency = {lower:.2g} under [plan], would choose it"
    )


def _failures(rows: Sequence[Row]) -> list[str]:
    """One sentence for all rows whose runs learned nothing for the same reason."""
    failed: dict[str, list[str]] = {}
    for row in rows:
        if row.verdict.failed:
            why = describe_verdict(row.verdict)
            failed.setdefault(why, []).append(row.key.label)
    sentences = []
    for why, names in failed.items():
        sentences.append(f"Not considered: {join_words(names)} ({why}).")
    return sentences


def _open_questions(
    rows: Sequence[Row],
    planned: Sequence[Planned],
    decision: Decision,
) -> list[str]:
    """One sentence for each open question, with the runs that would settle it."""
    questions = _unfinished(planned)
    questions += _single_seeds(rows)
    questions += _costs(decision)
    unclear, unknown = _open_qualities(rows, decision)
    if unclear:
        named = []
        for row in unclear:
            text = row.key.label
            needed = decision.verdicts[row.key].needed
            if needed is not None:
                text += f" (about {needed} seeds)"
            named.append(text)
        questions.append(
            f"More seeds are needed to tell whether the quality is worse: {_short(named)}."
        )
    if unknown:
        labels = [row.key.label for row in unknown]
        whose = _short(labels)
        if len(unknown) == len(rows):
            whose = "any row"
        questions.append(
            f"The quality of {whose} is unknown; more workers may have lowered it."
        )
    questions += _undirected(rows)
    questions += _without_scale(rows)
    if decision.no_single and decision.reference:
        # One worker needs no exchange, so that only it shows what exchange costs.
        remedy = "Sweep 1 worker too, to see what the first step costs."
        if any(row.workers == 1 for row in rows):
            remedy = "Run more seeds, or find out why these failed."
        why = _no_single(decision.no_single)
        questions.append(
            f"Costs and qualities are relative to {decision.reference.label}: {why}. {remedy}"
        )
    return questions + _untimed(rows)


def _no_single(no_single: NoSingle) -> str:
    """Why no one-worker row is the reference of costs."""
    if no_single.kind == "unfinished":
        return "no one-worker run has finished"
    if no_single.kind == "untimed":
        return "no one-worker run was timed"
    assert no_single.key is not None
    assert no_single.verdict is not None
    words = describe_verdict(no_single.verdict)
    return f"{no_single.key.label} cannot be the reference ({words})"


def _without_scale(rows: Sequence[Row]) -> list[str]:
    metrics: dict[str, None] = {}
    for row in rows:
        if row.verdict.kind == "no-margin":
            metrics[row.metric] = None
    sentences = []
    for metric in metrics:
        sentences.append(
            f"The scale of {metric_label(metric)} is not known, so there is no verdict on quality. Add"
            " --quality-margin: the accepted loss, in its unit or as a percentage."
        )
    return sentences


def _open_qualities(
    rows: Sequence[Row], decision: Decision
) -> tuple[list[Row], list[Row]]:
    """Rows with too few seeds for a verdict, and rows of unknown quality.

    Where seeds are added until a verdict stands, only what may still change the choice is trained further.
    """
    not_shown = set()
    for passed_over in decision.passed_over:
        if passed_over.why == "not-shown":
            not_shown.add(passed_over.key)
    only_not_shown = any(row.timings for row in rows)
    unclear, unknown = [], []
    for row in rows:
        if only_not_shown and row.key not in not_shown:
            continue
        if row.runs > 1 and decision.verdicts[row.key].kind == "unclear":
            unclear.append(row)
        if row.verdict.kind == "unknown":
            unknown.append(row)
    return unclear, unknown


def _unfinished(planned: Sequence[Planned]) -> list[str]:
    sentences = []
    for state in UNDONE:
        names = []
        for point in planned:
            if point.state == state:
                names.append(point.name)
        if not names:
            continue
        subject = f"{len(names)} {plural('run', len(names))}"
        if state != "failed":
            subject += f" {plural('is', len(names), 'are')}"
        sentences.append(f"{subject} {state}: {_short(names)}.")
    # Each of these has a reason of its own.
    for point in planned:
        if point.state == "corrupt":
            sentences.append(
                f"{point.name} is {point.state} and not counted: {point.reason}"
            )
    return sentences


def _single_seeds(rows: Sequence[Row]) -> list[str]:
    alone = []
    for row in rows:
        # A row with timing runs gets its seeds from the search, not from a longer sweep.
        if row.runs == 1 and not row.timings:
            alone.append(row.key.label)
    if not alone:
        return []
    if len(alone) == len(rows):
        return [
            "One seed only, so there are no confidence intervals. Sweep three or more seeds."
        ]
    return [f"One seed only, so wide intervals or none: {_short(alone)}."]


def _costs(decision: Decision) -> list[str]:
    """Cost efficiencies that may or may not reach the target."""
    asked: set[Key | None] = {row.key for row in decision.passed_over}
    asked.add(decision.choice)
    if decision.kind in ("uncertain", "none"):
        least = min(price.units for price in decision.prices.values())
        for key, price in decision.prices.items():
            if price.units > least:
                asked.add(key)
    sentences = []
    for key, price in decision.prices.items():
        if key not in asked or key == decision.reference:
            continue
        efficiency = price.efficiency
        if decision.is_open(price) or is_undecided(price, decision.target):
            sentences.append(
                f"It is open whether {key.label} reaches a cost efficiency of {decision.target:g}"
                f" ({efficiency.value:.2f}, 95 % interval {efficiency.low:.3g} to {efficiency.high:.3g})."
                " Run more seeds, on an otherwise idle machine."
            )
    return sentences


def _undirected(rows: Sequence[Row]) -> list[str]:
    by_metric: dict[str, list[Row]] = {}
    for row in rows:
        by_metric.setdefault(row.metric, []).append(row)
    sentences = []
    for metric, members in by_metric.items():
        if not metric or all(row.sense.better is not None for row in members):
            continue
        # Only a table from elsewhere can be told at the command line.
        if all(row.source for row in members):
            remedy = "Add --better higher or --better lower."
        else:
            remedy = f'Add better = {{"{metric}": "higher"}}, or "lower", to the task file and run again.'
        sentences.append(
            f"It is not known whether a higher or a lower {metric_label(metric)} is better, so there is no"
            f" verdict on quality. {remedy}"
        )
    return sentences


def _untimed(rows: Sequence[Row]) -> list[str]:
    """Sentences on rows without a speed-up, grouped by reason and series."""
    untimed: dict[Key, str] = {}
    for row in rows:
        reason = describe_reason(row.speed.reason)
        if reason is not None:
            untimed[row.key] = reason
    sentences = []
    for reason, keys in gather_keys(untimed, lambda key: untimed[key]).items():
        names = []
        for members in gather_keys(keys, lambda key: key.series).values():
            counts = join_words([str(key.workers) for key in members])
            *_, last = members
            one = f"on {last.workers} "
            names.append(last.label.replace(one, f"on {counts} ", 1))
        sentences.append(f"No speed-up for {_short(names)}: {reason}.")
    return sentences


def _short(names: Sequence[str]) -> str:
    return join_first(names, most=6)
