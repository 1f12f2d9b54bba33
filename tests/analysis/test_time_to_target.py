import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.runs import epoch_value


def rows(runs, **options):
    return {(row.strategy, row.workers): row for row in analyse("made", runs, **options).rows}


def curves(workers, throughput, seeds=3):
    return [synthetic.run("native", workers, seed, throughput=throughput, epochs=40) for seed in range(seeds)]


def test_the_time_counts_from_the_start_to_the_end_of_the_first_epoch_that_reached_the_target():
    run = synthetic.run("native", 1, epochs=40)
    qualities = [epoch_value(run.epochs, place, "validation", "iou") for place in range(40)]
    first = next(place for place, quality in enumerate(qualities) if quality >= 0.75)
    assert 0 < first < 39
    seconds = run.result.phases["start-up"] + run.result.phases["compile"]
    seconds += sum(e.train_seconds + e.evaluation_seconds for e in run.epochs[: first + 1])
    reached = rows([run], target_quality=0.75)["native", 1].to_target
    assert (reached.reached, reached.runs) == (1, 1)
    assert reached.seconds.value == pytest.approx(seconds)
    assert reached.cost.value == pytest.approx(seconds / 3600)


def test_fewer_updates_can_make_the_faster_row_later():
    """The synthetic losses fall more slowly with more workers, as with one batch per worker."""
    eight = rows([*curves(1, 100), *curves(8, 240)], target_quality=0.8)["native", 8]
    assert eight.speed.steady.value == pytest.approx(2.4)
    assert eight.to_target.speedup.value < 0.8 * eight.price.speedup.value


def test_a_row_of_which_a_run_never_reaches_the_target_has_no_time():
    runs = [*curves(1, 100), *curves(8, 700)]
    default = rows(runs)["native", 8].to_target.quality
    assert default == pytest.approx(0.95 - 0.02), "of the best one-worker row, less the margin"
    target = max(epoch_value(runs[-1].epochs, -1, "validation", "iou"), 0.0) + 0.01
    found = rows(runs, target_quality=target)
    assert found["native", 1].to_target.reached == 3
    eight = found["native", 8].to_target
    assert (eight.reached, eight.runs, eight.seconds.value) == (0, 3, None)


def test_of_an_error_the_target_is_reached_from_above_and_virtual_workers_have_no_time():
    runs = [synthetic.run("native", 1, seed, quality=0.1, metric="mse") for seed in range(2)]
    assert rows(runs, target_quality=1e9)["native", 1].to_target.reached == 2
    assert rows(runs, target_quality=-1.0)["native", 1].to_target.reached == 0
    assert rows([synthetic.run("virtual", 4)])["virtual", 4].to_target is None
