"""Fixtures and settings for all tests."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import forking
from cgroups import limited
from lanes import (  # noqa: F401 (hooks)
    pytest_collection_modifyitems,
    pytest_ignore_collect,
    pytest_xdist_make_scheduler,
)
from scalestudy.cli import main
from scalestudy.engines.tensorflow.traits import ENGINE
from scalestudy.util.unused_packages import without_unused
from synthetic_result import FakeLauncher
from time_limit import pytest_runtest_call, pytest_runtest_setup  # noqa: F401 (hooks)

DEVICES = 2

# Processes of pytest-xdist receive a terminal width; the tests expect none, as in a pipe.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

# Runs reserve cores and ports with lock files in this folder, and report when they share them. Each process
# of tests gets a folder of its own, so that its runs see no others.
os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="scalestudy-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_RUNTIME_DIR"], ignore_errors=True)

# Studies note which code their user has trained with; these must not add to it, nor rely on it.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="scalestudy-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# Background jobs of a shell, and jobs of some CI systems, ignore Ctrl-C, and so would all that tests start.
# Handlers are not inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)

if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # of nohup
    signal.signal(signal.SIGHUP, lambda *_: None)

# Hypothesis's deadlines fail on a busy machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--new-pythons",
        action="store_true",
        help="fork no Python: start each anew, as users do",
    )


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("new_pythons"):
        forking.install()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Start each Python of a test marked `new_python` anew."""
    anew = item.get_closest_marker("new_python") is not None
    with forking.new_pythons() if anew else nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Any:
    """Import the framework as workers do when test files are collected."""
    with without_unused(ENGINE.unused):
        return (yield)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Run the command line in a terminal of 120 columns; return exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(
        "scalestudy.launch.stop_signal._received.number", 0
    )  # of another test

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def framework() -> Any:
    """TensorFlow with two logical CPUs and deterministic operations.

    The first operation of a process fixes its devices, so every test that computes requests this first.
    """
    import tensorflow as tf

    from scalestudy.engines.tensorflow.engine import configure_tensorflow

    configure_tensorflow(cpu_devices=DEVICES)
    return tf


@pytest.fixture
def write_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Path]:
    """Return write_study(text), which writes a study file. Data sets are prepared beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "study.toml"

    def write(text: str) -> Path:
        file.write_text(text)
        return file

    return write


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install fake GPUs: `nvml(card, card)`; without cards, a driver that finds none."""
    from fake_nvml import Card, FakeNvml

    def install(*cards: Card, **more: Any) -> FakeNvml:
        fake = FakeNvml(*cards, **more)
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        return fake

    return install


@pytest.fixture
def small_cgroup(tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """Command prefix that runs a command in a cgroup with little memory."""
    with ExitStack() as held:
        try:
            words = held.enter_context(
                limited(f"scalestudy-{os.getpid()}-{tmp_path.name}")
            )
        except OSError as error:
            pytest.skip(f"no memory cgroup of our own can be made: {error}")
        yield words


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a small file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if (
        shutil.which("mount") is None
        or subprocess.run(mount, check=False, capture_output=True).returncode
    ):
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="session")
def placement() -> Any:
    """Placement of the single process of these tests."""
    from scalestudy.cluster.placement import Placement

    return Placement(0, 1, 0, 1, 0, ("localhost",), "test")


@pytest.fixture(scope="session")
def two_devices(framework, placement) -> Any:
    """Two mirrored workers for all tests: TensorFlow mixes up the collectives of two groups in a process."""
    from scalestudy.engines.group import join

    return join("mirrored", placement, workers=2, device="cpu")


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> FakeLauncher:
    """Replace the local launcher by a fake one, on a machine with two cores and no GPU."""
    fake = FakeLauncher()
    monkeypatch.setattr("scalestudy.launch.local.run_steps", fake)
    monkeypatch.setattr(
        "scalestudy.launch.local.refuse_missing_software", lambda points: None
    )
    monkeypatch.setattr("scalestudy.hardware.devices.gpus", lambda: 0)
    monkeypatch.setattr("scalestudy.hardware.cores.granted", lambda: [0, 1])
    return fake
