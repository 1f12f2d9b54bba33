"""How often `run --until decided` ends with the right row, and at which cost, in studies with a known truth.

Runs are drawn from a truth (efficiency lost with every doubling, quality flat, slow or falling suddenly,
spread of seeds, noise, drift), and go through the package's own policy and analysis; nothing is trained. A
row whose cost efficiency is within the zone about the target, or whose loss of quality is within a quarter of
the margin of the margin, may be judged either way.

Run: python benchmarks/sequential.py [STUDIES] [CONDITION ...]
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil, log2
from typing import NamedTuple

import numpy as np

from scalestudy.analysis.decision import Criteria, Decision, decide
from scalestudy.analysis.measures import Measures, measure_rows
from scalestudy.analysis.next_runs import Batch, Known, Limits, Why, next_runs
from scalestudy.analysis.planned_training import PlannedTraining
from scalestudy.analysis.price import Bill
from scalestudy.analysis.runs import Key, Planned, Run, group_runs, key_of
from scalestudy.analysis.study_table import rows_of
from scalestudy.config.quality_margin import QualityMargin
from scalestudy.store.records import NodeUse, Outcome, Timing

WORKERS, STRATEGIES = (1, 2, 4, 8, 14), ("native", "horovod")
TARGET, ZONE, MARGIN = 0.7, 0.05, 0.02
PROBE = 0.03
"""Share of a training's steps that a timing run computes."""
SAMPLES, EPOCHS = 1000, 10
OUTCOME = Outcome.model_construct(
    engine="tensorflow",
    samples_processed=SAMPLES,
    epochs=EPOCHS,
    metric="accuracy",
    better="higher",
    bounded=True,
)
"""What all runs have in common; a copy takes a tenth of the time of a new record."""
KINDS, SPREADS = ("flat", "slow", "cliff"), (0.002, 0.005, 0.01)


@dataclass(frozen=True)
class Condition:
    """What disturbs a study.

    Attributes:
        noise: Standard deviation of the logarithm of a run's time.
        drift: Change of the machine's speed over a whole study.
        hours: Standard deviation of the speed between hours, of which each block of runs has one.
        widening: Growth of the spread of seeds per doubling of workers.
        alike: Correlation of qualities of one seed.
        collapse: Chance that a training on more than four workers collapses.
        same_updates: Whether strategies prove equal updates.
        per_node: Workers of a node, which is billed whole; 0 if workers are billed.
        failing: Chance that a training on more than one worker ends in an error.
        lossless: Whether no number of workers loses quality, so that passing over a fast row is chance.
        longer: How many times as long the planned training is.
        spread: Spread of seeds on one worker; None for one of `SPREADS`.
        at_margin: Whether every row with several workers loses exactly the margin.
    """

    noise: float = 0.02
    drift: float = 0.0
    hours: float = 0.0
    widening: float = 0.0
    alike: float = 0.0
    collapse: float = 0.0
    same_updates: bool = True
    per_node: int = 0
    failing: float = 0.0
    lossless: bool = False
    longer: int = 1
    spread: float | None = None
    at_margin: bool = False


CONDITIONS = {
    "plain": Condition(),
    "drift of 10 %": Condition(drift=0.1),
    "hours of 5 %": Condition(hours=0.05),
    "noise of 6 %": Condition(noise=0.06),
    "spread grows": Condition(widening=0.25),
    "seeds alike": Condition(alike=0.8),
    "collapsing seeds": Condition(collapse=0.3),
    "other updates": Condition(same_updates=False),
    "nodes billed": Condition(per_node=4),
    "failing trainings": Condition(failing=0.3),
    "no loss": Condition(lossless=True),
    "planned 20 times as long": Condition(longer=20),
    "spread = margin": Condition(spread=MARGIN),
    "all at the margin": Condition(at_margin=True),
}


