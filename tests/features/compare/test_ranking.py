"""The published U-Net study and its PyTorch twin, whose rankings are the reverse of each other."""

import synthetic
from published import TABLES
from scalestudy.features.compare.ranking import rankings, sentences
from sides import side

TENSORFLOW = {
    "native": {n: row[1] for n, row in synthetic.U_NET.items()},
    "horovod": {n: row[4] for n, row in synthetic.U_NET.items()},
}
((_, DDP, HOROVOD),) = TABLES["u_net_pytorch"]["rows"]
PYTORCH = {"ddp": {1: 1.0, 14: DDP}, "horovod": {1: 1.0, 14: HOROVOD}}


def test_the_best_strategy_of_the_published_study_is_not_the_best_of_its_twin():
    """Published are single runs; here each has three, 1 % apart."""
    (found,) = sentences([side("TensorFlow", TENSORFLOW), side("PyTorch", PYTORCH)])
    assert found.startswith("On 14 workers horovod is the fastest strategy of TensorFlow (1.2")
    assert "and ddp that of PyTorch (2." in found
    assert found.endswith("the best strategy here is not the best there.")


def test_of_single_runs_as_published_nothing_is_said_of_the_best():
    sides = [side("TensorFlow", TENSORFLOW, seeds=1), side("PyTorch", PYTORCH, seeds=1)]
    assert sentences(sides) == []
    found = rankings(sides[0])[("{}", 14)]
    assert not found.certain
    assert found.strategies == ("horovod", "native")
    assert found.best is None


def test_a_ranking_that_is_certain_on_one_side_only_says_nothing():
    unsure = side("there", {"native": {4: 3.0}, "horovod": {4: 3.01}}, noise=0.05)
    sure = side("here", {"native": {4: 3.0}, "horovod": {4: 3.9}})
    assert sentences([sure, unsure]) == []
    assert (
        rankings(unsure)[("{}", 4)].tiers == (("native", "horovod"),)
        or len(rankings(unsure)[("{}", 4)].tiers[0]) == 2
    )


def test_a_strategy_that_nobody_tried_there_is_not_called_worse_there():
    here = side("here", {"native": {4: 3.0}, "horovod": {4: 3.9}})
    there = side("there", {"native": {4: 3.0}, "mirrored": {4: 3.8}})
    assert sentences([here, there]) == []


def test_rankings_that_agree_are_said_too():
    speeds = {"native": {4: 3.0}, "horovod": {4: 3.9}}
    (found,) = sentences([side("here", speeds), side("there", speeds, base=30.0)])
    assert found == "On 4 workers horovod is the fastest strategy of here and of there."


def test_strategies_that_cannot_be_told_apart_share_a_tier():
    found = rankings(side("here", {"native": {4: 3.0}, "mirrored": {4: 3.005}, "horovod": {4: 3.9}}))
    (four,) = found.values()
    assert four.tiers[0] == ("horovod",)
    assert set(four.tiers[1]) == {"native", "mirrored"}
    assert four.best == "horovod"


def test_oversubscribed_and_virtual_workers_are_in_no_ranking():
    found = side("here", {"virtual": {4: 3.0}, "horovod": {4: 3.9}})
    assert rankings(found) == {}
