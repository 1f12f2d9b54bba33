"""`scalestudy check` as a job on real nodes, with a working and with a broken network."""

import json
import sys

import pytest

from studies import write_site

PORTS = "20000-32000"
"""Ports of runs; Slurm and the system use others."""
QUICK = """
from scalestudy.cli import main
from scalestudy.features.check import check
plan_of = check.plan_of
QUICK = {"sizes": (1024, 1 << 20), "limit": 15}
check.plan_of = lambda *of, **how: plan_of(*of, **how).model_copy(update=QUICK)
main()
"""
"""Our command with messages of at most 1 MiB, because larger ones take a minute of both cores, and with an
end of stalled trials after 15 s."""


def report_of(cluster, folder, *arguments, code):
    """Run a check; return the lines of its report and its output."""
    command = (
        sys.executable,
        "-c",
        QUICK,
        "check",
        *arguments,
        "--out",
        folder / "check",
    )
    done = cluster.run(*command, check=False, timeout=900)
    assert done.returncode == code, done.stdout
    return json.loads((folder / "check" / "report.json").read_text())[
        "lines"
    ], done.stdout


def of(lines, topic, status=None):
    return [
        line
        for line in lines
        if line["topic"] == topic and status in (None, line["status"])
    ]


def test_a_site_is_held_against_slurm_before_the_queue(cluster):
    folder = cluster.folder("before")
    site = write_site(folder)
    done = cluster.scalestudy("check", site, "--skip", "versions", check=False)
    assert done.returncode == 0 and "would be taken" in done.stdout, done.stdout
    for wrong, said in (
        ({"partition": "gpus"}, "partition"),
        ({"account": "nonsense"}, "account"),
    ):
        write_site(folder, **wrong)
        done = cluster.scalestudy("check", site, "--skip", "versions", check=False)
        assert done.returncode == 1 and f"Invalid {said}" in done.stdout, done.stdout


def test_more_gpus_than_nodes_have_are_refused_before_the_queue(cluster):
    site = write_site(cluster.folder("gpus"), gpus_per_node=8, tasks_per_node=8)
    done = cluster.scalestudy(
        "check", site, "--skip", "versions", "--submit", check=False
    )
    assert done.returncode == 1 and "configuration is not available" in done.stdout
    assert "Not submitted" in done.stdout


def test_a_controller_that_does_not_answer_fails_in_time(cluster):
    site = write_site(cluster.folder("silent"))
    cluster.stop_controller()
    try:
        done = cluster.scalestudy(
            "check", site, "--skip", "versions", check=False, timeout=180
        )
    finally:
        cluster.start_controller()
    assert done.returncode == 1 and "no answer" in done.stdout


@pytest.mark.engine
def test_two_nodes_with_two_ranks_each_are_checked_by_a_job(cluster):
    folder = cluster.folder("job")
    site = write_site(folder)
    # Each host reports its builds by itself, so one host suffices (tests/features/check).
    lines, shown = report_of(
        cluster, folder, site, "--nodes", 2, "--submit", "--skip", "builds", code=0
    )
    assert of(lines, "ranks")[0]["seen"] == "4 ranks on 2 hosts (from slurm)"
    assert {line["where"] for line in of(lines, "devices", "pass")} == {
        "node1",
        "node2",
    }
    assert {"ring over 4 ranks", "auto over 4 ranks"} <= {
        line["seen"] for line in of(lines, "collectives")
    }
    assert of(lines, "bandwidth") and "1 MiB" in shown


@pytest.fixture
def torn_network(cluster):
    """Drop the packets of a run's ports between node2 and node3, as a firewall does."""
    lines = [line.split() for line in (cluster.root / "hosts").read_text().splitlines()]
    address = {name: names[0] for names in lines for name in names[1:]}
    rules = [
        (here, f"to {address[there]} ipproto tcp sport {PORTS} blackhole".split())
        for here, there in (("node2", "node3"), ("node3", "node2"))
    ]
    for here, rule in rules:
        done = cluster.run("srun", "-w", here, "ip", "rule", "add", *rule, check=False)
        if done.returncode:
            pytest.skip(f"no routing by port here: {done.stdout}")
    yield
    for here, rule in rules:
        cluster.run("srun", "-w", here, "ip", "rule", "del", *rule)


@pytest.mark.engine
def test_a_torn_network_is_told_with_its_nodes(cluster, torn_network):
    folder = cluster.folder("torn")
    site = write_site(folder, tasks_per_node=1)
    arguments = ("--nodes", 3, "--submit", "--skip", "bandwidth", "--skip", "builds")
    lines, shown = report_of(cluster, folder, site, *arguments, code=1)
    ways = {line["seen"].split()[0]: line for line in of(lines, "collectives")}
    assert ways["ring"]["status"] == "fail", shown
    assert {"node2", "node3"} & set(ways["ring"]["where"].split(", "))
    assert ways["horovod-gloo"]["status"] == "pass"
