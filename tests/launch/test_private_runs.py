"""The network of a run's own: who reaches its workers, and what is said where there is none."""

import ast
import ipaddress
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from scalestudy.cluster.private_files import SECRET
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.engines.tensorflow.installation import library_file as horovod_built
from scalestudy.hardware.private_network import PrivateNetwork
from scalestudy.launch.launcher import Note, Options
from scalestudy.launch.launchers import LOCAL
from scalestudy.launch.reserve import (
    NETWORK,
    grant,
    private_run,
    refuse_open_ports,
    wants_private,
)
from scalestudy.util.errors import RunError, UserError

NOBODY = 65534
ROOT = Path(__file__).parents[2]
STUDY = """
task = "cnn"
[data]
source = "digits"
[train]
epochs = 2
batch_size = 64
deterministic = false
[launch]
device = "cpu"
{keys}[sweep]
strategy = {strategies}
workers = [2]
seed = [0]
"""
LISTENING = "0A"
JOIN = """
import json, os, sys
from scalestudy.hardware.private_network import enter_network
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
    with private_run(2, private=True) as own:
        if not own[NETWORK]:
            pytest.skip("this machine allows no network namespace")


def ran(
    program: str, *words: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program with these variables and our source."""
    environment = os.environ | variables | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", program, *words]
    output = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert output.returncode == 0, output.stderr
    return output


def inside(own: dict[str, str]) -> dict:
    found: dict = json.loads(ran(JOIN, **own).stdout)
    return found


def rights() -> str:
    return next(
        line.split()[1]
        for line in open("/proc/self/status")
        if line.startswith("CapEff")
    )


@pytest.mark.usefixtures("_possible")
def test_workers_share_a_network_with_a_loopback_alone_and_keep_user_groups_and_rights():
    with private_run(2, private=True) as own:
        first, second = inside(own), inside(own)
    assert first == second
    assert first["interfaces"] == ["lo"]
    assert first["network"] != os.stat("/proc/self/ns/net").st_ino
    assert (first["user"], first["groups"], first["rights"]) == (
        os.geteuid(),
        os.getgroups(),
        rights(),
    )


@pytest.mark.usefixtures("_possible")
def test_interfaces_that_a_private_network_has_not_are_overridden_and_said():
    program = (
        "import os\nfrom scalestudy.worker import INTERFACES, join_network\njoin_network()\n"
        "print({name: os.environ.get(name) for name in sorted(INTERFACES)})"
    )
    users = {"HOROVOD_GLOO_IFACE": "eth0", "NCCL_SOCKET_IFNAME": "lo"}
    with private_run(2, private=True) as own:
        output = ran(program, **own, **users)
    assert ast.literal_eval(output.stdout) == {
        "GLOO_SOCKET_IFNAME": None,
        "HOROVOD_GLOO_IFACE": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
    }
    assert "eth0" in output.stderr and "NCCL_SOCKET_IFNAME" not in output.stderr


@pytest.mark.usefixtures("_possible")
def test_two_runs_do_not_share_one():
    with private_run(2, private=True) as one, private_run(2, private=True) as other:
        assert inside(one)["network"] != inside(other)["network"]


@pytest.mark.usefixtures("_possible")
def test_the_network_ends_with_the_run():
    with private_run(2, private=True) as own:
        holder = psutil.Process(int(own[NETWORK]))
    assert not holder.is_running()


@pytest.mark.usefixtures("_possible")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_does_not_enter_it():
    program = (
        "import os, sys\n"
        "from scalestudy.hardware.private_network import enter_network\n"
        f"os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "try:\n    enter_network(int(sys.argv[1]))\n"
        "except OSError as error:\n    print(type(error).__name__)"
    )
    with private_run(2, private=True) as own:
        output = ran(program, own[NETWORK])
    assert output.stdout.strip() == "PermissionError", output.stderr


@contextmanager
def none_here():
    yield PrivateNetwork(None, "Operation not permitted")


