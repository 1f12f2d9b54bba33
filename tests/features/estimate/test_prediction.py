"""Whole estimates: of published tables, and of studies of which something is missing."""

import pytest

import made
from estimated_studies import FAST, on_gpu, point, unet
from scalestudy.features.estimate.network import KnownNetwork, Stated
from scalestudy.features.estimate.prediction import Question, one_worker_runs, predict

SLOW = KnownNetwork(across=Stated(12.5e6, 1e-3, "100 Mbit"))


@pytest.fixture(scope="module")
def published():
    return unet()


def series(estimate, strategy):
    return next(each for each in estimate.series if each.strategy == strategy)


def predicted(points, runs, network=FAST, **wish):
    return predict("made", points, runs, network, Question(**wish), before=True)


def test_two_megabytes_of_gradients_take_no_time_worth_naming_with_nccl(published):
    for each in series(published, "native").points[1:]:
        assert each.parts["exchange"] / sum(each.parts.values()) < 1e-3
    assert series(published, "native").points[-1].dominant == "slowest"


def test_one_worker_has_speed_up_one_and_takes_what_it_took(published):
    one = series(published, "horovod").points[0]
    assert (one.speedup.low, one.speedup.value, one.speedup.high) == (1, 1, 1)
    assert one.training_seconds.value == pytest.approx(7547, rel=0.01)
    assert one.dominant == ""


def test_cost_is_worker_hours_node_hours_and_the_sites_charge():
    found = predicted([point("horovod")], [on_gpu(made.run("horovod"))], counts=(4,), charge=3.0)
    four = found.series[0].points[-1]
    assert four.nodes == 2
    assert four.worker_hours.value == pytest.approx(4 * four.wall_seconds.value / 3600)
    assert four.node_hours.value == pytest.approx(2 * four.wall_seconds.value / 3600)
    assert four.charge.value == pytest.approx(3 * four.node_hours.value)
    assert four.wall_seconds.value > four.training_seconds.value


def test_a_slow_network_ends_what_pays_and_says_by_what():
    found = predicted([point("horovod")], [made.run("horovod", throughput=1000.0, samples=20_000)], SLOW)
    (only,) = found.series
    assert only.worth is not None and only.worth < 4096
    assert only.worth_low <= only.worth <= only.worth_high
    assert "exchange that is not hidden" in only.sentence and "below 0.7" in only.sentence
    assert only.fastest < 4096
    beyond = next(each for each in only.points if each.workers > only.worth)
    assert (
        beyond.efficiency.value
        < 0.7
        <= only.points[[p.workers for p in only.points].index(only.worth)].efficiency.value
    )


def test_under_a_global_batch_the_updates_stay_and_more_workers_gain_less():
    own = predicted([point("horovod")], [on_gpu(made.run("horovod"))], counts=(8,)).series[0].points[-1]
    runs, shared = [on_gpu(made.run("horovod"))], point("horovod", batch="global")
    split = predicted([shared], runs, counts=(8,)).series[0]
    assert split.rule == "global"
    assert split.points[-1].updates == split.points[0].updates > own.updates
    assert split.points[-1].efficiency.value < own.efficiency.value


def test_every_number_that_was_not_measured_is_said_to_be_assumed():
    found = predicted([point("horovod")], [on_gpu(made.run("horovod"))]).series[0]
    assumed = {each.name: each for each in found.assumptions}
    assert not assumed["fixed cost of a step"].measured
    assert assumed["one worker's epoch"].measured
    assert assumed["between nodes"].because == "100 Gb/s"
    assert all(each.value and each.because for each in found.assumptions)


def test_a_strategy_without_a_run_of_its_own_goes_by_plain_training():
    own, _ = one_worker_runs(point("mirrored"), [made.run("native")])
    assert [run.result.strategy for run in own] == ["native"]
    shared = made.run("native", oversubscribed="2 workers on 1 core")
    assert one_worker_runs(point("mirrored"), [shared]) == ([], [])


def test_runs_of_another_batch_tell_the_fixed_cost_and_stand_for_no_step():
    small = made.run("horovod", swept={"train.batch_size": 4})
    other = made.Run(small.result.model_copy(update={"per_worker_batch": 4}), small.epochs)
    own, others = one_worker_runs(point("horovod"), [made.run("horovod"), other])
    assert len(own) == 1 and others == [other]
    assert one_worker_runs(point("horovod"), [other]) == ([], [])


def test_what_cannot_be_predicted_is_named_with_its_reason():
    found = predicted([point("horovod"), point("mirrored"), point("virtual"), point("single", 1)],
                     [made.run("mirrored")], KnownNetwork(across=Stated(1e9, 1e-6, "x")))  # fmt: skip
    assert found.series == []
    no_run, one_node = found.missing
    assert no_run.startswith("horovod: ") and "batch_size = 16" in no_run
    assert one_node.startswith("mirrored: ") and "--per-node" in one_node


def test_an_estimate_repeats_but_for_the_time_it_was_made(published):
    again = unet()
    assert again.model_copy(update={"made": ""}) == published.model_copy(update={"made": ""})


def test_thousands_of_workers_are_predicted_in_rings_and_trees():
    ring, tree = (
        predicted([point("horovod")], [on_gpu(made.run("horovod", samples=10**6))], algorithm=name).series[0]
        for name in ("ring", "tree")
    )
    assert ring.points[-1].workers == 4096
    assert ring.points[-1].parts["exchange"] > tree.points[-1].parts["exchange"]
    assert ring.algorithm == "ring"


def test_runs_that_shared_their_cores_are_named_as_the_reason():
    shared = made.run("horovod", oversubscribed="cores shared with another study")
    (reason,) = predicted([point("horovod")], [shared]).missing
    assert reason.startswith("horovod: ") and "cores shared with another study" in reason
