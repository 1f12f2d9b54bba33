import json
from dataclasses import replace

import pytest

import synthetic
from scalestudy.analysis.decision import Criteria
from scalestudy.analysis.findings import analyse
from scalestudy.features.advise import (
    Goal,
    advise_document,
    advise_json,
    answer,
    headline,
)
from scalestudy.report.document import Table
from scalestudy.report.results import results_table
from scalestudy.report.write_document import markdown

NOISE = (0.998, 1.0, 1.002)
AMDAHL = {n: 600 + 36000 / n for n in (1, 2, 4)}


def runs(times, per_node=None, **options):
    """Three seeds per worker count with these training times in seconds, `per_node` workers per node."""
    for workers, seconds in times.items():
        for seed, noise in enumerate(NOISE):
            run = synthetic.run(
                "native",
                workers,
                seed,
                throughput=1e6 / seconds,
                training_seconds=seconds * noise,
                **options,
            )
            result = run.result.model_copy(update={"wall_seconds": seconds * noise})
            hosts = [
                f"n{rank // per_node}" if per_node else "n0" for rank in range(workers)
            ]
            ranks = tuple(
                synthetic.rank(workers).model_copy(update={"rank": rank, "host": host})
                for rank, host in enumerate(hosts)
            )
            yield replace(run, result=result, ranks=ranks)


def test_without_a_goal_the_answer_is_the_reports_decision():
    findings = analyse("made", list(runs(AMDAHL)))
    result = answer(findings, Goal())
    assert result.best.key == findings.advice.decision.choice
    assert headline(findings, result) == findings.advice.headline


@pytest.mark.parametrize(
    ("goal", "workers"),
    [
        (Goal(20_000.0), 2),
        (Goal(100.0), None),
        (Goal(10_000.0), 4),
        (Goal(10_000.0, most=2), None),
    ],
)
def test_a_deadline_is_met_at_the_least_cost(goal, workers):
    result = answer(analyse("made", list(runs(AMDAHL))), goal)
    assert (result.best and result.best.key.workers) == workers
    assert result.sure == (workers is not None)


def test_a_deadline_that_no_row_meets_names_the_fastest_and_what_more_workers_may_take():
    """T = 600 + 36000 / n: the fastest takes 5100 s on 8 workers, and 16 are estimated at some 2850 s."""
    findings = analyse("made", list(runs({1: 36600, 2: 18600, 4: 9600, 8: 5100})))
    text = headline(findings, answer(findings, Goal(3000.0)))
    assert "native on 8 workers" in text
    assert "not measured: 16 workers" in text
    most = headline(findings, answer(findings, Goal(3000.0, most=4)))
    assert "native on 4 workers" in most and "16 workers" not in most


def test_where_nodes_are_billed_a_full_node_costs_least():
    findings = analyse(
        "made", list(runs(AMDAHL, per_node=4)), criteria=Criteria(bill="node")
    )
    result = answer(findings, Goal(1e6))
    assert result.best.key.workers == 4
    assert result.best.cost.value == pytest.approx(2.67, abs=0.02)


def test_a_deadline_is_answered_for_rows_of_unequal_work_too():
    mixed = [*runs({1: 400.0}), *runs({2: 200.0}, samples=2000)]
    assert answer(analyse("made", mixed), Goal(7200.0)).best is not None


def test_no_row_that_the_decision_refuses_is_advised_for_another_goal():
    good = list(runs({1: 36_000.0, 2: 19_000.0}))
    failing = list(runs({4: 10_000.0}))
    bad = failing[0].result.model_copy(update={"quality": 0.2})
    findings = analyse("made", [*good, replace(failing[0], result=bad), *failing[1:]])
    result = answer(findings, Goal(11_000.0))
    assert result.best is None or result.best.key.workers != 4


def test_where_nothing_was_learned_a_deadline_is_answered_by_that_and_not_by_time():
    failed = [
        synthetic.run("native", n, metric="accuracy", quality=0.1, chance=0.12)
        for n in (1, 2)
    ]
    nothing = analyse("made", failed)
    assert headline(nothing, answer(nothing, Goal(7200.0))).endswith(
        nothing.advice.headline
    )
    sound = analyse("made", synthetic.seeded((1, 2)))
    assert sound.advice.headline not in headline(sound, answer(sound, Goal(1.0)))


@pytest.mark.parametrize("deadline", [None, 20_000.0])
def test_an_answer_is_a_page_and_json(deadline):
    findings = analyse("made", list(runs(AMDAHL)))
    result = answer(findings, Goal(deadline))
    record = json.loads(advise_json(findings, result))
    assert record["goal"]["deadline_seconds"] == deadline
    assert record["best"]["workers"] == result.best.key.workers
    assert result.best.key.series_label in markdown(advise_document(findings, result))


def test_the_answer_is_a_row_of_the_reports_table_in_the_same_units():
    findings = analyse("made", synthetic.seeded((1, 2, 4), ("horovod",)))
    document = advise_document(findings, answer(findings, Goal()))
    (table,) = (block for block in document.blocks if isinstance(block, Table))
    reported = results_table(findings, brief=True)
    assert table.headings == reported.headings
    assert table.rows == (reported.rows[reported.chosen],) and table.chosen == 0
