"""Swept splits are repeats of a point, as seeds are."""

from pathlib import Path

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.remaining import remaining
from scalestudy.analysis.runs import key_of
from scalestudy.analysis.study_table import records, runs_table
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.config.run_order import RunOrder
from scalestudy.launch.launcher import PointStatus
from synthetic_result import result_of

QUALITIES = (0.80, 0.90, 0.95, 0.85, 0.88)
"""Quality by split; some splits are harder than others."""


def run(workers, split, seed=0, loss=0.0):
    quality, samples = (
        QUALITIES[split] + 0.001 * (split % 2) - loss,
        200_000 - split % 2,
    )
    swept = {"data.seed": split}
    made = synthetic.run(
        "native",
        workers,
        seed,
        throughput=97.0 * workers + split,
        quality=quality,
        swept=swept,
        samples=samples,
    )
    return synthetic.changed(made, training_samples=samples)


@pytest.fixture(scope="module")
def findings():
    return analyse(
        "made", [run(workers, split) for workers in (1, 2, 4) for split in range(5)]
    )


def test_a_row_holds_all_splits_and_their_mean(findings):
    table = records(findings.rows)
    assert [(row["workers"], row["runs"]) for row in table] == [(1, 5), (2, 5), (4, 5)]
    assert "data.seed" not in table[0]
    assert table[0]["quality"] == pytest.approx(sum(QUALITIES) / 5 + 0.0004)
    assert table[0]["quality_low"] < 0.85
    assert table[0]["quality_high"] > 0.9, "splits differ"
    assert runs_table(findings.runs)["data.seed"].to_list() == [*range(5)] * 3


def test_rows_are_compared_split_by_split(findings):
    four = findings.rows[-1]
    assert four.verdict.kind == "no-worse"
    assert four.verdict.change.half_width < 0.001
    assert four.speed.training.value == pytest.approx(4, rel=0.05), (
        "splits differ by a sample in both rows"
    )
    worse = [run(n, split, loss=0.05 * (n > 1)) for n in (1, 2) for split in range(5)]
    assert analyse("made", worse).rows[-1].verdict.kind == "worse"


def test_the_advice_chooses_no_split_and_the_scaling_model_has_one_series(findings):
    assert findings.advice.decision.choice == key_of("native", 4, {})
    assert findings.advice.decision.choice.swept == {}
    (model,) = findings.models
    assert model.series.different == (1, 2, 4) and model.fit is not None


def test_splits_and_seeds_pair_by_both():
    found = analyse(
        "made",
        [
            run(n, split, seed)
            for n in (1, 2)
            for split in range(4)
            for seed in range(2)
        ],
    )
    two = found.rows[-1]
    assert (two.runs, len(found.measures.quality.values[two.key]), two.key.swept) == (
        8,
        8,
        {},
    )


def planned():
    lines = [
        'task = "cnn"',
        "[sweep]",
        'strategy = ["native"]',
        "workers = [1, 2, 4]",
        "seed = [0, 1]",
        '"data.seed" = [0, 1, 2]',
    ]
    return expand(parse_study("\n".join(lines), Path("study.toml")), gpus=0, cores=64)


def test_each_block_holds_every_row_under_one_seed_and_split():
    points = RunOrder(seed=1).arrange(planned())
    blocks = [
        {point.block for point in points[start : start + 3]}
        for start in range(0, 18, 3)
    ]
    assert [len(block) for block in blocks] == [1] * 6
    assert len(set.union(*blocks)) == 6


def test_other_splits_of_a_point_say_how_long_it_takes():
    one, two, *_ = (
        point for point in planned() if point.workers == 1 and point.seed == 0
    )
    assert one.swept != two.swept
    done = PointStatus(
        one, "done", result=result_of(one).model_copy(update={"wall_seconds": 100.0})
    )
    assert (
        remaining([done, PointStatus(two, "missing")], {}, at_once=False).seconds
        == (100.0,) * 3
    )