@dataclass(frozen=True)
class Truth:
    """A made-up study: seconds of start-up and of the steps of each row, and how much quality each loses."""

    kind: str
    spread: float
    start: float
    steps: dict[Key, float]
    loss: dict[int, float]
    condition: Condition

    @classmethod
    def drawn(cls, generator: np.random.Generator, condition: Condition) -> "Truth":
        """A study as in the field: up to 6 % lost per doubling, in half of them a step at the second node."""
        lost = {name: generator.uniform(0, 0.06) for name in STRATEGIES}
        node = {
            name: generator.uniform(0, 0.12) * (generator.random() < 0.5)
            for name in STRATEGIES
        }
        work, start = (
            generator.choice([600.0, 3600.0, 36000.0]),
            generator.uniform(20, 90),
        )
        steps = {}
        for name in STRATEGIES:
            for n in WORKERS:
                own = 1.0 if name == "native" else generator.uniform(0.97, 1.03)
                efficiency = (
                    (1 - lost[name]) ** log2(n) * (1 - node[name] * (n > 4)) * own
                )
                steps[key_of(name, n, {})] = float(work / (n * efficiency))
        kind, spread = str(generator.choice(KINDS)), float(generator.choice(SPREADS))
        spread = spread if condition.spread is None else condition.spread
        loss = {
            n: {
                "flat": 0.002 * log2(n),
                "slow": 0.007 * log2(n),
                "cliff": 0.005 * (n > 1) + 0.2 * (n > 4),
            }[kind]
            for n in WORKERS
        }
        if condition.lossless:
            loss = dict.fromkeys(WORKERS, 0.0)
        if condition.at_margin:
            loss = {n: MARGIN * (n > 1) for n in WORKERS}
        return cls(kind, spread, float(start), steps, loss, condition)

    def units(self, key: Key) -> float:
        """Units that are billed: workers, or nodes."""
        per_node = self.condition.per_node
        return float(ceil(key.workers / per_node)) if per_node else float(key.workers)

    def seconds(self, key: Key) -> float:
        """Time of the planned training."""
        return self.start + self.condition.longer * self.steps[key]

    def measured(self, key: Key) -> float:
        """Time of a training of the study."""
        return self.start + self.steps[key]

    @property
    def one(self) -> float:
        """Cost of the cheapest one-worker training, the unit of all costs."""
        return min(self.measured(key) for key in self.steps if key.workers == 1)

    def efficiency(self, key: Key) -> float:
        """Cost efficiency: against the fastest row of those that are billed least."""
        least = min(map(self.units, self.steps))
        cheapest = [
            row
            for row in self.steps
            if self.units(row) == least and not self.loses(row)
        ]
        return (
            least
            * min(map(self.seconds, cheapest))
            / (self.units(key) * self.seconds(key))
        )

    def loses(self, key: Key) -> bool:
        """Whether a row certainly learns worse."""
        falls = self.condition.collapse > 0 and key.workers > 4
        return falls or self.loss[key.workers] >= 1.25 * MARGIN

    @property
    def grid(self) -> float:
        """Cost of one seed of every row."""
        return sum(self.units(key) * self.measured(key) for key in self.steps)

    def is_bad(self, key: Key) -> bool:
        """Whether choosing a row is wrong: it costs too much, or learns worse."""
        if key.workers == 1 and not self.condition.per_node:
            return False
        return self.loses(key) or self.efficiency(key) < TARGET - ZONE

    def is_good(self, key: Key) -> bool:
        """Whether passing over a row that is faster is wrong."""
        if key.workers == 1:
            return True
        falls = self.condition.collapse > 0 and key.workers > 4
        return (
            self.loss[key.workers] <= 0.75 * MARGIN
            and self.efficiency(key) >= TARGET + ZONE
            and not falls
        )

    def is_right(self, key: Key | None) -> bool:
        """Whether a choice is not bad, and within 5 % of the time of every good row."""
        if key is None or self.is_bad(key):
            return False
        good = [self.seconds(row) for row in self.steps if self.is_good(row)]
        return self.seconds(key) <= 1.05 * min(good)


