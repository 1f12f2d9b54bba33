"""Which runs a launcher resumes, and which it restarts."""

import ast
import errno
import ipaddress
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from local_run import run_point
from scalestudy.cluster.private_files import SECRET
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.config.point import Point
from scalestudy.config.settings import ResolvedLaunch
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from scalestudy.hardware.own_process import oom_kills
from scalestudy.launch.launcher import Moved
from scalestudy.launch.local import (
    failure_of_end,
    gone,
    interrupted_run,
    unable,
    what_is_kept,
    write_down,
)
from scalestudy.launch.reserve import NETWORK, private_run
from scalestudy.launch.study_status import study_status
from scalestudy.store.records import Cause, EpochRecord, Failure, Hang, Sign
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder

TEXT = 'task = "cnn"\n[sweep]\nworkers = 1\nseed = 0\n'


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    study = parse_study(TEXT, Path("study.toml"))
    return StudyFolder.create_or_open(tmp_path / "results", study, expand(study, gpus=0, cores=8), TEXT)


@pytest.fixture
def point(folder: StudyFolder) -> Point:
    return folder.points()[0]


@pytest.fixture
def kept(folder: StudyFolder, point: Point) -> RunFolder:
    run = folder.new_run(point)
    run.checkpoint.touch()
    return run


def by_the_user() -> Failure:
    return Failure(rank=None, exit_code=None, reason="interrupted by the user")


@pytest.mark.parametrize(
    ("failure", "goes_on"),
    [
        (None, True),  # its launcher was killed
        ({"signal": "SIGKILL", "rank": 1}, True),
        ({"signal": "SIGSEGV", "rank": 1}, False),
        ({"exit_code": 1, "rank": 1}, False),
    ],
)
def test_only_a_run_that_was_ended_from_outside_goes_on(folder, point, kept, failure, goes_on):
    if failure:
        kept.write_failure(Failure(**({"exit_code": None, "reason": "it ended"} | failure)))
    assert interrupted_run(folder, point) == (kept if goes_on else None)
    assert (kept.failure() is None) == (failure is None or goes_on)


@pytest.mark.parametrize("what", ["a newer run", "a queue's run"])
def test_neither_an_older_run_nor_one_of_a_queue_goes_on(folder, point, kept, what):
    if what == "a newer run":
        folder.new_run(point).write_failure(by_the_user())
    else:
        (kept.path / "job.json").touch()
    assert interrupted_run(folder, point) is None


def test_a_run_that_the_user_interrupted_goes_on_as_ours_and_as_if_nothing_had_been(folder, point, kept):
    kept.write_failure(by_the_user())
    kept.stop.touch()
    kept.write_hang(Hang(rank=None, phase="step", epoch=1, step=2, seconds=120))
    point = point.on(launch=ResolvedLaunch(progress_timeout=900))
    kept.write_launcher_process(kept.launcher_process().model_copy(update={"pid": 1, "host": "elsewhere"}))
    assert interrupted_run(folder, point) == kept
    assert kept.launcher_process().pid == os.getpid()
    assert kept.failure() is None
    assert not kept.stop.exists()
    assert kept.hang() is None
    assert kept.point().launch.progress_timeout == 900
    assert study_status(folder).states[point.name] == "running"


def test_without_a_checkpoint_it_starts_anew(folder, point):
    assert interrupted_run(folder, point) is None
    folder.new_run(point).write_failure(by_the_user())
    assert interrupted_run(folder, point) is None


def test_what_is_kept_of_earlier_epochs_is_said(folder, point):
    run, fresh = folder.new_run(point), folder.new_run(point)
    assert list(what_is_kept(point, [run], fresh)) == []
    for number in (1, 2):
        run.append_epoch(
            EpochRecord(
                epoch=number, steps=1, samples=1, train_seconds=1.0, elapsed_training_seconds=float(number)
            )
        )
    (said,) = what_is_kept(point, [run], fresh)
    assert "begins again: 2 epochs of run-1 left no checkpoint" in said
    run.checkpoint.touch()
    (said,) = what_is_kept(point, [run], run)
    assert "goes on from its checkpoint" in said


@pytest.mark.parametrize(
    "terms",
    [{"oversubscribed": "cores shared with another study"}, {"launch": ResolvedLaunch(cpus_per_worker=2)}],
)
def test_other_timing_conditions_make_another_run(folder, point, kept, terms):
    assert interrupted_run(folder, point.on(**terms)) is None


