import pytest

import synthetic
from elsewhere import foreign
from published import TABLES, column
from scalestudy.analysis.measures import measure
from scalestudy.analysis.runs import grouped, key_of
from scalestudy.analysis.speedup import speed_up
from scalestudy.analysis.table import records, summarise


def speed(runs, strategy, workers, swept=None):
    return speed_up(key_of(strategy, workers, swept or {}), measure(grouped(runs)))


def test_speed_up_is_the_ratio_of_throughputs_and_of_training_times():
    runs = [
        synthetic.run("horovod", 1, throughput=100.0, training_seconds=60.0),
        synthetic.run("horovod", 4, throughput=360.0, training_seconds=20.0),
    ]
    found = speed(runs, "horovod", 4)
    assert found.steady.value == pytest.approx(3.6)
    assert found.training.value == pytest.approx(3.0)
    assert found.baseline.label == "horovod on 1 worker"
    assert found.steady.low is None


def test_the_published_table_comes_out_as_published():
    runs = synthetic.published()
    for workers, (_, s_native, _, _, s_horovod, _) in synthetic.U_NET.items():
        assert speed(runs, "native", workers).steady.value == pytest.approx(s_native)
        assert speed(runs, "horovod", workers).steady.value == pytest.approx(s_horovod)


def test_the_published_seconds_give_speed_ups_up_to_7_per_cent_below_those_published():
    """Those published take the second epoch; the seconds beside them do not."""
    runs = synthetic.published()
    for workers, (_, s_native, _, _, s_horovod, _) in synthetic.U_NET.items():
        for strategy, published in (("native", s_native), ("horovod", s_horovod)):
            found = speed(runs, strategy, workers).training.value
            assert 0.93 * published < found < published + 0.005


def test_the_published_mnist_efficiency_counts_samples_that_were_never_processed():
    printed, processed = column("mnist", "printed_throughput"), column("mnist", "processed_per_epoch")
    claimed = TABLES["mnist"]["printed_efficiency_percent"]
    assert 100 * printed[8] / (8 * printed[1]) == pytest.approx(claimed, abs=1)
    whole = TABLES["mnist"]["training_samples"]
    runs = [synthetic.run("horovod", n, throughput=printed[n] * processed[n] / whole) for n in (1, 8)]
    corrected = summarise(runs)[1].efficiency.value
    assert 100 * corrected == pytest.approx(TABLES["mnist"]["corrected_efficiency_percent"][0], abs=0.5)


@pytest.mark.parametrize("reference", ["single", "native"])
def test_without_its_own_one_worker_point_a_strategy_is_held_against_plain_training(reference):
    runs = [synthetic.run(reference, 1), synthetic.run("mirrored", 2, throughput=190.0)]
    found = speed(runs, "mirrored", 2)
    assert found.steady.value == pytest.approx(1.9)
    assert found.baseline.strategy == reference


def test_the_baseline_has_the_same_other_swept_values():
    runs = [
        synthetic.run("horovod", 1, swept={"train.batch_size": 8}, throughput=50.0),
        synthetic.run("horovod", 1, swept={"train.batch_size": 32}, throughput=100.0),
        synthetic.run("horovod", 2, swept={"train.batch_size": 32}, throughput=150.0),
        synthetic.run("horovod", 2, swept={"train.batch_size": 64}, throughput=150.0),
    ]
    assert speed(runs, "horovod", 2, {"train.batch_size": 32}).steady.value == pytest.approx(1.5)
    alone = speed(runs, "horovod", 2, {"train.batch_size": 64})
    assert alone.steady.value is None
    assert "train.batch_size = 64" in alone.reason


def test_another_strategys_one_worker_point_is_no_baseline():
    found = speed([synthetic.run("horovod", 1), synthetic.run("mirrored", 2)], "mirrored", 2)
    assert found.steady.value is None
    assert found.reason == "no finished one-worker run of mirrored, single or native to compare with"


def test_without_one_worker_the_speed_up_is_relative_to_the_fewest_workers_and_says_so():
    runs = [
        synthetic.run("horovod", 4, throughput=400.0, training_seconds=60.0),
        synthetic.run("horovod", 8, throughput=720.0, training_seconds=32.0),
    ]
    found = speed(runs, "horovod", 8)
    assert found.steady.value == pytest.approx(1.8)
    assert found.training.value == pytest.approx(1.875)
    assert found.against == 4
    assert found.note.startswith("relative: against horovod on 4 workers")
    assert speed(runs, "horovod", 4).steady.value == 1
    first, second = summarise(runs)
    assert second.efficiency.value == pytest.approx(4 * 1.8 / 8)
    assert second.efficiency_training.value == pytest.approx(4 * 1.875 / 8)
    assert first.is_baseline and not second.is_baseline
    assert records([first, second])[1]["baseline"] == "horovod on 4 workers"
    assert records([first, second])[1]["speedup_note"] == found.note


def test_one_worker_of_plain_training_goes_before_a_relative_speed_up():
    runs = [
        synthetic.run("native", 1),
        synthetic.run("horovod", 4, throughput=390.0),
        synthetic.run("horovod", 8),
    ]
    assert speed(runs, "horovod", 4).baseline.strategy == "native"
    assert speed(runs, "horovod", 4).note is None


def test_a_row_alone_is_no_baseline_of_its_own():
    assert speed([synthetic.run("horovod", 4)], "horovod", 4).steady.value is None


def test_oversubscribed_points_have_no_speed_up_and_are_no_baseline():
    runs = [
        synthetic.run("horovod", 1, oversubscribed="1 worker with 4 cores on 2 cores"),
        synthetic.run("horovod", 2, throughput=190.0),
        synthetic.run("horovod", 4, oversubscribed="4 workers on 2 cores"),
    ]
    assert speed(runs, "horovod", 4).reason == "oversubscribed: 4 workers on 2 cores"
    assert "was oversubscribed" in speed(runs, "horovod", 2).reason
    assert speed([*runs, synthetic.run("single", 1)], "horovod", 2).baseline.strategy == "single"


def test_virtual_workers_never_have_a_speed_up():
    found = speed([synthetic.run("single", 1), synthetic.run("virtual", 4)], "virtual", 4)
    assert found.steady.value is None
    assert "one after another" in found.reason


def test_training_times_of_different_work_are_not_compared():
    runs = [synthetic.run("horovod", 1, epochs=6), synthetic.run("horovod", 2, epochs=3, throughput=190.0)]
    found = speed(runs, "horovod", 2)
    assert found.steady.value == pytest.approx(1.9)
    assert found.training.value is None
    assert found.training_reason == "processed another number of samples than the run it is compared with"


def test_one_epoch_has_no_steady_throughput():
    runs = [synthetic.run("horovod", n, epochs=1, throughput=None, training_seconds=60 / n) for n in (1, 2)]
    found = speed(runs, "horovod", 2)
    assert found.steady.value is None
    assert "one epoch" in found.reason
    assert found.training.value == pytest.approx(2)


def test_the_baseline_itself_is_one_without_chance():
    runs = synthetic.seeded((1, 2), ("horovod",))
    found = speed(runs, "horovod", 1).steady
    assert (found.low, found.value, found.high) == (1, 1, 1)
    assert speed([synthetic.run("horovod", 1)], "horovod", 1).steady.low is None


def test_numbers_of_others_from_sets_of_unlike_size_are_not_the_same_work():
    runs = [foreign(n, line=n, training_seconds=100.0, training_samples=1000 * n) for n in (1, 2)]
    _, two = summarise(runs)
    assert two.speed.steady.value is None
    assert two.speed.reason == "processed another number of samples than the run it is compared with"
