import math

import pytest

import synthetic
from scalestudy.analysis.estimate import Estimate, student
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.measures import measure_rows
from scalestudy.analysis.runs import RunsByRow, group_runs
from scalestudy.analysis.scaling_model import model_of, nodes_of, series_of
from scalestudy.analysis.variances import PRIOR
from scalestudy.analysis.wording.scaling_model import describe_fit, model_sentences
from synthetic_series import model, series


def timed(times, strategy="horovod", runs=3, **options):
    return [
        synthetic.run(
            strategy, n, seed, training_seconds=t * f, throughput=6000 / t, **options
        )
        for n, t in times.items()
        for seed, f in enumerate((0.998, 1.0, 1.002)[:runs])
    ]


def of_study(runs, strategy="horovod"):
    return next(
        m for m in analyse("made", runs).models if m.series.key.strategy == strategy
    )


AMDAHL = {n: 10 + 90 / n for n in (1, 2, 4, 8)}


def test_a_measured_count_is_predicted_by_its_own_runs():
    bent = AMDAHL | {4: 40.0}  # the model's terms alone give 32.5 s
    found = model(bent, spread=0.01)
    assert found.fit.seconds(4) != pytest.approx(40.0, rel=0.02)
    four = found.predict(4)
    assert four.measured
    assert four.seconds.value == pytest.approx(40.0)
    assert four.seconds.low == pytest.approx(
        40.0 * math.exp(-student(PRIOR + 2) * 0.01 / math.sqrt(3)), rel=1e-3
    )
    assert four.speedup.value == pytest.approx(2.5)
    assert found.predict(1).speedup == Estimate(1.0, 1.0, 1.0)


def test_other_counts_are_predicted_by_the_model_within_and_beyond_what_was_measured():
    found = model(AMDAHL, update="fixed", spread=0.01)
    assert [found.predict(n).measured for n in (1, 3, 8, 16)] == [
        True,
        False,
        True,
        False,
    ]
    beyond = found.predict(16)
    assert beyond.seconds.low < 10 + 90 / 16 < beyond.seconds.high
    assert beyond.speedup.value == pytest.approx(100 / beyond.seconds.value)
    assert beyond.efficiency.value == pytest.approx(beyond.speedup.value / 16)
    assert beyond.speedup.low < 100 / (10 + 90 / 16) < beyond.speedup.high


def test_two_counts_predict_what_was_measured_and_nothing_else():
    found = of_study(timed({1: 100.0, 2: 55.0}))
    assert found.fit is None
    assert found.predict(2).speedup.value == pytest.approx(100 / 55)
    with pytest.raises(
        ValueError, match="3 different numbers of workers, and there are 2"
    ):
        found.predict(4)


def test_without_one_worker_predictions_are_against_the_fewest():
    found = of_study(timed({n: 10 + 90 / n for n in (4, 8, 16)}))
    assert found.reference == 4
    thirty_two = found.predict(32)
    assert thirty_two.speedup.value == pytest.approx(32.5 / (10 + 90 / 32), rel=0.05)
    assert thirty_two.efficiency.value == pytest.approx(
        4 * thirty_two.speedup.value / 32
    )


def test_without_its_own_one_worker_run_a_strategy_is_predicted_against_plain_training():
    runs = [
        *timed({1: 100.0}, "single"),
        *timed({n: 10 + 90 / n for n in (2, 4, 8)}, "mirrored"),
    ]
    found = of_study(runs, "mirrored")
    assert found.reference == 1
    assert found.predict(8).speedup.value == pytest.approx(100 / 21.25, rel=1e-3)


def test_the_limit_of_speed_up_comes_with_its_interval():
    found = model(
        {n: 10 + 90 / n for n in (1, 2, 4, 8, 16)}, update="fixed", spread=0.01
    )
    assert found.limit.low < 10 < found.limit.high < 13
    assert found.limit.value == pytest.approx(10, rel=0.05)


NO_LIMIT = {
    "no part that does not shrink": (
        {n: 100 / n for n in (1, 2, 4, 8)},
        {"spread": 0.01},
    ),
    "a lack of fit": (AMDAHL | {4: 40.0}, {"spread": 0.01}),
    "a short range": ({n: 10 + 90 / n for n in (1, 2, 3)}, {"spread": 0.001}),
    "far beyond what was measured": (
        {n: 1 + 99 / n for n in (1, 2, 4, 8)},
        {"spread": 0.0001},
    ),
    "no interval": (AMDAHL, {"runs": 1}),
    "no upper end": ({n: 3 + 97 / n for n in (1, 2, 4, 8)}, {"spread": 0.05}),
}


