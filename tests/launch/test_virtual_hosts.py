"""Studies on several machines, started by SSH as another account: machines of their own with a real sshd."""

import json
import shutil
import signal
from collections.abc import Iterator

import pytest

from scalestudy.store.study_folder import StudyFolder
from virtual_hosts import GUEST, VirtualHosts, missing

pytestmark = [pytest.mark.engine, pytest.mark.slow]

STUDY = """
task = "cnn"
[data]
source = "digits"
cache = "{cache}"
[train]
epochs = {epochs}
[launch]
on = "hosts"
hosts = {hosts}
[sweep]
strategy = ["native"]
workers = {workers}
seed = 0
"""


@pytest.fixture(scope="module")
def network() -> Iterator[VirtualHosts]:
    if reason := missing():
        pytest.skip(reason)
    with VirtualHosts("lab1", "lab2") as made:
        yield made


def write(
    network: VirtualHosts,
    name: str,
    *,
    workers: int = 2,
    epochs: int = 1,
    hosts=("lab1:1", "lab2:1"),
) -> None:
    text = STUDY.format(
        cache=network.home / "cache",
        epochs=epochs,
        workers=workers,
        hosts=json.dumps(list(hosts)),
    )
    (network.home / f"{name}.toml").write_text(text)


def ended(started) -> str:
    said, _ = started.communicate(timeout=600)
    return f"{said}\nexit code {started.returncode}"


def newest(network: VirtualHosts, name: str):
    path = network.home / "studies" / name
    if not (path / "study.json").exists():
        return None
    folder = StudyFolder.open(path)
    runs = [run for point in folder.points() for run in folder.runs(point.name)]
    return runs[-1] if runs else None


def test_a_run_has_a_worker_on_each_host_that_belongs_to_the_account(network):
    write(network, "two")
    said = ended(network.scalestudy("run", "two.toml", "--no-report"))
    run = newest(network, "two")
    assert run is not None and run.result() is not None, said
    assert [record.host for record in run.ranks()] == ["lab1", "lab2"]
    assert run.path.stat().st_uid == GUEST
    assert network.left("lab1") == network.left("lab2") == []


def under_way(network: VirtualHosts, name: str, restarts: int = 0):
    """Wait until a study's newest run trains, after so many restarts; return the run."""

    def look():
        run = newest(network, name)
        progress = run.progress() if run else None
        return (
            run
            if progress and progress.restarts == restarts and progress.epoch > 1
            else None
        )

    return network.wait_for(look, f"{name} to train after {restarts} restarts")


def test_a_lost_host_is_named_and_its_run_goes_on_when_it_is_back(network):
    write(network, "lost", epochs=100_000)
    started = network.scalestudy("run", "lost.toml", "--no-report")
    run = under_way(network, "lost")
    network.python(started).send_signal(signal.SIGINT)
    said = ended(started)
    assert said.endswith("exit code 130") and run.checkpoint.exists(), said
    assert network.left("lab1") == network.left("lab2") == []

    started = network.scalestudy("run", "lost.toml", "--no-report")
    under_way(network, "lost", restarts=1)
    network.kill("lab2")
    said = ended(started)
    failure = run.failure()
    assert failure is not None and failure.rank is None, said
    assert "lab2" in failure.reason and "lab1" not in failure.reason
    assert network.left("lab1") == []

    said = ended(network.scalestudy("run", "lost.toml", "--no-report"))
    assert "lab2" in said and said.endswith("exit code 2")
    network.start("lab2")
    started = network.scalestudy("run", "lost.toml", "--no-report")
    assert under_way(network, "lost", restarts=2).path == run.path

    # No process is left when the launcher is killed.
    assert network.left("lab1") and network.left("lab2")
    network.python(started).kill()
    network.wait_for(
        lambda: not network.left("lab1") + network.left("lab2"),
        "the end of all processes",
    )


def test_a_check_tries_the_hosts_together_and_names_those_that_do_not_answer(network):
    write(network, "checked")
    said = ended(
        network.scalestudy(
            "check", "checked.toml", "--skip", "bandwidth", "--format", "json"
        )
    )
    report = json.loads(said[said.index("{") : said.rindex("}") + 1])
    lines = {(line["topic"], line["where"]): line["status"] for line in report["lines"]}
    assert "fail" not in lines.values() and any(
        topic == "collectives" for topic, _ in lines
    ), said
    write(network, "checked", hosts=("lab1", "nowhere"))
    said = ended(network.scalestudy("check", "checked.toml", "--format", "json"))
    assert "nowhere" in said and said.endswith("exit code 2"), said


def test_files_that_a_host_does_not_see_are_named_with_it(network):
    hidden = network.home / "hidden"
    hidden.mkdir()
    shutil.chown(hidden, GUEST, GUEST)
    network.hide(hidden, on="lab2")
    write(network, "hidden/study")
    for command in (
        ("check", "hidden/study.toml"),
        ("run", "hidden/study.toml", "--no-report"),
    ):
        said = ended(network.scalestudy(*command))
        assert "lab2" in said and said.endswith("exit code 1"), said
