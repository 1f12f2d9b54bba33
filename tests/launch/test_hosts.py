"""Hosts as studies list them, and how processes are spread over them."""

from pathlib import Path

import pytest

from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.launch.host_connection import HostFacts
from scalestudy.launch.hosts import Hosts, ListedHost, balance_processes, parse_hosts
from scalestudy.util.errors import UserError


def test_hosts_are_names_with_the_number_of_their_workers():
    assert parse_hosts(["a", "me@b:4", "c.lab"]) == (
        ListedHost("a"),
        ListedHost("me@b", 4),
        ListedHost("c.lab"),
    )


@pytest.mark.parametrize(
    "hosts", [None, (), ["-oProxyCommand=true"], ["a b"], ["a:0"], ["a", "a:2"]]
)
def test_what_is_no_list_of_hosts_is_refused(hosts):
    with pytest.raises(UserError):
        parse_hosts(hosts)


@pytest.mark.parametrize(
    ("slots", "processes", "one_host", "expected"),
    [
        ([4, 4], 6, False, [3, 3]),
        ([4, 2], 6, False, [4, 2]),
        ([2, 2, 2], 3, False, [2, 1, 0]),
        ([2, 4], 4, True, [0, 4]),
        ([2, 2], 4, True, [4, 0]),
    ],
)
def test_the_first_hosts_that_suffice_get_balanced_shares(
    slots, processes, one_host, expected
):
    assert balance_processes(slots, processes, one_host=one_host) == expected


def hosts(*gpus: int, slots: int | None = None) -> Hosts:
    facts = [
        HostFacts(host=f"h{index}", version="1", cores=8, gpus=(None,) * count)
        for index, count in enumerate(gpus)
    ]
    return Hosts(tuple(ListedHost(fact.host, slots) for fact in facts), tuple(facts))


def point(found: Hosts, workers: int, strategy: str = "native"):
    sweep = f'[sweep]\nstrategy = ["{strategy}"]\nworkers = {workers}\nseed = 0\n'
    text = f'task = "cnn"\n[launch]\non = "hosts"\n{sweep}'
    machine = found.machine()
    return expand(
        parse_study(text, Path("mine.toml")),
        gpus=machine.gpus,
        cores=machine.cores,
        cluster=True,
        tasks_per_node=machine.tasks_per_node,
    )[0]


def test_workers_have_gpus_of_their_own_and_fill_a_host_before_the_next():
    found = hosts(2, 2)
    one, two = point(found, 2), point(found, 4)
    assert (one.implementation, found.ranks(one)) == ("mirrored", [("h0", (0,))])
    assert two.implementation == "multiworker"
    assert found.ranks(two) == [("h0", (0, 1)), ("h1", (2, 3))]


def test_the_number_of_a_list_counts_before_cores():
    found = hosts(0, 0, slots=1)
    assert found.ranks(point(found, 2, "horovod")) == [("h0", (0,)), ("h1", (1,))]
    found = hosts(0, 0)
    assert found.ranks(point(found, 2, "horovod")) == [("h0", (0, 1))]
