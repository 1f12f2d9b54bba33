import math

import made

from scalestudy.analysis.measures import measure
from scalestudy.analysis.quality import judge
from scalestudy.analysis.runs import grouped, key_of


def verdict(reference, values, strategy="horovod", reference_strategy="horovod"):
    runs = [made.run(reference_strategy, 1, seed, quality=value) for seed, value in enumerate(reference)]
    runs += [made.run(strategy, 4, seed, quality=value) for seed, value in enumerate(values)]
    return judge(key_of(strategy, 4, {}), measure(grouped(runs)))


def test_level_quality_is_no_worse():
    found = verdict([0.950, 0.951, 0.949], [0.951, 0.950, 0.952])
    assert found.kind == "no-worse"
    assert found.sentence.startswith("no worse: at most 0.00")


def test_lost_quality_is_worse_by_an_interval():
    found = verdict([0.95, 0.951, 0.949], [0.90, 0.905, 0.895])
    assert found.kind == "worse"
    assert found.sentence.startswith("worse by 0.0")
    assert found.change.high < 0


def test_gained_quality_is_no_worse():
    found = verdict([0.90, 0.901, 0.899], [0.95, 0.951, 0.949])
    assert found.kind == "no-worse"
    assert "better by" in found.sentence


def test_one_run_tells_nothing():
    found = verdict([0.95, 0.951], [0.5])
    assert found.kind == "unclear"
    assert found.sentence.startswith("not enough runs to tell")
    assert found.change.low is None


def test_a_wide_interval_is_not_sold_as_no_worse():
    found = verdict([0.95, 0.90], [0.94, 0.91])
    assert found.kind == "unclear"
    assert found.sentence.startswith("not enough runs to tell: between −")


def test_a_diverged_run_is_not_averaged_away():
    found = verdict([0.95, 0.951], [0.95, math.nan])
    assert found.kind == "unclear"
    assert "finite" in found.sentence


def test_plain_training_is_the_reference_where_the_strategy_has_none():
    assert verdict([0.95, 0.951], [0.95, 0.951], "virtual", "single").reference.strategy == "single"
    assert verdict([0.95, 0.951], [0.95, 0.951], "virtual", "mirrored").kind == "no-reference"


def test_the_one_worker_row_is_the_reference():
    runs = [made.run("horovod", 1, seed) for seed in range(2)]
    assert judge(key_of("horovod", 1, {}), measure(grouped(runs))).kind == "reference"
