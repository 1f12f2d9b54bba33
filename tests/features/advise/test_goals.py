from dataclasses import replace

import pytest

import synthetic
from larger_studies import evenly, point
from scalestudy.analysis.decision import Criteria
from scalestudy.analysis.findings import analyse
from scalestudy.features.advise.goals import Goal, answer
from scalestudy.features.advise.larger_runs import larger_runs
from scalestudy.features.advise.network import KnownNetwork, StatedLink

NOISE = (0.998, 1.0, 1.002)


def runs(times, per_node=None, strategy="native", **options):
    """Three seeds per worker count with these training times in seconds, `per_node` workers per node."""
    for workers, seconds in times.items():
        for seed, noise in enumerate(NOISE):
            run = synthetic.run(
                strategy, workers, seed, throughput=1e6 / seconds, training_seconds=seconds * noise, **options
            )
            result = run.result.model_copy(update={"wall_seconds": seconds * noise})
            hosts = [f"n{rank // per_node}" if per_node else "n0" for rank in range(workers)]
            ranks = tuple(
                synthetic.rank(workers).model_copy(update={"rank": rank, "host": host})
                for rank, host in enumerate(hosts)
            )
            yield run.__class__(**{**run.__dict__, "result": result, "ranks": ranks})


def decided(times, goal=None, per_node=None, bill="worker", **options):
    return answer(
        analyse("made", list(runs(times, per_node, **options)), criteria=Criteria(bill=bill)), goal or Goal()
    )


AMDAHL = {n: 600 + 36000 / n for n in (1, 2, 4)}


def test_without_a_goal_the_answer_is_the_reports_decision():
    findings = analyse("made", list(runs(AMDAHL)))
    result = answer(findings, Goal())
    assert result.best.key == findings.advice.decision.choice
    assert result.best.kind == "measured"


def test_a_deadline_is_met_at_the_least_cost_by_a_measured_row():
    result = decided(AMDAHL, Goal(20_000.0), per_node=4)
    assert (result.best.key.workers, result.best.kind, result.sure) == (2, "measured", True)
    assert decided(AMDAHL, Goal(100.0), per_node=4).best is None
    assert decided(AMDAHL, Goal(10_000.0)).best.key.workers == 4
    assert decided(AMDAHL, Goal(10_000.0, most=2)).best is None


def test_where_nodes_are_billed_a_full_node_costs_least():
    result = decided(AMDAHL, Goal(1e6), per_node=4, bill="node")
    assert result.best.key.workers == 4
    assert result.best.cost.value == pytest.approx(2.67, abs=0.02)


GPUS = KnownNetwork(across=StatedLink(12.5e9, 2e-6), per_node=4)


def expected(study_runs, network=GPUS, **options):
    """A study whose wall clock is all training, and predictions of its larger runs."""
    bare = {"phases": {}}
    study_runs = [evenly(replace(run, result=run.result.model_copy(update=bare))) for run in study_runs]
    asked = point("native", epochs=len(study_runs[0].epochs))
    return (analyse("made", study_runs), *larger_runs([asked], study_runs, network, **options))


def test_with_the_network_larger_counts_than_were_measured_are_candidates():
    """Four workers on one node were measured; eight, on two nodes, are predicted from one worker."""
    findings, series, missing = expected(list(runs(AMDAHL, 4)))
    result = answer(findings, Goal(9000.0), series, missing)
    assert result.best.kind == "from one worker" and result.best.key.workers > 4
    seconds = {run.workers: run.seconds.value for run in result.larger[0].runs}
    assert seconds[1] == pytest.approx(36_600, rel=0.06), "beside it evaluation"
    assert answer(findings, Goal(), series, missing).best == answer(findings, Goal()).best


def test_one_worker_alone_is_enough_to_predict_what_would_pay():
    findings, series, missing = expected(list(runs({1: 36_600}, 4)))
    result = answer(findings, Goal(), series, missing)
    assert (result.best.key.workers, result.predicted.kind) == (1, "from one worker")
    assert result.predicted.efficiency.value >= 0.7
    one = result.larger[0].runs[0]
    assert one.cost_efficiency.value == 1
    for run in result.larger[0].runs:
        assert run.cost.value == pytest.approx(run.workers * run.seconds.value / 3600)


def test_no_larger_run_is_advised_from_where_quality_seems_worse():
    study_runs = [*runs(AMDAHL, 8), *runs({8: 5100.0}, 8, quality=0.5)]
    findings, series, missing = expected(study_runs)
    result = answer(findings, Goal(3000.0), series, missing)
    assert result.best is None or result.best.key.workers < 8


def test_at_most_so_many_workers_are_thought_of():
    _, series, _ = expected(list(runs(AMDAHL, 4)), most=8)
    assert series[0].runs[-1].workers == 8


def test_measured_rows_that_are_slower_than_predicted_refute_a_prediction():
    slow = {1: 36_600.0, 2: 24_000.0, 4: 16_600.0}
    findings, series, missing = expected(list(runs(slow, 4)))
    result = answer(findings, Goal(), series, missing)
    assert (result.predicted, result.larger) == (None, ())
    assert any("4 workers are longer" in reason for reason in result.reasons)


def test_a_deadline_is_answered_for_rows_of_unequal_work_too():
    mixed = [*runs({1: 400.0}), *runs({2: 200.0}, samples=2000)]
    result = answer(analyse("made", mixed), Goal(7200.0))
    assert result.best is not None and result.best.kind == "measured"


def test_no_row_that_the_decision_refuses_is_advised_for_another_goal():
    good = list(runs({1: 36_000.0, 2: 19_000.0}))
    failing = list(runs({4: 10_000.0}))
    bad = failing[0].result.model_copy(update={"quality": 0.2})
    findings = analyse("made", [*good, replace(failing[0], result=bad), *failing[1:]])
    result = answer(findings, Goal(11_000.0))
    assert result.best is None or result.best.key.workers != 4
