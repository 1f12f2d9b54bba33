"""Which runs a study needs next, from what it has found so far, or that it is decided.

Times come from timing runs of every row, in blocks; further blocks only for rows whose cost efficiency is
not settled. Qualities come from trainings: of the fastest row that is cheap enough, and of the reference
with the same seeds, until a group-sequential test settles it (`analysis.sequential`). If that row
is no worse, nothing slower is trained; if it is worse or will hardly be shown to be no worse, the search goes
on by bisection among rows with fewer workers. Rows with equal updates are trained once.
`benchmarks/sequential.py` simulates how often this ends with the right row, and at what cost.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.measures import Measure, Measures, find_baseline, times_count
from scalestudy.analysis.price import too_uncertain
from scalestudy.analysis.quality import Verdict, judge
from scalestudy.analysis.runs import Key, of_fewest_workers
from scalestudy.analysis.sequential import FEWEST, LOOKS
from scalestudy.config.quality_margin import QualityMargin

NEAR = 1.1
"""A row slower than this multiple of the fastest with as many workers or fewer cannot be chosen."""
BLOCKS = 2
"""Timing runs of a row that may be chosen."""
# With noise of 6 %, four more timing runs than eight settle one simulated study in a hundred more.
MOST_BLOCKS = 12
"""Timing runs of a row whose cost efficiency stays unsettled."""
MOST_DISTURBED = 4
"""Timing runs of a row after which disturbed times count, if it has no others."""
SURELY = 0.85
"""Share of the zone's lower end; a row with less cost efficiency in its first timing run gets no second,
unless times vary so much that this says little."""
OVERRUN = 0.03
"""Share of the budget that is kept for runs that take longer than expected."""
GIVE_UP = 2
"""Runs that must end without a result, and be half of a row's runs, until it is given up."""
GRID_SEEDS = 5
"""Seeds of the grid whose cost is the default budget."""

Standing = Literal["no-worse", "worse", "open", "untrained"]
Until = Literal["decided", "timed"]
WhyNext = Literal[
    "times-first",
    "disturbed",
    "efficiency-unsettled",
    "chosen-by-time",
    "seeds-do-not-tell",
    "fastest-left",
]
"""Why runs are to do next."""
WhyEnded = Literal[
    "always-disturbed",
    "nothing-timed",
    "times-too-uncertain",
    "efficiency-open",
    "times-settled",
    "reference-fails",
    "choice-fails",
    "beyond-budget-or-fails",
    "training-beyond-budget",
    "seeds-spread-too-far",
    "qualifies",
]
"""Why nothing more is to run."""


@dataclass(frozen=True)
class Why:
    """Why runs are next, or none are, without words (`wording.next_runs`).

    Attributes:
        rows: The rows that it is about.
        seeds: Seeds that did not tell, or that it would take.
        most_seeds: Seeds that may be run, if it would take more.
        target: Cost efficiency that is not settled.
    """

    kind: WhyNext | WhyEnded
    rows: tuple[Key, ...] = ()
    seeds: int | None = None
    most_seeds: int | None = None
    target: float | None = None


@dataclass(frozen=True)
class Limits:
    """What a study may use: `budget` in seconds of billed units; None for the cost of `GRID_SEEDS` grids."""

    budget: float | None = None
    seeds: int = LOOKS[-1]


