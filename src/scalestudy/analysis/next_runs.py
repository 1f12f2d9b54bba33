"""Which runs a study needs next, from what it has found so far, or that it is decided.

Times come from timing runs of every row, in blocks; further blocks only for rows whose cost efficiency is
not settled. Qualities come from trainings: of the fastest row that is cheap enough, and of the reference
with the same seeds, until a group-sequential test settles it (`analysis.sequential`). If that row
is no worse, nothing slower is trained; if it is worse or will hardly be shown to be no worse, the search goes
on by bisection among rows with fewer workers. Rows with equal updates are trained once.
`benchmarks/sequential.py` simulates how often this ends with the right row, and at what cost.
"""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from scalestudy.analysis.measures import Measure, Measures, find_baseline, times_count
from scalestudy.analysis.price import too_uncertain
from scalestudy.analysis.quality import Verdict, judge
from scalestudy.analysis.runs import Key
from scalestudy.analysis.sequential import FEWEST, LOOKS
from scalestudy.analysis.statistics import Estimate
from scalestudy.config.file import QualityMargin

NEAR = 1.1
"""A row slower than this multiple of the fastest with as many workers or fewer cannot be chosen."""
BLOCKS = 2
"""Timing runs of a row that may be chosen."""
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
        return [
            row
            for row in self.rows
            if row == key or (row in updates and updates[row] == updates.get(key))
        ]

    def tried(self, key: Key) -> set[int]:
        """Numbers of the trainings of the row and of those with equal updates."""
        return {
            number for row in self.alike(key) for number in self.trainings.get(row, ())
        }

    def row_to_train(self, key: Key) -> Key:
        """The row to train for the quality of `key`: the one with most trainings, else the cheapest."""
        return min(
            self.alike(key),
            key=lambda row: (-len(self.trainings.get(row, ())), self.cost(row)),
        )


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
    why: str


@dataclass(frozen=True)
class Ended:
    """Nothing more is to run: `decided`, or a limit was reached."""

    decided: bool
    why: str


def next_runs(
    known: Known, limits: Limits | None = None, until: Until = "decided"
) -> Batch | Ended:
    """Return the next runs, or why there are none; until "timed", qualities are not asked for."""
    limits = limits or Limits()
    if times := _missing_times(known):
        return times
    timed = [key for key in known.rows if known.measures.wall_seconds.values.get(key)]
    healthy = [key for key in timed if not known.measures.failed.get(key)]
    if missing := _why_no_times(known, timed, healthy):
        return Ended(False, missing)
    reference = _reference(known, healthy)
    budget = (
        GRID_SEEDS * sum(map(known.cost, timed))
        if limits.budget is None
        else limits.budget
    )
    left = budget / (1 + OVERRUN) - known.spent
    unsettled = _unsettled(known, healthy, reference)
    if again := [
        key for key in unsettled if len(known.timings.get(key, ())) < MOST_BLOCKS
    ]:
        blocks = min(len(known.timings.get(key, ())) for key in again)
        if len(known.timings.get(reference, ())) <= blocks:
            again.append(reference)
        batch = _timing(known, again, "their cost efficiency is not settled")
        if _price(known, batch) <= left:
            return batch
    if until == "timed":
        return _timed(known, unsettled, reference)
    fewest = min(key.workers for key in healthy)
    root = min((key for key in healthy if key.workers == fewest), key=known.cost)
    step = _quality(known, _ladder(known, healthy, reference, root), root, left, limits)
    vague = [key.label for key in unsettled if _is_vague(known, key, reference)]
    if vague and isinstance(step, Ended) and step.decided:
        return Ended(False, f"the times of {vague[0]} are too uncertain")
    return step


def _missing_times(known: Known) -> Batch | None:
    """Timing runs of rows that have none yet, or only disturbed ones; None if there are no such rows."""
    walls = known.measures.wall_seconds.values
    fresh = [
        key
        for key in known.rows
        if not walls.get(key) and len(known.timings.get(key, ())) < GIVE_UP
    ]
    if fresh:
        return _timing(known, fresh, "the times of all rows come first")
    busy = [
        key
        for key in known.rows
        if len(known.timings.get(key, ())) < MOST_DISTURBED
        and (runs := known.measures.groups.get(key))
        and all(run.disturbed for run in runs)
    ]
    if busy:
        return _timing(
            known, busy, "other programs used the cores while they were timed"
        )
    return None


def _why_no_times(known: Known, timed: Sequence[Key], healthy: Sequence[Key]) -> str:
    """Why rows cannot be compared; "" if they can.

    The report compares no times of runs that shared their cores with another study, so nothing is trained for
    such a row either.
    """
    for key in timed:
        if not times_count(known.measures.groups[key]):
            return f"another study used the cores of {key.label} whenever it was timed"
    return "" if healthy else "no row could be timed"


