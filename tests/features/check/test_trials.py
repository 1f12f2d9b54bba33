"""Failing collectives: the hosts that are named, the message, and the bandwidth of those that work."""

import pytest

from scalestudy.cluster.placement import Placement
from scalestudy.features.check.check_files import CheckPlan, Facts, RankAnswer
from scalestudy.features.check.trials import bandwidth_line, judge_collective, lead
from scalestudy.plugins.engines import collective

RING = collective("ring")
HOSTS = ["n0", "n0", "n1", "n2"]


def answers_of(*states, step="joining", seconds=None):
    """The answers of ranks; None is a rank without one."""
    return {
        rank: RankAnswer(
            rank=rank, state=state, step=step, tail=["why"], seconds=seconds or {}
        )
        for rank, state in enumerate(states)
        if state
    }


@pytest.mark.parametrize(
    ("states", "where", "seen"),
    [
        (("stalled",) * 4, "n0, n1, n2", "ring stalled at joining"),
        (
            ("done", "done", "stalled", "stalled"),
            "n1, n2",
            "ring stalled at joining; not on n0",
        ),
        (
            ("stalled", "stalled", "failed", "stalled"),
            "n1",
            "ring failed at joining: why; not on n0, n2",
        ),
        (
            ("stalled", "failed", "failed", None),
            "n2",
            "ring ended, since a rank stopped answering",
        ),
    ],
)
def test_a_collective_that_did_not_come_together_is_told_with_hosts_and_first_cause(
    states, where, seen
):
    line = judge_collective(RING, answers_of(*states), HOSTS)
    assert (line.topic, line.status, line.where) == ("collectives", "fail", where)
    assert line.seen.startswith(seen)
    assert line.action == RING.repair


@pytest.mark.parametrize(
    ("rate", "hosts", "status"),
    [(50e6, 4, "warn"), (50e6, 1, "pass"), (1e9, 4, "pass")],
)
def test_the_bus_carries_two_n_minus_one_nths_of_a_message_and_is_slow_below_gigabit_ethernet(
    rate, hosts, status
):
    answers = answers_of(*["done"] * 4, seconds={1024: 1e-3, 2**25: 2**25 / rate})
    assert judge_collective(RING, answers, HOSTS) is None
    line = bandwidth_line(RING, answers, hosts)
    assert line.status == status and line.seen.startswith(
        f"ring: {rate * 1.5 / 1e9:.2f} GB/s"
    )
    assert "latency 1.00 ms at 1 KiB" in line.seen


class Ranks:
    """An exchange whose ranks have these facts and answer as told, by the name of the collective."""

    folder = "check"

    def __init__(self, facts, told):
        self._facts, self._told, self.asked = facts, told, []

    def tell(self, text):
        pass

    def facts(self, size, limit):
        return self._facts

    def assign(self, assignment):
        self.asked.append("end" if assignment.last else assignment.collective)

    def answers(self, number, size, limit, slack):
        return self._told[self.asked[-1]]


BUILD = {
    "tensorflow": "2.21.0",
    "cuda": None,
    "gpus": 0,
    "horovod": None,
    "horovod_error": None,
    "seconds": 1.0,
}


def led(told, facts=range(2)):
    """Lead two ranks on two hosts; return the lines by topic and status, and what was asked."""
    there = {
        rank: Facts(rank=rank, host=f"n{rank}", local_rank=0, gpus=0) for rank in facts
    }
    built = {
        rank: RankAnswer(rank=rank, state="done", build=BUILD | {"seconds": 1.0})
        for rank in range(2)
    }
    exchange = Ranks(there, {None: built} | told)
    placement = Placement(0, 2, 0, 1, 0, ("n0", "n1"), "slurm", 20000)
    report = lead(exchange, CheckPlan(workers=2), placement)
    return {(line.topic, line.status): line for line in report.lines}, exchange.asked


DONE = answers_of("done", "done", seconds={1024: 1.0})


def test_all_collectives_are_tried_also_after_one_that_failed():
    lines, asked = led({"ring": answers_of("failed", "failed"), "auto": DONE})
    assert asked == [None, "ring", "auto", "end"]
    assert lines["collectives", "fail"].where == "n0, n1"
    assert lines["collectives", "pass"].seen == "auto over 2 ranks"


def test_a_silent_rank_is_named_and_nothing_more_is_asked():
    lines, asked = led({"ring": answers_of("stalled", None)})
    assert asked == [None, "ring", "end"]
    assert (
        lines["ranks", "fail"].where == "n1" and "rank 1" in lines["ranks", "fail"].seen
    )


def test_without_all_ranks_there_is_no_trial():
    lines, asked = led({}, facts=[0])
    assert asked == ["end"] and lines["ranks", "fail"].where == "n1"