@dataclass(frozen=True)
class Known:
    """What is known about a study.

    Attributes:
        rows: All rows of the sweep, in reading order.
        measures: Measures of its finished runs.
        units: Units that are billed for each row.
        timings: Numbers of the timing runs of each row that have ended in any way.
        trainings: Numbers of its trainings that have ended in any way.
        spent: Seconds of billed units so far.
        target: Cost efficiency that the choice must reach.
        zone: Distance from the target within which a row may be judged either way.
        margin: Accepted loss of quality.
        share: Cost of a timing run as a share of a training's.
    """

    rows: Sequence[Key]
    measures: Measures
    units: Mapping[Key, float]
    timings: Mapping[Key, Collection[int]]
    trainings: Mapping[Key, Collection[int]]
    spent: float
    target: float
    zone: float
    margin: QualityMargin | None = None
    share: float = 0.1

    def seconds(self, key: Key) -> float:
        """Mean time of the planned training; infinite if unknown."""
        return _mean(self.measures.planned_seconds, key)

    def cost(self, key: Key) -> float:
        """Cost of a training of the study in seconds of billed units; the planned one may be longer."""
        return self.units[key] * _mean(self.measures.wall_seconds, key)

    def seeds(self, key: Key) -> int:
        """Seeds with a quality, of the row itself or of rows with equal updates."""
        return len(self.measures.quality.values.get(key, ()))

    def alike(self, key: Key) -> list[Key]:
        """The row and those with equal updates."""
        updates = self.measures.updates
        rows = []
        for row in self.rows:
            # A row without a run has no updates yet, and equals only itself.
            equal = row in updates and updates[row] == updates.get(key)
            if row == key or equal:
                rows.append(row)
        return rows

    def timing_count(self, key: Key) -> int:
        """Timing runs of the row that have ended in any way."""
        return len(self.timings.get(key, ()))

    def tried(self, key: Key) -> set[int]:
        """Numbers of the trainings of the row and of those with equal updates."""
        numbers: set[int] = set()
        for row in self.alike(key):
            numbers.update(self.trainings.get(row, ()))
        return numbers

    def row_to_train(self, key: Key) -> Key:
        """The row to train for the quality of `key`: the one with most trainings, else the cheapest."""

        def by_preference(row: Key) -> tuple[int, float]:
            return -len(self.trainings.get(row, ())), self.cost(row)

        return min(self.alike(key), key=by_preference)


def _mean(times: Measure, key: Key) -> float:
    """Mean of a row's times; infinite if they are unknown."""
    if not times.values.get(key):
        return float("inf")
    return times.mean(key).value or float("inf")


@dataclass(frozen=True)
class Batch:
    """Runs to do next: the timing runs or trainings numbered `numbers` of each row, and why."""

    kind: Literal["timing", "training"]
    runs: tuple[tuple[Key, int], ...]
    why: Why


@dataclass(frozen=True)
class Ended:
    """Nothing more is to run: `decided`, or a limit was reached."""

    decided: bool
    why: Why


def next_runs(
    known: Known,
    limits: Limits | None = None,
    until: Until = "decided",
) -> Batch | Ended:
    """Return the next runs, or why there are none; until "timed", qualities are not asked for."""
    limits = limits or Limits()
    # A row that was never timed may be the fastest of all, so times come before any training.
    if times := _missing_times(known):
        return times
    timed, healthy = [], []
    for key in known.rows:
        if known.measures.wall_seconds.values.get(key):
            timed.append(key)
            # The report advises no row of which more runs fail than of the smallest.
            if not known.measures.failed.get(key):
                healthy.append(key)
    if missing := _why_no_times(known, timed, healthy):
        return Ended(False, missing)
    reference = _reference(known, healthy)
    budget = limits.budget
    if budget is None:
        budget = GRID_SEEDS * sum(map(known.cost, timed))
    # Runs may take longer than expected, so a part of the budget is kept.
    left = budget / (1 + OVERRUN) - known.spent
    unsettled = _unsettled(known, healthy, reference)
    batch = _more_timings(known, unsettled, reference)
    if batch is not None and _price(known, batch) <= left:
        return batch
    if until == "timed":
        return _timed(known, unsettled, reference)
    root = _cheapest_of_fewest(known, healthy)
    candidates = _candidates(known, healthy, reference, root)
    step = _quality(known, candidates, root, left, limits)
    if isinstance(step, Ended) and step.decided:
        # The qualities are settled, but the report would refuse the times of such a row.
        for key in unsettled:
            if _is_vague(known, key, reference):
                return Ended(False, Why("times-too-uncertain", (key,)))
    return step


def _cheapest_of_fewest(known: Known, keys: Sequence[Key]) -> Key:
    """The cheapest of the rows with the fewest workers, which qualities are compared with."""
    return min(of_fewest_workers(keys), key=known.cost)


def _missing_times(known: Known) -> Batch | None:
    """Timing runs of rows that have none yet, or only disturbed ones; None if there are no such rows."""
    walls = known.measures.wall_seconds.values
    fresh, busy = [], []
    for key in known.rows:
        if not walls.get(key) and known.timing_count(key) < GIVE_UP:
            fresh.append(key)
        runs = known.measures.groups.get(key, ())
        disturbed = bool(runs) and all(run.disturbed for run in runs)
        if disturbed and known.timing_count(key) < MOST_DISTURBED:
            busy.append(key)
    if fresh:
        return _timing(known, fresh, "times-first")
    if busy:
        return _timing(known, busy, "disturbed")
    return None


