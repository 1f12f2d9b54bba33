"""Time and cost of one training on each row, compared with the reference row."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from scalestudy.analysis.measures import Measure, Measures, gathered, times_count
from scalestudy.analysis.runs import Key, Run
from scalestudy.analysis.speedup import unlike_work
from scalestudy.analysis.statistics import NOTHING, ONE, Estimate

Bill = Literal["worker", "gpu", "core", "node"]
PriceBasis = Literal["wall", "training", "rate"]
"""Which time of a training is compared: from its start to its result ("wall"); its epochs only ("training");
or the time of one sample ("rate"), if rows did different work or no other time is known."""
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
    """

    key: Key
    basis: PriceBasis
    seconds: Estimate
    units: float
    bill: Bill
    cost: Estimate
    speedup: Estimate = NOTHING
    efficiency: Estimate = NOTHING
    on_front: bool = False
    marginal: float | None = None
    marginal_from: int | None = None

    @property
    def duration(self) -> float:
        """The time in seconds, which every price has."""
        return self.seconds.value or 0.0


def is_undecided(price: Price, target: float) -> bool:
    """Whether the measurement is too uncertain to say if a row reaches `target` or is of no use."""
    return too_uncertain(price.speedup, price.efficiency, target)


def too_uncertain(speedup: Estimate, efficiency: Estimate, target: float) -> bool:
    """Whether the interval of the efficiency reaches `target`, and that of the speed-up says little.

    It reaches down to 1, or below half of the measured value.
    """
    value, low = speedup.value, speedup.low
    if value is None or low is None or efficiency.high is None:
        return False
    return efficiency.high >= target and (low <= 1 or low * TOO_WIDE < value)


def prices_of(
    keys: Sequence[Key], measures: Measures, sound: Set[Key], bill: Bill, basis: PriceBasis
) -> tuple[dict[Key, Price], Key | None]:
    """Return the price of every timed row, in reading order, and the reference, if there is one."""
    measure = _measure(measures, basis)
    prices: dict[Key, Price] = {}
    for key in keys:
        runs = measures.groups[key]
        if not measure.values[key] or not times_count(runs):
            continue
        first = min((other for other in keys if other.series == key.series), key=lambda other: other.workers)
        if measures.bases[key] != "throughput" and unlike_work(key, first, measures):
            continue
        seconds = measure.mean(key)
        if seconds.value is None or seconds.value <= 0:
            continue
        units = units_of(runs, bill)
        if basis == "rate":
            prices[key] = Price(key, basis, Estimate(1 / seconds.value), units, bill, NOTHING)
        else:
            prices[key] = Price(key, basis, seconds, units, bill, seconds.scaled(units / 3600))
    usable = [price for key, price in prices.items() if key in sound]
    least = min((price.units for price in usable), default=0.0)
    smallest = [price for price in usable if price.units == least]
    reference = min(smallest, key=lambda price: (price.duration, price.key.workers), default=None)
    if reference is None:
        return prices, None
    front = _front(usable)
    for key, price in prices.items():
        speedup = ONE if key == reference.key else relative_time(measures, basis, reference.key, key)
        efficiency = speedup.scaled(reference.units / price.units)
        prices[key] = replace(price, speedup=speedup, efficiency=efficiency, on_front=key in front)
    for members in gathered(list(prices), lambda key: key.series).values():
        for below, key in pairwise(sorted(members, key=lambda key: key.workers)):
            prices[key] = _with_marginal(prices[key], prices[below])
    return prices, reference.key


def relative_time(measures: Measures, basis: PriceBasis, key: Key, other: Key) -> Estimate:
    """Time of `key` divided by the time of `other`."""
    measure = _measure(measures, basis)
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


def price_basis(keys: Sequence[Key], measures: Measures) -> PriceBasis:
    """The first basis known for all timed rows, if the rows of each series did the same work."""
    timed = [key for key in keys if times_count(measures.groups[key])]
    works = {(key.series, _work(measures.groups[key])) for key in keys}
    alike = len(works) == len({key.series for key in keys})
    for basis in ("wall", "training"):
        if alike and timed and all(_measure(measures, basis).values[key] for key in timed):
            return basis
    return "rate"


def _work(runs: Sequence[Run]) -> int | None:
    """Samples of each run, else epochs; None if they differ or are unknown."""
    for amounts in ({run.result.samples_processed for run in runs}, {run.result.epochs for run in runs}):
        if len(amounts) == 1 and (amount := amounts.pop()):
            return amount
    return None


def _measure(measures: Measures, basis: PriceBasis) -> Measure:
    return {"wall": measures.wall_seconds, "training": measures.training_seconds, "rate": measures.rate}[
        basis
    ]


def units_of(runs: Sequence[Run], bill: Bill) -> float:
    """Units that are billed while a row runs: of its job, which may hold more than its workers use.

    Without a job or a record of it, those of its processes, else its number of workers.
    """
    run = runs[0]
    workers = float(run.result.workers)
    if run.allocations:
        held = run.allocations[-1]
        return float({"node": held.nodes, "core": held.cores, "gpu": held.gpus}.get(bill, 0)) or workers
    if bill == "node":
        return float(len(run.result.nodes) or len({rank.host for rank in run.ranks})) or workers
    if bill == "core":
        granted = [len(rank.cpus) for rank in run.ranks]
        size = run.ranks[0].size if run.ranks else 0
        return float(sum(granted) / len(granted) * size) if granted else workers
    return workers
