"""The search on made-up response surfaces, whose best learning rate is known."""

import math

import numpy as np
import pytest

from scalestudy.features.recipe.search import (
    DIVERGED,
    RUNGS,
    SEEDS,
    RateTrial,
    Search,
    rank,
)

SPREAD = 0.003


class Surface:
    """Quality falls with the square of the distance from the best rate in octaves, and collapses above it."""

    def __init__(self, generator):
        self.generator = generator
        self.kappa = generator.choice([1, 4, 8, 14, 32])
        exponent = generator.choice([0.5, 0.8, 1.0])
        self.best = self.kappa**exponent * 2 ** generator.uniform(-1, 1)
        self.curvature = generator.uniform(0.004, 0.02)
        self.gain = generator.uniform(0, 0.005)

    def true(self, trial, rung=2):
        # Short trainings do best with a slightly larger rate.
        distance = math.log2(trial.peak(self.kappa) / (self.best * RUNGS[rung] ** -0.1))
        if distance > (2.5 if trial.warmup else 1.5):
            return DIVERGED
        return (
            0.95
            + self.gain * (trial.warmup > 0)
            - self.curvature * distance**2
            - 0.05 * (2 - rung)
        )

    def measured(self, trial, rung=2):
        return self.true(trial, rung) + self.generator.normal(0, SPREAD)


def searched(surface, trials=12):
    """Scores by rung."""
    search, scores = Search(surface.kappa, trials), ({}, {}, {})
    while (step := search.next_trials(scores))[1]:
        rung, next_trials = step
        for trial in next_trials:
            assert trial not in scores[rung]
            seeds = SEEDS if rung == 2 else 1
            scores[rung][trial] = np.mean(
                [surface.measured(trial, rung) for _ in range(seeds)]
            )
    return search, scores


def test_the_rate_is_found_and_the_reported_quality_is_unbiased():
    generator = np.random.default_rng(3)
    close, biases = [], []
    for _ in range(200):
        surface = Surface(generator)
        _, scores = searched(surface)
        trial = rank(scores[-1])[0]
        reported = [surface.measured(trial) for _ in range(SEEDS)]
        close.append(
            2 ** abs(math.log2(trial.peak(surface.kappa) / surface.best)) <= 1.5
        )
        biases.append(np.mean(reported) - surface.true(trial))
    assert np.mean(close) >= 0.9
    assert abs(np.mean(biases)) <= 0.1 * SPREAD


@pytest.mark.parametrize("trials", [2, 5, 12, 20])
def test_every_number_of_workers_gets_as_many_trials(trials):
    generator = np.random.default_rng(4)
    for _ in range(20):
        _, scores = searched(Surface(generator), trials)
        assert len(scores[0]) == trials
        assert len(scores[2]) <= max(2, math.ceil(trials / 4))


def test_the_search_goes_on_while_the_best_lies_on_the_edge():
    surface = Surface(np.random.default_rng(0))
    surface.kappa, surface.best, surface.curvature = 1, 12.0, 0.02
    _, scores = searched(surface)
    assert max(trial.peak(1) for trial in scores[0]) >= 16


def test_a_longer_warm_up_is_tried_where_the_longest_is_best():
    tried = {
        RateTrial("linear", 0.1, factor): 0.9 - factor / 10 for factor in (1, 2, 0.5)
    }
    tried |= {RateTrial(rule, 0.1): 0.5 for rule in ("sqrt", "none")}
    tried |= {RateTrial(rule, 0.0): 0.4 for rule in ("linear", "sqrt", "none")} | {
        RateTrial("linear", 0.1): 0.95
    }
    rung, trials = Search(16.0, 12).next_trials((tried, {}, {}))
    assert (rung, trials) == (0, [RateTrial("linear", pytest.approx(0.3))])


def test_on_one_worker_all_rules_are_one():
    search, scores = Search(1.0, 12), ({}, {}, {})
    for warmup in (0.1, 0.0):
        rung, (trial,) = search.next_trials(scores)
        assert (rung, trial.warmup, trial.factor) == (0, warmup, 1)
        scores[0][trial] = 0.9


def test_a_warm_up_of_one_update_is_no_trial_of_its_own():
    scores = (
        {RateTrial(rule, 0.1): 0.9 for rule in ("linear", "sqrt", "none")},
        {},
        {},
    )
    assert {
        trial.warmup for trial in Search(16.0, 12, updates=15).next_trials(scores)[1]
    } == {0.0}
    few = Search(16.0, 12, updates=8).next_trials(scores)[1]
    assert {trial.factor for trial in few} == {0.5, 2}


def test_the_square_root_of_adam_is_a_trial_of_its_own():
    tried = {RateTrial("none", 0.1, 4.0): 0.9, RateTrial("none", 0.0, 4.0): 0.8}
    search = Search(16.0, 12)
    assert search._is_among(RateTrial("sqrt", 0.1), list(tried))
    assert not Search(16.0, 12, adapts=True)._is_among(
        RateTrial("sqrt", 0.1), list(tried)
    )


def test_trials_that_diverged_go_no_further():
    scores = (
        {
            RateTrial("linear", 0.1): DIVERGED,
            RateTrial("none", 0.1): 0.5,
            RateTrial("none", 0.0): 0.4,
        },
        {},
        {},
    )
    rung, trials = Search(8.0, 3).next_trials(scores)
    assert (rung, trials) == (1, [RateTrial("none", 0.1), RateTrial("none", 0.0)])
    assert (
        Search(8.0, 2).next_trials(
            (
                {RateTrial("linear", 0.1): DIVERGED, RateTrial("none", 0): DIVERGED},
                {},
                {},
            )
        )[1]
        == []
    )
