"""Failing collectives: the hosts that are named, the message, and the advice."""

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.features.check.check_files import AllReduce, RankAnswer
from scalestudy.features.check.trials import (
    Trials,
    bandwidth_line,
    culprits,
    judge_collective,
    rounds,
)
from scalestudy.plugins.engines import collective


class Fabric:
    """Answers as ranks on hosts would if some pairs of hosts cannot communicate."""

    def __init__(self, hosts, *, torn=(), state="stalled", broken=(), silent=()):
        self.hosts, self.torn, self.state = hosts, set(torn), state
        self.broken, self.silent, self.asked = broken, silent, []

    def __call__(self, groups, limit, name=None, sizes=()):
        self.asked.append([list(group) for group in groups])
        answers = {}
        for group in groups:
            names = {self.hosts[rank] for rank in group} | set(group)
            bad = name in self.broken or (bool(self.torn) and self.torn <= names)
            for rank in set(group) - set(self.silent):
                answers[rank] = RankAnswer(
                    rank=rank,
                    state=self.state if bad else "done",
                    step="timing",
                    seconds=dict.fromkeys(sizes, 1.0),
                )
        return answers


def checked(fabric, names=("ring", "horovod-gloo"), needed=("ring",)):
    trials = Trials(fabric, fabric.hosts, range(len(fabric.hosts)), limit=1, sizes=(1024,))
    lines = trials.lines([collective(name) for name in names], needed=needed)
    return {(line.topic, line.status): line for line in lines}, lines, trials


HOSTS = [f"n{number}" for number in range(8) for _ in range(2)]


@pytest.mark.parametrize("state", ["stalled", "failed"])
def test_the_torn_pair_of_hosts_is_named(state):
    fabric = Fabric(HOSTS, torn=("n2", "n7"), state=state)
    lines, _, _ = checked(fabric)
    assert set(lines["collectives", "fail"].where.split(" and ")) == {"n2", "n7"}
    for groups in fabric.asked:  # concurrent groups are on different hosts
        used = [{HOSTS[rank] for rank in group} for group in groups]
        assert sum(map(len, used)) == len(set().union(*used))


def test_a_host_that_does_not_work_on_its_own_is_named_alone():
    fabric = Fabric(["n1", "n1", "n2", "n2"], torn=(2, 3))
    assert checked(fabric)[0]["collectives", "fail"].where == "n2"


@pytest.mark.parametrize("state", ["stalled", "failed"])
def test_where_it_works_nowhere_no_pair_is_blamed(state):
    fabric = Fabric([f"n{number}" for number in range(4)], broken=("ring",), state=state)
    lines, _, _ = checked(fabric)
    assert " and " not in lines["collectives", "fail"].where
    assert 'strategy = "horovod"' in lines["collectives", "fail"].action


def test_on_one_host_ranks_are_named_and_tried_one_after_another():
    fabric = Fabric(["localhost"] * 4, torn=(0, 3))
    where = checked(fabric)[0]["collectives", "fail"].where
    assert where == "localhost (rank 0) and localhost (rank 3)"
    assert all(len(groups) == 1 for groups in fabric.asked)  # they would use the same ports


def test_a_silent_rank_is_named_and_asked_no_more():
    fabric = Fabric(["n0", "n1", "n2"], silent=(1,))
    lines, _, trials = checked(fabric)
    assert lines["ranks", "fail"].where == "n1"
    assert fabric.asked[:2] == [[[0, 1, 2]], [[0, 2]]]
    assert {row.ranks for row in trials.bandwidth} == {2}


def test_bandwidth_is_the_mean_of_the_ranks():
    _, lines, trials = checked(Fabric(HOSTS))
    assert [(row.collective, row.seconds, row.hosts) for row in trials.bandwidth] == [
        ("ring", 1.0, 8),
        ("horovod-gloo", 1.0, 8),
    ]
    assert trials.bandwidth[0].bus_bandwidth == pytest.approx(1024 * 2 * 15 / 16)
    assert all(line.status == "pass" for line in lines if line.topic == "collectives")


