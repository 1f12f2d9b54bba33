"""The points of a study on this machine, and why requested GPUs are not visible."""

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import psutil
import pytest

from fake_nvml import cards
from scalestudy.cluster.worker_environment import device_of
from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.config.point import Point
from scalestudy.config.settings import DataSettings, TrainSettings
from scalestudy.config.task_defaults import task_defaults
from scalestudy.engines.tensorflow import installation
from scalestudy.hardware import cores, devices, no_gpus
from scalestudy.launch import reserve
from scalestudy.launch.environments import refuse_missing_software
from scalestudy.launch.interrupted_runs import interrupted_run
from scalestudy.launch.launcher import Moved, Note, Options, Step, UnrecordedFailure
from scalestudy.launch.launchers import LOCAL
from scalestudy.launch.local import points_here
from scalestudy.launch.stop_signal import STOPPED_BY
from scalestudy.launch.study_status import study_status
from scalestudy.launch.worker_processes import Command
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError


@pytest.fixture(autouse=True)
def counted_anew(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    devices.gpus.cache_clear()
    yield
    devices.gpus.cache_clear()


def points(launch="", sweep=""):
    text = f'task = "cnn"\n[launch]\n{launch}\n[sweep]\nworkers = 1\n{sweep}\n'
    return points_here(parse_study(text, Path("mine.toml")))


@pytest.mark.parametrize(
    ("launch", "sweep"),
    [('device = "gpu"', ""), ("", '"launch.device" = ["cpu", "gpu"]')],
)
def test_gpus_that_are_asked_for_and_not_seen_are_refused_with_the_line_and_the_reason(
    nvml, launch, sweep
):
    nvml(driver=None)
    with pytest.raises(UserError) as error:
        points(launch, sweep)
    assert "mine.toml" in str(error.value) and "NVML Shared Library Not Found" in str(
        error.value
    )


def test_gpus_whose_driver_does_not_answer_are_refused_unless_cpus_are_asked_for(
    nvml, tmp_path, monkeypatch
):
    nvml(driver=None)
    monkeypatch.setattr(no_gpus, "FIRST_DEVICE", tmp_path / "nvidia0")
    assert points()
    assert device_of("auto", 0, []) == "cpu"
    (tmp_path / "nvidia0").touch()
    with pytest.raises(UserError, match="NVML Shared Library Not Found"):
        points()
    assert points('device = "cpu"')
    assert (device_of("auto", 0, []), device_of("cpu", 0, [])) == ("gpu", "cpu")


def test_where_there_are_some_they_are_taken(nvml):
    nvml(*cards(1))
    assert points('device = "gpu"')[0].launch.device == "gpu"


TEXT = 'task = "cnn"\n[sweep]\nworkers = 1\nseed = [0, 1]\n'


SLEEPS = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"


@pytest.fixture(autouse=True)
def own_locks(tmp_path, monkeypatch):
    (tmp_path / "runtime").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    study = parse_study(TEXT, Path("study.toml"))
    return StudyFolder.create_or_open(
        tmp_path / "results", study, expand(study, gpus=0, cores=8), TEXT
    )


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch):
    """Make each worker run this program."""

    def be(program: str) -> None:
        def command(run, rank, size, port, cpus, environment) -> Command:
            return Command(
                [sys.executable, "-c", program],
                dict(os.environ),
                (),
                run.log(rank),
                run.path,
            )

        monkeypatch.setattr(
            "scalestudy.launch.worker_processes.worker_command", command
        )

    return be


