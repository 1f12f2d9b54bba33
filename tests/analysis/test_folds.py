"""Folds of a cross-validation are repeats of a point, as seeds are."""

from pathlib import Path

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.remaining import remaining
from scalestudy.analysis.runs import key_of
from scalestudy.analysis.study_table import records, runs_table
from scalestudy.config.expand import RunOrder, expand
from scalestudy.config.parse import parse_study
from scalestudy.launch.launcher import PointStatus
from synthetic_result import result_of

FOLDS = (0.80, 0.90, 0.95, 0.85, 0.88)
"""Quality by fold; some folds are harder than others."""


def run(workers, fold, seed=0, loss=0.0):
    quality, samples = FOLDS[fold] + 0.001 * (fold % 2) - loss, 200_000 - fold % 2
    swept = {"data.fold": fold}
    made = synthetic.run(
        "native",
        workers,
        seed,
        throughput=97.0 * workers + fold,
        quality=quality,
        swept=swept,
        samples=samples,
    )
    return synthetic.changed(made, training_samples=samples)


@pytest.fixture(scope="module")
def findings():
    return analyse("made", [run(workers, fold) for workers in (1, 2, 4) for fold in range(5)])


def test_a_row_holds_all_folds_and_their_mean(findings):
    table = records(findings.rows)
    assert [(row["workers"], row["runs"]) for row in table] == [(1, 5), (2, 5), (4, 5)]
    assert "data.fold" not in table[0]
    assert table[0]["quality"] == pytest.approx(sum(FOLDS) / 5 + 0.0004)
    assert table[0]["quality_low"] < 0.85
    assert table[0]["quality_high"] > 0.9, "folds differ"
    assert runs_table(findings.runs)["data.fold"].to_list() == [*range(5)] * 3


def test_rows_are_compared_fold_by_fold(findings):
    four = findings.rows[-1]
    assert four.verdict.kind == "no-worse"
    assert four.verdict.change.half_width < 0.001
    assert four.speed.training.value == pytest.approx(4, rel=0.05), "folds differ by a sample in both rows"
    worse = [run(n, fold, loss=0.05 * (n > 1)) for n in (1, 2) for fold in range(5)]
    assert analyse("made", worse).rows[-1].verdict.kind == "worse"


def test_the_advice_chooses_no_fold_and_the_scaling_model_has_one_series(findings):
    assert findings.advice.decision.choice == key_of("native", 4, {})
    assert findings.advice.decision.choice.swept == {}
    (model,) = findings.models
    assert model.series.different == (1, 2, 4) and model.fit is not None


def test_folds_splits_and_seeds_pair_by_all():
    runs = [run(n, fold, seed) for n in (1, 2) for fold in range(2) for seed in range(2)]
    runs = [
        synthetic.changed(made, swept=made.result.swept | {"data.seed": split})
        for made in runs
        for split in (0, 1)
    ]
    found = analyse("made", runs)
    two = found.rows[-1]
    assert (two.runs, len(found.measures.quality.values[two.key]), two.key.swept) == (8, 8, {})


def planned():
    lines = [
        'task = "cnn"',
        "[data]",
        "folds = 3",
        "[sweep]",
        'strategy = ["native"]',
        "workers = [1, 2, 4]",
        "seed = [0, 1]",
        '"data.fold" = [0, 1, 2]',
    ]
    return expand(parse_study("\n".join(lines), Path("study.toml")), gpus=0, cores=64)


def test_each_block_holds_every_row_under_one_seed_and_fold():
    points = RunOrder(seed=1).arrange(planned())
    blocks = [{point.block for point in points[start : start + 3]} for start in range(0, 18, 3)]
    assert [len(block) for block in blocks] == [1] * 6
    assert len(set.union(*blocks)) == 6


def test_other_folds_of_a_point_say_how_long_it_takes():
    one, two, *_ = (point for point in planned() if point.workers == 1 and point.seed == 0)
    assert one.swept != two.swept
    done = PointStatus(one, "done", result=result_of(one).model_copy(update={"wall_seconds": 100.0}))
    assert remaining([done, PointStatus(two, "missing")], {}, at_once=False).seconds == (100.0,) * 3
