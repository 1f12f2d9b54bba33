"""Time and cost of one training, compared with the reference row."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

from scalestudy.analysis.estimate import NOTHING, ONE, Estimate
from scalestudy.analysis.measures import Measure, Measures, times_count
from scalestudy.analysis.runs import Key, Run
from scalestudy.analysis.speed_up import unlike_work

Bill = Literal["worker", "gpu", "core", "node"]
PriceBasis = Literal["wall", "training", "rate"]
"""Which time is compared: of the planned training, from its start to its result ("wall"); of the epochs of
the measured one ("training"); of one sample ("rate"), if rows did unlike work or no other time is known."""
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
    says_little = low <= 1 or low * TOO_WIDE < value
    return efficiency.high >= target and says_little


def prices_of(
    keys: Sequence[Key],
    measures: Measures,
    sound: Set[Key],
    bill: Bill,
    basis: PriceBasis,
) -> tuple[dict[Key, Price], Key | None]:
    """Return the price of every timed row, in reading order, and the reference, if there is one."""
    firsts: dict[tuple[str, str], Key] = {}
    for key in sorted(keys, key=lambda key: key.workers):
        firsts.setdefault(key.series, key)
    prices: dict[Key, Price] = {}
    for key in keys:
        price = _price_of(key, firsts[key.series], measures, bill, basis)
        if price is not None:
            prices[key] = price
    usable = [price for key, price in prices.items() if key in sound]
    if not usable:
        return prices, None
    reference = _cheapest_of_least_units(usable)
    # A row of worse quality dominates none that learns as well.
    front = _front(usable)
    for key, price in prices.items():
        speedup = ONE
        if key != reference.key:
            speedup = relative_time(measures, basis, reference.key, key)
        efficiency = speedup.scaled(reference.units / price.units)
        prices[key] = replace(
            price,
            speedup=speedup,
            efficiency=efficiency,
            on_front=key in front,
        )
    return prices, reference.key


def _cheapest_of_least_units(prices: Sequence[Price]) -> Price:
    """The cheapest of the rows that bill the fewest units: the fastest, since they bill the same."""

    def by_time(price: Price) -> tuple[float, int]:
        return price.duration, price.key.workers

    least = min(price.units for price in prices)
    smallest = [price for price in prices if price.units == least]
    return min(smallest, key=by_time)


def _price_of(
    key: Key,
    first: Key,
    measures: Measures,
    bill: Bill,
    basis: PriceBasis,
) -> Price | None:
    """Time and cost of a row; None if its times do not count. `first` is the smallest row of its series."""
    measure = _measure(measures, basis)
    runs = measures.groups[key]
    if not measure.values[key] or not times_count(runs):
        return None
    # A throughput counts samples, so that it is a price of unlike work, too.
    if measures.bases[key] != "throughput" and unlike_work(key, first, measures):
        return None
    seconds = measure.mean(key)
    units = units_of(runs, bill)
    if seconds.value is None or seconds.value <= 0:
        return None
    if basis == "rate":
        # A rate has no training whose cost it could be.
        of_sample = Estimate(1 / seconds.value)
        return Price(key, basis, of_sample, units, bill, NOTHING)
    cost = seconds.scaled(units / 3600)
    return Price(key, basis, seconds, units, bill, cost)


def relative_time(
    measures: Measures,
    basis: PriceBasis,
    key: Key,
    other: Key,
) -> Estimate:
    """Time of `key` divided by the time of `other`."""
    measure = _measure(measures, basis)
    if basis == "rate":
        return measure.ratio(other, key)
    return measure.ratio(key, other)


def _front(prices: Sequence[Price]) -> set[Key]:
    """Rows that no other row beats in both time and cost (Pareto)."""

    def cost(price: Price) -> float:
        return price.units * price.duration

    front: set[Key] = set()
    cheapest = float("inf")
    # From the fastest on, each row on the front is cheaper than all before it.
    for price in sorted(prices, key=lambda price: (price.duration, cost(price))):
        if cost(price) < cheapest:
            front.add(price.key)
            cheapest = cost(price)
    return front


def price_basis(keys: Sequence[Key], measures: Measures) -> PriceBasis:
    """The first basis known for all timed rows, if the rows of each series did the same work."""
    timed = [key for key in keys if times_count(measures.groups[key])]
    if not timed:
        return "rate"
    works: dict[tuple[str, str], int | None] = {}
    for key in keys:
        work = _work(measures.groups[key])
        # Unlike work is compared by the time of a sample (weak scaling).
        if works.setdefault(key.series, work) != work:
            return "rate"
    for basis in ("wall", "training"):
        times = _measure(measures, basis)
        if all(times.values[key] for key in timed):
            return basis
    return "rate"


def _work(runs: Sequence[Run]) -> int | None:
    """Samples of each run, else epochs; None if they differ or are unknown."""
    samples = {run.result.samples_processed for run in runs}
    epochs = {run.result.epochs for run in runs}
    for amounts in (samples, epochs):
        if len(amounts) == 1 and (amount := amounts.pop()):
            return amount
    return None


def _measure(measures: Measures, basis: PriceBasis) -> Measure:
    if basis == "wall":
        return measures.planned_seconds
    if basis == "training":
        return measures.training_seconds
    return measures.rate


def units_of(runs: Sequence[Run], bill: Bill) -> float:
    """Units that are billed while a row runs: of its job, which may hold more than its workers use.

    Without a job or a record of it, those of its processes, else its number of workers.
    """
    run = runs[0]
    workers = float(run.result.workers)
    if run.allocations:
        # Sites bill what a job holds, not what is used of it.
        held = run.allocations[-1]
        units = {"node": held.nodes, "core": held.cores, "gpu": held.gpus}
        return float(units.get(bill, 0)) or workers
    if bill == "node":
        nodes = len(run.result.nodes) or len(run.rank_hosts)
        return float(nodes) or workers
    if bill == "core" and run.ranks:
        # Ranks that were not recorded had as many cores as the others.
        granted = [len(rank.cpus) for rank in run.ranks]
        each = sum(granted) / len(granted)
        return float(each * run.ranks[0].size)
    return workers
