"""Time and cost of a training on each row, and which row to request.

Rows are compared by what users pay: time from start to result, and that time multiplied by the units
billed (Hoefler and Belli, SC15, 2015, rule 1). The reference is the cheapest one-worker row whose quality
does not seem worse than that of the best one-worker row. *Cost efficiency* is the reference's cost divided by
a row's cost. The decision is the fastest row whose cost efficiency is at least the target and whose quality
does not seem worse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import log
from typing import Literal

from scalestudy.analysis.measures import Measure, Measures, gathered, times_count
from scalestudy.analysis.quality import Verdict, judge
from scalestudy.analysis.runs import Key, Run
from scalestudy.analysis.statistics import NOTHING, ONE, Estimate
from scalestudy.analysis.table import Row, best_single
from scalestudy.study.quality_margin import QualityMargin

Bill = Literal["worker", "gpu", "core", "node"]
Basis = Literal["wall", "training", "rate"]
"""Which time of a training is compared: from its start to its result ("wall"); its epochs only ("training");
or the time of one sample ("rate"), if rows did different work or no other time is known."""
Kind = Literal["ask", "stay", "only-smallest", "uncertain", "none", "no-timing", "nothing-learned", "no-runs"]
Reason = Literal[
    "single-run", "interval-contains-target", "faster-may-qualify", "quality-unclear", "quality-unknown",
    "quality-no-reference", "quality-no-direction", "relative",
]  # fmt: skip
"""Why a decision is provisional."""
Objection = Literal["cost", "worse", "seems-worse", "uncertain"]
"""Why a faster row was passed over."""
EFFICIENCY_TARGET = 0.7
TOO_WIDE = 2.0
"""A speed-up whose interval ends further below the estimate than this factor is too uncertain."""


@dataclass(frozen=True)
class Price:
    """Time and cost of one training on a row.

    Attributes:
        basis: Which time is compared.
        seconds: Seconds of one training, or of one sample if the basis is "rate".
        units: Units that are billed while it runs.
        cost: Unit-hours of one training; empty if the basis is "rate".
        speedup: Time on the reference divided by this time.
        efficiency: Cost efficiency: cost on the reference divided by this cost.
        on_front: Whether no other row is both faster and cheaper.
        marginal: Speed-up gained per unit added since the next smaller number of workers of its series.
        marginal_from: That number of workers.
        seeds: Seeds after which the interval of the cost efficiency would exclude the target, if further runs
            spread as much; None if more than 50 or unknown.
    """

    key: Key
    basis: Basis
    seconds: Estimate
    units: float
    bill: Bill
    cost: Estimate
    speedup: Estimate = NOTHING
    efficiency: Estimate = NOTHING
    on_front: bool = False
    marginal: float | None = None
    marginal_from: int | None = None
    seeds: int | None = None

    @property
    def duration(self) -> float:
        """The time in seconds, which every price has."""
        return self.seconds.value or 0.0


@dataclass(frozen=True)
class PassedOver:
    """A row that is faster than the choice, and the reason why it was not chosen."""

    key: Key
    why: Objection


@dataclass(frozen=True)
class Decision:
    """Which row to request.

    Attributes:
        choice: The row; None if no row is recommended.
        reference: The row that costs are compared with; None if nothing was timed.
        verdicts: Quality of every row, compared with the best one-worker row where that is stricter.
        prices: Price of every timed row, in reading order.
        provisional: Why the decision is provisional; empty if it is not.
        passed_over: Faster rows, the fastest first.
        rivals: Rows with as many workers that may be as fast as the choice.
        lasting: The choice for trainings so long that start-up and evaluation do not matter, if it is another
            row.
        lasting_uncertain: Cheapest row of such trainings, if the runs are too uncertain to choose one.
    """

    kind: Kind
    target: float
    bill: Bill
    choice: Key | None = None
    reference: Key | None = None
    verdicts: Mapping[Key, Verdict] = field(default_factory=dict)
    prices: Mapping[Key, Price] = field(default_factory=dict)
    provisional: tuple[Reason, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    rivals: tuple[Key, ...] = ()
    lasting: Key | None = None
    lasting_uncertain: Key | None = None

    @property
    def price(self) -> Price | None:
        """Time and cost of the choice."""
        return self.prices[self.choice] if self.choice else None

    @property
    def relative(self) -> bool:
        """Whether the reference has several workers, because no one-worker row was timed."""
        return self.reference is not None and self.reference.workers > 1


def decide(
    rows: Sequence[Row], measures: Measures, target: float = EFFICIENCY_TARGET, bill: Bill = "worker",
    margin: QualityMargin | None = None,
) -> Decision:  # fmt: skip
    """Decide which row to request.

    Args:
        rows: Finished rows.
        measures: The measures that `rows` were computed from.
        target: Cost efficiency that the choice must reach.
        bill: Unit that the site bills.
        margin: Accepted loss of quality.
    """
    if not rows:
        return Decision("no-runs", target, bill)
    verdicts = _stricter_verdicts(rows, measures, margin)
    sound = {key for key, verdict in verdicts.items() if not verdict.seems_worse}
    basis = _basis(rows, measures)

    def decision(basis: Basis) -> Decision:
        prices, reference = _prices(rows, measures, sound, target, bill, basis)
        made = Decision("no-timing", target, bill, verdicts=verdicts, prices=prices)
        return _choose(made, rows, sound, reference, _measure(measures, basis))

    decided = decision(basis)
    if basis != "wall" or decided.choice is None:
        return decided
    long = decision("training")
    if long.kind == "uncertain":
        return replace(decided, lasting_uncertain=long.reference)
    return replace(decided, lasting=long.choice if long.choice != decided.choice else None)


def _stricter_verdicts(
    rows: Sequence[Row], measures: Measures, margin: QualityMargin | None
) -> dict[Key, Verdict]:
    """Each row's verdict, or its verdict against the study's best one-worker row if it seems worse there.

    Otherwise a batch size that ruins the model on one worker too would pass as no worse.
    """
    verdicts = {row.key: row.verdict for row in rows}
    best = {metric: best_single(rows, metric) for metric in {row.metric for row in rows}}
    for row in rows:
        single = best[row.metric]
        if single and row.key != single.key and (row.key.swept or row.strategy != single.strategy):
            against_best = judge(row.key, measures, margin, single.key)
            if against_best.seems_worse:
                verdicts[row.key] = against_best
    return verdicts


def _choose(
    made: Decision, rows: Sequence[Row], sound: set[Key], reference: Key | None, measure: Measure
) -> Decision:
    target, verdicts, prices = made.target, made.verdicts, made.prices
    if all(verdicts[row.key].failed for row in rows):
        return replace(made, kind="nothing-learned")
    candidates = [
        price for key, price in prices.items() if key in sound and price.efficiency.value is not None
    ]
    if reference is None or not candidates:
        return made
    made = replace(made, reference=reference)
    learned = [row for row in rows if row.workers > reference.workers and not verdicts[row.key].failed]
    if learned and not any(row.key in prices for row in learned):
        return made
    undecided = [
        price for price in candidates if price.key.workers > reference.workers and is_undecided(price, target)
    ]
    good = [
        price
        for price in candidates
        if (price.efficiency.value or 0.0) >= target * (1 - 1e-9) and price not in undecided
    ]
    if not good or (undecided and all(price.key.workers == reference.workers for price in good)):
        return replace(made, kind="uncertain" if undecided else "none")
    choice = min(good, key=lambda price: price.duration)
    faster = sorted(
        (price for price in prices.values() if price.duration < choice.duration),
        key=lambda price: price.duration,
    )
    alone = len({row.workers for row in rows}) == 1
    kind: Kind = "ask" if choice.key.workers > reference.workers else "only-smallest" if alone else "stay"
    rivals = [
        price.key
        for price in good
        if price.key.workers == choice.key.workers
        and price.key != choice.key
        and (ratio := _times(measure, choice.basis, price.key, choice.key)).low is not None
        and ratio.low <= 1
    ]
    contenders = [price for price in faster if price.key in sound and kind != "only-smallest"]
    return replace(
        made,
        kind=kind,
        choice=choice.key,
        provisional=_provisional(choice, reference, verdicts[choice.key], contenders, target, kind),
        passed_over=tuple(
            PassedOver(price.key, _objection(price, verdicts[price.key], target))
            for price in faster
            if not verdicts[price.key].failed
        ),
        rivals=tuple(rivals) if kind == "ask" else (),
    )


def is_undecided(price: Price, target: float) -> bool:
    """Whether the measurement is too uncertain to say if a row reaches `target` or is of no use.

    The interval of its efficiency reaches `target`, and that of its speed-up reaches down to 1, or below half
    of the measured value.
    """
    speed, reached = price.speedup, price.efficiency.high
    if speed.value is None or speed.low is None or reached is None:
        return False
    return reached >= target and (speed.low <= 1 or speed.low * TOO_WIDE < speed.value)


def _provisional(
    choice: Price, reference: Key, verdict: Verdict, contenders: Sequence[Price], target: float, kind: Kind
) -> tuple[Reason, ...]:
    """Reasons why a choice is provisional, without repeats; `contenders` are faster rows of sound quality."""
    by_verdict: dict[str, Reason] = {
        "unclear": "quality-unclear", "unknown": "quality-unknown",
        "no-reference": "quality-no-reference", "no-direction": "quality-no-direction",
    }  # fmt: skip
    reasons: list[Reason] = []
    if choice.key != reference:
        if choice.efficiency.low is None:
            reasons.append("single-run")
        elif choice.efficiency.contains(target):
            reasons.append("interval-contains-target")
    if kind == "only-smallest":
        return tuple(reasons)
    for price in contenders:
        if price.efficiency.low is None:
            reasons.append("single-run")
        elif price.efficiency.contains(target):
            reasons.append("faster-may-qualify")
    if verdict.kind in by_verdict and choice.key.workers > 1:
        reasons.append(by_verdict[verdict.kind])
    if reference.workers > 1 or verdict.relative:
        reasons.append("relative")
    return tuple(dict.fromkeys(reasons))


def _objection(price: Price, verdict: Verdict, target: float) -> Objection:
    if verdict.kind == "worse":
        return "worse"
    if verdict.seems_worse:
        return "seems-worse"
    return "uncertain" if is_undecided(price, target) else "cost"


def _prices(
    rows: Sequence[Row], measures: Measures, sound: set[Key], target: float, bill: Bill, basis: Basis
) -> tuple[dict[Key, Price], Key | None]:
    """Return the price of every timed row, in reading order, and the reference, if there is one."""
    measure = _measure(measures, basis)
    prices: dict[Key, Price] = {}
    for row in rows:
        runs = measures.groups[row.key]
        if not measure.values[row.key] or not times_count(runs):
            continue
        seconds = measure.mean(row.key)
        if seconds.value is None or seconds.value <= 0:
            continue
        units = units_of(runs, bill)
        if basis == "rate":
            prices[row.key] = Price(row.key, basis, Estimate(1 / seconds.value), units, bill, NOTHING)
        else:
            prices[row.key] = Price(row.key, basis, seconds, units, bill, seconds.scaled(units / 3600))
    usable = [price for key, price in prices.items() if key in sound]
    smallest = min((price.key.workers for price in usable), default=0)
    singles = [price for price in usable if price.key.workers == smallest]
    reference = min(singles, key=lambda price: price.units * price.duration, default=None)
    if reference is None:
        return prices, None
    front = _front(usable)
    for key, price in prices.items():
        if key == reference.key:
            prices[key] = replace(price, speedup=ONE, efficiency=ONE, on_front=key in front)
            continue
        speedup = _times(measure, basis, reference.key, key)
        efficiency, contrast = (
            speedup.scaled(reference.units / price.units),
            measure.contrast(reference.key, key),
        )
        seeds = None
        if contrast is not None and efficiency.value:
            seeds = contrast.pairs_to_settle(abs(log(efficiency.value / target)))
        prices[key] = replace(
            price, speedup=speedup, efficiency=efficiency, seeds=seeds, on_front=key in front
        )
    for members in gathered(list(prices), lambda key: key.series).values():
        rising = sorted(members, key=lambda key: key.workers)
        for below, key in pairwise(rising):
            prices[key] = _with_marginal(prices[key], prices[below])
    return prices, reference.key


def _times(measure: Measure, basis: Basis, key: Key, other: Key) -> Estimate:
    """Time of `key` divided by the time of `other`."""
    return measure.ratio(other, key) if basis == "rate" else measure.ratio(key, other)


def _with_marginal(price: Price, before: Price) -> Price:
    """Return the price with the gain of the last step up in its series."""
    if before.units >= price.units:
        return price
    if price.speedup.value is None or before.speedup.value is None:
        return price
    gained = (price.speedup.value - before.speedup.value) / (price.units - before.units)
    return replace(price, marginal=gained, marginal_from=before.key.workers)


def _front(prices: Sequence[Price]) -> set[Key]:
    """Rows that no other row beats in both time and cost (Pareto)."""
    front: set[Key] = set()
    cheapest = float("inf")
    for price in sorted(prices, key=lambda price: (price.duration, price.units * price.duration)):
        if price.units * price.duration < cheapest:
            front.add(price.key)
            cheapest = price.units * price.duration
    return front


def _basis(rows: Sequence[Row], measures: Measures) -> Basis:
    """The first basis known for all timed rows, if the rows of each series did the same work."""
    keys = [row.key for row in rows if times_count(measures.groups[row.key])]
    works: dict[tuple[str, str], set[int | None]] = {}
    for row in rows:
        works.setdefault(row.key.series, set()).add(row.samples_processed)
    alike = all(len(samples) == 1 for samples in works.values())
    for basis in ("wall", "training"):
        if alike and keys and all(_measure(measures, basis).values[key] for key in keys):
            return basis
    return "rate"


def _measure(measures: Measures, basis: Basis) -> Measure:
    return {"wall": measures.wall_seconds, "training": measures.training_seconds, "rate": measures.rate}[
        basis
    ]


def units_of(runs: Sequence[Run], bill: Bill) -> float:
    """Units that are billed while a row runs; its number of workers if nothing else was recorded."""
    run = runs[0]
    workers = float(run.result.workers)
    if bill == "node":
        return float(len(run.result.nodes) or len({rank.host for rank in run.ranks})) or workers
    if bill == "core":
        granted = [len(rank.cpus) for rank in run.ranks]
        size = run.ranks[0].size if run.ranks else 0
        return float(sum(granted) / len(granted) * size) if granted else workers
    return workers
