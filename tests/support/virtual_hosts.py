"""Several machines on one, each with its own network, name, processes and /tmp, and a real sshd."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

PROJECT = Path(__file__).parents[2]
COMMANDS = (
    "unshare",
    "nsenter",
    "setpriv",
    "ip",
    "ssh",
    "ssh-keygen",
    "/usr/sbin/sshd",
)
NETWORK = "198.18.200"
GUEST = 12345
"""User id of an account that these machines have, and that is not the one of the tests."""

BOOT = """
set -e
folder=$1 name=$2 address=$3
shift 3
read -r _ <"$folder/go-$name"
hostname "$name"
for file in hosts passwd shadow; do mount --bind "$folder/$file" "/etc/$file"; done
kept=/mnt
mount -t tmpfs tmpfs "$kept"
number=0
for path; do
  mkdir "$kept/$number"
  mount --rbind "$path" "$kept/$number"
  number=$((number + 1))
done
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /root
number=0
for path; do
  mkdir -p "$path"
  mount --rbind "$kept/$number" "$path"
  number=$((number + 1))
done
mkdir /run/sshd
ip link set lo up
ip address add "$address/24" dev eth0
ip link set eth0 up
exec /usr/sbin/sshd -D -e -f "$folder/sshd_config" 2>>"$folder/sshd-$name.log"
"""
"""First process of a machine: its own files over those of this one, then sshd."""


def missing() -> str | None:
    """Reason why no such machines can be started here; None if they can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "machines of their own need root on Linux"
    absent = [command for command in COMMANDS if shutil.which(command) is None]
    if absent:
        return f"machines of their own need {', '.join(absent)}: `make test-tools` installs them on Debian"
    probe = [
        "unshare",
        "--net",
        "--uts",
        "--mount",
        "--pid",
        "--fork",
        "ip",
        "link",
        "add",
        "type",
        "veth",
    ]
    refused = subprocess.run(probe, capture_output=True, text=True, check=False)
    return (
        f"machines need namespaces of their own: {refused.stderr.strip()}"
        if refused.returncode
        else None
    )


