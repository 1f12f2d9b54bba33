"""A sweep over cores per worker, and the best over cores: the published Cassava study's own way."""

import pytest

import synthetic
from scalestudy.analysis.cores import NAME, best_over_cores, sweeps
from scalestudy.analysis.table import summarise


def run(workers, cores, seconds, **more):
    swept = {NAME: cores, **more.pop("swept", {})}
    return synthetic.run("mirrored", workers, training_seconds=seconds, swept=swept, **more)


def cassava():
    """The published best times, each at some number of cores, and longer ones beside them."""
    return [
        run(workers, cores, best * slower)
        for workers, best in synthetic.CASSAVA.items()
        for cores, slower in ((2, 2.0), (4 * workers, 1.0), (32, 1.1))
    ]


def test_the_best_over_cores_is_the_published_series():
    found = best_over_cores(sweeps(summarise(cassava())))
    assert {each.row.workers: each.row.training_seconds.value for each in found} == pytest.approx(
        synthetic.CASSAVA
    )
    assert [each.cores for each in found] == [4, 8, 12, 16]
    assert [each.speedup for each in found] == pytest.approx([1, 562 / 332, 562 / 249, 562 / 214])
    assert found[3].efficiency == pytest.approx(562 / 214 / 4)


def test_rows_that_differ_in_something_else_are_not_one_sweep():
    other = {"train.batch_size": 8}
    found = sweeps(summarise([*cassava(), run(1, 2, 9.0, swept=other), run(1, 4, 8.0, swept=other)]))
    assert len(found) == 5
    assert [[cores for cores, _ in each.rows] for each in found if each.key.swept == other] == [[2, 4]]


def test_of_two_alike_the_fewer_cores_are_the_best():
    (found,) = sweeps(summarise([run(1, 8, 50.0), run(1, 4, 50.0), run(1, 2, 60.0)]))
    assert found.best[0] == 4


def test_one_number_of_cores_or_none_is_no_sweep():
    assert sweeps(summarise([run(1, 4, 50.0), run(2, 8, 50.0)])) == []
    assert sweeps(summarise(synthetic.seeded())) == []


def test_without_one_worker_or_with_other_work_there_is_no_speed_up():
    alone = best_over_cores(sweeps(summarise([run(2, 4, 50.0), run(2, 8, 40.0)])))
    assert [(each.speedup, each.efficiency) for each in alone] == [(None, None)]
    other = [run(1, 4, 50.0), run(1, 8, 60.0), run(2, 4, 50.0, samples=500), run(2, 8, 60.0, samples=500)]
    assert [each.speedup for each in best_over_cores(sweeps(summarise(other)))] == [1, None]


def test_times_that_say_nothing_about_cores_are_left_out():
    disturbed = run(1, 8, 10.0, oversubscribed="cores shared with another study")
    (found,) = sweeps(summarise([run(1, 2, 60.0), run(1, 4, 50.0), disturbed]))
    assert [cores for cores, _ in found.rows] == [2, 4]
    virtual = [synthetic.run("virtual", 2, swept={NAME: cores}) for cores in (1, 2)]
    assert sweeps(summarise(virtual)) == []