def _reference(known: Known, healthy: Sequence[Key]) -> Key:
    """The row that costs are compared with, by the rule of `price.prices_of`.

    Of the rows that are billed least and do not seem worse, it is the fastest.
    """
    sound = [key for key in healthy if not _seems_worse(known, key)] or healthy
    least = min(known.units[key] for key in sound)
    cheapest = [key for key in sound if known.units[key] == least]
    return min(cheapest, key=lambda key: (known.seconds(key), key.workers))


def _seems_worse(known: Known, key: Key) -> bool:
    return known.seeds(key) > 0 and judge(key, known.measures, known.margin).seems_worse


def _timed(known: Known, unsettled: Sequence[Key], reference: Key) -> Ended:
    """The end of a study that only asks for times."""
    for key in unsettled:
        if _is_vague(known, key, reference):
            return Ended(False, f"the times of {key.label} are too uncertain")
    if unsettled:
        open_rows = ", ".join(key.label for key in unsettled)
        return Ended(
            False,
            f"it is open whether {open_rows} keeps a cost efficiency of {known.target:g}",
        )
    return Ended(True, "the times of all rows that may be chosen are settled")


def _timing(known: Known, keys: Iterable[Key], why: str) -> Batch:
    runs = [
        (key, number)
        for key in keys
        for number in _unused(known.timings.get(key, ()), 1)
    ]
    return Batch("timing", tuple(runs), why)


def _efficiency(known: Known, key: Key, reference: Key) -> Estimate:
    ratio = known.measures.planned_seconds.ratio(reference, key)
    return ratio.scaled(known.units[reference] / known.units[key])


def _unsettled(known: Known, keys: Sequence[Key], reference: Key) -> list[Key]:
    """Rows whose cost efficiency is not settled: those that need a second timing run, else all."""
    fastest = _fastest(known, keys)
    at_most = {
        place: min(
            seconds for other, seconds in fastest.items() if other[1] <= place[1]
        )
        for place in fastest
    }
    open_rows, few = [], []
    for key in keys:
        if known.units[key] <= known.units[reference]:
            continue  # slower than the reference, and no cheaper
        efficiency = _efficiency(known, key, reference)
        enough = (efficiency.value or 0.0) >= SURELY * (known.target - known.zone)
        fast = known.seconds(key) <= NEAR * at_most[_place(known, key)]
        likely = enough and fast
        settled = (
            not fast
            or _is_settled(efficiency, known.target, known.zone)
            or (not enough and efficiency.high is None)
        )
        if likely and len(known.timings.get(key, ())) < BLOCKS:
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
    if efficiency.value is None or efficiency.low is None or efficiency.high is None:
        return False
    return (
        efficiency.low >= target - zone
        if efficiency.value >= target
        else efficiency.high <= target + zone
    )


def _place(known: Known, key: Key) -> tuple[str, float]:
    return key.variant, known.units[key]


def _fastest(known: Known, keys: Iterable[Key]) -> dict[tuple[str, float], float]:
    """Shortest time at each number of billed units."""
    found: dict[tuple[str, float], float] = {}
    for key in keys:
        place = _place(known, key)
        found[place] = min(known.seconds(key), found.get(place, float("inf")))
    return found


def _ladder(known: Known, keys: Sequence[Key], reference: Key, root: Key) -> list[Key]:
    """Rows that may be chosen, the fastest first: cheap enough, and faster than rows that are billed less.

    Of rows with equal updates only the fastest is listed. The reference is one of them unless qualities are
    compared with it, too: a node may be billed whole, so that its fastest row has several workers.
    """
    candidates: list[Key] = []
    updates = known.measures.updates
    for key in sorted(keys, key=lambda key: (known.units[key], known.seconds(key))):
        if key == root or (
            known.units[key] <= known.units[reference] and key != reference
        ):
            continue
        cheap = (_efficiency(known, key, reference).value or 0.0) >= known.target * (
            1 - 1e-9
        )
        billed_less = [
            other
            for other in (reference, *candidates)
            if known.units[other] < known.units[key]
        ]
        slower = any(
            known.seconds(other) <= known.seconds(key) for other in billed_less
        )
        listed = {updates[other] for other in candidates}
        if cheap and not slower and updates[key] not in listed:
            candidates.append(key)
    return sorted(candidates, key=known.seconds)