@dataclass
class Machine:
    """Draws the runs of a study and counts their cost."""

    truth: Truth
    generator: np.random.Generator
    runs: list[Run] = field(default_factory=list)
    spent: float = 0.0
    hour: float = 0.0
    seeds: dict[int, float] = field(default_factory=dict)
    failed: dict[Key, set[int]] = field(default_factory=dict)

    def next_hour(self) -> None:
        """Begin a block of runs."""
        self.hour = self.generator.normal(0, self.truth.condition.hours)

    def _factor(self) -> float:
        condition = self.truth.condition
        drift = condition.drift * self.spent / (3 * self.truth.grid)
        return float(
            np.exp(self.generator.normal(0, condition.noise) + self.hour + drift)
        )

    def time(self, key: Key, number: int) -> None:
        """Take a timing run."""
        truth = self.truth
        steps = truth.steps[key] * self._factor()
        self.spent += truth.units(key) * (truth.start + PROBE * steps)
        own = (
            0.0 if truth.condition.same_updates else 0.01 * (key.strategy == "horovod")
        )
        timing = Timing.model_construct(
            warm_up_steps=8, steps=8, losses=[1.0, 0.9 + own, 0.8 + own], evaluations=[]
        )
        self._add(key, number, steps, None, timing)

    def train(self, key: Key, number: int) -> None:
        """Take a training."""
        truth, condition = self.truth, self.truth.condition
        steps = truth.steps[key] * self._factor()
        self.spent += truth.units(key) * (truth.start + steps)
        if key.workers > 1 and self.generator.random() < condition.failing:
            self.failed.setdefault(key, set()).add(number)
            return
        spread = truth.spread * (1 + condition.widening * log2(key.workers))
        common = self.seeds.setdefault(number, float(self.generator.normal()))
        chance = (
            condition.alike**0.5 * common
            + (1 - condition.alike) ** 0.5 * self.generator.normal()
        )
        quality = 0.9 - truth.loss[key.workers] + spread * chance
        if key.workers > 4 and self.generator.random() < condition.collapse:
            quality = 0.2
        self._add(key, number, steps, quality, None)

    def _add(
        self,
        key: Key,
        number: int,
        steps: float,
        quality: float | None,
        timing: Timing | None,
    ) -> None:
        seconds = self.truth.start + steps
        shared = "mirrored" if key.strategy == "native" else "horovod"
        own = {
            "name": f"{key.strategy}-{key.workers}-{number}",
            "strategy": key.strategy,
            "implementation": "single" if key.workers == 1 else shared,
            "workers": key.workers,
            "seed": number,
            "throughput": SAMPLES / seconds,
            "training_seconds": seconds,
            "wall_seconds": seconds,
            "quality": quality,
            "timing": timing,
            "phases": {"start-up": self.truth.start, "steps": steps},
            "nodes": [
                NodeUse(rank=number) for number in range(int(self.truth.units(key)))
            ],
        }
        if timing is not None:
            updates = {
                "training_updates": 1000,
                "training_epochs": EPOCHS,
                "seconds": 8 * steps / 1000,
            }
            own["timing"] = timing.model_copy(update=updates)
        self.runs.append(Run(OUTCOME.model_copy(update=own)))


class Outcomes(NamedTuple):
    """How one study ended."""

    truth: Truth
    choice: Key | None
    provisional: Sequence[str]
    spent: float
    decision: Decision
    why: Why | None


def known_of(machine: Machine, rows: Sequence[Key], measures: Measures) -> Known:
    """What the policy sees of a study."""
    numbers: dict[bool, dict[Key, set[int]]] = {True: {}, False: {}}
    for run in machine.runs:
        key = key_of(run.result.strategy, run.result.workers, {})
        numbers[run.is_timing].setdefault(key, set()).add(run.result.seed or 0)
    for key, failed in machine.failed.items():
        numbers[False].setdefault(key, set()).update(failed)
    return Known(
        rows,
        measures,
        {key: machine.truth.units(key) for key in rows},
        numbers[True],
        numbers[False],
        machine.spent,
        TARGET,
        ZONE,
        QualityMargin(MARGIN),
    )


def planned(truth: Truth) -> PlannedTraining:
    """The training that the decision is for."""
    longer = truth.condition.longer
    return PlannedTraining(EPOCHS * longer) if longer > 1 else PlannedTraining()


def decided(machine: Machine) -> Decision:
    """The decision of the report."""
    truth = machine.truth
    measures = measure_rows(group_runs(machine.runs), planned(truth))
    margin = QualityMargin(MARGIN)
    bill: Bill = "node" if truth.condition.per_node else "worker"
    ended = [
        Planned(f"{key.label}-{number}", key.strategy, key.workers, number, "failed")
        for key, numbers in machine.failed.items()
        for number in numbers
    ]
    criteria = Criteria(TARGET, bill, margin, planned=planned(truth))
    return decide(rows_of(measures, margin), measures, criteria, planned=ended)