def _more_timings(
    known: Known,
    unsettled: Sequence[Key],
    reference: Key,
) -> Batch | None:
    """Another timing run of rows whose cost efficiency is not settled; None if all have had enough.

    The reference is timed with them while it has no more runs: an efficiency is a ratio of two times.
    """
    again, counts = [], []
    for key in unsettled:
        count = known.timing_count(key)
        if count < MOST_BLOCKS:
            again.append(key)
            counts.append(count)
    if not again:
        return None
    blocks = min(counts)
    if known.timing_count(reference) <= blocks:
        again.append(reference)
    return _timing(known, again, "efficiency-unsettled")


def _why_no_times(
    known: Known,
    timed: Sequence[Key],
    healthy: Sequence[Key],
) -> Why | None:
    """Why rows cannot be compared; None if they can.

    The report compares no times of runs that shared their cores with another study, so nothing is trained for
    such a row either.
    """
    for key in timed:
        if not times_count(known.measures.groups[key]):
            return Why("always-disturbed", (key,))
    if not healthy:
        return Why("nothing-timed")
    return None


def _reference(known: Known, healthy: Sequence[Key]) -> Key:
    """The row that costs are compared with, by the rule of `price.prices_of`.

    Of the rows that are billed least and do not seem worse, it is the fastest.
    """
    sound = [key for key in healthy if not _seems_worse(known, key)] or healthy
    least = min(known.units[key] for key in sound)

    def by_speed(key: Key) -> tuple[float, int]:
        return known.seconds(key), key.workers

    # At equal units, the fastest row is the cheapest.
    cheapest = [key for key in sound if known.units[key] == least]
    return min(cheapest, key=by_speed)


def _seems_worse(known: Known, key: Key) -> bool:
    if known.seeds(key) == 0:
        return False
    return judge(key, known.measures, known.margin).seems_worse


def _timed(known: Known, unsettled: Sequence[Key], reference: Key) -> Ended:
    """The end of a study that only asks for times."""
    for key in unsettled:
        if _is_vague(known, key, reference):
            return Ended(False, Why("times-too-uncertain", (key,)))
    if unsettled:
        why = Why("efficiency-open", tuple(unsettled), target=known.target)
        return Ended(False, why)
    return Ended(True, Why("times-settled"))


def _timing(known: Known, keys: Iterable[Key], why: WhyNext) -> Batch:
    """The next timing run of each row."""
    runs = []
    for key in keys:
        # A number that failed is not tried again: it is the same run with the same seed.
        (number,) = _unused(known.timings.get(key, ()), 1)
        runs.append((key, number))
    return Batch("timing", tuple(runs), Why(why))


def _efficiency(known: Known, key: Key, reference: Key) -> Estimate:
    ratio = known.measures.planned_seconds.ratio(reference, key)
    return ratio.scaled(known.units[reference] / known.units[key])


def _unsettled(known: Known, keys: Sequence[Key], reference: Key) -> list[Key]:
    """Rows whose cost efficiency is not settled: those that need a second timing run, else all."""
    fastest = _fastest_at_most(known, keys)
    open_rows, few = [], []
    for key in keys:
        if known.units[key] <= known.units[reference]:
            continue  # slower than the reference, and no cheaper
        fast = fastest[_place(known, key)]
        if known.seconds(key) > NEAR * fast:
            # Too slow to be chosen, so that its efficiency decides nothing.
            if _is_vague(known, key, reference):
                open_rows.append(key)
            continue
        efficiency = _efficiency(known, key, reference)
        lower_end = known.target - known.zone
        enough = (efficiency.value or 0.0) >= SURELY * lower_end
        surely_low = not enough and efficiency.high is None
        settled = surely_low or _is_settled(efficiency, known.target, known.zone)
        if enough and known.timing_count(key) < BLOCKS:
            few.append(key)
        elif not settled or _is_vague(known, key, reference):
            open_rows.append(key)
    return few or open_rows


def _is_vague(known: Known, key: Key, reference: Key) -> bool:
    """Whether the report would call the times of a row too uncertain."""
    speedup = known.measures.planned_seconds.ratio(reference, key)
    return too_uncertain(speedup, _efficiency(known, key, reference), known.target)


def _is_settled(efficiency: Estimate, target: float, zone: float) -> bool:
    """Whether the interval does not leave the zone on the other side of the target."""
    value = efficiency.value
    low = efficiency.low
    high = efficiency.high
    if value is None or low is None or high is None:
        return False
    if value >= target:
        return low >= target - zone
    return high <= target + zone


