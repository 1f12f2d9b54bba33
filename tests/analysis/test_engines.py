"""Rows of different engines share no baseline, though they stand in one study."""

from dataclasses import replace

import pytest

import synthetic
from scalestudy.analysis.measures import measure
from scalestudy.analysis.quality import judge
from scalestudy.analysis.runs import grouped, key_of
from scalestudy.analysis.speedup import speed_up


def computed_by(engine, run):
    return replace(run, result=run.result.model_copy(update={"engine": engine}))


def judged(engine):
    """Speed-up and quality of two workers of one engine, beside one worker of `engine`."""
    runs = [
        *(computed_by(engine, synthetic.run("single", 1, seed, throughput=100.0)) for seed in range(3)),
        *(
            computed_by("tensorflow", synthetic.run("horovod", 2, seed, throughput=180.0))
            for seed in range(3)
        ),
    ]
    key, measures = key_of("horovod", 2, {}), measure(grouped(runs))
    return speed_up(key, measures), judge(key, measures)


def test_one_worker_of_the_same_engine_is_the_baseline_of_speed_up_and_quality():
    speed, quality = judged("tensorflow")
    assert speed.steady.value == pytest.approx(1.8)
    assert speed.baseline == quality.reference == key_of("single", 1, {})


def test_one_worker_of_another_engine_is_none():
    speed, quality = judged("theirs")
    assert speed.steady.value is None and speed.baseline is None and speed.reason
    assert quality.kind == "no-reference"