def until_decided(
    truth: Truth, generator: np.random.Generator, limits: Limits | None = None
) -> Outcomes:
    """Run a study by the policy."""
    machine, rows = Machine(truth, generator), list(truth.steps)
    while True:
        known = known_of(
            machine, rows, measure_rows(group_runs(machine.runs), planned(truth))
        )
        step = next_runs(known, limits)
        if not isinstance(step, Batch):
            break
        take = machine.time if step.kind == "timing" else machine.train
        order = sorted(step.runs, key=lambda run: (run[1], generator.random()))
        for place, (key, number) in enumerate(order):
            if place == 0 or number != order[place - 1][1]:
                machine.next_hour()
            take(key, number)
    decision = decided(machine)
    return Outcomes(
        truth, decision.choice, decision.provisional, machine.spent, decision, step.why
    )


def grid(truth: Truth, generator: np.random.Generator, seeds: int) -> Outcomes:
    """Run the whole grid."""
    machine = Machine(truth, generator)
    for seed in range(seeds):
        machine.next_hour()
        for key in truth.steps:
            machine.train(key, seed)
    decision = decided(machine)
    return Outcomes(
        truth, decision.choice, decision.provisional, machine.spent, decision, None
    )


def simulate(
    studies: int,
    condition: Condition,
    run: Callable[[Truth, np.random.Generator], Outcomes] = until_decided,
) -> list[Outcomes]:
    """Run studies with fixed seeds."""
    found = []
    for index in range(studies):
        truth = Truth.drawn(np.random.default_rng(index), condition)
        found.append(run(truth, np.random.default_rng(10_000 + index)))
    return found


def share(found: Sequence[Outcomes]) -> float:
    """Share that is right and settled."""
    return float(
        np.mean(
            [
                outcome.truth.is_right(outcome.choice) and not outcome.provisional
                for outcome in found
            ]
        )
    )


def show(name: str, found: Sequence[Outcomes]) -> None:
    """Print one condition: shares by kind and spread, costs."""
    right = np.mean([outcome.truth.is_right(outcome.choice) for outcome in found])
    costs = np.array([outcome.spent / outcome.truth.grid for outcome in found])
    false = np.mean(
        [
            o.choice is not None and o.truth.loss[o.choice.workers] >= MARGIN
            for o in found
        ]
    )
    settled_worse = [
        not o.provisional
        and o.choice is not None
        and o.truth.loss[o.choice.workers] >= MARGIN
        for o in found
    ]
    spread_too_far = [
        o.why is not None and o.why.kind == "seeds-spread-too-far" for o in found
    ]
    ones = np.median([outcome.spent / outcome.truth.one for outcome in found])
    print(
        f"{name}: right and settled {share(found):.3f} (right {right:.3f}), worse and chosen {false:.4f};"
        f" cost {ones:.1f} one-worker trainings, of a grid of three seeds {np.median(costs) / 3:.2f}"
        f" (90 % {np.quantile(costs, 0.9) / 3:.2f}), of one of five at most {costs.max() / 5:.2f};"
        f" settled {np.mean([not o.provisional and o.choice is not None for o in found]):.3f},"
        f" settled on a row at or beyond the margin {np.mean(settled_worse):.4f},"
        f" ended early for its spread {np.mean(spread_too_far):.3f}",
        flush=True,
    )
    for kind in KINDS:
        spreads = sorted({o.truth.spread for o in found})
        cells = [
            [o for o in found if (o.truth.kind, o.truth.spread) == (kind, spread)]
            for spread in spreads
        ]
        print(
            f"  {kind:5}",
            *(f"{share(cell):.2f} ({len(cell)})" for cell in cells if cell),
        )


def main(arguments: Sequence[str]) -> None:
    """Print every condition."""
    studies = int(arguments[0]) if arguments else 1000
    for name in arguments[1:] or CONDITIONS:
        show(name, simulate(studies, CONDITIONS[name]))
        if name == "plain":
            for seeds in (3, 5):
                run = partial(grid, seeds=seeds)
                show(
                    f"{name}, grid of {seeds}", simulate(studies, CONDITIONS[name], run)
                )


if __name__ == "__main__":
    main(sys.argv[1:])
