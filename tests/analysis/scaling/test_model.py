import made
import pytest

from scalestudy.analysis.findings import analyse
from scalestudy.analysis.scaling.words import chosen_words, work_words


def model_of(runs, strategy="horovod"):
    return next(m for m in analyse("made", runs).models if m.series.key.strategy == strategy)


def timed(times, strategy="horovod", runs=3, **options):
    return [
        made.run(strategy, n, seed, training_seconds=t * f, throughput=6000 / t, **options)
        for n, t in times.items()
        for seed, f in enumerate((0.998, 1.0, 1.002)[:runs])
    ]


AMDAHL = {n: 10 + 90 / n for n in (1, 2, 4, 8)}


def test_a_prediction_within_what_was_measured_is_not_marked_and_beyond_it_is():
    model = model_of(timed(AMDAHL))
    assert not model.predict(3).beyond
    assert model.predict(16).beyond
    found = model.predict(16)
    assert found.seconds.low < 10 + 90 / 16 < found.seconds.high
    assert found.speedup.value == pytest.approx(100 / (10 + 90 / 16), rel=1e-3)
    assert found.efficiency.value == pytest.approx(found.speedup.value / 16)


def test_predictions_go_by_doublings_to_four_times_the_largest_count():
    model = model_of(timed(AMDAHL))
    assert model.counts() == [1, 2, 4, 8, 16, 32]
    assert model.counts(most=100) == [1, 2, 4, 8, 16, 32, 64]


def test_efficiency_falls_to_a_value_where_amdahls_law_says():
    # 1 + (1/0.7 - 1)/0.1
    assert model_of(timed(AMDAHL)).falls_to(0.7) == pytest.approx(5.286, rel=0.01)
    assert model_of(timed({n: 100 / n for n in (1, 2, 4)})).falls_to(0.7) is None


def test_without_one_worker_predictions_are_against_the_fewest():
    model = model_of(timed({n: 10 + 90 / n for n in (4, 8, 16)}))
    assert model.reference == 4
    found = model.predict(32)
    assert found.speedup.value == pytest.approx(32.5 / (10 + 90 / 32), rel=1e-3)
    assert found.efficiency.value == pytest.approx(4 * found.speedup.value / 32)


def test_without_its_own_one_worker_run_a_strategy_is_predicted_against_plain_training():
    runs = [*timed({1: 100.0}, "single"), *timed({n: 10 + 90 / n for n in (2, 4, 8)}, "mirrored")]
    model = model_of(runs, "mirrored")
    assert model.reference == 1
    assert model.predict(16).speedup.value == pytest.approx(100 / (10 + 90 / 16), rel=1e-3)


def test_of_growing_work_the_speed_up_is_scaled():
    runs = [
        made.run("horovod", n, seed, throughput=100 * (0.1 + 0.9 * n) * (1 + 0.001 * seed), samples=1000 * n)
        for n in (1, 2, 4, 8)
        for seed in range(3)
    ]
    model = model_of(runs)
    assert model.fit.law.name == "gustafson"
    assert model.predict(16).speedup.value == pytest.approx(0.1 + 0.9 * 16, rel=1e-3)
    assert work_words(model).startswith(
        "weak scaling: the work of a training grows with the workers, from 6,000"
    )


def test_two_counts_have_no_law_and_say_why():
    model = model_of(timed({1: 100.0, 2: 55.0}))
    assert model.fit is None
    assert model.reason == "a law takes 3 different numbers of workers, and there are 2"
    with pytest.raises(ValueError, match="a law takes 3"):
        model.predict(4)


def words(runs):
    model = model_of(runs)
    return chosen_words(model, model.choice, "horovod")


def test_the_choice_is_said_in_words():
    few = words(timed(AMDAHL))
    assert few.startswith("horovod follows Amdahl's law, T(n) = 10 + 90/n s; the mean times")
    assert few.endswith("Below 5 different counts no law of more terms is tried.")
    many = words(timed({n: 10 + 90 / n + n for n in (1, 2, 4, 8, 16)}))
    assert many.startswith("horovod follows a law with communication, T(n) = 10 + 90/n + 1 n s")
    assert "by Amdahl's law, to" in many


def test_a_law_that_misses_something_says_so():
    bent = {n: 10 + 90 / n + (8 if n == 4 else 0) for n in (1, 2, 4, 8, 16)}
    assert "the law misses something" in words(timed(bent))


def test_the_scaling_of_an_update_is_told_from_that_of_a_training():
    text = work_words(model_of(timed(AMDAHL)))
    assert text.startswith("strong scaling: every training processes 6,000 samples")
    assert text.endswith("each worker's part of an update stays the same and updates become fewer")