def pid_of(run: Path) -> int:
    deadline = time.monotonic() + 600
    while not (run / "pid").exists() or not (run / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int((run / "pid").read_text())


def begun(folder: StudyFolder) -> tuple[Generator[Step, None, None], RunFolder, int]:
    """Begin with the first point; return the steps to come, its run, and its worker's process id."""
    steps = LOCAL.start(folder, folder.points(), Options())
    assert next(steps) == Moved("native-w1-s0")
    run = folder.runs("native-w1-s0")[0]
    return steps, run, pid_of(run.path)


def test_an_interrupt_between_two_steps_ends_the_workers_and_is_written_down(
    folder, workers
):
    workers(SLEEPS)
    steps, run, pid = begun(folder)
    with pytest.raises(KeyboardInterrupt):
        steps.throw(KeyboardInterrupt())
    assert not psutil.pid_exists(pid)
    assert run.failure().reason == "interrupted by the user"
    assert study_status(folder).states == {
        "native-w1-s0": "cancelled",
        "native-w1-s1": "missing",
    }


LEAVES = (
    "import os, time\nopen('pid', 'w').write(str(os.getpid()))\n"
    "while not os.path.exists('stop'): time.sleep(0.02)\nopen('checkpoint.npz', 'w')\n"
    'open("stopped.json", "w").write(\'{"epoch": 1, "step": 2}\')'
)


@pytest.fixture
def hangup() -> Iterator[None]:
    """Do not ignore SIGHUP, although nohup may have started these tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
@pytest.mark.parametrize("number", STOPPED_BY)
def test_a_first_signal_asks_for_a_checkpoint_and_is_recorded_as_what_it_was(
    folder, workers, hangup, number
):
    workers(LEAVES)
    steps, run, _ = begun(folder)
    notes = []
    os.kill(os.getpid(), number)
    with pytest.raises(KeyboardInterrupt):
        notes.extend(step for step in steps if isinstance(step, Note))
    assert len(notes) == 1
    failure = run.failure()
    assert (failure.signal, failure.cancelled, failure.rank) == (
        signal.Signals(number).name,
        True,
        None,
    )
    assert study_status(folder).states == {
        "native-w1-s0": "cancelled",
        "native-w1-s1": "missing",
    }
    assert (
        interrupted_run(folder, run.point()) == run
    )  # although other points may use its cores


def test_a_second_ctrl_c_stops_it_at_once(folder, workers):
    workers(SLEEPS)
    steps, run, pid = begun(folder)
    os.kill(os.getpid(), signal.SIGINT)
    assert any(isinstance(step, Note) for step in steps)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        steps.throw(KeyboardInterrupt())
    assert not psutil.pid_exists(pid)
    assert run.failure().signal == "SIGINT"


def test_whoever_stops_taking_steps_leaves_no_worker_behind(folder, workers):
    workers(SLEEPS)
    steps, _, pid = begun(folder)
    steps.close()
    assert not psutil.pid_exists(pid)


def test_a_point_moves_when_it_begins_and_when_it_ends_and_the_next_one_follows(
    folder, workers
):
    workers("raise SystemExit(3)")
    moved = [step.name for step in LOCAL.start(folder, folder.points(), Options())]
    assert list(dict.fromkeys(moved)) == ["native-w1-s0", "native-w1-s1"]
    assert 2 <= len(moved) <= 4
    assert [each.reason for each in study_status(folder).points] == [
        "rank 0 ended with exit code 3"
    ] * 2


UNTIL_TOLD = """
import os, sys, time
open("pid", "w").write(str(os.getpid()))
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
sys.exit(3)
"""


def fill(disk: Path) -> Path:
    file = disk / "filler"
    with contextlib.suppress(OSError), open(file, "wb", buffering=0) as stream:
        while True:
            stream.write(b"0" * 4096)
    return file


def test_a_failure_that_a_full_disk_cannot_hold_is_told_and_the_next_point_has_its_turn(
    tmp_path, small_disk, workers, monkeypatch
):
    monkeypatch.setattr(
        "scalestudy.launch.local_run.spare_space", contextlib.nullcontext
    )
    study = parse_study(TEXT, Path("study.toml"))
    points = expand(study, gpus=0, cores=8)
    folder = StudyFolder.create_or_open(small_disk / "results", study, points, TEXT)
    told = tmp_path / "told"
    workers(UNTIL_TOLD.replace("sys.argv[1]", repr(str(told))))
    steps, _, pid = begun(folder)
    filler = fill(small_disk)
    told.touch()
    (lost,) = [
        step
        for step in takewhile_of(steps, "native-w1-s0")
        if isinstance(step, UnrecordedFailure)
    ]
    assert lost.failure.reason == (
        "rank 0 ended with exit code 3; its folder cannot say so (No space left on device)"
    )
    assert not psutil.pid_exists(pid)
    filler.unlink()
    assert {step.name for step in steps} == {"native-w1-s1"}
    assert (
        folder.runs("native-w1-s1")[0].failure().reason
        == "rank 0 ended with exit code 3"
    )


def takewhile_of(steps, name: str):
    """Yield steps up to the end of a point, which follows its `UnrecordedFailure` step."""
    for step in steps:
        yield step
        if isinstance(step, UnrecordedFailure):
            assert step.name == name
            assert next(steps) == Moved(name)
            return


def test_a_point_that_a_full_disk_cannot_begin_is_told_and_leaves_nothing(
    tmp_path, small_disk, workers
):
    study = parse_study(TEXT, Path("study.toml"))
    folder = StudyFolder.create_or_open(
        small_disk / "results", study, expand(study, gpus=0, cores=8), TEXT
    )
    workers("raise SystemExit(3)")
    filler = fill(small_disk)
    steps = list(LOCAL.start(folder, folder.points(), Options()))
    lost = [step for step in steps if isinstance(step, UnrecordedFailure)]
    assert [step.name for step in lost] == ["native-w1-s0", "native-w1-s1"]
    assert all("No space left on device" in step.failure.reason for step in lost)
    filler.unlink()
    assert [
        each
        for each in (folder.path / "points").rglob("*")
        if each.name.startswith(".run-")
    ] == []


@pytest.mark.slow
@pytest.mark.parametrize("what", ["the run", "all points", "the study"])
def test_a_folder_removed_under_a_run_ends_it_and_the_next_point_has_its_turn(
    folder, workers, what
):
    workers(SLEEPS)
    steps, begun_run, pid = begun(folder)
    run = begun_run.path
    shutil.rmtree(
        {
            "the run": run,
            "all points": folder.path / "points",
            "the study": folder.path,
        }[what]
    )
    workers("raise SystemExit(3)")
    lost = [step for step in steps if isinstance(step, UnrecordedFailure)]
    assert not psutil.pid_exists(pid)
    assert lost[0].failure.reason == f"its folder was removed while it ran: {run}"
    if what == "the study":
        assert "No such file or directory" in lost[1].failure.reason
        assert not folder.path.exists(), "what a person has removed is not made again"
    else:
        assert (
            study_status(folder).of("native-w1-s1").reason
            == "rank 0 ended with exit code 3"
        )


def test_a_worker_that_cannot_be_started_is_the_end_of_its_point_alone(
    folder, monkeypatch
):
    def command(run, rank, size, port, cpus, environment) -> Command:
        return Command(["/no/such/python"], {}, (), run.log(rank), run.path)

    monkeypatch.setattr("scalestudy.launch.worker_processes.worker_command", command)
    steps = list(LOCAL.start(folder, folder.points(), Options()))
    assert {step.name for step in steps} == {"native-w1-s0", "native-w1-s1"}
    assert all(
        "No such file or directory: /no/such/python" in each.reason
        for each in study_status(folder).points
    )


FIRST = 3136
"""The first of eight CPU numbers that do not exist, at the start of a word of NVML's CPU mask."""
LOW, HIGH = ((0,) * (FIRST // 64) + (bits,) for bits in (0b00001111, 0b11110000))


@pytest.fixture
def gpus(nvml, monkeypatch):
    """A machine with four GPUs and eight CPUs; the first two GPUs are near the last four CPUs."""
    found = cards(4)
    for card, cpus in zip(found, (HIGH, HIGH, LOW, LOW), strict=True):
        card.cpus = cpus
    nvml(*found)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(
        "scalestudy.hardware.cores.granted", lambda: list(range(FIRST, FIRST + 8))
    )
    devices.gpus.cache_clear()
    yield
    devices.gpus.cache_clear()


def points_of(text: str) -> list[Point]:
    return LOCAL.points(
        parse_study(f'task = "cnn"\n{text}', Path("study.toml")), Options()
    )


def test_a_gpus_worker_has_its_share_of_the_cores_unless_the_study_says_otherwise(
    gpus, monkeypatch
):
    def cpus(text: str = "") -> list[int]:
        return [point.launch.cpus_per_worker for point in points_of(text)]

    assert cpus("[sweep]\nseed = 0\nworkers = [1, 2, 4]") == [2, 2, 2]
    assert cpus("[sweep]\nseed = 0\nworkers = 1\n[launch]\ncpus_per_worker = 5") == [5]
    assert cpus(
        '[sweep]\nseed = 0\nworkers = 1\n"launch.device" = ["auto", "cpu", "gpu"]'
    ) == [2, 1, 2]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    devices.gpus.cache_clear()
    assert cpus("[sweep]\nseed = 0\nworkers = [1, 2]") == [
        2,
        2,
    ]  # the cores of hidden GPUs are not used


@pytest.mark.parametrize(
    ("strategy", "workers", "expected"),
    [
        ("horovod", 4, [[4, 5], [6, 7], [0, 1], [2, 3]]),
        ("mirrored", 3, [[0, 1, 4, 5, 6, 7]]),
        ("single", 1, [[4, 5]]),
        ("virtual", 9, [[4, 5]]),
    ],
)
def test_each_worker_is_given_cores_near_its_gpu(
    gpus, tmp_path, monkeypatch, strategy, workers, expected
):
    text = f'task = "cnn"\n[sweep]\nstrategy = "{strategy}"\nworkers = {workers}\nseed = 0\n'
    study, given = parse_study(text, Path("study.toml")), {}

    def command(run, rank, size, port, cpus, environment) -> Command:
        given[rank] = [cpu - FIRST for cpu in cpus]
        return Command(
            [sys.executable, "-c", ""], dict(os.environ), (), run.log(rank), run.path
        )

    monkeypatch.setattr("scalestudy.launch.worker_processes.worker_command", command)
    points = LOCAL.points(study, Options())
    made = StudyFolder.create_or_open(tmp_path / "results", study, points, text)
    assert [
        each for each in LOCAL.start(made, points, Options()) if isinstance(each, Moved)
    ]
    assert [given[rank] for rank in range(len(given))] == expected
    assert made.runs(points[0].name)[0].point().oversubscribed is None


def test_a_run_on_cores_of_another_study_is_marked_and_the_user_told(folder, workers):
    workers("raise SystemExit(3)")
    granted = cores.granted()
    with reserve.cores(granted, len(granted)):
        steps = list(LOCAL.start(folder, folder.points(), Options()))
    (run,) = folder.runs(folder.points()[0].name)
    assert run.point().oversubscribed is not None
    assert any(
        isinstance(step, Note) and run.point().oversubscribed in step.text
        for step in steps
    )


def point(implementation: str) -> Point:
    values = {
        "name": implementation,
        "study": "s",
        "task": "cnn",
        "workers": 1,
        "seed": 0,
    }
    settings = {
        "data": task_defaults("cnn").complete_data(DataSettings()),
        "train": task_defaults("cnn").complete_train(TrainSettings()),
    }
    return Point.model_validate(
        values
        | settings
        | {"strategy": implementation, "terms": {"implementation": implementation}}
    )


def test_a_horovod_point_without_horovod_is_refused_with_the_command_that_builds_it(
    monkeypatch,
):
    monkeypatch.setattr(installation, "library_file", lambda: None)
    with pytest.raises(UserError, match=f"build-horovod.sh {sys.prefix}"):
        refuse_missing_software([point("single"), point("horovod")])
    refuse_missing_software(
        [point("single"), point("mirrored"), point("multiworker"), point("virtual")]
    )


def test_without_tensorflow_every_run_is_refused(monkeypatch):
    alone = point("single")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install '\.\[cpu\]'"):
        refuse_missing_software([alone])