@given(st.integers(2, 40))
def test_rounds_hold_every_pair_once_and_nobody_twice_at_a_time(count):
    tournament = rounds(range(count))
    pairs = [frozenset(pair) for pair in chain.from_iterable(tournament)]
    assert len(pairs) == len(set(pairs)) == count * (count - 1) // 2
    for groups in tournament:
        parties = list(chain.from_iterable(groups))
        assert len(parties) == len(set(parties))


@given(st.integers(3, 40), st.data())
def test_a_bad_pair_is_named_and_no_good_one(count, data):
    pairs = list(combinations(range(count), 2))
    bad = data.draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=count - 2, unique=True))
    named = culprits(rounds(range(count)), lambda groups: [tuple(sorted(pair)) not in bad for pair in groups])
    assert named and all(len(group) == 1 or tuple(sorted(group)) in bad for group in named)


@given(st.integers(3, 40), st.data())
def test_one_that_reaches_nobody_is_in_what_is_named(count, data):
    lost = data.draw(st.integers(0, count - 1))
    named = culprits(rounds(range(count)), lambda groups: [lost not in pair for pair in groups])
    assert named and all(lost in group for group in named)


@pytest.mark.parametrize(
    ("states", "where", "what", "alike"),
    [
        (("stalled", "stalled"), "rank 0 on n1, rank 1 on n2", "stalled at joining", False),
        (("stalled", "failed", "stalled"), "rank 1 on n2", "failed at joining: why", False),
        (("stalled", "failed", None), "rank 2 on n3", "the rank stopped answering", False),
        (("failed", "failed"), "rank 0 on n1, rank 1 on n2", "failed at joining: why", True),
    ],
)
def test_a_failure_is_told_by_its_first_cause(states, where, what, alike):
    answers = {
        rank: RankAnswer(rank=rank, state=state, step="joining", tail=["why"])
        for rank, state in enumerate(states)
        if state
    }
    assert judge_collective(answers, range(len(states)), ["n1", "n2", "n3"]) == (where, what, alike)


@pytest.mark.parametrize(
    ("broken", "works", "advised"),
    [
        ("nccl", "ring", ["NCCL_SOCKET_IFNAME=IFACE", 'communication = "ring"']),
        ("ring", "nccl", ['communication = "nccl"']),
        ("ring", "horovod-gloo", ['strategy = "horovod"']),
        ("horovod-gloo", "ring", ["HOROVOD_GLOO_IFACE=IFACE", 'strategy = "native"']),
        ("horovod-mpi", None, ["HOROVOD_CONTROLLER=gloo"]),
    ],
)
def test_what_works_instead_is_named(broken, works, advised):
    fabric = Fabric(["n1", "n2"], broken=(broken,))
    names = [name for name in (broken, works) if name]
    action = checked(fabric, names, needed=(broken,))[0]["collectives", "fail"].action
    assert [words for words in advised if words not in action] == []
    assert ("works" in action) == bool(works)


def test_a_collective_that_the_study_does_not_use_only_warns():
    assert ("collectives", "warn") in checked(Fabric(["n1", "n2"], broken=("ring",)), needed=())[0]


def rows(rate):
    return [
        AllReduce(
            collective="ring",
            ranks=4,
            bytes=size,
            seconds=1e-3,
            algorithm_bandwidth=rate,
            bus_bandwidth=rate * size / 2**26,
        )
        for size in (1024, 2**26)
    ]


def test_a_network_as_slow_as_gigabit_ethernet_warns_but_one_host_does_not():
    assert bandwidth_line(rows(50e6), "4 hosts", one_host=False).status == "warn"
    assert bandwidth_line(rows(50e6), "1 host", one_host=True).status == "pass"
