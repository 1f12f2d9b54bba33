"""Which row to request.

Rows are compared by what users pay: time from start to result, and that time multiplied by the units
billed (Hoefler and Belli, SC15, 2015, rule 1). The reference is the cheapest row among those that bill the
fewest units, if its quality does not seem worse than that of the best one-worker row. *Cost efficiency* is
the reference's cost divided by a row's cost. The decision is the fastest row whose cost efficiency is at
least the target, whose quality does not seem worse, and whose runs do not fail more often. If more workers
certainly need more samples for the same quality, their efficiency is divided by that ratio. Cost efficiencies
in the indifference zone about the target may be judged either way (Bechhofer, Annals of Mathematical
Statistics 25, 1954). A choice is provisional while an interval, or a share of failed runs, could still
change it.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, cast

from scalestudy.analysis.doubts import Doubt
from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.failure_counts import Failures, count_failures, pool
from scalestudy.analysis.measures import Measures
from scalestudy.analysis.planned_training import PlannedTraining
from scalestudy.analysis.price import (
    Bill,
    Price,
    is_undecided,
    price_basis,
    prices_of,
    relative_time,
)
from scalestudy.analysis.quality import Verdict, judge
from scalestudy.analysis.runs import Key, Planned, of_fewest_workers
from scalestudy.analysis.study_table import Row, best_single
from scalestudy.config.quality_margin import QualityMargin
from scalestudy.config.settings import EFFICIENCY_TARGET

Kind = Literal[
    "ask",
    "stay",
    "only-smallest",
    "uncertain",
    "none",
    "no-timing",
    "nothing-learned",
    "no-runs",
    "unlike-devices",
]
Reason = Literal[
    "single-run",
    "interval-contains-target",
    "faster-may-qualify",
    "quality-unclear",
    "quality-unknown",
    "quality-no-reference",
    "quality-no-direction",
    "quality-no-margin",
    "relative",
    "failures",
    "faster-may-learn",
    "unlike-devices",
    "times-do-not-fall",
    "fails-everywhere",
    "gap",
    "super-linear",
    "two-groups-of-times",
    "two-groups-of-qualities",
    "samples-unclear",
    "other-models",
]
"""Why a decision is provisional. "failures": a faster row was passed over because runs of it failed, but too
few to tell that more fail than of the reference. "other-models": runs with the same settings trained other
models."""
Objection = Literal[
    "cost",
    "worse",
    "seems-worse",
    "uncertain",
    "fails",
    "samples",
    "not-shown",
    "fewer-worse",
]
"""Why a faster row was passed over."""
OPEN = ("unclear", "unknown")
"""Verdicts of rows that are not shown to be no worse."""
UNSETTLED = (*OPEN, "no-reference", "no-direction", "no-margin")
"""Verdicts that leave a choice provisional."""
TIME_REASONS = ("single-run", "interval-contains-target", "faster-may-qualify")
"""Reasons that lie in the times, not in the qualities."""
INDIFFERENCE_ZONE = 0.05
"""A cost efficiency this close to the target is as good as the target: the choice counts as settled."""


@dataclass(frozen=True)
class Criteria:
    """What a study asks of the choice.

    Attributes:
        target: Cost efficiency that it must reach.
        bill: Unit that the site bills.
        margin: Accepted loss of quality; None for the default.
        zone: Half of the width of the indifference zone about the target.
        planned: The training that times and costs are of.
    """

    target: float = EFFICIENCY_TARGET
    bill: Bill = "worker"
    margin: QualityMargin | None = None
    zone: float = INDIFFERENCE_ZONE
    planned: PlannedTraining = field(default_factory=PlannedTraining)


@dataclass(frozen=True)
class PassedOver:
    """A row that is faster than the choice, and the reason why it was not chosen."""

    key: Key
    why: Objection


@dataclass(frozen=True)
class NoSingle:
    """Why no one-worker row is the reference: none has finished or was timed, or one is worse by `verdict`."""

    kind: Literal["unfinished", "untimed", "worse"]
    key: Key | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Decision:
    """Which row to request.

    Attributes:
        choice: The row; None if no row is recommended.
        reference: The row that costs are compared with; None if nothing was timed.
        no_single: Why the reference has several workers although sites bill one; None if it has not.
        failures: Rows of which runs failed.
        doubts: What speaks against the table (`analysis.plausibility`).
        sound: Rows whose quality does not seem worse and whose runs do not fail more often. No other is
            advised, for whatever goal.
        samples: Rows that need more samples than the reference for the same quality, and how many times as
            many: their cost efficiency is divided by it.
        verdicts: Quality of every row, compared with the best one-worker row where that is stricter.
        prices: Price of every timed row, in reading order.
        provisional: Why the decision is provisional: reasons and kinds of doubt; empty if it is not.
        passed_over: Faster rows, the fastest first.
        rivals: Rows with as many workers that may be as fast as the choice.
    """

    kind: Kind
    criteria: Criteria
    choice: Key | None = None
    reference: Key | None = None
    verdicts: Mapping[Key, Verdict] = field(default_factory=dict)
    prices: Mapping[Key, Price] = field(default_factory=dict)
    provisional: tuple[Reason, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    rivals: tuple[Key, ...] = ()
    no_single: NoSingle | None = None
    doubts: tuple[Doubt, ...] = ()
    failures: Mapping[Key, Failures] = field(default_factory=dict)
    sound: frozenset[Key] = frozenset()
    samples: Mapping[Key, Estimate] = field(default_factory=dict)

    @property
    def target(self) -> float:
        """Cost efficiency that the choice must reach."""
        return self.criteria.target

    @property
    def bill(self) -> Bill:
        """Unit that the site bills."""
        return self.criteria.bill

    def useful(self, price: Price) -> Price:
        """A price for the same quality: of as many samples as the row needs for it."""
        ratio = self.samples.get(price.key)
        if ratio is None:
            return price
        # The time grows with the samples, and what is its inverse falls.
        less = ratio.inverse()
        return replace(
            price,
            seconds=price.seconds.times(ratio),
            speedup=price.speedup.times(less),
            efficiency=price.efficiency.times(less),
        )

    @property
    def price(self) -> Price | None:
        """Time and cost of the choice."""
        if self.choice is None:
            return None
        return self.prices[self.choice]

    @property
    def times_are_whole(self) -> bool:
        """Whether prices are of whole trainings, from their start to their result."""
        return any(price.basis == "wall" for price in self.prices.values())

    @property
    def relative(self) -> bool:
        """Whether the reference has several workers because no one-worker row can be it."""
        return self.no_single is not None

    def is_about_target(self, efficiency: Estimate) -> bool:
        """Whether a cost efficiency lies in the indifference zone with its whole interval."""
        low, high = efficiency.low, efficiency.high
        if low is None or high is None:
            return False
        zone = self.criteria.zone
        return self.target - zone <= low and high <= self.target + zone

    def is_open(self, price: Price) -> bool:
        """Whether a row may or may not reach the target: its interval leaves the zone on the other side."""
        efficiency = price.efficiency
        value = efficiency.value
        low = efficiency.low
        high = efficiency.high
        if value is None or low is None or high is None:
            return False
        if price.key == self.reference:
            return False
        zone = self.criteria.zone
        if value < self.target or is_undecided(price, self.target):
            return high > self.target + zone
        return low < self.target - zone


def decide(
    rows: Sequence[Row],
    measures: Measures,
    criteria: Criteria | None = None,
    *,
    planned: Sequence[Planned] = (),
    samples: Mapping[Key, Estimate] = MappingProxyType({}),
) -> Decision:
    """Decide which row to request.

    Args:
        rows: Finished rows.
        measures: The measures that `rows` were computed from.
        criteria: What the study asks of the choice; the defaults of `Criteria` if None.
        planned: All points of the study, of which some may have ended in an error.
        samples: Rows that need more samples for the same quality, and how many times as many.
    """
    criteria = criteria or Criteria()
    if not rows:
        return Decision("no-runs", criteria)
    keys = [row.key for row in rows]
    verdicts = _stricter_verdicts(rows, measures, criteria.margin)
    # Failures are counted apart, since a mean over the other seeds hides them.
    failures = count_failures(keys, measures, planned)
    # Runs fail on few workers, too: only more failures than there speak against a row.
    usual = pool(failures, of_fewest_workers(keys), measures)
    some_failed = {}
    for key, counted in failures.items():
        if counted.failed:
            some_failed[key] = counted
    sound = set()
    for key, verdict in verdicts.items():
        if not verdict.seems_worse and failures[key].share <= usual.share:
            sound.add(key)
    prices, reference = prices_of(
        keys,
        measures,
        sound,
        criteria.bill,
        price_basis(keys, measures),
    )
    made = Decision(
        "no-timing",
        criteria,
        verdicts=verdicts,
        prices=prices,
        failures=some_failed,
        samples=samples,
        sound=frozenset(sound),
    )
    return _choose(made, rows, reference, measures, usual)


def _stricter_verdicts(
    rows: Sequence[Row],
    measures: Measures,
    margin: QualityMargin | None,
) -> dict[Key, Verdict]:
    """Each row's verdict, or its verdict against the study's best one-worker row if it seems worse there.

    Otherwise a batch size that ruins the model on one worker too would pass as no worse.
    """
    verdicts: dict[Key, Verdict] = {}
    best: dict[str, Row | None] = {}
    for row in rows:
        verdicts[row.key] = row.verdict
        # Once for each metric: asked for every row, it was quadratic in their number.
        if row.metric not in best:
            best[row.metric] = best_single(rows, row.metric)
    for row in rows:
        single = best[row.metric]
        if single is None or row.key == single.key:
            continue
        if row.strategy == single.strategy and not row.key.swept:
            continue  # it was compared with this row already
        against_best = judge(row.key, measures, margin, single.key)
        if against_best.seems_worse:
            verdicts[row.key] = against_best
    return verdicts


def _choose(
    made: Decision,
    rows: Sequence[Row],
    reference: Key | None,
    measures: Measures,
    usual: Failures,
) -> Decision:
    """The decision with its choice, or with the reason why there is none.

    `usual` are the failures of the rows with the fewest workers.
    """
    if all(made.verdicts[row.key].failed for row in rows):
        return replace(made, kind="nothing-learned")
    candidates = _candidates(made)
    if reference is None or not candidates:
        return made
    made = replace(made, reference=reference, no_single=_no_single(rows, made))
    if _lacks_larger_times(made, rows, reference):
        return made
    good, undecided = _cheap_enough(made, candidates, reference)
    # Where a larger row may still qualify, the smallest is no answer yet.
    units = {price.units for price in good}
    if undecided and units <= {made.prices[reference].units}:
        return replace(made, kind="uncertain")
    if not good:
        return replace(made, kind="none")
    shown = _shown_no_worse(made, measures)
    choice = _fastest_shown(good, shown)
    kind = _kind_of_choice(choice, candidates, rows)
    faster = _faster_rows(made, choice)
    passed_over = _pass_over(made, faster, good, shown)
    reasons = list(_provisional(made, choice, kind, faster))
    if any(_may_fail_by_chance(price, made, usual) for price in faster):
        reasons.append("failures")
    unshown = any(row.why == "not-shown" for row in passed_over)
    if unshown or _may_learn(made, faster):
        reasons.append("faster-may-learn")
    rivals: list[Key] = []
    if kind == "ask":
        rivals = _rivals(choice, good, measures)
    return replace(
        made,
        kind=kind,
        choice=choice.key,
        provisional=tuple(reasons),
        passed_over=tuple(passed_over),
        rivals=tuple(rivals),
    )


def _pass_over(
    made: Decision,
    faster: Sequence[Price],
    good: Sequence[Price],
    shown: Set[Key],
) -> list[PassedOver]:
    """Why each faster row was not chosen, without those that learned nothing, which are named elsewhere."""
    passed_over = []
    for price in faster:
        if made.verdicts[price.key].failed:
            continue
        if price in good and price.key not in shown:
            why = _not_shown(price.key, made.verdicts)
        else:
            why = _objection(price, made)
        passed_over.append(PassedOver(price.key, why))
    return passed_over


def _candidates(made: Decision) -> list[Price]:
    """Prices for the same quality of the rows that may be advised at all."""
    found = []
    for key, price in made.prices.items():
        if key in made.sound and price.efficiency.value is not None:
            found.append(made.useful(price))
    return found


def _lacks_larger_times(made: Decision, rows: Sequence[Row], reference: Key) -> bool:
    """Whether rows with more workers than the reference learned, but none of them was timed."""
    learned = set()
    for row in rows:
        if row.workers > reference.workers and not made.verdicts[row.key].failed:
            learned.add(row.key)
    return bool(learned) and learned.isdisjoint(made.prices)


def _cheap_enough(
    made: Decision,
    candidates: Sequence[Price],
    reference: Key,
) -> tuple[list[Price], list[Price]]:
    """The candidates that keep the cost efficiency, and those that are too uncertain to tell."""
    least = made.prices[reference].units
    # Rounding may leave an efficiency just below a target that it meets.
    target = made.target * (1 - 1e-9)
    good, undecided = [], []
    for price in candidates:
        if price.units > least and is_undecided(price, made.target):
            undecided.append(price)
        elif (price.efficiency.value or 0.0) >= target:
            good.append(price)
    return good, undecided


def _shown_no_worse(made: Decision, measures: Measures) -> Set[Key]:
    """The sound rows that need no more trainings before they may be chosen.

    Where seeds are added until a verdict stands, faster rows have had their chance to be shown no worse.
    """
    kinds = {verdict.kind for verdict in made.verdicts.values()}
    if not measures.sequential or kinds <= {"unknown"}:
        return made.sound
    shown = set()
    for key in made.sound:
        if key.workers == 1 or made.verdicts[key].kind not in OPEN:
            shown.add(key)
    return shown


def _kind_of_choice(
    choice: Price,
    candidates: Sequence[Price],
    rows: Sequence[Row],
) -> Kind:
    fewest = min(price.key.workers for price in candidates)
    if choice.key.workers > fewest:
        return "ask"
    counts = {row.workers for row in rows}
    if len(counts) == 1:
        return "only-smallest"
    return "stay"


def _faster_rows(made: Decision, choice: Price) -> list[Price]:
    """Rows that are faster than the choice, the fastest first."""
    duration = made.prices[choice.key].duration
    faster = [price for price in made.prices.values() if price.duration < duration]
    return sorted(faster, key=lambda price: price.duration)


def _rivals(choice: Price, good: Sequence[Price], measures: Measures) -> list[Key]:
    """Rows with as many workers as the choice, whose times the runs cannot tell from its own."""
    rivals = []
    for price in good:
        if price.key.workers != choice.key.workers or price.key == choice.key:
            continue
        # Paired by rounds: the two means may overlap though each round has the same winner.
        ratio = relative_time(measures, choice.basis, price.key, choice.key)
        if ratio.low is not None and ratio.low <= 1:
            rivals.append(price.key)
    return rivals


def _provisional(
    made: Decision,
    choice: Price,
    kind: Kind,
    faster: Sequence[Price],
) -> tuple[Reason, ...]:
    """Reasons why a choice is provisional, without repeats, by its price and quality and faster prices."""
    reasons: list[Reason] = []
    if choice.key != made.reference:
        if choice.efficiency.low is None:
            reasons.append("single-run")
        elif made.is_open(choice):
            reasons.append("interval-contains-target")
    # There is no choice among numbers of workers that could turn out otherwise.
    if kind == "only-smallest":
        return tuple(reasons)
    for price in faster:
        if price.key not in made.sound:
            continue
        useful = made.useful(price)
        if useful.efficiency.low is None:
            reasons.append("single-run")
        elif made.is_open(useful):
            reasons.append("faster-may-qualify")
    verdict = made.verdicts[choice.key]
    if verdict.kind in UNSETTLED and choice.key.workers > 1:
        reasons.append(cast("Reason", f"quality-{verdict.kind}"))
    if made.relative or verdict.relative:
        reasons.append("relative")
    return tuple(dict.fromkeys(reasons))


def _fastest_shown(good: Sequence[Price], shown: Set[Key]) -> Price:
    """The fastest row that may be chosen.

    Where a node is billed whole, one worker may cost too much, and no other row be shown to learn as well:
    the fewest workers risk least then.
    """
    by_key = {price.key: price for price in good}
    fit = [key for key in by_key if key in shown]
    if not fit:
        # Of 200 simulated studies, 7.5 % provisionally chose a row that is worse by the margin before.
        fit = of_fewest_workers([*by_key])
    fastest = min(fit, key=lambda key: by_key[key].duration)
    return by_key[fastest]


def _may_learn(made: Decision, faster: Sequence[Price]) -> bool:
    """Whether a row was passed over for a loss that may be chance, and is cheap enough.

    Where seeds are added until a verdict stands, such a row has had its chance, and was shown to lose.
    """
    for price in faster:
        verdict = made.verdicts[price.key]
        # A wild seed of a row would otherwise settle that it is not chosen.
        if verdict.kind != "unclear" or not verdict.seems_worse or verdict.given_up:
            continue
        if (made.useful(price).efficiency.value or 0.0) >= made.target:
            return True
    return False


def _may_fail_by_chance(price: Price, made: Decision, usual: Failures) -> bool:
    """Whether a row was passed over for failed runs only, and too few to tell that it fails more often."""
    failures = made.failures.get(price.key)
    # More failures than chance explains settle the matter, however fast the row is.
    if failures is None or failures.exceed(usual):
        return False
    efficiency = price.efficiency
    return (efficiency.value or 0.0) >= made.target or made.is_open(price)


def _not_shown(key: Key, verdicts: Mapping[Key, Verdict]) -> Objection:
    """Why a row that is cheap enough is not shown to be no worse."""
    for other, verdict in verdicts.items():
        fewer = other.variant == key.variant and other.workers < key.workers
        if fewer and verdict.seems_worse:
            return "fewer-worse"
    return "not-shown"


def _objection(price: Price, made: Decision) -> Objection:
    verdict = made.verdicts[price.key]
    if verdict.kind == "worse":
        return "worse"
    if verdict.seems_worse:
        return "seems-worse"
    if is_undecided(price, made.target):
        return "uncertain"
    if (price.efficiency.value or 0.0) >= made.target:
        # It is cheap enough and no worse: what is left is that runs fail, or need more samples.
        if price.key in made.failures:
            return "fails"
        return "samples"
    return "cost"


def _no_single(rows: Sequence[Row], made: Decision) -> NoSingle | None:
    """Why no one-worker row is the reference or billed no less than it; None if one is."""
    singles = [row.key for row in rows if row.workers == 1]
    if not singles:
        return NoSingle("unfinished")
    worse = []
    for key in singles:
        if made.verdicts[key].seems_worse:
            worse.append(key)
        elif key in made.prices:
            return None
    if worse:
        return NoSingle("worse", singles[0], made.verdicts[worse[0]])
    return NoSingle("untimed")