def _place(known: Known, key: Key) -> tuple[str, float]:
    return key.variant, known.units[key]


def _fastest_at_most(
    known: Known, keys: Iterable[Key]
) -> dict[tuple[str, float], float]:
    """Shortest time at each number of billed units, or at a smaller one of any variant."""
    fastest: dict[tuple[str, float], float] = {}
    for key in keys:
        place = _place(known, key)
        before = fastest.get(place, float("inf"))
        fastest[place] = min(known.seconds(key), before)
    at_most = {}
    for place, shortest in fastest.items():
        _, units = place
        at_most[place] = shortest
        for (_, other_units), seconds in fastest.items():
            if other_units <= units:
                at_most[place] = min(at_most[place], seconds)
    return at_most


def _candidates(
    known: Known,
    keys: Sequence[Key],
    reference: Key,
    root: Key,
) -> list[Key]:
    """Rows that may be chosen, the fastest first: cheap enough, and faster than rows that are billed less.

    Of rows with equal updates only the fastest is listed. The reference is one of them unless qualities are
    compared with it, too: a node may be billed whole, so that its fastest row has several workers.
    """
    updates = known.measures.updates
    target = known.target * (1 - 1e-9)  # rounding may leave an efficiency just below
    candidates: list[Key] = []
    listed: set[Key] = set()

    def by_units(key: Key) -> tuple[float, float]:
        return known.units[key], known.seconds(key)

    for key in sorted(keys, key=by_units):
        cheaper = known.units[key] <= known.units[reference]
        if key == root or (cheaper and key != reference):
            continue
        cheap = (_efficiency(known, key, reference).value or 0.0) >= target
        slower = _slower_than_cheaper(known, key, (reference, *candidates))
        if cheap and not slower and updates[key] not in listed:
            candidates.append(key)
            listed.add(updates[key])
    return sorted(candidates, key=known.seconds)


def _slower_than_cheaper(known: Known, key: Key, others: Iterable[Key]) -> bool:
    """Whether one of the others is billed less and no slower."""
    for other in others:
        billed_less = known.units[other] < known.units[key]
        if billed_less and known.seconds(other) <= known.seconds(key):
            return True
    return False


def _quality(
    known: Known,
    candidates: list[Key],
    root: Key,
    left: float,
    limits: Limits,
) -> Batch | Ended:
    """The next trainings, by bisection among the candidates, the fastest first.

    `root` is the reference of qualities, `left` what remains of the budget.
    """
    if _fails(known, root):
        return Ended(False, Why("reference-fails", (root,)))
    verdicts: dict[Key, Verdict] = {}
    standings: dict[Key, Standing] = {}
    for key in candidates:
        if known.seeds(key):
            verdicts[key] = judge(key, known.measures, known.margin)
        verdict = verdicts.get(key)
        standings[key] = _standing(known, key, root, verdict, limits)
    unpaid: list[Key] = []
    while True:
        in_order = [standings[key] for key in candidates]
        start, found = _open_part(in_order)
        if start >= found:
            break
        key = candidates[_next_place(candidates, standings, start, found)]
        if too_many := _beyond_budget(
            known,
            key,
            root,
            verdicts.get(key),
            left,
            limits,
        ):
            return too_many
        batch = _training(known, key, root, limits)
        if batch is not None and _price(known, batch) <= left:
            return batch
        # What cannot be paid for counts as worse, so that the search goes on among slower rows.
        standings[key] = "worse"
        unpaid.append(key)
    choice = root
    if found < len(candidates):
        choice = candidates[found]
    # `Decided` is only said if the quality of the choice was measured.
    if not known.seeds(choice):
        return _only_training(known, choice, left)
    if unpaid:
        return Ended(False, Why("beyond-budget-or-fails", (unpaid[0],)))
    return Ended(True, Why("qualifies", (choice,)))


def _open_part(standings: Sequence[Standing]) -> tuple[int, int]:
    """The places that are still open: from after the last worse row to before the first that is no worse."""
    found = len(standings)
    if "no-worse" in standings:
        found = standings.index("no-worse")
    start = 0
    for place in range(found):
        if standings[place] == "worse":
            start = place + 1
    return start, found


def _next_place(
    candidates: Sequence[Key],
    standings: Mapping[Key, Standing],
    start: int,
    found: int,
) -> int:
    """Which candidate to train next: one already begun, else the fastest, else the middle of the open part.

    The fastest is tried first, since nothing slower is trained if it is no worse. After that, halving what is
    left takes the fewest trainings.
    """
    for place in range(start, found):
        if standings[candidates[place]] == "open":
            return place
    if start == 0:
        return 0
    return (start + found - 1) // 2


