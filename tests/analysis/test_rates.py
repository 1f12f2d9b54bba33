"""Speed-up of numbers of which not all is known."""

import pytest

from elsewhere import cassava, foreign
from scalestudy.analysis.findings import analyse
from scalestudy.analysis.runs import Run, grouped
from scalestudy.analysis.table import Row, records
from synthetic import run


def rows(runs: list[Run]) -> dict[int, Row]:
    return {row.workers: row for row in analyse("made", runs).rows}


def test_seconds_alone_give_speed_up_cost_and_provisional_advice():
    findings = analyse("Cassava", cassava())
    four = findings.rows[-1]
    assert four.basis == "training"
    assert four.speed.steady.value == pytest.approx(562 / 214)
    assert four.throughput.value is None
    assert findings.advice.choice is not None
    assert findings.advice.choice.workers == 3
    assert findings.advice.headline.startswith("Provisionally, ask for 3 workers")
    assert findings.advice.price.speedup.value == pytest.approx(562 / 249)
    assert "quality-unknown" in findings.advice.decision.provisional


def test_times_of_epochs_go_before_whole_times_and_the_first_epoch_is_left_out():
    found = rows([
        foreign(1, epochs=(90, 40, 40), training_seconds=170),
        foreign(2, epochs=(95, 20, 20), training_seconds=135),
    ])  # fmt: skip
    assert found[2].basis == "epoch"
    assert found[2].speed.steady.value == pytest.approx(2.0)
    assert found[2].speed.training.value == pytest.approx(170 / 135)


def test_throughput_goes_before_times_and_what_is_unlike_is_not_compared():
    found = rows([
        foreign(1, throughput=100.0, training_seconds=60.0),
        foreign(2, throughput=190.0, training_seconds=30.0),
        foreign(3, throughput=270.0),
        foreign(4, training_seconds=16.0),
    ])  # fmt: skip
    assert found[2].speed.steady.value == pytest.approx(1.9)
    assert found[4].speed.steady.value is None
    assert "throughput" in (found[4].speed.reason or "")
    assert found[4].speed.training.value == pytest.approx(60 / 16)


def test_another_number_of_epochs_is_other_work():
    found = rows([foreign(1, training_seconds=60.0, epochs=()), foreign(2, training_seconds=9.0)])
    assert found[2].speed.steady.value is not None
    short = foreign(2, training_seconds=9.0)
    unlike = Run(short.result.model_copy(update={"epochs": 2}), source=short.source)
    found = rows([foreign(1, training_seconds=60.0), unlike])
    assert found[2].speed.steady.value is None
    assert found[2].speed.reason == "trained for another number of epochs than the run it is compared with"


def test_runs_without_seeds_are_repeats_that_pair_with_none():
    runs = [
        foreign(n, line=10 * n + i, training_seconds=60.0 / n + i, quality=0.9 - 0.01 * i, metric="accuracy")
        for n in (1, 2)
        for i in range(3)
    ]
    findings = analyse("made", runs)
    assert [row.seeds for row in findings.rows] == [(None, None, None)] * 2
    assert findings.rows[1].runs == 3
    assert findings.rows[1].speed.steady.low is not None
    assert findings.rows[1].verdict.change.low is not None
    assert findings.measures.quality.values.keys() == grouped(runs).keys()


def test_a_row_of_ours_without_steady_throughput_is_not_held_by_its_times():
    found = rows([run(throughput=None, epochs=1), run("horovod", 2, throughput=None, epochs=1)])
    assert found[2].basis == "throughput"
    assert found[2].speed.steady.value is None
    assert "one epoch only" in (found[2].speed.reason or "")


def test_the_table_says_where_numbers_come_from_and_leaves_the_rest_blank():
    record = records(analyse("made", cassava()).rows)[1]
    assert record["taken_from"] == "times.csv, line 3"
    assert record["speedup_basis"] == "training"
    for blank in ("throughput", "quality", "global_batch", "gpu_joules", "constant_quality"):
        assert record[blank] is None
