import pytest

import synthetic
from scalestudy.analysis.findings import analyse
from scalestudy.report.cards import cards


def shown(counts):
    findings = analyse("made", synthetic.seeded(counts, ("horovod",)))
    return findings.advice.price, {card.name: card for card in cards(findings)}


def test_the_key_numbers_are_those_of_the_advised_row():
    price, found = shown((1, 2, 4))
    assert found["Advised workers"].value == str(price.key.workers)
    assert float(found["Times as fast"].value) == pytest.approx(price.speedup.value, abs=0.005)
    assert float(found["Cost efficiency"].value) == pytest.approx(price.efficiency.value, abs=0.005)


@pytest.mark.parametrize("counts", [(1, 2, 4), (2, 4, 8)])
def test_speed_and_cost_say_against_what(counts):
    _, found = shown(counts)
    reference = f"horovod on {counts[0]} worker{'s' * (counts[0] > 1)}"
    assert found["Times as fast"].remark.endswith(f"against {reference}")
    assert found["Worker time a training"].remark.endswith(f"with {reference}")


def test_without_advice_there_are_runs_alone():
    assert [card.name for card in cards(analyse("made", [], synthetic.unfinished()))] == ["Runs"]
