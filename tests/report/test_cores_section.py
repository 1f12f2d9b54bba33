"""The section on cores per worker, and the best over cores as in the published Cassava study."""

import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.cores_section import NAME, best_cores, best_speedups, core_sweeps, cores_section
from scalestudy.report.document import Table


def run(workers, cores, seconds, **more):
    swept = {NAME: cores, **more.pop("swept", {})}
    return synthetic.run("mirrored", workers, training_seconds=seconds, swept=swept, **more)


def sweeps(*runs):
    return core_sweeps(synthetic.summarise(runs))


def cassava():
    """The published best times, each with one number of cores, and longer times with others."""
    return [
        run(workers, cores, best * slower)
        for workers, best in synthetic.CASSAVA.items()
        for cores, slower in ((2, 2.0), (4 * workers, 1.0), (32, 1.1))
    ]


def test_the_best_over_cores_is_the_published_series():
    best = best_cores(sweeps(*cassava()))
    seconds = {row.workers: row.training_seconds.value for _, row in best.values()}
    assert seconds == pytest.approx(synthetic.CASSAVA)
    assert [cores for cores, _ in best.values()] == [4, 8, 12, 16]
    assert best_speedups(best) == pytest.approx([1, 562 / 332, 562 / 249, 562 / 214])


def test_rows_that_differ_in_something_else_are_not_one_sweep():
    other = {"train.batch_size": 8}
    found = sweeps(*cassava(), run(1, 2, 9.0, swept=other), run(1, 4, 8.0, swept=other))
    assert len(found) == 5
    assert [[cores for cores, _ in tried] for key, tried in found.items() if key.swept == other] == [[2, 4]]


def test_of_two_alike_the_fewer_cores_are_the_best():
    ((cores, _),) = best_cores(sweeps(run(1, 8, 50.0), run(1, 4, 50.0), run(1, 2, 60.0))).values()
    assert cores == 4


def test_without_one_worker_or_with_other_work_there_is_no_speed_up():
    assert best_speedups(best_cores(sweeps(run(2, 4, 50.0), run(2, 8, 40.0)))) == [None]
    other = [run(1, 4, 50.0), run(1, 8, 60.0), run(2, 4, 50.0, samples=500), run(2, 8, 60.0, samples=500)]
    assert best_speedups(best_cores(sweeps(*other))) == [1, None]


def test_times_that_say_nothing_about_cores_are_left_out():
    disturbed = run(1, 8, 10.0, oversubscribed="cores shared with another study")
    (tried,) = sweeps(run(1, 2, 60.0), run(1, 4, 50.0), disturbed).values()
    assert [cores for cores, _ in tried] == [2, 4]
    assert sweeps(*(synthetic.run("virtual", 2, swept={NAME: cores}) for cores in (1, 2))) == {}
    assert sweeps(run(1, 4, 50.0), run(2, 8, 50.0)) == sweeps(*synthetic.seeded()) == {}


def test_the_best_of_each_number_of_workers_stands_in_the_table():
    tried = ((1, 2, 90.0), (1, 4, 60.0), (1, 8, 61.0), (2, 2, 50.0), (2, 8, 40.0))
    section = cores_section(analyse("study", [run(*each) for each in tried]))
    (best,) = (block for block in section.blocks if isinstance(block, Table))
    assert [line[1:6] for line in best.rows] == [
        ("1", "4", "60.0", "1.00", "1.00"), ("2", "8", "40.0", "1.50", "0.75"),
    ]  # fmt: skip
    assert cores_section(analyse("study", synthetic.seeded())) is None
