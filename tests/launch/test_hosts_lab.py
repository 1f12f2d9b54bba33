"""Studies on several machines, started by SSH as another account: machines of their own with a real sshd."""

import json
import shutil
import signal
from collections.abc import Iterator

import pytest

from lab import GUEST, Lab, missing
from scalestudy.store.study_folder import StudyFolder

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
def lab() -> Iterator[Lab]:
    if reason := missing():
        pytest.skip(reason)
    with Lab("lab1", "lab2") as made:
        yield made


def write(lab: Lab, name: str, *, workers: int = 2, epochs: int = 1, hosts=("lab1:1", "lab2:1")) -> None:
    text = STUDY.format(
        cache=lab.home / "cache", epochs=epochs, workers=workers, hosts=json.dumps(list(hosts))
    )
    (lab.home / f"{name}.toml").write_text(text)


def ended(started) -> str:
    said, _ = started.communicate(timeout=600)
    return f"{said}\nexit code {started.returncode}"


def newest(lab: Lab, name: str):
    path = lab.home / "studies" / name
    if not (path / "study.json").exists():
        return None
    folder = StudyFolder.open(path)
    runs = [run for point in folder.points() for run in folder.runs(point.name)]
    return runs[-1] if runs else None


def test_a_run_has_a_worker_on_each_host_that_belongs_to_the_account(lab):
    write(lab, "two")
    said = ended(lab.scalestudy("run", "two.toml", "--no-report"))
    run = newest(lab, "two")
    assert run is not None and run.result() is not None, said
    assert [record.host for record in run.ranks()] == ["lab1", "lab2"]
    assert run.path.stat().st_uid == GUEST
    assert lab.left("lab1") == lab.left("lab2") == []


def under_way(lab: Lab, name: str, restarts: int = 0):
    """Wait until a study's newest run trains, after so many restarts; return the run."""

    def look():
        run = newest(lab, name)
        progress = run.progress() if run else None
        return run if progress and progress.restarts == restarts and progress.epoch > 1 else None

    return lab.wait_for(look, f"{name} to train after {restarts} restarts")


def test_a_lost_host_is_named_and_its_run_goes_on_when_it_is_back(lab):
    write(lab, "lost", epochs=100_000)
    started = lab.scalestudy("run", "lost.toml", "--no-report")
    run = under_way(lab, "lost")
    lab.python(started).send_signal(signal.SIGINT)
    said = ended(started)
    assert said.endswith("exit code 130") and run.checkpoint.exists(), said
    assert lab.left("lab1") == lab.left("lab2") == []

    started = lab.scalestudy("run", "lost.toml", "--no-report")
    under_way(lab, "lost", restarts=1)
    lab.kill("lab2")
    said = ended(started)
    failure = run.failure()
    assert failure is not None and failure.rank is None, said
    assert "lab2" in failure.reason and "lab1" not in failure.reason
    assert lab.left("lab1") == []

    said = ended(lab.scalestudy("run", "lost.toml", "--no-report"))
    assert "lab2" in said and said.endswith("exit code 2")
    lab.start("lab2")
    started = lab.scalestudy("run", "lost.toml", "--no-report")
    assert under_way(lab, "lost", restarts=2).path == run.path

    # No process is left when the launcher is killed.
    assert lab.left("lab1") and lab.left("lab2")
    lab.python(started).kill()
    lab.wait_for(lambda: not lab.left("lab1") + lab.left("lab2"), "the end of all processes")


def test_a_check_tries_the_hosts_together_and_names_those_that_do_not_answer(lab):
    write(lab, "checked")
    said = ended(lab.scalestudy("check", "checked.toml", "--skip", "bandwidth", "--format", "json"))
    report = json.loads(said[said.index("{") : said.rindex("}") + 1])
    lines = {(line["topic"], line["where"]): line["status"] for line in report["lines"]}
    assert "fail" not in lines.values() and any(topic == "collectives" for topic, _ in lines), said
    write(lab, "checked", hosts=("lab1", "nowhere"))
    said = ended(lab.scalestudy("check", "checked.toml", "--format", "json"))
    assert "nowhere" in said and said.endswith("exit code 2"), said


def test_files_that_a_host_does_not_see_are_named_with_it(lab):
    hidden = lab.home / "hidden"
    hidden.mkdir()
    shutil.chown(hidden, GUEST, GUEST)
    lab.hide(hidden, on="lab2")
    write(lab, "hidden/study")
    for command in (("check", "hidden/study.toml"), ("run", "hidden/study.toml", "--no-report")):
        said = ended(lab.scalestudy(*command))
        assert "lab2" in said and said.endswith("exit code 1"), said