@pytest.mark.parametrize("failure", [None, by_the_user()])
def test_heartbeats_are_removed_once_a_run_is_done(folder, point, monkeypatch, failure):
    def attempt(run, processes):
        run.write_sign(
            Sign(rank=0, host="here", pid=1, phase="step", marks=1, moved=1.0, due=60.0, written=1.0)
        )
        yield Moved(point.name)
        return failure

    monkeypatch.setattr("scalestudy.launch.local._attempt", attempt)
    assert run_point(folder, point) == failure
    (run,) = folder.runs(point.name)
    assert bool(run.signs()) is (failure is not None)


@pytest.fixture
def run(folder) -> RunFolder:
    return folder.new_run(folder.points()[0])


def test_what_a_worker_wrote_counts_before_what_was_seen_of_it(run):
    run.write_cause(Cause(rank=1, time=1.0, kind="sys.exit", exit_code=0, words="sys.exit(0)"))
    failure = failure_of_end(run, (1, 1), 2.0, None)
    assert failure.reason == "rank 1 ended with exit code 0: something ended the program by sys.exit(0)"
    run.write_cause(Cause(rank=1, time=1.0, kind="stopped", signal="SIGSTOP"))
    assert failure_of_end(run, (0, 1), 60.0, None).rank == 1, "not the one that was seen to end first"


def test_a_rank_that_left_no_word_is_told_as_it_was_seen(run):
    run.write_cause(Cause(rank=0, time=5.1, kind="signal", signal="SIGTERM"))
    failure = failure_of_end(run, (1, -signal.SIGKILL), 5.0, oom_kills())
    assert failure.reason.startswith("rank 1 was ended by SIGKILL, but not by the kernel")
    run.log(1).write_text("last words\n")
    assert failure_of_end(run, (1, 3), 5.0, None).reason == "rank 1 ended with exit code 3: last words"


def test_workers_that_all_ended_well_without_a_result_have_failed(run):
    assert failure_of_end(run, None, 0.0, None).reason == "all workers ended, but there is no result"
    run.checkpoint.touch()
    run.ask_to_stop("rank 1 received SIGINT")
    assert "(rank 1 received SIGINT)" in failure_of_end(run, None, 0.0, None).reason


def test_a_run_that_was_removed_is_told_as_that_and_one_that_cannot_be_looked_at_is_not(run, monkeypatch):
    (run.path / "point.json").unlink()
    reason = failure_of_end(run, (0, 1), 0.0, None).reason
    assert reason == f"its folder was removed while it ran: {run.path}"
    stale = OSError(errno.ESTALE, "Stale file handle")
    monkeypatch.setattr("scalestudy.launch.local.os.stat", Mock(side_effect=stale))
    assert not gone(run)


def test_what_cannot_be_written_says_what_kept_it_from_that(run):
    failure = Failure(rank=0, exit_code=1, reason="x")
    assert write_down(run, failure) == "" and run.failure() == failure
    assert write_down(None, failure) == "it has no folder to say so"
    assert (
        write_down(RunFolder(run.path / "gone"), failure)
        == "its folder cannot say so (No such file or directory)"
    )


def test_what_could_not_be_started_names_the_file_and_the_reason():
    error = OSError(errno.ENOSPC, "No space left on device", "/a/b")
    assert unable(error).reason == "it could not be run: No space left on device: /a/b"


NOBODY = 65534
ROOT = Path(__file__).parents[3]
STUDY = """
task = "cnn"
[data]
source = "digits"
[train]
epochs = 2
batch_size = 64
[sweep]
strategy = {strategies}
workers = [2]
seed = [0]
"""
LISTENING = "0A"
JOIN = """
import json, os, sys
from scalestudy.hardware.own_process import enter_network
enter_network(int(os.environ["SCALESTUDY_NETWORK"]))
import psutil
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
print(json.dumps({
    "interfaces": sorted(psutil.net_if_addrs()), "user": os.geteuid(), "groups": os.getgroups(),
    "rights": status["CapEff"].strip(), "network": os.stat("/proc/self/ns/net").st_ino,
}))
"""


@pytest.fixture(scope="module")
def _possible():
    with private_run(2, {}) as own:
        if not own[NETWORK].isdigit():
            pytest.skip(f"no private network on this machine: {own[NETWORK]}")