@pytest.fixture
def without(monkeypatch):
    """A machine that allows no network namespace."""
    monkeypatch.setattr("scalestudy.launch.reserve.private_network", none_here)


def study_of(strategy: str, **launch: object):
    keys = "".join(f"{key} = {json.dumps(value)}\n" for key, value in launch.items())
    text = (
        'task = "cnn"\n[train]\ndeterministic = false\n'
        f'[launch]\ndevice = "cpu"\n{keys}[sweep]\nstrategy = "{strategy}"\nworkers = [1, 2]\n'
    )
    return parse_study(text, Path("study.toml"))


def points_of(strategy: str, **launch: object):
    return expand(study_of(strategy, **launch), gpus=0, cores=2)


@pytest.mark.usefixtures("without")
def test_without_a_namespace_workers_that_obey_anybody_are_refused_unless_the_study_allows_it():
    with pytest.raises(
        UserError, match=r"multiworker.*Operation not permitted.*open_ports = true"
    ):
        LOCAL.points(study_of("multiworker"), Options())
    assert LOCAL.points(study_of("multiworker", open_ports=True), Options())
    assert refuse_open_ports(points_of("multiworker", open_ports=True)) is None
    with pytest.raises(UserError, match="a network namespace for parameter-server"):
        refuse_open_ports(points_of("parameter-server"))


def test_a_server_that_obeys_anybody_is_closed_in_alone_too():
    alone = [point for point in points_of("parameter-server") if point.workers == 1]
    assert alone and all(map(wants_private, alone))
    assert not any(map(wants_private, points_of("parameter-server", open_ports=True)))
    assert [wants_private(point) for point in points_of("ddp")] == [
        point.workers > 1 for point in points_of("ddp")
    ]


@pytest.mark.usefixtures("without")
def test_a_namespace_that_cannot_be_had_any_more_opens_no_ports_instead():
    (point, *_) = (point for point in points_of("multiworker") if point.workers == 2)
    with pytest.raises(RunError, match="max_net_namespaces"), grant(point, []):
        pass


@pytest.mark.usefixtures("without")
def test_without_a_namespace_other_workers_run_and_it_is_said():
    note = refuse_open_ports(points_of("ddp"))
    assert isinstance(note, Note) and "open_ports = true" in note.text
    assert refuse_open_ports(points_of("ddp", open_ports=True)) is None
    assert refuse_open_ports(points_of("mirrored")) is None, (
        "one process does not listen"
    )
    with private_run(2, private=True) as own:
        assert own[SECRET] and own[NETWORK] == ""


@pytest.mark.usefixtures("_possible")
def test_with_a_namespace_nothing_is_said_and_open_ports_leaves_it_out():
    assert refuse_open_ports(points_of("multiworker")) is None
    with private_run(2, private=False) as own:
        assert own[NETWORK] == ""


@pytest.mark.usefixtures("_possible")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_account_without_rights_creates_one_too():
    program = (
        "import ctypes, os\n"
        "from scalestudy.hardware.private_network import create_network\n"
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "ctypes.CDLL(None).prctl(4, 1)\n"  # PR_SET_DUMPABLE, as after a login
        "before = os.stat('/proc/self/ns/net').st_ino\n"
        "create_network()\n"
        "import socket; socket.create_server(('127.0.0.1', 0))\n"
        "print(os.geteuid(), os.stat('/proc/self/ns/net').st_ino != before)"
    )
    assert ran(program).stdout.split() == [str(NOBODY), "True"]


def test_a_file_that_lies_in_the_working_folder_is_no_module_of_ours(
    tmp_path, monkeypatch
):
    for name in ("ctypes", "fcntl", "struct"):
        (tmp_path / f"{name}.py").write_text("open('planted', 'w')\n")
    monkeypatch.chdir(tmp_path)
    with private_run(2, private=True):
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


