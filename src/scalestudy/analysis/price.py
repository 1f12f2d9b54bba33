"""Speed-up of each row over its baseline; time and cost of one training, compared with the reference row.

Speed-up is S(n) = T(1) / T(n) for the same work, and efficiency E(n) = S(n) / n. If there is no one-worker
run, both are relative to the strategy's smallest number of workers n0: T(n0) / T(n) and n0 T(n0) / (n T(n)).
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

from scalestudy.analysis.estimate import NOTHING, ONE, Estimate
from scalestudy.analysis.measures import (
    Groups,
    Measure,
    Measures,
    find_baseline,
    gpu_names,
    is_asynchronous,
    is_virtual,
    times_count,
    why_oversubscribed,
)
from scalestudy.analysis.runs import Key, Run, Seed, seed_of
from scalestudy.plugins.strategies import references
from scalestudy.store.records import SHARED_CORES

Bill = Literal["worker", "gpu", "core", "node"]
PriceBasis = Literal["wall", "training", "rate"]
"""Which time is compared: of the planned training, from its start to its result ("wall"); of the epochs of
the measured one ("training"); of one sample ("rate"), if rows did unlike work or no other time is known."""
TOO_WIDE = 2.0
"""A speed-up whose interval ends further below the estimate than this factor is too uncertain."""


@dataclass(frozen=True)
class SpeedUp:
    """Speed-up of one row; if `steady` or `training` is missing, there is a reason.

    Attributes:
        steady: Ratio of steady throughputs, or of their substitutes (`measures.BASES`).
        training: Ratio of total training times.
        wall: Ratio of times from the start of the processes to the result.
        baseline: The row that it is compared with.
        reason: Why `steady` has no value.
        training_reason: Why `training` has no value.
    """

    steady: Estimate = NOTHING
    training: Estimate = NOTHING
    wall: Estimate = NOTHING
    baseline: Key | None = None
    reason: str | None = None
    training_reason: str | None = None

    @property
    def against(self) -> int:
        """Workers of the baseline: 1, or more if the speed-up is relative."""
        if self.baseline is None:
            return 1
        return self.baseline.workers

    @property
    def note(self) -> str | None:
        """The baseline of a relative speed-up, in words; None for an ordinary speed-up."""
        if self.baseline is None or self.against == 1:
            return None
        return f"relative: against {self.baseline.label}, since there is no one-worker run to compare with"


def speed_up(key: Key, measures: Measures) -> SpeedUp:
    """Speed-up of a row over its baseline, from steady throughput, training time and wall time."""
    runs = measures.groups[key]
    baseline = find_baseline(key, measures.groups, timed=True)
    reason = _why_no_speed_up(runs)
    if reason is None and baseline is None:
        reason = _no_baseline(key, measures.groups)
    if reason is None and baseline is not None:
        reason = _unlike_devices(measures.groups[key], measures.groups[baseline])
    if reason is not None or baseline is None:
        return SpeedUp(reason=reason, training_reason=reason)
    steady, reason = _steady(key, baseline, measures)
    training, training_reason = _of_times(
        key,
        baseline,
        measures,
        measures.training_seconds,
    )
    wall, _ = _of_times(key, baseline, measures, measures.wall_seconds)
    return SpeedUp(steady, training, wall, baseline, reason, training_reason)


def _why_no_speed_up(runs: Sequence[Run]) -> str | None:
    if is_virtual(runs):
        return (
            "virtual workers are computed one after another, so they have no speed-up"
        )
    if is_asynchronous(runs):
        return "asynchronous: with more workers each update is of older weights, which has no speed-up"
    excluded = why_oversubscribed(runs)
    if excluded is None:
        return None
    if excluded == SHARED_CORES:
        return f"disturbed: {excluded}"
    return f"oversubscribed: {excluded}"


def _unlike_devices(runs: Sequence[Run], baseline: Sequence[Run]) -> str | None:
    """Why devices cannot be compared with those of a baseline; None if they can, or are unknown."""
    ours = gpu_names(runs)
    theirs = gpu_names(baseline)
    if not ours or not theirs or ours == theirs:
        return None
    its = ", ".join(sorted(ours))
    others = ", ".join(sorted(theirs))
    return f"its GPUs ({its}) are unlike its baseline's ({others})"


def _no_baseline(key: Key, groups: Groups) -> str:
    others = ""
    if key.swept:
        others = f" with {key.details}"
    if key.on(1) in groups:
        return f"its one-worker run{others} was oversubscribed, so it is no baseline"
    engine = groups[key][0].result.engine
    names = dict.fromkeys((key.strategy, *references(engine)))
    return f"no finished one-worker run of {' or '.join(names)}{others} to compare with"


def _ratio(
    key: Key,
    baseline: Key,
    measures: Measures,
    measure: Measure,
) -> Estimate:
    """Ratio of a row to its baseline; exactly 1 for the baseline itself."""
    if key != baseline:
        return measure.ratio(key, baseline)
    # A single run has no interval, not even one without width.
    if len(measures.groups[key]) == 1:
        return Estimate(1.0)
    return ONE


def _steady(key: Key, baseline: Key, measures: Measures) -> tuple[Estimate, str | None]:
    """Ratio of the rates, or why there is none."""
    for row in (key, baseline):
        if not measures.rate.values[row]:
            return NOTHING, _why_no_rate(row, measures)
    if measures.bases[key] != "throughput":
        # A throughput counts samples; the time of an epoch or a training does not say how many.
        unlike = unlike_work(key, baseline, measures)
        if unlike:
            return NOTHING, unlike
    estimate = _ratio(key, baseline, measures, measures.rate)
    if estimate.value is None:
        return estimate, "a throughput is not a positive number"
    return estimate, None


def _why_no_rate(row: Key, measures: Measures) -> str:
    if not any(run.foreign for run in measures.groups[row]):
        return "no steady throughput: one epoch only, or resumed in all others"
    missing = {
        "throughput": "throughput",
        "epoch": "time of an epoch",
        "training": "training time",
    }
    name = missing[measures.bases[row]]
    return f"its {name}, by which the others are compared, is unknown"


def _of_times(
    key: Key,
    baseline: Key,
    measures: Measures,
    times: Measure,
) -> tuple[Estimate, str | None]:
    if not times.values[key] or not times.values[baseline]:
        return NOTHING, "its training time is unknown"
    if unlike := unlike_work(key, baseline, measures):
        return NOTHING, unlike
    # The other way round than rates: a longer time is a smaller speed-up.
    estimate = _ratio(baseline, key, measures, times)
    if estimate.value is None:
        return estimate, "a training time is not a positive number"
    return estimate, None


def unlike_work(key: Key, baseline: Key, measures: Measures) -> str | None:
    """How the work of two rows differs; None if it is equal. Unknown work is assumed to be equal."""
    if key == baseline:
        return None
    runs = [*measures.groups[key], *measures.groups[baseline]]
    processed = set()
    sizes = set()
    epochs = set()
    for run in runs:
        processed.add(run.result.samples_processed)
        epochs.add(run.result.epochs)
        if run.result.training_samples is not None:
            sizes.add(run.result.training_samples)
    if processed == {None}:
        # Tables from elsewhere may state the size of the training set alone.
        differs = len(sizes) > 1
    else:
        several = len(processed) > 1
        differs = several and not _same_work_in_pairs(key, baseline, measures)
    if differs:
        return "processed a different number of samples than its baseline"
    if runs[0].result.samples_processed is None and len(epochs) > 1:
        return "trained for a different number of epochs than its baseline"
    return None


def _same_work_in_pairs(key: Key, baseline: Key, measures: Measures) -> bool:
    """Whether paired runs did the same work: with groups, the sizes of splits differ."""
    ours = _samples_by_seed(key, measures)
    theirs = _samples_by_seed(baseline, measures)
    common = ours.keys() & theirs.keys()
    # One pair may be equal by chance.
    if len(common) < 2:
        return False
    return all(ours[seed] == theirs[seed] for seed in common)


def _samples_by_seed(key: Key, measures: Measures) -> dict[Seed, int | None]:
    samples = {}
    for run in measures.groups[key]:
        samples[seed_of(run)] = run.result.samples_processed
    return samples


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
