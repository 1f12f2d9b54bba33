"""Collectives that do not work: which hosts are named, what is said, and what is advised instead."""

from itertools import combinations
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.features.check.collectives import (
    Trials,
    bandwidth_line,
    cause,
    culprits,
    failure,
    judge_collective,
)
from scalestudy.features.check.mailbox import AttemptOutcome, RankAnswer
from scalestudy.features.check.report import AllReduce


class Fabric:
    """Answers as ranks would on hosts of which some pairs cannot talk."""

    def __init__(self, hosts, *, torn=(), state="stalled", broken=(), silent=()):
        self.hosts, self.torn, self.state = hosts, set(torn), state
        self.broken, self.silent, self.asked = broken, silent, []

    def __call__(self, kind, groups, limit, name, sizes=()):
        self.asked.append([list(group) for group in groups])
        answers = {}
        for group in groups:
            names = {self.hosts[rank] for rank in group}
            bad = name in self.broken or self.torn <= names if self.torn else name in self.broken
            outcome = AttemptOutcome(
                state=self.state if bad else "done", step="timing", seconds=dict.fromkeys(sizes, 1.0)
            )
            answers |= {
                rank: RankAnswer(rank=rank, outcome=outcome) for rank in group if rank not in self.silent
            }
        return answers


def checked(fabric, names=("ring", "horovod-gloo"), needed=("ring",)):
    trials = Trials(fabric, fabric.hosts, range(len(fabric.hosts)), limit=1, sizes=(1024,))
    lines = trials.lines(names, needed=needed)
    return {(line.topic, line.status): line for line in lines}, lines, trials


HOSTS = [f"n{number}" for number in range(8) for _ in range(2)]


@pytest.mark.parametrize("state", ["stalled", "failed"])
def test_the_torn_pair_of_hosts_is_named(state):
    fabric = Fabric(HOSTS, torn=("n2", "n7"), state=state)
    found, _, _ = checked(fabric)
    assert found["collectives", "fail"].where == "n2 and n7"


def test_groups_that_run_at_once_are_on_different_hosts():
    fabric = Fabric(HOSTS, torn=("n2", "n7"))
    checked(fabric)
    for groups in fabric.asked:
        used = [{HOSTS[rank] for rank in group} for group in groups]
        assert sum(map(len, used)) == len(set().union(*used))


def test_where_it_works_nowhere_no_pair_is_blamed():
    fabric = Fabric([f"n{number}" for number in range(4)], broken=("ring",), state="failed")
    found, _, _ = checked(fabric)
    assert " and " not in found["collectives", "fail"].where
    assert 'strategy = "horovod"' in found["collectives", "fail"].action


def test_on_one_host_ranks_are_named():
    class Ranks(Fabric):
        def __call__(self, kind, groups, limit, name, sizes=()):
            self.asked.append(groups)
            done = {True: AttemptOutcome(state="done"), False: AttemptOutcome(state="stalled")}
            return {
                rank: RankAnswer(rank=rank, outcome=done[not {0, 3} <= set(group)])
                for group in groups
                for rank in group
            }

    fabric = Ranks(["localhost"] * 4)
    found, _, _ = checked(fabric)
    assert found["collectives", "fail"].where == "localhost (rank 0) and localhost (rank 3)"
    assert all(len(groups) == 1 for groups in fabric.asked)  # they would meet at the same ports


def test_a_silent_rank_is_named_and_asked_no_more():
    fabric = Fabric(["n0", "n1", "n2"], silent=(1,))
    found, _, trials = checked(fabric)
    assert found["ranks", "fail"].where == "n1"
    assert fabric.asked == [[[0, 1, 2]], [[0, 2]]]
    assert {row.ranks for row in trials.bandwidth} == {2}


def test_bandwidth_is_the_mean_of_the_ranks():
    _, lines, trials = checked(Fabric(HOSTS))
    assert [(row.collective, row.seconds) for row in trials.bandwidth] == [
        ("ring", 1.0), ("horovod-gloo", 1.0),
    ]  # fmt: skip
    assert trials.bandwidth[0].bus_bandwidth == pytest.approx(1024 * 2 * 15 / 16)
    assert trials.bandwidth[0].hosts == 8
    assert all(line.status == "pass" for line in lines if line.topic == "collectives")


class PairFabric:
    """Units, pairs that cannot talk, and units that do not work on their own."""

    def __init__(self, pairs=(), units=(), together=None):
        self.pairs, self.units, self.together = {frozenset(pair) for pair in pairs}, set(units), together
        self.trials = 0

    def works(self, groups):
        self.trials += 1
        flat = [unit for group in groups for unit in group]
        assert len(flat) == len(set(flat)), "groups that run at once share a unit"
        return [self._one(group) for group in groups]

    def _one(self, group):
        bad = any(frozenset(pair) in self.pairs for pair in combinations(group, 2))
        return not bad and not self.units & set(group) and len(group) != self.together


