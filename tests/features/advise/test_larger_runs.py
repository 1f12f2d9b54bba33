"""Predictions of larger runs: published ones, and studies with missing measurements."""

import pytest

import synthetic
from larger_studies import FAST, on_gpu, point, unet
from scalestudy.features.advise.larger_runs import counts_of, larger_runs, one_worker_runs
from scalestudy.features.advise.network import KnownNetwork, StatedLink

SLOW = KnownNetwork(across=StatedLink(12.5e6, 1e-3))


@pytest.fixture(scope="module")
def published():
    return {series.key.strategy: series for series in unet()}


def only(points, runs, network=FAST, **options):
    (series,), missing = larger_runs(points, runs, network, **options)
    assert not missing
    return series


def test_two_megabytes_of_gradients_take_no_time_worth_naming_with_nccl(published):
    for run in published["native"].runs[1:]:
        assert run.parts["exchange"] / sum(run.parts.values()) < 1e-3
    assert published["native"].runs[-1].lost_to == "slowest"


def test_one_worker_has_speed_up_one_and_takes_what_it_took(published):
    one = published["horovod"].runs[0]
    assert (one.speedup.low, one.speedup.value, one.speedup.high) == (1, 1, 1)
    assert one.training_seconds.value == pytest.approx(7547, rel=0.01)
    assert one.seconds.value > one.training_seconds.value
    assert one.lost_to == ""


def test_counts_are_powers_of_two_within_a_node_and_full_nodes_beyond_with_what_was_measured():
    network = KnownNetwork(per_node=6)
    assert counts_of(network, 100, {5, 8}) == [1, 2, 4, 5, 6, 8, 12, 24, 48, 96]
    assert counts_of(KnownNetwork(), 4096, set())[-1] == 4096


def test_a_slow_network_loses_most_to_exchange_and_ends_what_more_workers_gain():
    series = only([point("horovod")], [synthetic.run("horovod", throughput=1000.0, samples=20_000)], SLOW)
    fastest = min(series.runs, key=lambda run: run.seconds.value)
    assert 1 < fastest.workers < series.runs[-1].workers == 4096
    assert fastest.lost_to == "exchange"


def test_under_a_global_batch_the_updates_stay_and_more_workers_gain_less():
    runs = [on_gpu(synthetic.run("horovod"))]
    each, split = only([point("horovod")], runs), only([point("horovod", batch="global")], runs)
    assert (each.per_worker_rule, split.per_worker_rule) == (True, False)
    eight, eighth = (next(run for run in series.runs if run.workers == 8) for series in (each, split))
    assert eighth.updates == split.runs[0].updates > eight.updates
    assert eighth.speedup.value < eight.speedup.value
    assert (each.runs[-1].workers, split.runs[-1].workers) == (4096, 16), "no more than samples of a step"


def test_every_number_that_was_not_measured_is_said_to_be_assumed():
    assumed = {
        name: because for name, _, because in only([point("horovod")], [synthetic.run("horovod")]).assumptions
    }
    assert assumed["fixed cost of a step"] == "not measured"
    assert assumed["one worker's epoch"].startswith("measured")
    assert assumed["between nodes"] == "stated with --network"
    assert all(assumed.values())


def test_a_strategy_goes_by_its_own_run_of_its_batch_or_by_plain_training():
    assert one_worker_runs(point("mirrored"), [synthetic.run("native")])[0].result.strategy == "native"
    shared = synthetic.run("native", oversubscribed="2 workers on 1 core")
    assert one_worker_runs(point("mirrored"), [shared]) == []
    small = synthetic.run("horovod", swept={"train.batch_size": 4})
    other = synthetic.Run(small.result.model_copy(update={"per_worker_batch": 4}), small.epochs)
    assert one_worker_runs(point("horovod"), [other]) == []
    assert len(one_worker_runs(point("horovod"), [synthetic.run("horovod"), other])) == 1


def test_what_cannot_be_predicted_is_named_with_its_reason():
    points = [point("horovod"), point("mirrored"), point("virtual"), point("single", 1)]
    network = KnownNetwork(across=StatedLink(1e9, 1e-6))
    expected, missing = larger_runs(points, [synthetic.run("mirrored")], network)
    assert expected == []
    no_run, one_node = missing
    assert no_run.startswith("horovod: ") and "batch_size = 16" in no_run
    assert one_node.startswith("mirrored: ") and "per_node" in one_node
    _, (unknown,) = larger_runs([point("horovod")], [synthetic.run("horovod")], KnownNetwork())
    assert "no check has timed it" in unknown


def test_an_expectation_repeats():
    assert unet() == unet()
