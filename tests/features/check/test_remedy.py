"""What came of a collective in words, and what to do instead."""

import pytest

from scalestudy.features.check.collectives import bandwidth_line, cause, failure, judge_collective
from scalestudy.features.check.mailbox import Answer, AttemptOutcome
from scalestudy.features.check.report import AllReduce

PLACES = {0: "rank 0 on n1", 1: "rank 1 on n2", 2: "rank 2 on n3"}


def judged(*states):
    answers = {
        rank: Answer(rank=rank, outcome=AttemptOutcome(state=state, step="joining", tail=["why"]))
        for rank, state in enumerate(states)
        if state
    }
    return judge_collective(answers, range(len(states)), PLACES)


def test_done_everywhere_is_no_failure():
    assert judged("done", "done", "done") is None


def test_a_stall_says_at_what():
    assert judged("stalled", "stalled").what == "stalled at joining"


def test_a_rank_that_failed_is_named_before_those_that_waited_for_it():
    found = judged("stalled", "failed", "stalled")
    assert (found.where, found.what, found.alike) == ("rank 1 on n2", "failed at joining: why", False)


def test_a_rank_without_an_answer_is_named_first():
    assert judged("stalled", "failed", None).where == "rank 2 on n3"


def test_when_all_fail_of_themselves_no_pair_is_to_blame():
    assert judged("failed", "failed").alike


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


def line(name, worked=(), interface="ib0", needed=True):
    return failure(name, "n1 and n2", "stalled", needed=needed, worked=worked, interface=interface)


@pytest.mark.parametrize(
    ("name", "worked", "advised"),
    [
        ("nccl", ["ring"], ["NCCL_SOCKET_IFNAME=ib0", 'communication = "ring"']),
        ("ring", ["nccl"], ['communication = "nccl"']),
        ("auto", ["ring"], ['communication = "ring"']),
        ("ring", ["horovod-gloo"], ['strategy = "horovod"']),
        ("horovod-gloo", ["ring"], ["HOROVOD_GLOO_IFACE=ib0", 'strategy = "native"']),
        ("horovod-mpi", [], ["HOROVOD_CONTROLLER=gloo"]),
    ],
)
def test_the_fallback_is_named(name, worked, advised):
    assert [words for words in advised if words not in line(name, worked).action] == []


def test_what_did_not_work_here_is_not_advised():
    assert "communication" not in line("nccl").action
    assert "works" not in line("horovod-gloo").action


def test_a_collective_that_the_study_does_not_use_only_warns():
    assert (line("nccl").status, line("nccl", needed=False).status) == ("fail", "warn")


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