def _quality(
    known: Known, ladder: list[Key], root: Key, left: float, limits: Limits
) -> Batch | Ended:
    """The next trainings, by bisection among the rows of the ladder; `root` is the reference of qualities."""
    if _fails(known, root):
        return Ended(
            False, f"trainings of {root.label} fail, which qualities are compared with"
        )
    verdicts = {
        key: judge(key, known.measures, known.margin)
        for key in ladder
        if known.seeds(key)
    }
    standings = {
        key: _standing(known, key, root, verdicts.get(key), limits) for key in ladder
    }
    unpaid: list[Key] = []
    while True:
        order = [standings[key] for key in ladder]
        found = next(
            (place for place, now in enumerate(order) if now == "no-worse"), len(ladder)
        )
        start = max(
            (place + 1 for place in range(found) if order[place] == "worse"), default=0
        )
        if start >= found:
            break
        begun = [place for place in range(start, found) if order[place] == "open"]
        middle = (start + found - 1) // 2
        first = start if start == 0 else middle
        key = ladder[begun[0] if begun else first]
        if too_many := _beyond(known, key, root, verdicts.get(key), left, limits):
            return too_many
        batch = _training(known, key, root, limits)
        if batch is not None and _price(known, batch) <= left:
            return batch
        standings[key] = "worse"
        unpaid.append(key)
    choice = ladder[found] if found < len(ladder) else root
    if not known.seeds(choice):
        return _only_training(known, choice, left)
    if unpaid:
        return Ended(
            False,
            f"what {unpaid[0].label} still needs is beyond the budget, or its trainings fail",
        )
    return Ended(True, f"{choice.label} is the fastest row shown to qualify")


def _only_training(known: Known, choice: Key, left: float) -> Batch | Ended:
    """The training of a row that is chosen by its time: a choice without any quality decides nothing."""
    if _fails(known, choice):
        return Ended(False, f"trainings of {choice.label} fail")
    why = f"{choice.label} is chosen by its time and needs one training"
    (number,) = _unused(known.tried(choice), 1)
    batch = Batch("training", ((choice, number),), why)
    if _price(known, batch) <= left:
        return batch
    return Ended(False, f"the training that {choice.label} needs is beyond the budget")


def _fails(known: Known, key: Key) -> bool:
    """Whether so many trainings of a row ended without a quality that no more are started."""
    without = len(known.tried(key)) - known.seeds(key)
    return without >= GIVE_UP and without >= known.seeds(key)


def _standing(
    known: Known, key: Key, root: Key, verdict: Verdict | None, limits: Limits
) -> Standing:
    if _fails(known, key):
        return "worse"
    if verdict is None:
        return "no-worse" if root in known.alike(key) else "untrained"
    if verdict.kind in ("no-worse", "reference"):
        return "no-worse"
    given_up = verdict.given_up or known.seeds(key) >= limits.seeds
    return "worse" if verdict.seems_worse or given_up else "open"


def _beyond(
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
    if verdict is None or verdict.needed is None or known.seeds(key) > LOOKS[0]:
        return None
    missing = {
        row: verdict.needed - known.seeds(row) for row in _compared(known, key, root)
    }
    price = sum(
        max(0, count) * known.cost(known.row_to_train(row))
        for row, count in missing.items()
    )
    if verdict.needed <= limits.seeds and price <= left:
        return None
    more = (
        f", more than the {limits.seeds} that may be run"
        if verdict.needed > limits.seeds
        else ""
    )
    return Ended(
        False,
        f"it cannot be settled for this budget whether {key.label} learns as well: as far as seeds spread,"
        f" that takes about {verdict.needed} seeds of each row{more}",
    )


def _compared(known: Known, key: Key, root: Key) -> list[Key]:
    """A row and those that its quality is compared with; of rows with equal updates only one."""
    baseline = find_baseline(key, known.measures.groups) or root
    return list(
        {known.measures.updates[row]: row for row in (root, baseline, key)}.values()
    )


def _training(known: Known, key: Key, root: Key, limits: Limits) -> Batch | None:
    """The trainings until the next look at a row: its own, and those of the rows that it is compared with.

    None if all seeds were tried, or if trainings of one of these rows fail.
    """
    rows = _compared(known, key, root)
    if any(_fails(known, row) for row in rows):
        return None
    now = min(known.seeds(row) for row in rows)
    look = min(
        limits.seeds,
        next((look for look in (FEWEST, *LOOKS) if look > now), limits.seeds),
    )
    runs = [
        (known.row_to_train(row), number)
        for row in rows
        for number in _unused(known.tried(row), look - known.seeds(row))
        if number < LOOKS[-1]
    ]
    if not runs:
        return None
    why = (
        f"{key.label} is the fastest row left that may qualify"
        if known.seeds(key) == 0
        else f"{now} seeds do not tell whether {key.label} learns as well"
    )
    return Batch("training", tuple(runs), why)


def _unused(tried: Collection[int], count: int) -> list[int]:
    """The first numbers that are not in `tried`."""
    return list(
        islice(
            (number for number in itertools.count() if number not in tried),
            max(0, count),
        )
    )


def _price(known: Known, batch: Batch) -> float:
    """Expected cost in seconds of billed units."""
    return sum(known.cost(key) for key, _ in batch.runs) * (
        known.share if batch.kind == "timing" else 1.0
    )
