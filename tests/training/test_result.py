import math

import pytest

from scalestudy.config.objectives import Sense
from scalestudy.store.records import EpochRecord, GpuUse
from scalestudy.training.run_results import best_epoch, mean_percent


def records(*values: float | None) -> list[EpochRecord]:
    return [
        EpochRecord(
            epoch=number,
            steps=1,
            samples=1,
            learning_rate=0.1,
            loss=1.0,
            train_seconds=1.0,
            input_seconds=0.0,
            elapsed_training_seconds=number,
            validation={} if value is None else {"loss": 1.0, "quality": value},
        )
        for number, value in enumerate(values, start=1)
    ]


@pytest.mark.parametrize(("better", "epoch"), [("lower", 2), ("higher", 4)])
def test_the_best_epoch_is_that_of_the_least_error_or_the_highest_score(better, epoch):
    found = best_epoch(records(0.5, 0.1, None, 0.9, 0.1), "quality", Sense(better))
    assert found.epoch == epoch


@pytest.mark.parametrize("better", ["lower", "higher"])
@pytest.mark.parametrize("wild", [math.nan, math.inf, -math.inf])
def test_a_diverged_epoch_is_never_the_best(better, wild):
    assert best_epoch(records(wild, 0.5, wild), "quality", Sense(better)).epoch == 2


def test_where_no_epoch_is_finite_it_is_the_last():
    assert best_epoch(records(math.nan, math.nan), "quality", Sense("higher")).epoch == 2


def test_the_utilisation_of_a_rank_is_that_of_its_gpus_that_tell_it():
    uses = [
        GpuUse(rank=0, device=0, percent=40),
        GpuUse(rank=0, device=1),
        GpuUse(rank=0, device=2, percent=80),
    ]
    assert mean_percent(uses) == 60
    assert mean_percent(uses[1:2]) is None and mean_percent([]) is None
