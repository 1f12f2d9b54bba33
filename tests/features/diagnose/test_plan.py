"""Which point is diagnosed, and what is refused before the start."""

import pytest

from scalestudy.analysis.findings import analyse
from scalestudy.features.diagnose.run import choose_point, named_point, plan
from scalestudy.util.errors import UserError
from synthetic import run
from synthetic_diagnosis import point

NOTHING = analyse("made", ())


def points(*counts, seeds=(0,)):
    return [
        point(workers=count, seed=seed, name=f"horovod-w{count}-s{seed}")
        for count in counts
        for seed in seeds
    ]


def findings(throughputs):
    """Findings of a study with these throughputs by number of workers."""
    runs = [
        run("horovod", workers, seed, throughput=speed + 0.1 * seed, samples=200_000)
        for workers, speed in throughputs.items()
        for seed in (0, 1)
    ]
    return analyse("made", runs)


def test_the_next_larger_count_than_is_advised_says_what_more_would_cost():
    measured = findings({1: 100.0, 2: 195.0, 4: 380.0, 8: 400.0, 16: 410.0})
    assert measured.advice.choice.workers == 4
    found, why = choose_point(points(1, 2, 4, 8, 16, seeds=(0, 1)), measured)
    assert (found.workers, found.seed) == (8, 0)
    assert why == "the next larger count than is advised (horovod on 4 workers)"


def test_beyond_the_advised_count_the_largest_measured_one_is_taken():
    found, why = choose_point(points(1, 2, 4), findings({1: 100.0, 2: 195.0, 4: 380.0}))
    assert found.workers == 4
    assert why == "the largest that the study has measured"


def test_without_runs_the_largest_point_is_taken():
    found, why = choose_point(points(1, 2, 4), NOTHING)
    assert found.workers == 4
    assert why == "the largest of the study"


def test_points_whose_times_say_nothing_are_not_chosen():
    crowded = point(workers=8, name="crowded").on(oversubscribed="8 workers on 2 cores")
    found, _ = choose_point([*points(1, 2), crowded], NOTHING)
    assert found.workers == 2
    with pytest.raises(UserError, match="several workers"):
        choose_point([*points(1), crowded], NOTHING)


def test_a_named_point_is_taken_and_an_unknown_one_told_which_there_are():
    assert named_point(points(1, 2), "horovod-w2-s0").workers == 2
    with pytest.raises(UserError, match="horovod-w2-s0"):
        named_point(points(1, 2), "horovod-w3-s0")


def test_one_worker_loses_nothing_and_virtual_workers_no_time():
    with pytest.raises(UserError, match="several workers"):
        named_point(points(1, 2), "horovod-w1-s0")
    virtual = point(name="virtual-w2-s0", strategy="virtual").on(implementation="virtual")
    with pytest.raises(UserError, match="at the same time"):
        named_point([virtual], "virtual-w2-s0")


def test_a_point_is_diagnosed_with_the_data_of_a_run_that_reads_the_same(begun_study):
    planned = plan(begun_study(), "mirrored-w2-s0")
    assert (planned.point.workers, planned.why) == (2, "")
    assert planned.point.needed_files().prepared


def test_a_folder_without_a_run_is_told_to_run_first(begun_study):
    with pytest.raises(UserError, match="a run on the data of mirrored-w2-s0"):
        plan(begun_study(run=False), None)


def test_a_queues_point_is_refused(begun_study):
    with pytest.raises(UserError, match="run on this machine"):
        plan(begun_study(on="slurm"), None)
