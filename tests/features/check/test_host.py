"""What a machine offers, compared with the requirements."""

import os
import shutil
import subprocess

import pytest

from scalestudy.features.check import host
from scalestudy.features.check.report import WritableFolder


def folder(path):
    return host.judge_folder("n1", WritableFolder(path=str(path), purpose="cache"))


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


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="mounts a folder: needs root")
def test_a_read_only_folder_fails_for_root_too(tmp_path):
    program = (
        "mount -t tmpfs -o ro none {0} && {1} -c 'from scalestudy.features.check import host; "
        "from scalestudy.features.check.report import WritableFolder; "
        'print(host.judge_folder("n1", WritableFolder(path="{0}", purpose="results")).model_dump_json())\''
    )
    command = program.format(tmp_path, shutil.which("python3", path=os.path.dirname(os.sys.executable)))
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", command], capture_output=True, text=True, check=False
    )
    if done.returncode and "ermission denied" in done.stderr and "unshare" in done.stderr:
        pytest.skip("no mount namespaces here")
    assert '"fail"' in done.stdout and "Read-only" in done.stdout, done.stderr


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
    assert host.judge_cores("n1", ranks=ranks, cpus_per_worker=2).status == status


def devices(**changes):
    values = {"device": "auto", "promised": 0, "gpus": 0, "workers": 2} | changes
    return host.judge_devices("n1", **values).status


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


def test_where_no_gpu_is_seen_the_host_says_why():
    why = ("there is no driver", "Ask for another node.")
    for device, promised, needed in (("gpu", 0, 2), ("auto", 1, 1)):
        line = host.judge_devices("n1", device=device, promised=promised, gpus=0, workers=2, why=why)
        assert line.seen == f"0 GPUs seen, {needed} needed for 2 workers: there is no driver"
        assert line.action == "Ask for another node."
    assert host.judge_devices("n1", device="auto", promised=0, gpus=0, workers=2, why=why).status == "pass"


def test_gpus_that_processes_share_count_once():
    assert host.gpus_of([(1, ["GPU-a"]), (1, ["GPU-b"])]) == 2
    assert host.gpus_of([(1, ["GPU-a"]), (1, ["GPU-a"])]) == 1
    assert host.gpus_of([(2, ["GPU-a", "GPU-b"])] * 2) == 2
    assert host.gpus_of([(1, []), (1, [])]) == 2
    assert host.gpus_of([(2, []), (2, [])]) == 2
    assert host.gpus_of([(0, [])]) == 0


def test_infiniband_without_its_library_fails(tmp_path):
    assert host.judge_infiniband("n1", tmp_path) is None
    (tmp_path / "sys" / "class" / "infiniband" / "mlx5_0").mkdir(parents=True)
    line = host.judge_infiniband("n1", tmp_path, "libno-such.so.1")
    assert line.status == "fail" and "mlx5_0" in line.seen and "libno-such.so.1" in line.seen and line.action
    assert host.judge_infiniband("n1", tmp_path, "libc.so.6").status == "pass"
