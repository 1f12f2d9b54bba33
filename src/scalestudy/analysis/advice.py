"""The decision in a few sentences, each of which follows from the numbers and from nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.decision import Decision, Price
from scalestudy.analysis.open_questions import open_questions
from scalestudy.analysis.quality import Verdict, signed
from scalestudy.analysis.runs import Planned, metric_label
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.table import Row
from scalestudy.analysis.time_to_target import ToTarget
from scalestudy.study.strategies import is_timed
from scalestudy.util import units

MOST_PASSED_OVER = 3
"""Faster rows of which the advice says why they were not chosen."""


@dataclass(frozen=True)
class Advice:
    """What to do, why, and what the study leaves open."""

    decision: Decision
    headline: str
    cost: str = ""
    """What the choice takes and costs; empty without a choice."""
    sentences: tuple[str, ...] = ()
    """Quality, the next steps up, what was passed over."""
    open_questions: tuple[str, ...] = ()
    """What could not be concluded, and which runs would settle it."""
    choice: Row | None = None
    verdict: Verdict | None = None
    """Quality of the choice, against the reference that the decision was made with."""

    @property
    def price(self) -> Price | None:
        """Time and cost of one training with the choice."""
        return self.decision.price


def advise(
    rows: Sequence[Row],
    decision: Decision,
    planned: Sequence[Planned] = (),
    *,
    to_target: ToTarget | None = None,
    rate_rule: str = "",
    limits: Sequence[str] = (),
    by_rows: bool = False,
) -> Advice:
    """Put a decision into words.

    Args:
        rows: Finished rows.
        decision: Which of them to ask for.
        planned: What the study asked for.
        to_target: What the choice took to reach the quality asked for.
        rate_rule: By what rule the learning rate grew with the batch, where it was not tuned; else "".
        limits: What the scaling model of the choice says of larger counts.
        by_rows: Whether runs were taken row by row.
    """
    questions = tuple(open_questions(rows, planned, decision, by_rows))
    choice = next((row for row in rows if row.key == decision.choice), None)
    general = (*_failures(rows), *_convergence(rows))
    if choice is None:
        return Advice(decision, _nothing(decision), "", general, questions)
    assert decision.verdicts is not None
    verdict = decision.verdicts[choice.key]
    sentences = [
        _quality(choice, verdict),
        _target(to_target, choice),
        *_steps(decision),
        _rivals(decision),
        *_passed_over(decision),
        *limits,
        _lasting(decision),
        *general,
    ]
    return Advice(
        decision,
        _headline(choice, decision, rate_rule),
        _cost(decision),
        tuple(sentence for sentence in sentences if sentence),
        questions,
        choice,
        verdict,
    )


def _nothing(decision: Decision) -> str:
    """Headline when no row can be advised."""
    return {
        "no-runs": "No run has finished, so there is nothing to advise yet.",
        "nothing-learned": "No point has learned anything, so there is nothing to advise.",
        "uncertain": "What was measured is too uncertain to advise a number of workers.",
        "no-timing": "No times could be compared, so no number of workers can be advised.",
        "none": f"No point keeps a cost efficiency of {decision.target:g} without losing quality.",
    }[decision.kind]


def _headline(choice: Row, decision: Decision, rate_rule: str) -> str:
    details = f", {choice.key.details}" if choice.key.swept else ""
    noun = "worker" if choice.workers == 1 else "workers"
    if decision.kind == "only-smallest":
        return f"Only {choice.workers} {noun} tried: sweep larger counts to see what they gain."
    if decision.kind == "stay":
        text = (
            f"stay with {choice.workers} {noun} ({choice.strategy}{details}): nothing faster keeps a cost"
            f" efficiency of {decision.target:g} without losing quality"
        )
    else:
        text = f"ask for {choice.workers} {noun} with {choice.strategy}{details}"
        text += f", the learning rate by the {rate_rule} rule and not tuned" if rate_rule else ""
    return f"Provisionally, {text}." if decision.provisional else f"{text[0].upper()}{text[1:]}."


def _cost(decision: Decision) -> str:
    """What one training takes and costs with the choice, and with the reference."""
    price, reference = decision.price, decision.reference
    assert price is not None
    assert reference is not None
    assert decision.prices is not None
    first = decision.prices[reference]
    wall = {"wall": "from start to result", "training": "without start-up and evaluation", "rate": ""}[
        price.basis
    ]
    if price.basis == "rate" or price.seconds.value is None or first.seconds.value is None:
        if price.key == reference:
            return ""
        return (
            f"It is {_number(price.speedup)} times as fast as {reference.label}, at a cost efficiency of"
            f" {_number(price.efficiency)}{_relative(decision)}."
        )
    took = f"One training takes {units.duration(price.seconds.value)} {wall} and costs {_billed(price)}"
    if price.key == reference:
        return took + "."
    dearer = 1 / (price.efficiency.value or 1)
    return (
        f"{took}, where {reference.label} takes {units.duration(first.seconds.value)} and costs"
        f" {_billed(first)}: {_number(price.speedup)} times as fast at {dearer:.2f} times the cost, a cost"
        f" efficiency of {_number(price.efficiency)}{_relative(decision)}."
    )


def _billed(price: Price) -> str:
    return units.cost(price.cost.value or 0.0, price.bill)


def _relative(decision: Decision) -> str:
    if not decision.relative or decision.reference is None:
        return ""
    return f" (relative to {decision.reference.workers} workers)"


def _number(found: Estimate) -> str:
    text = f"{found.value:.2f}"
    return text if found.low is None else f"{text} (95 % interval {found.low:.2f} to {found.high:.2f})"


def _steps(decision: Decision) -> list[str]:
    """What the last step up to the choice gained, and what the next one would."""
    price = decision.price
    assert price is not None
    assert decision.prices is not None
    key = price.key
    above = [
        other
        for other in decision.prices.values()
        if (other.key.strategy, other.key.variant) == (key.strategy, key.variant)
        and other.marginal_from == key.workers
    ]
    return [
        f"From {step.marginal_from} to {step.key.workers} workers: each {step.bill} added brings"
        f" {step.marginal:.2f} of the reference's speed."
        for step in (price, *above)
        if step.marginal is not None
    ]


def _quality(choice: Row, verdict: Verdict) -> str:
    """What is known of the quality of the choice; empty for the reference itself."""
    if verdict.kind == "unknown":
        return "Its quality is not known: whether the model learns as well is left open."
    if verdict.kind == "reference" or choice.quality.value is None:
        return ""
    digits, lower = choice.digits, " (lower is better)" if choice.sense.better == "lower" else ""
    value = f"Its {metric_label(choice.metric)}{lower} is {choice.quality.value:.{digits}f}"
    if choice.quality.low is not None:
        value += f" (95 % interval {choice.quality.low:.{digits}f} to {choice.quality.high:.{digits}f})"
    against = f" (against {verdict.reference.label})" if verdict.reference else ""
    return f"{value}; {verdict.sentence}{against}."


def _target(found: ToTarget | None, choice: Row) -> str:
    """What the choice took to reach the quality asked for."""
    if found is None:
        return ""
    goal = f"{metric_label(choice.metric)} {found.quality:.{choice.digits}f}"
    if found.seconds.value is None:
        return f"{found.reached} of {found.runs} runs reached {goal}."
    gained = (
        f", {_number(found.speedup)} times as fast as the best one-worker row"
        if choice.workers > 1 and found.speedup.value
        else ""
    )
    return f"It reached {goal} after {units.duration(found.seconds.value)}{gained}."


def _rivals(decision: Decision) -> str:
    names = [key.label for key in decision.rivals]
    return f"The runs do not show it to be faster than {_listed(names)}." if names else ""


def _passed_over(decision: Decision) -> list[str]:
    """Why the fastest rows were not chosen."""
    assert decision.prices is not None
    assert decision.verdicts is not None
    sentences = []
    for each in decision.passed_over[:MOST_PASSED_OVER]:
        price, verdict = decision.prices[each.key], decision.verdicts[each.key]
        if each.why == "cost":
            why = f"cost efficiency {_below(price.efficiency.value or 0.0, decision.target)}"
        elif each.why == "uncertain":
            why = f"too uncertain, {_number(price.speedup)} times as fast"
        elif each.why == "worse":
            why = f"its quality is {verdict.sentence}"
        else:
            change = signed(verdict.change.value or 0.0, verdict.digits)
            why = f"its quality seems to suffer, {change} on average"
        sentences.append(f"Faster, and passed over: {each.key.label} ({why}).")
    return sentences


def _below(value: float, target: float) -> str:
    """A value below the target in as many digits as show that it is."""
    return next((text for digits in (2, 3, 4) if float(text := f"{value:.{digits}f}") < target), f"{value}")


def _lasting(decision: Decision) -> str:
    if decision.lasting is None:
        return ""
    return (
        "These trainings are short: start-up, compilation and evaluation decide. For trainings so long that"
        f" they do not count, the same rule chooses {decision.lasting.label}."
    )


def _failures(rows: Sequence[Row]) -> list[str]:
    """Which rows have runs that learned nothing, each sentence for all that failed in the same words."""
    failed: dict[str, list[str]] = {}
    for row in rows:
        if row.verdict.failed:
            failed.setdefault(row.verdict.sentence, []).append(row.key.label)
    return [f"Nothing is advised on {_listed(names)}: {why}." for why, names in failed.items()]


def _convergence(rows: Sequence[Row]) -> list[str]:
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


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
