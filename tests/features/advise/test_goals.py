import pytest

import made
from scalestudy.analysis.findings import analyse
from scalestudy.features.advise.goals import Goal, answer

NOISE = (0.998, 1.0, 1.002)


def runs(times, per_node=None, strategy="native", **options):
    """Three seeds of trainings of these seconds by workers; nodes of so many workers where said."""
    for workers, seconds in times.items():
        for seed, noise in enumerate(NOISE):
            run = made.run(
                strategy, workers, seed, throughput=1e6 / seconds, training_seconds=seconds * noise, **options
            )
            result = run.result.model_copy(update={"wall_seconds": seconds * noise})
            hosts = [f"n{rank // per_node}" if per_node else "n0" for rank in range(workers)]
            ranks = tuple(
                made.rank(workers).model_copy(update={"rank": rank, "host": host})
                for rank, host in enumerate(hosts)
            )
            yield run.__class__(**{**run.__dict__, "result": result, "ranks": ranks})


def decided(times, goal=None, per_node=None, bill="worker", **options):
    return answer(analyse("made", list(runs(times, per_node, **options)), bill=bill), goal or Goal())


AMDAHL = {n: 600 + 36000 / n for n in (1, 2, 4)}


def test_without_a_goal_the_answer_is_the_reports_decision():
    findings = analyse("made", list(runs(AMDAHL)))
    found = answer(findings, Goal())
    assert found.best.key == findings.advice.decision.choice
    assert found.best.kind == "measured"


def test_nothing_is_recommended_on_more_nodes_than_were_measured():
    """Four workers of one node were measured: 16 would need four nodes, of which nothing is known."""
    found = decided(AMDAHL, Goal("deadline", 3000.0), per_node=4)
    assert found.best is None
    assert any("1 node" in reason for reason in found.reasons)
    assert decided(AMDAHL, per_node=4).predicted is None


def test_on_as_many_nodes_as_were_measured_counts_between_are_predicted_and_fill_nodes():
    times = {n: 600 + 36000 / n for n in (1, 2, 4, 16)}
    found = decided(times, Goal("deadline", 4000.0), per_node=4)
    assert (found.best.key.workers, found.best.kind) == (12, "interpolated")
    assert found.best.seconds.value == pytest.approx(600 + 36000 / 12, rel=0.05)


def test_a_deadline_is_met_at_the_least_cost():
    found = decided(AMDAHL, Goal("deadline", 20_000.0), per_node=4)
    assert (found.best.key.workers, found.best.kind, found.sure) == (2, "measured", True)
    assert decided(AMDAHL, Goal("deadline", 100.0), per_node=4).best is None


def test_where_nodes_are_billed_a_full_node_costs_least():
    found = decided(AMDAHL, Goal("deadline", 1e6), per_node=4, bill="node")
    assert found.best.key.workers == 4
    assert found.best.cost.value == pytest.approx(2.67, abs=0.02)


def test_energy_is_of_what_was_counted_and_refused_where_nothing_was():
    found = decided(AMDAHL, Goal("energy"))
    assert (found.best, len(found.reasons)) == (None, 1)


def test_counts_from_which_on_quality_seems_worse_are_not_predicted():
    good = list(runs({n: 600 + 36000 / n for n in (1, 2, 4)}, 8))
    bad = list(runs({8: 5100.0}, 8, quality=0.5))
    found = answer(analyse("made", [*good, *bad]), Goal("deadline", 5200.0))
    assert found.best is None or found.best.key.workers < 8
