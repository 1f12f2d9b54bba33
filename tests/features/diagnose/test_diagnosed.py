from dataclasses import replace

import pytest
from made_diagnosis import WHOLE, made, point

from scalestudy.features.diagnose.diagnosed import slow_rank

NEARLY = [replace(WHOLE, together=(0.05, 0.07 + 0.001 * i)) for i in range(3)]


def test_a_diagnosis_holds_its_parts_its_factors_and_every_rank():
    found = made([WHOLE, replace(WHOLE, whole=0.11)])
    assert found.efficiency.value == pytest.approx(0.05 / 0.105)
    assert sum(part.share.value for part in found.parts) == pytest.approx(1 - found.efficiency.value)
    assert found.efficiency.low < found.efficiency.value < found.efficiency.high
    assert [factor.name for factor in found.factors] == [
        "load balance",
        "communication efficiency",
        "computation scaling",
    ]
    assert [(rank.rank, rank.host, rank.cpus) for rank in found.ranks] == [
        (0, "node", (0,)),
        (1, "node", (1,)),
    ]


def test_a_rank_that_is_slow_in_every_round_is_named():
    found = slow_rank(made(NEARLY))
    assert found is not None
    assert found.rank == 1
    assert found.ratio.value == pytest.approx(0.071 / 0.05)


def test_a_rank_that_is_slow_in_one_round_only_is_not():
    rounds = [replace(WHOLE, together=times) for times in ((0.05, 0.05), (0.05, 0.05), (0.05, 0.09))]
    assert slow_rank(made(rounds)) is None


def test_ranks_that_differ_by_less_than_a_twentieth_are_not_slow():
    assert slow_rank(made([replace(WHOLE, together=(0.050, 0.052))])) is None


def test_the_digest_changes_with_what_the_point_computes_and_not_with_where_its_data_lie():
    same = made(of=point().with_files("/elsewhere", "/split"))
    assert made().digest == same.digest
    assert made(of=point(workers=3)).digest != made().digest
