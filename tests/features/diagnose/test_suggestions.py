from dataclasses import replace

import pytest

from scalestudy.features.diagnose.suggestions import suggestions
from synthetic_diagnosis import TERMS, WHOLE, made

FINE = replace(
    WHOLE, whole=0.052, without_input=0.051, without_exchange=0.050, slowest=0.05, together=(0.05, 0.05),
    alone=0.05, full=0.1, reference=0.1,
)  # fmt: skip


def lines(times, terms=TERMS):
    return [suggestion.sentence for suggestion in suggestions(made([times] * 2, terms))]


def test_slow_input_names_cores_that_lie_idle_and_what_that_can_gain():
    (only,) = lines(replace(FINE, whole=0.074))
    assert only.startswith("input 31 %: `launch.cpus_per_worker = 2`: ")
    assert only.endswith("at most 45 % more throughput.")


def test_slow_input_of_encoded_data_is_decoded_once_first():
    found = lines(replace(FINE, whole=0.074), TERMS.model_copy(update={"encoded": True}))
    assert '`data.storage = "arrays"`' in found[0]


def test_a_dear_exchange_names_the_batch_and_other_strategies():
    text = " ".join(lines(replace(FINE, whole=0.08, without_input=0.08)))
    assert "`train.batch_size = 128`" in text
    assert "`sweep.strategy`" in text
    assert "input" not in text


def test_doubling_the_batch_gains_half_of_the_share_at_most():
    found = suggestions(made([replace(FINE, whole=0.10, without_input=0.10)] * 2))
    (batch,) = [each for each in found if each.setting.startswith("train.batch_size")]
    assert batch.share == pytest.approx(0.5, abs=0.02)
    assert batch.most == pytest.approx(1 / (1 - batch.share / 2))


def test_an_imbalance_names_the_slow_rank_its_host_and_its_cores():
    times = replace(
        FINE, whole=0.07, without_input=0.07, without_exchange=0.07, slowest=0.07, together=(0.05, 0.07)
    )
    (first, *_) = lines(times)
    assert first.startswith("imbalance 29 %: rank 1 on node (core 1) takes 1.40 times as long as the others")


def test_an_imbalance_of_no_rank_in_particular_says_so():
    times = replace(FINE, whole=0.07, without_input=0.07, without_exchange=0.07, slowest=0.07)
    (first, *_) = lines(times)
    assert first.startswith("imbalance 29 %: no rank is slow all the time")


def test_contention_asks_for_fewer_workers_a_node_and_fixed_cost_for_larger_steps():
    crowded = replace(
        FINE, whole=0.09, without_input=0.09, without_exchange=0.09, slowest=0.09, together=(0.09, 0.09)
    )
    assert "put fewer on each" in lines(crowded)[0]
    fixed = lines(replace(crowded, alone=0.09))
    assert fixed[0].startswith("fixed 44 %: `train.steps_per_call = 8`")
    assert any("`train.batch_size = 128`" in line for line in fixed)


def test_nothing_is_advised_against_what_may_be_nothing():
    assert lines(FINE) == []
    rounds = [replace(FINE, whole=whole) for whole in (0.06, 0.12, 0.055)]
    assert suggestions(made(rounds)) == []


def test_a_single_round_advises_nothing():
    times = replace(FINE, whole=0.12, without_input=0.08)
    assert suggestions(made([times])) == []
    assert suggestions(made([times] * 2))


def test_input_that_one_worker_loses_as_well_lowers_no_efficiency_and_is_advised_against():
    times = replace(FINE, whole=0.1, reference=0.2)
    diagnosis = made([times] * 2)
    assert next(part for part in diagnosis.parts if part.name == "input").share.value == pytest.approx(-0.01)
    assert diagnosis.reference_input.value == pytest.approx(0.5)
    assert lines(times)[0].startswith("input 49 %: `launch.cpus_per_worker = 2`")