def ran(program: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program with these variables and our source."""
    environment = os.environ | variables | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", program, *words]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert output.returncode == 0, output.stderr
    return output


def inside(own: dict[str, str]) -> dict:
    found: dict = json.loads(ran(JOIN, **own).stdout)
    return found


def rights() -> str:
    return next(line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff"))


@pytest.mark.usefixtures("_possible")
def test_workers_share_a_network_with_a_loopback_alone_and_keep_user_groups_and_rights():
    with private_run(2, {}) as own:
        first, second = inside(own), inside(own)
    assert first == second
    assert first["interfaces"] == ["lo"]
    assert first["network"] != os.stat("/proc/self/ns/net").st_ino
    assert (first["user"], first["groups"], first["rights"]) == (os.geteuid(), os.getgroups(), rights())


@pytest.mark.usefixtures("_possible")
def test_interfaces_that_a_private_network_has_not_are_overridden_and_said():
    program = (
        "import os\nfrom scalestudy.worker import INTERFACES, join_network\njoin_network()\n"
        "print({name: os.environ.get(name) for name in sorted(INTERFACES)})"
    )
    users = {"HOROVOD_GLOO_IFACE": "eth0", "NCCL_SOCKET_IFNAME": "lo"}
    with private_run(2, {}) as own:
        output = ran(program, **own, **users)
    assert ast.literal_eval(output.stdout) == {
        "GLOO_SOCKET_IFNAME": None,
        "HOROVOD_GLOO_IFACE": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
    }
    assert "eth0" in output.stderr and "NCCL_SOCKET_IFNAME" not in output.stderr


@pytest.mark.usefixtures("_possible")
def test_two_runs_do_not_share_one():
    with private_run(2, {}) as one, private_run(2, {}) as other:
        assert inside(one)["network"] != inside(other)["network"]


@pytest.mark.usefixtures("_possible")
def test_the_network_ends_with_the_run():
    with private_run(2, {}) as own:
        holder = psutil.Process(int(own[NETWORK]))
    assert not holder.is_running()


@pytest.mark.usefixtures("_possible")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_does_not_enter_it():
    program = (
        "import os, sys\n"
        "from scalestudy.hardware.own_process import enter_network\n"
        f"os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "try:\n    enter_network(int(sys.argv[1]))\n"
        "except OSError as error:\n    print(type(error).__name__)"
    )
    with private_run(2, {}) as own:
        output = ran(program, own[NETWORK])
    assert output.stdout.strip() == "PermissionError", output.stderr


def test_where_the_machine_allows_none_the_reason_is_passed_on(monkeypatch):
    monkeypatch.setattr("scalestudy.util.modules.NETWORK_NAMESPACE", "scalestudy.no_such_module")
    with private_run(2, {}) as own:
        assert own[NETWORK] == "the namespace's process ended"
        assert own[SECRET]


def test_a_file_that_lies_in_the_working_folder_is_no_module_of_ours(tmp_path, monkeypatch):
    for name in ("ctypes", "fcntl", "struct"):
        (tmp_path / f"{name}.py").write_text("open('planted', 'w')\n")
    monkeypatch.chdir(tmp_path)
    with private_run(2, {}):
        assert not (tmp_path / "planted").exists()


def sockets(process: int) -> dict[tuple[str, int], int]:
    """Return address and port of a process's listening sockets, with its network namespace."""
    held = set()
    for handle in Path(f"/proc/{process}/fd").iterdir():
        try:
            target = os.readlink(handle)
        except OSError:
            continue
        if target.startswith("socket:["):
            held.add(target[8:-1])
    found = {}
    network = os.stat(f"/proc/{process}/ns/net").st_ino
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENING and words[9] in held:
                address, _, port = words[1].partition(":")
                found[_address(address), int(port, 16)] = network
    return found


def _address(text: str) -> str:
    """Parse an address as the kernel prints it: four-byte words in the machine's byte order."""
    words = [text[start : start + 8] for start in range(0, len(text), 8)]
    packed = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
    return str(ipaddress.ip_address(packed))


def watched(folder: Path, strategies: list[str], *, connect: bool, **variables: str):
    """Run a study and return three results.

    They are: by strategy, the sockets at which workers listened, with their network namespaces; what attacks
    reached; and the last network namespace of each worker process, whether or not it listened.

    Args:
        folder: An empty folder.
        strategies: Strategies to run with 2 workers.
        connect: Whether to attack each worker as soon as it listens, as another user could.
            (Gloo takes this for a rank that left, and ends.)
        variables: Environment variables of the launcher.
    """
    (folder / "study.toml").write_text(STUDY.format(strategies=json.dumps(strategies)))
    listened: dict[str, dict[tuple[str, int], int]] = {name: {} for name in strategies}
    reached, networks = set(), {}
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")} | variables
    with subprocess.Popen(
        [sys.executable, "-m", "scalestudy", "run", "study.toml", "--no-report"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as study:
        launcher = psutil.Process(study.pid)
        while study.poll() is None:  # no sleep: Gloo listens only until the other rank connects
            for process in launcher.children(recursive=True):
                try:
                    words = process.cmdline()
                    if "scalestudy.worker" not in words:
                        continue
                    networks[process.pid] = os.stat(f"/proc/{process.pid}/ns/net").st_ino
                    found = sockets(process.pid)
                except (psutil.Error, OSError):
                    continue
                if found:
                    known = listened[Path(words[-1]).parent.name.partition("-")[0]]
                    new = found.keys() - known.keys()
                    reached |= attacked(process.pid, [port for _, port in new]) if connect and new else set()
                    known |= found
        assert study.stdout is not None
        assert study.returncode == 0, study.stdout.read()
    return listened, reached, networks


ATTACK = """
import socket, sys
process, *ports = sys.argv[1:]
def reached(act, *given):
    try:
        act(*given).close()
    except OSError:
        return False
    return True
ways = {f"port {port}": (socket.create_connection, ("127.0.0.1", int(port)), 5) for port in ports}
ways |= {name: (open, f"/proc/{process}/{name}", "rb") for name in ("environ", "mem", "ns/net", "ns/user")}
print([way for way, act in ways.items() if reached(*act)])
"""
PYTHON = shutil.which("python3", path="/usr/bin:/bin")
"""A Python that every account may start."""
AS_NEIGHBOUR = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
ACCOUNTS = os.geteuid() == 0 and shutil.which("setpriv") and PYTHON


def attacked(process: int, ports: list[int]) -> set[str]:
    """Return what another account on this machine reaches of a worker; without one, this account's ports."""
    if ACCOUNTS:
        command = [*AS_NEIGHBOUR, str(PYTHON), "-I", "-c", ATTACK, str(process), *map(str, ports)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return set(ast.literal_eval(done.stdout))
    return {f"port {port}" for port in ports if _connects(port)}


def _connects(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.skipif(not ACCOUNTS, reason="only root can become another user")
def test_another_account_reaches_what_is_open_to_it_and_nothing_of_a_process():
    """The attack below would be detected if it succeeded."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert attacked(os.getpid(), [port]) == {f"port {port}"}


@pytest.mark.engine
@pytest.mark.usefixtures("_possible")
def test_nobody_else_on_this_machine_reaches_the_workers_of_a_run(tmp_path):
    strategies = ["mirrored", "multiworker", *(["horovod"] if horovod_built() else [])]
    listened, reached, networks = watched(tmp_path, strategies, connect=True)
    assert not listened.pop("mirrored")
    # A rank's data port closes when the other rank connects and may be missed; its namespace is not.
    assert all(listened.values()), listened
    for places in listened.values():
        assert len(set(places.values())) == 1
        assert os.stat("/proc/self/ns/net").st_ino not in places.values()
    apart = [each for each in networks.values() if each != os.stat("/proc/self/ns/net").st_ino]
    assert len(apart) >= 4 * len(listened), networks  # two ranks and their parent processes
    assert not reached


@pytest.mark.engine
@pytest.mark.skipif(not horovod_built(), reason="no Horovod")
def test_without_a_private_network_horovod_listens_at_the_loopback_alone(tmp_path):
    told = {NETWORK: "shared", "HOROVOD_LOG_LEVEL": "debug"}
    listened, _, _ = watched(tmp_path, ["horovod"], connect=False, **told)
    places = listened["horovod"]
    assert set(places.values()) == {os.stat("/proc/self/ns/net").st_ino}
    assert places, "the rendezvous was not seen to listen"
    assert all(ipaddress.ip_address(address).is_loopback for address, _ in places), places
    # A rank's data port closes when the other rank connects and may be missed; the logs name all ports.
    logs = sorted(tmp_path.glob("studies/study/points/*/run-1/logs/rank-*.log"))
    assert len(logs) == 2
    for log in logs:
        connections = set(re.findall(r"iface=(\w+).*?addr=\[([0-9.]+)\]", log.read_text()))
        assert connections == {("lo", "127.0.0.1")}, log.read_text()[-2000:]
