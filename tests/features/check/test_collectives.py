"""Which hosts are named when a collective does not work, on fabrics that are torn in one place."""

import pytest

from scalestudy.features.check.collectives import Trials
from scalestudy.features.check.mailbox import Answer, AttemptOutcome


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
            answers |= {rank: Answer(rank=rank, outcome=outcome) for rank in group if rank not in self.silent}
        return answers


def checked(fabric, names=("ring", "horovod-gloo"), needed=("ring",)):
    trials = Trials(fabric, fabric.hosts, range(len(fabric.hosts)), limit=1, sizes=(1024,))
    lines = trials.lines(names, needed=needed, interface=None)
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


def test_a_pair_that_kept_one_collective_is_tried_first_for_the_next():
    fabric = Fabric(HOSTS, torn=("n2", "n7"))
    _, lines, _ = checked(fabric, names=("ring", "auto"), needed=("ring", "auto"))
    assert [line.where for line in lines] == ["n2 and n7"] * 2
    alone = Fabric(HOSTS, torn=("n2", "n7"))
    checked(alone, names=("ring",))
    assert len(fabric.asked) == len(alone.asked) + 2


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
                rank: Answer(rank=rank, outcome=done[not {0, 3} <= set(group)])
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
