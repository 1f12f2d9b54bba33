import made
import pytest

from scalestudy.analysis.findings import analyse
from scalestudy.analysis.runs import Run
from scalestudy.analysis.scaling.recommend import Goal, recommend
from scalestudy.study.records import GpuUse

TIMES = {n: 1000 + 9000 / n for n in (1, 2, 4, 8)}


def timed(times=TIMES, strategy="horovod", runs=3, **options):
    return [
        made.run(strategy, n, seed, training_seconds=t * f, throughput=6000 / t, **options)
        for n, t in times.items()
        for seed, f in enumerate((0.998, 1.0, 1.002)[:runs])
    ]


def asked(goal, runs=None):
    return recommend(analyse("made", runs or timed()), goal)


def test_an_efficiency_gives_the_most_workers_that_keep_it():
    (found,) = asked(Goal("efficiency", 0.6)).found
    # 1 + (1/0.6 - 1)/0.1 = 7.67
    assert found.key.workers == 7
    assert not found.seen
    assert found.prediction.efficiency.value >= 0.6
    assert found.sure <= 7


def test_a_deadline_gives_the_least_cost_of_a_job_that_meets_it():
    (found,) = asked(Goal("deadline", 3600.0, charge=2.0)).found
    assert found.key.workers == 4
    assert found.prediction.seconds.value + found.overhead <= 3600
    job = found.prediction.seconds.value + found.overhead
    assert found.overhead > 0
    assert found.cost.value == pytest.approx(2 * 4 * job / 3600)


def test_a_deadline_that_no_count_meets_says_the_shortest_time():
    found = asked(Goal("deadline", 900.0))
    assert found.found == ()
    assert "no count up to 32 meets the deadline; the shortest takes" in found.reasons[0]
    assert "on 32" in found.reasons[0]


def test_a_count_near_the_deadline_is_told_from_one_that_surely_meets_it():
    noisy = [
        made.run("horovod", n, seed, training_seconds=t * (0.9 + 0.1 * seed), throughput=6000 / t)
        for n, t in TIMES.items()
        for seed in range(3)
    ]
    (found,) = asked(Goal("deadline", 3600.0), noisy).found
    assert found.sure > found.key.workers


def powered(runs):
    """Each run drew 100 W and 50 W for each worker."""
    found = []
    for run in runs:
        watts = 100 + 50 * run.result.workers
        uses = [
            GpuUse(rank=rank, device=0, joules=watts * run.result.training_seconds / run.result.workers)
            for rank in range(run.result.workers)
        ]
        found.append(Run(run.result.model_copy(update={"gpus": uses}), run.epochs, run.folder, run.ranks))
    return found


def test_the_least_energy_weighs_power_against_time():
    found = asked(Goal("energy"), powered(timed())).found[0]
    energies = {n: (100 + 50 * n) * (1000 + 9000 / n) for n in range(1, 33)}
    assert found.key.workers == min(energies, key=energies.get)
    assert found.joules == pytest.approx(energies[found.key.workers], rel=0.01)


def test_without_recorded_energy_there_is_no_count_and_a_reason():
    found = asked(Goal("energy"))
    assert found.found == ()
    assert found.reasons == ("horovod: no energy was recorded at two counts or more",)


def test_counts_from_which_on_quality_seems_worse_are_not_recommended():
    ideal = {n: 6000 / n for n in (1, 2, 4, 8)}
    runs = [run for n, t in ideal.items() for run in timed({n: t}, quality=0.7 if n == 8 else 0.95)]
    (found,) = asked(Goal("efficiency", 0.5), runs).found
    assert found.key.workers == 7


def test_beyond_a_full_node_only_full_nodes_are_recommended():
    runs = [
        Run(
            run.result,
            run.epochs,
            run.folder,
            tuple(
                made.rank(run.result.workers).model_copy(update={"rank": r, "host": f"n{r // 4}"})
                for r in range(run.result.workers)
            ),
        )
        for run in timed()
    ]
    assert asked(Goal("efficiency", 0.6), runs).found[0].key.workers == 4


def test_where_nothing_ran_on_one_node_every_count_is_thought_of():
    runs = [
        Run(
            run.result,
            run.epochs,
            run.folder,
            tuple(
                made.rank(run.result.workers).model_copy(update={"rank": r, "host": f"n{r % 2}"})
                for r in range(run.result.workers)
            ),
        )
        for run in timed({n: 10 + 90 / n for n in (2, 4, 8)})
    ]
    # T(2) = 55 s: 55 / (10 + 90/6) * 2/6 = 0.73, on 7 workers 0.69.
    assert asked(Goal("efficiency", 0.7), runs).found[0].key.workers == 6


def test_strategies_are_ranked_by_what_was_asked():
    runs = [*timed(), *timed({n: 500 + 9500 / n for n in (1, 2, 4, 8)}, "mirrored")]
    assert [each.key.strategy for each in asked(Goal("efficiency", 0.7), runs).found] == [
        "mirrored",
        "horovod",
    ]


def test_more_workers_are_thought_of_when_asked():
    ideal = timed({n: 6000 / n for n in (1, 2, 4)})
    assert asked(Goal("efficiency", 0.9), ideal).found[0].key.workers == 16
    assert asked(Goal("efficiency", 0.9, most=100), ideal).found[0].key.workers == 100


def test_of_growing_work_a_deadline_says_nothing():
    runs = [made.run("horovod", n, seed, samples=1000 * n) for n in (1, 2, 4) for seed in range(2)]
    assert "work grows with the workers" in asked(Goal("deadline", 10.0), runs).reasons[0]