def watched(
    folder: Path,
    strategies: list[str],
    *,
    connect: bool,
    keys: str = "",
    **variables: str,
):
    """Run a study and return three results.

    They are: by strategy, the sockets at which workers listened, with their network namespaces; what attacks
    reached; and the last network namespace of each worker process, whether or not it listened.

    Args:
        folder: An empty folder.
        strategies: Strategies to run with 2 workers.
        keys: Further lines of [launch].
        connect: Whether to attack each worker as soon as it listens, as another user could.
            (Gloo takes this for a rank that left, and ends.)
        variables: Environment variables of the launcher.
    """
    (folder / "study.toml").write_text(
        STUDY.format(strategies=json.dumps(strategies), keys=keys)
    )
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
        while (
            study.poll() is None
        ):  # no sleep: Gloo listens only until the other rank connects
            for process in launcher.children(recursive=True):
                try:
                    words = process.cmdline()
                    if "scalestudy.worker" not in words:
                        continue
                    networks[process.pid] = os.stat(
                        f"/proc/{process.pid}/ns/net"
                    ).st_ino
                    found = sockets(process.pid)
                except (psutil.Error, OSError):
                    continue
                if found:
                    known = listened[Path(words[-1]).parent.name.partition("-w")[0]]
                    new = found.keys() - known.keys()
                    reached |= (
                        attacked(process.pid, [port for _, port in new])
                        if connect and new
                        else set()
                    )
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
        command = [
            *AS_NEIGHBOUR,
            str(PYTHON),
            "-I",
            "-c",
            ATTACK,
            str(process),
            *map(str, ports),
        ]
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
    strategies = [
        "mirrored",
        "multiworker",
        "parameter-server",
        "ddp",
        *(["horovod"] if horovod_built() else []),
    ]
    listened, reached, networks = watched(tmp_path, strategies, connect=True)
    assert not listened.pop("mirrored")
    # A rank's data port closes when the other rank connects and may be missed; its namespace is not.
    assert all(listened.values()), listened
    for places in listened.values():
        assert len(set(places.values())) == 1
        assert os.stat("/proc/self/ns/net").st_ino not in places.values()
    apart = [
        each
        for each in networks.values()
        if each != os.stat("/proc/self/ns/net").st_ino
    ]
    assert len(apart) >= 4 * len(listened), (
        networks
    )  # two ranks and their parent processes
    assert not reached


@pytest.mark.engine
def test_with_open_ports_ddp_listens_at_the_loopback_alone(tmp_path):
    listened, _, _ = watched(
        tmp_path, ["ddp"], connect=False, keys="open_ports = true\n"
    )
    places = listened["ddp"]
    assert set(places.values()) == {os.stat("/proc/self/ns/net").st_ino}
    assert places, "the store was not seen to listen"
    assert all(ipaddress.ip_address(address).is_loopback for address, _ in places), (
        places
    )


@pytest.mark.engine
@pytest.mark.skipif(not horovod_built(), reason="no Horovod")
def test_with_open_ports_horovod_listens_at_the_loopback_alone(tmp_path):
    told = {"HOROVOD_LOG_LEVEL": "debug"}
    listened, _, _ = watched(
        tmp_path, ["horovod"], connect=False, keys="open_ports = true\n", **told
    )
    places = listened["horovod"]
    assert set(places.values()) == {os.stat("/proc/self/ns/net").st_ino}
    assert places, "the rendezvous was not seen to listen"
    assert all(ipaddress.ip_address(address).is_loopback for address, _ in places), (
        places
    )
    # A rank's data port closes when the other rank connects and may be missed; the logs name all ports.
    logs = sorted(tmp_path.glob("studies/study/points/*/run-1/logs/rank-*.log"))
    assert len(logs) == 2
    for log in logs:
        connections = set(
            re.findall(r"iface=(\w+).*?addr=\[([0-9.]+)\]", log.read_text())
        )
        assert connections == {("lo", "127.0.0.1")}, log.read_text()[-2000:]