@given(st.integers(2, 64), st.data())
def test_the_one_bad_pair_is_named_in_few_trials(count, data):
    pair = data.draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True))
    fabric = PairFabric(pairs=[pair])
    assert set(culprits(range(count), fabric.works)) == set(pair)
    assert fabric.trials <= 2 + 4 * ceil(log2(count))


@given(st.integers(2, 64), st.data())
def test_of_several_bad_pairs_one_is_named(count, data):
    number = st.integers(0, count - 1)
    pairs = data.draw(st.lists(st.lists(number, min_size=2, max_size=2, unique=True), min_size=1, max_size=9))
    fabric = PairFabric(pairs=pairs)
    assert frozenset(culprits(range(count), fabric.works)) in fabric.pairs


@given(st.integers(1, 64), st.data())
def test_a_unit_that_does_not_work_on_its_own_is_named_alone(count, data):
    bad = data.draw(st.integers(0, count - 1))
    assert culprits(range(count), PairFabric(units=[bad]).works) == (bad,)


@pytest.mark.parametrize("count", [3, 4, 8])
def test_nobody_is_accused_when_every_smaller_group_works(count):
    assert culprits(range(count), PairFabric(together=count).works) is None


PLACES = {0: "rank 0 on n1", 1: "rank 1 on n2", 2: "rank 2 on n3"}


def judged_states(*states):
    answers = {
        rank: RankAnswer(rank=rank, outcome=AttemptOutcome(state=state, step="joining", tail=["why"]))
        for rank, state in enumerate(states)
        if state
    }
    return judge_collective(answers, range(len(states)), PLACES)


def test_done_everywhere_is_no_failure():
    assert judged_states("done", "done", "done") is None


def test_a_stall_says_at_what():
    assert judged_states("stalled", "stalled").what == "stalled at joining"


def test_a_rank_that_failed_is_named_before_those_that_waited_for_it():
    found = judged_states("stalled", "failed", "stalled")
    assert (found.where, found.what, found.alike) == ("rank 1 on n2", "failed at joining: why", False)


def test_a_rank_without_an_answer_is_named_first():
    assert judged_states("stalled", "failed", None).where == "rank 2 on n3"


def test_when_all_fail_of_themselves_no_pair_is_to_blame():
    assert judged_states("failed", "failed").alike


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (["Traceback", "tf.errors.UnavailableError: Graph execution error:", "",
          "Collective ops is aborted by: failed to connect to 10.0.0.2:20000",
          "Additional GRPC error information from remote target", "  [[{{node CollectiveReduceV2}}]]"],
         "Collective ops is aborted by: failed to connect to 10.0.0.2:20000"),
        (["Traceback", "ImportError: libmpi.so.40: cannot open"], "ImportError: libmpi.so.40: cannot open"),
        (["one", "  Killed "], "Killed"),
        ([], "no output"),
    ],
)  # fmt: skip
def test_of_a_log_the_line_that_says_why_is_quoted(tail, why):
    assert cause(tail) == why


def failure_line(name, worked=(), needed=True):
    return failure(name, "n1 and n2", "stalled", needed=needed, worked=worked)


@pytest.mark.parametrize(
    ("name", "worked", "advised"),
    [
        ("nccl", ["ring"], ["NCCL_SOCKET_IFNAME=IFACE", 'communication = "ring"']),
        ("ring", ["nccl"], ['communication = "nccl"']),
        ("auto", ["ring"], ['communication = "ring"']),
        ("ring", ["horovod-gloo"], ['strategy = "horovod"']),
        ("horovod-gloo", ["ring"], ["HOROVOD_GLOO_IFACE=IFACE", 'strategy = "native"']),
        ("horovod-mpi", [], ["HOROVOD_CONTROLLER=gloo"]),
    ],
)
def test_the_fallback_is_named(name, worked, advised):
    assert [words for words in advised if words not in failure_line(name, worked).action] == []


def test_what_did_not_work_here_is_not_advised():
    assert "communication" not in failure_line("nccl").action
    assert "works" not in failure_line("horovod-gloo").action


def test_a_collective_that_the_study_does_not_use_only_warns():
    assert (failure_line("nccl").status, failure_line("nccl", needed=False).status) == ("fail", "warn")


def rows(rate):
    return [
        AllReduce(collective="ring", ranks=4, bytes=size, seconds=1e-3, algorithm_bandwidth=rate,
                  bus_bandwidth=rate * size / 2**26)
        for size in (1024, 2**26)
    ]  # fmt: skip


def test_the_best_bandwidth_and_the_least_time_are_told():
    seen = bandwidth_line(rows(12e9), "4 hosts", one_host=False).seen
    assert seen == "ring: 12.00 GB/s on the bus (12.00 by the algorithm) at 64 MiB, latency 1.00 ms at 1 KiB"


def test_a_network_as_slow_as_gigabit_ethernet_warns_but_one_host_does_not():
    assert bandwidth_line(rows(50e6), "4 hosts", one_host=False).status == "warn"
    assert bandwidth_line(rows(50e6), "1 host", one_host=True).status == "pass"