@pytest.mark.parametrize(("times", "options"), NO_LIMIT.values(), ids=NO_LIMIT)
def test_where_a_limit_cannot_be_told_none_is_claimed(times, options):
    found = model(times, update="fixed", **options)
    assert found.limit == Estimate(None)
    assert not any("below" in sentence for sentence in model_sentences(found))


def test_a_lack_of_fit_is_carried_and_said():
    found = model(AMDAHL | {4: 40.0}, spread=0.01)
    assert found.lack_of_fit
    assert any("4 workers" in sentence for sentence in model_sentences(found))
    assert model_sentences(model({n: 100 / n for n in (1, 2, 4, 8)}, spread=0.01)) == []


BREAK = {n: 5 + 95 / n + (20 / n if n > 4 else 0) for n in (1, 2, 4, 8, 12, 16)}


def test_updates_that_take_longer_from_the_second_node_on_are_a_term():
    found = model(BREAK, per_node=4, spread=0.003)
    assert found.fit.parts["second node"] == pytest.approx(20, rel=0.1)
    assert found.fit.seconds(32) == pytest.approx(5 + 115 / 32, rel=0.03)
    assert "communication between nodes" in describe_fit(found, "horovod")
    smooth = model({n: 5 + 95 / n for n in BREAK}, per_node=4, spread=0.003)
    assert "second node" not in smooth.fit.parts


def test_the_second_node_is_told_only_from_two_counts_on_either_side():
    def has_term(counts, per_node):
        found = model({n: 100 / n for n in counts}, per_node=per_node)
        return any(term.name == "second node" for term in found.fit.terms)

    assert has_term((1, 2, 4, 8), 2)
    assert not has_term((1, 2, 4, 8), 4)
    assert not has_term((1, 2, 4, 8), None)


def test_times_that_are_no_times_have_no_model_and_no_means():
    found = model_of(series({1: 10.0, 2: 5.0, 4: float("nan")}), RunsByRow())
    assert found.fit is None
    assert (found.predict(2).seconds.value, found.predict(4).seconds.value) == (
        5.0,
        None,
    )


def only(runs):
    (found,) = series_of(measure_rows(group_runs(runs)))
    return found


@pytest.mark.parametrize(
    ("samples", "batch", "found"),
    [
        # A batch per worker and fixed epochs: fewer updates of one length.
        ((1000, 1000, 1000), {}, ("growing", 6000, ())),
        # A fixed global batch: every update is shared out, too.
        ((1000, 1000, 1000), {"global_batch": 64}, ("fixed", 6000, ())),
        # A dropped remainder.
        ((999, 998, 999), {}, ("growing", 5994, ())),
        # Other work is left out and named.
        ((1000, 1000, 1700), {}, ("growing", 6000, (4,))),
    ],
)
def test_equal_work_and_updates_are_told_from_samples_and_batches(
    samples, batch, found
):
    runs = [
        synthetic.run("horovod", n, samples=count)
        for n, count in zip((1, 2, 4), samples, strict=True)
    ]
    series = only([synthetic.changed(run, **batch) for run in runs])
    assert (series.update, series.samples, series.others) == found
    assert series.different == tuple(n for n in (1, 2, 4) if n not in found[-1])


def test_times_that_say_nothing_are_in_no_series():
    runs = [
        *(synthetic.run("virtual", n) for n in (1, 2, 4)),
        synthetic.run("horovod", 1),
        synthetic.run("horovod", 8, oversubscribed="8 workers on 2 cores"),
    ]
    assert [
        each.key.strategy for each in series_of(measure_rows(group_runs(runs)))
    ] == ["horovod"]
    assert only(runs[3:]).different == (1,)


def test_swept_values_are_series_of_their_own():
    runs = [
        synthetic.run("horovod", n, swept={"train.batch_size": b})
        for n in (1, 2)
        for b in (8, 32)
    ]
    assert len(series_of(measure_rows(group_runs(runs)))) == 2


@pytest.mark.parametrize(
    ("hosts", "nodes"), [(("a",), 1), (("a", "a"), 1), (("a", "b", "b", "c"), 3)]
)
def test_nodes_are_the_hosts_of_all_ranks(hosts, nodes):
    assert (
        nodes_of(synthetic.on_hosts(synthetic.run("horovod", len(hosts)), *hosts))
        == nodes
    )


def test_nodes_are_not_known_of_a_run_that_did_not_record_all_ranks():
    assert nodes_of(synthetic.run("horovod", 4)) is None
    assert only([synthetic.run("horovod", 1), synthetic.run("horovod", 4)]).nodes == {
        1: 1
    }
