"""Search a learning rate and a warm-up: trials are points of an ordinary study for each number of workers.

Successive halving in three rungs (Jamieson and Talwalkar, "Non-stochastic best arm identification and
hyperparameter optimization", AISTATS 2016): many short trainings, the better half for twice as long, and so
on. The first rung begins with each rule for large batches at its published rate, with and without warm-up,
and goes on around the best until its neighbours were tried, so that the best never lies on the edge. The last
rung trains three seeds, since one may favour a setting; its best is trained on three others, which alone are
reported, since the seeds of the choice favour it. Every number of workers gets as many trials, one worker
included: otherwise its rate would be tuned better than the others' (Shallue et al., JMLR 20, 2019).
Everything follows from the results, so a search can be continued.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from scalestudy.training.rates import peak_rate

RULES = ("linear", "sqrt", "none")
WARMUPS = (0.1, 0.0)
RUNGS = (0.25, 0.5, 1.0)
"""Shares of the epochs."""
KEPT = 2
"""Fewest trials in a rung."""
SEEDS = 3
"""Seeds of the last rung, and new ones on which its best trial is reported."""
DIVERGED = -math.inf


@dataclass(frozen=True)
class RateTrial:
    """A setting: the rule for large batches, the share of epochs in warm-up, and a factor of the rate."""

    rule: str
    warmup: float
    factor: float = 1.0

    def peak(self, kappa: float) -> float:
        """Largest learning rate, as a multiple of the study's, for `kappa` reference batches."""
        return peak_rate(self.factor, kappa, self.rule)


Scores = Sequence[Mapping[RateTrial, float]]
"""For each rung, quality by trial, larger is better; `DIVERGED` for a trial that learned nothing."""


@dataclass(frozen=True)
class Search:
    """The search for one number of workers.

    Attributes:
        kappa: Global batch divided by the reference batch.
        trials: Number of trials in the first rung, 2 or more.
        adapts: Whether the rule "sqrt" changes more than the rate, as it does with Adam.
        updates: Updates of a trial in the first rung, known once one has ended.
    """

    kappa: float
    trials: int
    adapts: bool = False
    updates: float = math.inf

    def next_trials(self, scores: Scores) -> tuple[int, list[RateTrial]]:
        """Rung and trials to run next; no trials once the last rung is complete."""
        left = self.trials - len(scores[0])
        if left > 0:
            # The first group alone: what it finds decides around which trial the next ones lie.
            found = next(self._candidates(scores[0]), [])
            if found:
                return 0, found[:left]
        for rung in (1, 2):
            kept = self._kept(rung, scores)
            missing = [trial for trial in kept if trial not in scores[rung]]
            if missing:
                return rung, missing
        return 2, []

    def _kept(self, rung: int, scores: Scores) -> list[RateTrial]:
        kept = max(KEPT, math.ceil(self.trials / 2**rung))
        return rank(scores[rung - 1])[:kept]

    def _candidates(
        self, scores: Mapping[RateTrial, float]
    ) -> Iterator[list[RateTrial]]:
        """Untried rules; then around the best: rates a factor of 2 away, other warm-ups, closer rates."""
        groups = []
        for warmup in WARMUPS:
            groups.append([RateTrial(rule, warmup) for rule in RULES])
        # If every trial diverged, smaller rates around any of them may learn.
        for trial in rank(scores) or list(scores):
            groups.append(_with_rates(trial, 2, 1 / 2))
            groups.append(_with_warmups(trial))
            groups.append(_with_rates(trial, math.sqrt(2), math.sqrt(1 / 2)))
        for group in groups:
            untried: list[RateTrial] = []
            for trial in group:
                known = [*scores, *untried]
                if not self._is_among(trial, known):
                    untried.append(trial)
            if untried:
                yield untried

    def _is_among(self, trial: RateTrial, others: Sequence[RateTrial]) -> bool:
        """Whether a trial is one of these, or trains in the same way but for a few per cent of the rate."""
        # A warm-up of one update is none.
        warmups_matter = max(WARMUPS) * self.updates >= 1.5
        rules_matter = self.adapts and self.kappa != 1
        for other in others:
            if warmups_matter and trial.warmup != other.warmup:
                continue
            ratio = trial.peak(self.kappa) / other.peak(self.kappa)
            octaves = math.log2(ratio)
            near = abs(octaves) < 1 / 8
            if not near:
                continue
            # With Adam, "sqrt" scales its other settings, too: an equal rate is another training.
            by_root = trial.rule == "sqrt"
            other_by_root = other.rule == "sqrt"
            if rules_matter and by_root != other_by_root:
                continue
            return True
        return False


def _with_rates(trial: RateTrial, *steps: float) -> list[RateTrial]:
    return [replace(trial, factor=trial.factor * step) for step in steps]


def _with_warmups(trial: RateTrial) -> list[RateTrial]:
    # With few updates, a warm-up over a third of the training can beat one of 10 %.
    longer = min(3 * trial.warmup, 1.0)
    warmups = (*WARMUPS, longer)
    return [replace(trial, warmup=warmup) for warmup in warmups]


def rank(scores: Mapping[RateTrial, float]) -> list[RateTrial]:
    """Trials that learned, the best first."""
    learned = [trial for trial, score in scores.items() if score > DIVERGED]
    learned.sort(key=lambda trial: -scores[trial])
    return learned
