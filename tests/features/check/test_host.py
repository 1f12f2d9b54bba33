"""What a machine offers, compared with the requirements."""

from pathlib import Path

import pytest

import scalestudy
from scalestudy.features.check import host_checks
from scalestudy.features.check.check_report import WritableFolder
from scalestudy.features.check.host_checks import judge_hosts
from scalestudy.launch.hosts.connection import Unreachable
from scalestudy.launch.hosts.messages import HostFacts, HostGpu
from scalestudy.util.errors import RunError


def folder(path):
    return host_checks.judge_folder("n1", WritableFolder(path=str(path), purpose="cache"))


def test_a_folder_that_can_be_written_to_passes_and_stays_empty(tmp_path):
    assert folder(tmp_path).status == "pass"
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_judged_by_where_it_would_be_made(tmp_path):
    line = folder(tmp_path / "a" / "b")
    assert line.status == "pass" and f"can be made in {tmp_path}" in line.seen
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_a_folder_fails_by_its_path(tmp_path):
    (tmp_path / "file").touch()
    line = folder(tmp_path / "file" / "cache")
    assert line.status == "fail" and str(tmp_path / "file") in line.seen and line.action


def test_a_variable_that_is_not_set_fails_and_makes_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert folder("$SCALESTUDY_NOT_SET/cache").status == "fail"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ranks", "status"),
    [
        ([[0, 1], [2, 3]], "pass"),
        ([[0, 1, 2, 3]] * 2, "pass"),
        ([[0, 1]] * 2, "warn"),  # both on the same two cores
        ([[0], [1, 2, 3]], "warn"),  # one has too few cores
    ],
)
def test_cores_granted_are_held_against_those_asked_for(ranks, status):
    assert host_checks.judge_cores("n1", ranks=ranks, cpus_per_worker=2).status == status


def devices(**changes):
    values = {"device": "auto", "promised": 0, "gpus": 0, "workers": 2} | changes
    return host_checks.judge_devices("n1", **values).status


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "pass"),
        ({"gpus": 2}, "pass"),
        ({"gpus": 2, "promised": 2}, "pass"),
        ({"gpus": 0, "promised": 2}, "fail"),
        ({"gpus": 1, "promised": 2}, "fail"),
        ({"gpus": 1}, "fail"),
        ({"device": "gpu"}, "fail"),
        ({"device": "cpu", "gpus": 1}, "pass"),
    ],
)
def test_gpus_seen_are_held_against_those_asked_for(changes, status):
    assert devices(**changes) == status


def test_gpus_that_processes_share_count_once():
    assert host_checks.gpus_of([(1, ["GPU-a"]), (1, ["GPU-b"])]) == 2
    assert host_checks.gpus_of([(1, ["GPU-a"]), (1, ["GPU-a"])]) == 1
    assert host_checks.gpus_of([(2, ["GPU-a", "GPU-b"])] * 2) == 2
    assert host_checks.gpus_of([(1, []), (1, [])]) == 2
    assert host_checks.gpus_of([(2, []), (2, [])]) == 2
    assert host_checks.gpus_of([(0, [])]) == 0


def test_infiniband_without_its_library_fails(tmp_path):
    assert host_checks.judge_infiniband("n1", tmp_path) is None
    (tmp_path / "sys" / "class" / "infiniband" / "mlx5_0").mkdir(parents=True)
    line = host_checks.judge_infiniband("n1", tmp_path, "libno-such.so.1")
    assert line.status == "fail" and "mlx5_0" in line.seen and "libno-such.so.1" in line.seen and line.action
    assert host_checks.judge_infiniband("n1", tmp_path, "libc.so.6").status == "pass"


def facts(host: str, *, gpu: str = "A100", version: str = scalestudy.__version__, unseen=()) -> HostFacts:
    return HostFacts(host=host, version=version, cores=8, gpus=(HostGpu(name=gpu),) * 2, unseen=unseen)


def test_each_difference_is_told_with_the_host_that_has_it():
    lines = judge_hosts(
        [
            ("a", facts("a")),
            ("b", facts("b", unseen=("/results/x",))),
            ("c", facts("c", gpu="V100")),
            ("d", facts("d", version="0.0.1")),
            ("e", Unreachable("e to be reached by SSH", "no route", "Switch it on.")),
            ("f", RunError("Scalestudy on f", "no such file", "Install it.")),
        ],
        {"/results/x": Path("/results")},
    )
    problems = {(line.where, line.topic): line.status for line in lines if line.status != "pass"}
    assert problems == {
        ("b", "folders"): "fail",
        ("c", "devices"): "warn",
        ("d", "versions"): "fail",
        ("e", "network"): "fail",
        ("f", "versions"): "fail",
    }
    assert all(line.action for line in lines if line.status != "pass")
