import pytest

import synthetic
from elsewhere import foreign
from scalestudy.analysis.measures import measure
from scalestudy.analysis.runs import Run, grouped
from scalestudy.analysis.scaling.series import nodes_of, series_of


def changed(run, hosts=(), **fields):
    """Return the synthetic run with other records; `hosts` are the hosts of its ranks."""
    ranks = tuple(
        synthetic.rank(len(hosts)).model_copy(update={"rank": rank, "host": host})
        for rank, host in enumerate(hosts)
    )
    return Run(run.result.model_copy(update=fields), run.epochs, run.folder, ranks or run.ranks)


def only(runs):
    (found,) = series_of(measure(grouped(runs)))
    return found


def test_a_batch_per_worker_and_fixed_epochs_scale_strongly_by_fewer_updates_of_one_length():
    found = only([synthetic.run("horovod", n) for n in (1, 2, 4)])
    assert (found.work, found.update) == ("strong", "growing")
    assert found.samples == 6000


def test_a_fixed_global_batch_makes_every_update_share_out_too():
    runs = [changed(synthetic.run("horovod", n), global_batch=64) for n in (1, 2, 4)]
    assert (only(runs).work, only(runs).update) == ("strong", "fixed")


def test_samples_that_grow_with_the_workers_are_weak_scaling():
    runs = [synthetic.run("horovod", n, samples=1000 * n) for n in (1, 2, 4, 8)]
    assert only(runs).work == "weak"
    assert only(runs).samples == 6000


def test_a_dropped_remainder_does_not_turn_strong_into_something_else():
    runs = [synthetic.run("horovod", n, samples=1000 - n % 3) for n in (1, 2, 4)]
    assert only(runs).work == "strong"
    assert only(runs).others == ()


def test_counts_of_other_work_are_left_out_and_named():
    runs = [synthetic.run("horovod", n, samples=1000 if n < 8 else 1700) for n in (1, 2, 4, 8)]
    found = only(runs)
    assert found.different == (1, 2, 4)
    assert found.others == (8,)


def test_times_that_say_nothing_are_in_no_series():
    runs = [
        *(synthetic.run("virtual", n) for n in (1, 2, 4)),
        synthetic.run("horovod", 1),
        synthetic.run("horovod", 8, oversubscribed="8 workers on 2 cores"),
    ]
    assert [each.key.strategy for each in series_of(measure(grouped(runs)))] == ["horovod"]
    assert only(runs[3:]).different == (1,)


def test_swept_values_are_series_of_their_own():
    runs = [synthetic.run("horovod", n, swept={"train.batch_size": b}) for n in (1, 2) for b in (8, 32)]
    assert len(series_of(measure(grouped(runs)))) == 2


@pytest.mark.parametrize(("hosts", "nodes"), [(("a",), 1), (("a", "a"), 1), (("a", "b", "b", "c"), 3)])
def test_nodes_are_the_hosts_of_all_ranks(hosts, nodes):
    assert nodes_of(changed(synthetic.run("horovod", len(hosts)), hosts)) == nodes


def test_nodes_are_not_known_of_a_run_that_did_not_record_all_ranks():
    assert nodes_of(synthetic.run("horovod", 4)) is None
    assert only([synthetic.run("horovod", 1), synthetic.run("horovod", 4)]).nodes == {1: 1}


@pytest.mark.parametrize("known", ["training_seconds", "epochs"])
def test_of_numbers_of_others_a_set_that_grows_with_the_workers_is_weak_scaling(known):
    times = {1: 100.0, 2: 100.0, 4: 110.0}
    runs = [
        foreign(
            n,
            line=n,
            training_samples=1000 * n,
            **{known: seconds if known == "training_seconds" else [seconds] * 3},
        )
        for n, seconds in times.items()
    ]
    (found,) = series_of(measure(grouped(runs)))
    assert (found.work, found.others) == ("weak", ())