class VirtualHosts:
    """A workstation, from which commands are run as `guest`, and hosts that share `folder` with it."""

    def __init__(self, *hosts: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="scalestudy-hosts-", dir="/var/tmp"))
        self.folder.chmod(0o755)
        self.home = self.folder / "home"
        self._names = ("workstation", *hosts)
        self._machines: dict[str, psutil.Popen] = {}

    def __enter__(self) -> "VirtualHosts":
        try:
            self._write()
            for name in self._names:
                self.start(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in [*self._machines]:
            self.kill(name)
        shutil.rmtree(self.folder)

    def _write(self) -> None:
        keys = self.home / ".ssh"
        keys.mkdir(parents=True)
        for key in (keys / "id_ed25519", self.folder / "host_key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True
            )
        shutil.copy(keys / "id_ed25519.pub", keys / "authorized_keys")
        kind, key, *_ = (self.folder / "host_key.pub").read_text().split()
        (keys / "known_hosts").write_text(f"* {kind} {key}\n")
        for path in (self.home, *self.home.rglob("*")):
            os.chown(path, GUEST, GUEST)
        shell, home = "/bin/bash", self.home
        lines = (
            Path("/etc/passwd").read_text()
            + f"guest:x:{GUEST}:{GUEST}::{home}:{shell}\n"
        )
        (self.folder / "passwd").write_text(lines)
        (self.folder / "shadow").write_text(
            "root:*:19000::::::\nguest:*:19000::::::\nsshd:!:19000::::::\n"
        )
        addresses = (f"{self._address(name)} {name}\n" for name in self._names)
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(addresses))
        (self.folder / "sshd_config").write_text(
            f"HostKey {self.folder}/host_key\nPidFile none\nUsePAM no\nStrictModes no\n"
            f"AuthorizedKeysFile {keys}/authorized_keys\n"
        )

    def _address(self, name: str) -> str:
        return f"{NETWORK}.{self._names.index(name) + 1}"

    def start(self, name: str) -> None:
        """Switch a machine on, and wait until its sshd listens."""
        go = self.folder / f"go-{name}"
        go.unlink(missing_ok=True)
        os.mkfifo(go)
        shared = {
            str(path): None
            for path in (self.folder, PROJECT, sys.prefix, sys.base_prefix)
        }
        spaces = (
            "--net",
            "--uts",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child=KILL",
            "--mount-proc",
        )
        boot = (
            "bash",
            "-c",
            BOOT,
            "boot",
            str(self.folder),
            name,
            self._address(name),
            *shared,
        )
        machine = psutil.Popen(["unshare", *spaces, "--propagation", "private", *boot])
        self._machines[name] = machine
        first = self.wait_for(
            lambda: next(iter(machine.children()), None), f"the namespaces of {name}"
        )
        ip_link = [
            "nsenter",
            "--target",
            str(self._first("workstation").pid),
            "--net",
            "ip",
            "link",
        ]
        if name == "workstation":
            for arguments in (
                ("add", "bridge0", "type", "bridge"),
                ("set", "bridge0", "up"),
            ):
                subprocess.run([*ip_link, *arguments], check=True)
        subprocess.run(
            [*ip_link, "delete", f"to-{name}"], capture_output=True, check=False
        )
        # A card keeps its address when its machine restarts, as others have it in their caches.
        card = f"02:00:00:00:00:{self._names.index(name) + 1:02x}"
        peer = ("peer", "name", "eth0", "address", card, "netns", str(first.pid))
        subprocess.run(
            [*ip_link, "add", f"to-{name}", "type", "veth", *peer], check=True
        )
        subprocess.run(
            [*ip_link, "set", f"to-{name}", "master", "bridge0", "up"], check=True
        )
        go.write_text("go\n")
        log = self.folder / f"sshd-{name}.log"
        self.wait_for(
            lambda: log.exists() and "Server listening" in log.read_text(),
            f"sshd of {name}",
        )

    def _first(self, name: str) -> psutil.Process:
        return self._machines[name].children()[0]

    def kill(self, name: str) -> None:
        """Cut the power of a machine: all its processes end at once, and its connections without a word."""
        machine = self._machines.pop(name)
        (self.folder / f"sshd-{name}.log").unlink(missing_ok=True)
        machine.kill()
        machine.wait()

    def command(self, *words: object, on: str = "workstation") -> list[str]:
        """Return a command that runs as `guest` on a machine."""
        account = ("setpriv", f"--reuid={GUEST}", f"--regid={GUEST}", "--clear-groups")
        values = {
            "HOME": self.home,
            "USER": "guest",
            "PATH": os.environ["PATH"],
            "PYTHONPATH": PROJECT / "src",
        }
        env = ("env", "-i", *(f"{name}={value}" for name, value in values.items()))
        enter = (
            "nsenter",
            "--target",
            str(self._first(on).pid),
            "--net",
            "--uts",
            "--mount",
            "--pid",
        )
        return [*enter, *account, *env, *map(str, words)]

    def scalestudy(self, *words: object) -> subprocess.Popen[str]:
        """Start a Scalestudy command on the workstation, in the home folder."""
        python = shlex.join([sys.executable, "-m", "scalestudy", *map(str, words)])
        return subprocess.Popen(
            self.command("sh", "-c", f"cd && exec {python}"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def hide(self, folder: Path, on: str) -> None:
        """Give a machine an empty folder of its own in the place of a shared one."""
        enter = ("nsenter", "--target", str(self._first(on).pid), "--mount")
        subprocess.run(
            [*enter, "mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", folder],
            check=True,
        )

    def left(self, name: str) -> list[str]:
        """Command lines of Python processes on a machine."""
        space = os.readlink(f"/proc/{self._first(name).pid}/ns/pid")
        found = []
        for process in psutil.process_iter():
            try:
                words = process.cmdline()
                if (
                    "scalestudy" in " ".join(words)
                    and os.readlink(f"/proc/{process.pid}/ns/pid") == space
                ):
                    found.append(" ".join(words))
            except (psutil.Error, OSError):
                continue
        return [
            line
            for line in found
            if "sshd" not in line and not line.startswith("unshare")
        ]

    def python(self, started: subprocess.Popen[str]) -> psutil.Process:
        """The Python process of a command on the workstation, below the programs that entered it."""
        (process,) = psutil.Process(started.pid).children()
        return process

    def wait_for(self, look: Callable[[], Any], what: str, seconds: float = 300) -> Any:
        """Return the first true value of `look()`."""
        deadline = time.monotonic() + seconds
        while not (found := look()):
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.1)
        return found
