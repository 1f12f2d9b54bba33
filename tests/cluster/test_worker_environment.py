"""The environment of a worker process, the same for training and for checks."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_nvml import Card, cards
from scalestudy import worker
from scalestudy.cluster.placement import Placement
from scalestudy.cluster.worker_environment import (
    assigned_gpus,
    device_of,
    keeps_own_log,
    own_cores,
    own_gpus,
    process_environment,
    refuse_missing,
)
from scalestudy.engines.tensorflow.traits import (
    BY_SERVERS,
    BY_TF_CONFIG,
    ENGINE,
)
from scalestudy.hardware import installed
from scalestudy.hardware.devices import Gpu, read_gpus
from scalestudy.hardware.no_gpus import Reason
from scalestudy.plugins.strategies import REGISTRY, traits
from scalestudy.util.errors import RunError, UserError

PLACE = Placement(1, 2, 1, 2, 0, ("n1", "n1"), "slurm", 20000)
PARENT = {"PATH": "/bin", "HTTPS_PROXY": "http://proxy", "TF_CONFIG": "stale"}


def changes(strategy="multiworker", parent=PARENT, gpus=(), placement=PLACE):
    return process_environment(
        parent,
        ENGINE,
        gpus=gpus,
        rendezvous=traits(strategy).rendezvous,
        placement=placement,
    )


def test_where_processes_meet_by_tensorflow_each_knows_all_and_no_proxy():
    found = changes()
    assert found.unset == ["HTTPS_PROXY"]
    cluster = json.loads(found.values["TF_CONFIG"])
    assert (
        cluster["cluster"]["worker"] == ["n1:20000", "n1:20001"]
        and cluster["task"]["index"] == 1
    )


@pytest.mark.parametrize(
    "strategy",
    [
        name
        for name in REGISTRY.names()
        if traits(name).rendezvous not in (BY_TF_CONFIG, BY_SERVERS)
    ],
)
def test_elsewhere_a_stale_tf_config_goes_and_proxies_stay(strategy):
    found = changes(strategy)
    assert found.unset == ["TF_CONFIG"] and "TF_CONFIG" not in found.values


def test_the_process_of_rank_0_also_holds_the_coordinator_and_the_parameter_server():
    place = Placement(2, 3, 0, 1, 1, ("n1", "n1", "n2"), "slurm", 20000)
    found = changes("parameter-server", placement=place)
    assert found.unset == ["HTTPS_PROXY"]
    assert json.loads(found.values["TF_CONFIG"]) == {
        "cluster": {
            "worker": ["n1:20000", "n1:20001", "n2:20000"],
            "ps": ["n1:20002"],
            "chief": ["n1:20003"],
        },
        "task": {"type": "worker", "index": 2},
    }


def test_without_hosts_and_a_port_they_cannot_meet():
    with pytest.raises(UserError, match="the host and the port of every worker"):
        changes(placement=Placement(0, 1, 0, 1, 0, ("",), "openmpi"))


def test_applied_to_its_parents_variables_they_are_all_of_the_process():
    found = changes("horovod").applied(PARENT)
    assert (found["PATH"], found["HTTPS_PROXY"], found["KERAS_BACKEND"]) == (
        "/bin",
        "http://proxy",
        "tensorflow",
    )
    assert "TF_CONFIG" not in found


def test_on_cpus_no_gpu_is_seen_and_none_is_set_up():
    for gpus in ((), []):
        values = changes(gpus=gpus).values
        assert values["CUDA_VISIBLE_DEVICES"] == "-1"
        assert not [name for name in values if name.startswith("TF_") and "GPU" in name]


def test_on_gpus_its_own_are_seen_and_their_memory_grows():
    values = changes(gpus=["GPU-a"]).values
    assert values["CUDA_VISIBLE_DEVICES"] == "GPU-a"
    assert (values["TF_FORCE_GPU_ALLOW_GROWTH"], values["TF_GPU_THREAD_MODE"]) == (
        "true",
        "gpu_private",
    )


def test_messages_are_the_users_choice():
    def level(**more):
        return process_environment(
            more.pop("parent", {}), ENGINE, gpus=(), **more
        ).values["TF_CPP_MIN_LOG_LEVEL"]

    assert (level(), level(quiet=True)) == ("1", "2")
    assert level(parent={"TF_CPP_MIN_LOG_LEVEL": "0"}, quiet=True) == "0"


KNOWN = [Gpu(index, uuid, "H100") for index, uuid in enumerate(["GPU-a", "GPU-b"])]


@pytest.mark.parametrize(
    ("known", "own", "all_of_them"),
    [
        ([], ["1"], ["0", "1"]),
        (KNOWN, ["GPU-b"], ["GPU-a", "GPU-b"]),
    ],
)
def test_a_process_takes_its_own_gpu_or_all_that_its_workers_need(
    known, own, all_of_them
):
    assert own_gpus({}, known, local_rank=1) == own
    assert own_gpus({}, known, local_rank=0, devices=2) == all_of_them


@pytest.fixture
def shadowed(tmp_path, monkeypatch):
    """A module folder with a CUDA library that the packages provide too; it precedes theirs on the path."""
    for folder in ("nvidia/cuda_runtime/lib", "module/lib64"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "libcudart.so.12").touch()
    (tmp_path / "nvidia" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    installed.package_libraries.cache_clear()
    yield tmp_path / "module" / "lib64"
    installed.package_libraries.cache_clear()


def test_a_modules_cuda_is_dropped_from_the_library_path(shadowed):
    before = {"LD_LIBRARY_PATH": f"/mpi/lib:{shadowed}", "PATH": "/bin"}
    after = process_environment(before, ENGINE, gpus=()).applied(before)
    assert after["LD_LIBRARY_PATH"] == "/mpi/lib"
    alone = {"LD_LIBRARY_PATH": str(shadowed)}
    assert "LD_LIBRARY_PATH" not in process_environment(alone, ENGINE, gpus=()).applied(
        alone
    )


def test_a_worker_begins_anew_once_without_it(shadowed):
    program = (
        "import os, sys, scalestudy.worker; print('begins', os.getpid(), flush=True);"
        "scalestudy.worker._load_own_libraries();"
        "print(os.environ.get('LD_LIBRARY_PATH'))"
    )
    variables = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "LD_LIBRARY_PATH": str(shadowed),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[0].startswith("begins") and lines[1:] == [lines[0], "None"]  # same PID


def test_a_worker_whose_python_gets_the_folder_again_does_not_begin_anew_for_ever(
    shadowed, monkeypatch
):
    begun: list[dict[str, str]] = []
    monkeypatch.setattr(
        "os.execve", lambda program, arguments, variables: begun.append(variables)
    )
    monkeypatch.setenv("LD_LIBRARY_PATH", str(shadowed))
    worker._load_own_libraries()
    for name, value in begun[0].items():
        monkeypatch.setenv(name, value)
    worker._load_own_libraries()  # LD_LIBRARY_PATH is what it was
    assert len(begun) == 1 and "LD_LIBRARY_PATH" not in begun[0]


@pytest.mark.parametrize(
    ("source", "variables", "own"),
    [
        *((source, {}, True) for source in ("slurm", "openmpi")),  # they mix all output
        ("alone", {"SLURM_JOB_ID": "7"}, True),
        ("alone", {}, False),  # by hand, at a terminal
        ("torchrun", {"SLURM_JOB_ID": "7"}, False),
        (
            "torchrun",
            {"SCALESTUDY_LAUNCHER": "1", "SLURM_JOB_ID": "7"},
            False,
        ),  # its launcher has a log
    ],
)
def test_a_rank_has_a_log_of_its_own_where_the_launcher_would_mix_their_output(
    source, variables, own
):
    assert keeps_own_log(Placement(0, 1, 0, 1, 0, ("n1",), source), variables) is own


def placement(local_rank: int, local_size: int) -> Placement:
    return Placement(
        local_rank, local_size, local_rank, local_size, 0, ("n1",) * local_size, "slurm"
    )


@pytest.mark.parametrize(
    ("granted", "need", "place", "own"),
    [
        *(
            ([7, 6, 5, 4, 1, 0], 2, (rank, 3), own)  # its share of shared cores
            for rank, own in enumerate(([0, 1], [4, 5], [6, 7]))
        ),
        ([2, 3], 2, (1, 2), None),  # cores that fit are kept
        ([0, 1, 2], 2, (1, 2), None),  # too few for all processes are shared by all
        (
            range(48),
            4,
            (0, 1),
            [0, 1, 2, 3],
        ),  # alone on a large node, what its workers were promised
    ],
)
def test_a_process_takes_its_share_of_the_granted_cores(granted, need, place, own):
    assert own_cores(granted, need, placement(*place)) == own


@given(st.sets(st.integers(0, 255), min_size=1), st.integers(1, 16), st.integers(1, 16))
def test_shares_are_of_one_size_and_never_overlap(granted, need, local_size):
    shares = [
        own_cores(list(granted), need, placement(rank, local_size))
        for rank in range(local_size)
    ]
    taken = [core for share in shares if share is not None for core in share]
    assert len(taken) == len(set(taken))
    assert set(taken) <= granted
    assert len({share is None for share in shares}) == 1
    assert all(share is None or len(share) == need for share in shares)


HALVES = [range(4, 8), range(4, 8), range(4), range(4)]


def test_of_shared_cores_each_process_takes_those_near_its_gpu():
    found = [own_cores(range(8), 2, placement(rank, 4), HALVES) for rank in range(4)]
    assert found == [[4, 5], [6, 7], [0, 1], [2, 3]]


def test_a_process_of_several_gpus_takes_the_cores_near_each():
    assert own_cores(range(8), 2, placement(0, 1), [range(4, 8), range(4)]) == [0, 4]
    assert own_cores(range(8), 2, placement(1, 2), HALVES) == [0, 1]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, 0),
        ("", 0),
        ("0", 0),
        ("4", 4),
        ("GPU-a0,MIG-1", ("GPU-a0", "MIG-1")),
        (" 2 ", 2),
    ],
)
def test_a_promise_is_a_number_or_names(value, expected):
    assert (
        assigned_gpus({} if value is None else {"SCALESTUDY_GPUS": value}) == expected
    )


@pytest.mark.parametrize("value", ["GPU-a0,", "two", "-1", "0,1", "²"])
def test_anything_else_is_refused(value):
    with pytest.raises(UserError, match="SCALESTUDY_GPUS"):
        assigned_gpus({"SCALESTUDY_GPUS": value})


@pytest.mark.parametrize(
    ("asked", "promise", "seen", "device"),
    [
        ("auto", 0, 0, "cpu"),
        ("auto", 0, 2, "gpu"),
        ("auto", 2, 0, "gpu"),  # refused later, instead of computing on CPUs
        ("gpu", 0, 0, "gpu"),
        ("cpu", 2, 2, "cpu"),
    ],
)
def test_what_was_promised_or_asked_for_is_never_computed_on_cpus(
    nvml, asked, promise, seen, device
):
    nvml(*cards(seen))
    assert device_of(asked, promise, read_gpus()) == device


@pytest.mark.parametrize(
    ("promise", "named"), [(0, "GPUs to"), (2, "2 GPUs to"), (("GPU-a0",), "GPU-a0 to")]
)
def test_where_none_is_seen_the_likely_reason_is_told(nvml, promise, named):
    nvml(*cards(1))
    with pytest.raises(RunError) as error:
        refuse_missing(promise, [], lambda: Reason("the driver is gone", "Mend it."))
    assert named in str(error.value) and "none: the driver is gone" in str(error.value)
    assert "Mend it." in str(error.value)


def test_a_promised_gpu_that_is_gone_is_named(nvml):
    nvml(*cards(2))
    refuse_missing(("GPU-b1",), read_gpus())
    with pytest.raises(RunError, match=r"no GPU-c2\. "):
        refuse_missing(
            ("GPU-c2", "GPU-b1"), []
        )  # CUDA shows no GPU listed after a missing one


def test_mig_instances_are_promised_as_gpus_are(nvml):
    nvml(Card("GPU-x", instances=[Card("MIG-1")]))
    refuse_missing(("MIG-1",), read_gpus()[0].instances)
    with pytest.raises(RunError, match="no MIG-2"):
        refuse_missing(("MIG-1", "MIG-2"), read_gpus()[0].instances)