def _only_training(known: Known, choice: Key, left: float) -> Batch | Ended:
    """The training of a row that is chosen by its time: a choice without any quality decides nothing."""
    if _fails(known, choice):
        return Ended(False, Why("choice-fails", (choice,)))
    why = Why("chosen-by-time", (choice,))
    (number,) = _unused(known.tried(choice), 1)
    batch = Batch("training", ((choice, number),), why)
    if _price(known, batch) <= left:
        return batch
    return Ended(False, Why("training-beyond-budget", (choice,)))


def _fails(known: Known, key: Key) -> bool:
    """Whether so many trainings of a row ended without a quality that no more are started."""
    # Rows that keep failing would take the whole budget.
    without = len(known.tried(key)) - known.seeds(key)
    return without >= GIVE_UP and without >= known.seeds(key)


def _standing(
    known: Known,
    key: Key,
    root: Key,
    verdict: Verdict | None,
    limits: Limits,
) -> Standing:
    if _fails(known, key):
        return "worse"
    if verdict is None:
        if root in known.alike(key):
            return "no-worse"
        return "untrained"
    if verdict.kind in ("no-worse", "reference"):
        return "no-worse"
    given_up = verdict.given_up or known.seeds(key) >= limits.seeds
    if verdict.seems_worse or given_up:
        return "worse"
    return "open"


def _beyond_budget(
    known: Known,
    key: Key,
    root: Key,
    verdict: Verdict | None,
    left: float,
    limits: Limits,
) -> Ended | None:
    """The end of a study whose seeds spread too far for its budget; None if it can be settled.

    It is asked at the first look, before the seeds are paid that would settle nothing.
    """
    if verdict is None or verdict.needed is None:
        return None
    if known.seeds(key) > LOOKS[0]:
        return None
    price = 0.0
    for row in _compared(known, key, root):
        missing = max(0, verdict.needed - known.seeds(row))
        price += missing * known.cost(known.row_to_train(row))
    too_many = verdict.needed > limits.seeds
    if not too_many and price <= left:
        return None
    most_seeds = None
    if too_many:
        most_seeds = limits.seeds
    why = Why(
        "seeds-spread-too-far",
        (key,),
        seeds=verdict.needed,
        most_seeds=most_seeds,
    )
    return Ended(False, why)


def _compared(known: Known, key: Key, root: Key) -> list[Key]:
    """A row and those that its quality is compared with; of rows with equal updates only one."""
    baseline = find_baseline(key, known.measures.groups) or root
    by_updates: dict[Key, Key] = {}
    # The last of rows with equal updates remains, so that `key` is judged by its own.
    for row in (root, baseline, key):
        by_updates[known.measures.updates[row]] = row
    return list(by_updates.values())


def _training(
    known: Known,
    key: Key,
    root: Key,
    limits: Limits,
) -> Batch | None:
    """The trainings until the next look at a row: its own, and those of the rows that it is compared with.

    None if all seeds were tried, or if trainings of one of these rows fail.
    """
    rows = _compared(known, key, root)
    seeds = []
    for row in rows:
        if _fails(known, row):
            return None
        seeds.append(known.seeds(row))
    # A comparison has as many seeds as the row with the fewest.
    now = min(seeds)
    look = limits.seeds
    for later in (FEWEST, *LOOKS):
        if later > now:
            look = min(later, limits.seeds)
            break
    runs = []
    for row in rows:
        for number in _unused(known.tried(row), look - known.seeds(row)):
            # After the last look nothing of the level is left to be spent.
            if number < LOOKS[-1]:
                runs.append((known.row_to_train(row), number))
    if not runs:
        return None
    why = Why("seeds-do-not-tell", (key,), seeds=now)
    if known.seeds(key) == 0:
        why = Why("fastest-left", (key,))
    return Batch("training", tuple(runs), why)


def _unused(tried: Collection[int], count: int) -> list[int]:
    """The first numbers that are not in `tried`."""
    unused: list[int] = []
    number = 0
    while len(unused) < count:
        if number not in tried:
            unused.append(number)
        number += 1
    return unused


def _price(known: Known, batch: Batch) -> float:
    """Expected cost in seconds of billed units."""
    costs = [known.cost(key) for key, _ in batch.runs]
    cost = sum(costs)
    if batch.kind == "timing":
        return cost * known.share
    return cost
