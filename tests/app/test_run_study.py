"""Running a study: reported events, interrupts, and checks that are not repeated."""

import time
from pathlib import Path

import pytest

from recording_listener import RecordingListener
from scalestudy.app.follow import Listener, follow_launcher
from scalestudy.app.plan import Request, request_of
from scalestudy.app.run_study import Interrupted, run_study, submit_study
from scalestudy.launch.job_view import JobView
from scalestudy.launch.launcher import Moved, Note, Options, Overview
from scalestudy.launch.queue.launchers import SLURM
from scalestudy.launch.scheduler import QueueRefused
from scalestudy.store.study_folder import StudyFolder
from synthetic_result import FakeLauncher, progress_of, result_of

TEXT = 'task = "cnn"\n[sweep]\nworkers = 1\nseed = [0, 1]\n'
LAUNCH = '[launch]\non = "slurm"\nsite = "here.toml"\n'


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("scalestudy.hardware.devices.gpus", lambda: 0)
    monkeypatch.setattr("scalestudy.hardware.cores.granted", lambda: [0, 1])
    monkeypatch.setattr(
        "scalestudy.launch.local.refuse_missing_software", lambda points: None
    )
    file = tmp_path / "study.toml"
    file.write_text(TEXT)
    return file


def test_an_interrupt_while_something_is_shown_reaches_the_run_first(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = []

    def run_steps(folder, point, *_):
        run = folder.new_run(point)
        try:
            while True:
                run.write_progress(progress_of(updated=time.time()))
                yield Moved(point.name)
        except (KeyboardInterrupt, GeneratorExit):
            notes.append(point.name)
            raise

    class Impatient(Listener):
        def points_changed(self, overview) -> None:
            if not notes:
                raise KeyboardInterrupt

    monkeypatch.setattr("scalestudy.launch.local.run_steps", run_steps)
    with pytest.raises(Interrupted) as caught:
        run_study(request_of(study), listener=Impatient())
    assert notes == ["native-w1-s0"] and not caught.value.goes_on
    with StudyFolder.open(study.parent / "studies" / "study").lock():
        pass


def test_runs_of_one_seed_begin_with_one_file_where_engines_are_compared(
    study: Path, launcher: FakeLauncher
) -> None:
    run_study(request_of(study))
    assert {point.files.initial for point in launcher.points if point.files} == {None}
    study.write_text(TEXT.replace("[sweep]", '[sweep]\nstrategy = ["native", "ddp"]'))
    listener, launcher.points = RecordingListener(), []
    run_study(request_of(study), listener=listener)
    assert [point.name for point in launcher.points] == ["ddp-w1-s0", "ddp-w1-s1"]
    assert any("did not store their initial weights" in note for note in listener.notes)

    launcher.points = []
    run_study(request_of(study, study.parent / "whole"), listener=listener)
    files = {point.name: point.needed_files().initial for point in launcher.points}
    assert len(files) == 4
    for seed in (0, 1):
        assert files[f"native-w1-s{seed}"] == files[f"ddp-w1-s{seed}"]
    first, second = (Path(str(files[f"ddp-w1-s{seed}"])) for seed in (0, 1))
    assert first.parent == second.parent == study.parent / "whole" / "initial"
    assert first != second


class Cluster:
    """A queue whose jobs reach their time limit at the first submission and succeed at the second."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.submitted = 0

    def submit(self, script: Path) -> str:
        self.submitted += 1
        return str(self.submitted)

    def ask(self, jobs, *, cluster: str = "") -> dict[str, JobView]:
        folder = StudyFolder.open(self.request.target)
        for point in folder.points():
            (run,) = folder.runs(point.name)
            if self.submitted == 2:
                run.checkpoint.touch()
            else:
                run.write_result(result_of(point))
        state = "TIMEOUT" if self.submitted == 2 else "COMPLETED"
        return {job: JobView(job=job, state=state) for job in jobs}


@pytest.fixture
def queued(study: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study of three rows and two seeds with prepared data, for a queue that accepts all jobs."""
    from scalestudy.app import prepare

    (study.parent / "here.toml").write_text("cpus_per_node = 4\n")
    study.write_text(TEXT.replace("workers = 1", "workers = [1, 2, 4]") + LAUNCH)
    for data in prepare.study_data(study, Listener())[0]:
        prepare.prepare_data(data, None, study.parent, Listener())
    kind = type(SLURM.queue)
    ids = iter(range(1, 100))
    monkeypatch.setattr(kind, "submit", lambda self, script, after=None: str(next(ids)))
    monkeypatch.setattr(kind, "ask", lambda self, jobs, cluster="": {})
    monkeypatch.setattr(kind, "marked", lambda self: [])
    monkeypatch.setattr(kind, "cluster_name", lambda self: "test")
    return study


def test_jobs_are_submitted_in_the_order_of_the_study(queued: Path) -> None:
    request, listener = request_of(queued), RecordingListener()
    submit_study(request, Options(), listener=listener)
    folder = StudyFolder.open(request.target)
    arranged = folder.order.arrange(folder.points())
    names = [name for name, _ in listener.jobs]
    assert names == [point.name for point in arranged]
    assert [folder.runs(name)[0].point().place for name in names] == [
        point.place for point in arranged
    ]


def test_what_is_interrupted_is_submitted_again_without_checking_everything_again(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scalestudy.app import plan, prepare

    (study.parent / "here.toml").write_text("cpus_per_node = 4\n")
    study.write_text(TEXT + LAUNCH)
    request = request_of(study)
    for data in prepare.study_data(study, Listener())[0]:
        prepare.prepare_data(data, None, study.parent, Listener())
    cluster, asked = Cluster(request), []
    kind = type(SLURM.queue)
    monkeypatch.setattr(
        kind, "submit", lambda self, script, after=None: cluster.submit(script)
    )
    monkeypatch.setattr(
        kind, "ask", lambda self, jobs, cluster="", fake=cluster: fake.ask(jobs)
    )
    monkeypatch.setattr(kind, "cluster_name", lambda self: "test")
    monkeypatch.setattr("scalestudy.app.follow.pause", lambda cost: 0.01)
    monkeypatch.setattr("scalestudy.launch.polling.SHORTEST", 0.0)
    look_for_data = plan.prepare_ahead

    def counted(points, *rest):
        asked.extend(point.name for point in points)
        return look_for_data(points, *rest)

    monkeypatch.setattr(plan, "prepare_ahead", counted)

    listener = RecordingListener()
    result = run_study(request, listener=listener, report=False)
    names = ("native-w1-s0", "native-w1-s1")
    assert [job for _, job in listener.jobs] == ["1", "2", "3", "4"]
    assert result.failures == [] and result.runs.height == 2
    assert sorted(asked) == sorted(names), "the data was looked for once"
    run = StudyFolder.open(request.target).runs(names[0])[0]
    assert run.number == 1 and run.job().attempt == 2


def test_a_queue_is_asked_once_if_nothing_is_to_submit(
    queued: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, asked = request_of(queued), []

    def ask(self, jobs, cluster: str = "") -> dict[str, JobView]:
        asked.append("ask")
        return {job: JobView(job=job, state="PENDING") for job in jobs}

    def marked(self) -> list:
        asked.append("marked")
        return []

    kind = type(SLURM.queue)
    monkeypatch.setattr(kind, "ask", ask)
    monkeypatch.setattr(kind, "marked", marked)
    assert submit_study(request, Options()) == 6
    asked.clear()
    assert submit_study(request, Options()) == 0
    assert asked == ["ask"]


FULL = QueueRefused("Slurm", "sbatch", "QOSMaxSubmitJobPerUserLimit")


@pytest.mark.parametrize("refusal", [None, FULL])
def test_the_queue_is_fed_as_jobs_end(
    queued: Path, monkeypatch: pytest.MonkeyPatch, refusal
) -> None:
    """Two of six points are in the queue at once, by the user's setting or because the queue refuses more."""
    request, listener = request_of(queued), RecordingListener()
    open_jobs: list[str] = []
    most = []

    def submit(self, script: Path, after: str | None = None) -> str:
        if refusal and len(open_jobs) == 2:
            raise refusal
        open_jobs.append(str(len(listener.jobs) + 1))
        most.append(len(open_jobs))
        return open_jobs[-1]

    def ask(self, jobs, cluster: str = "") -> dict[str, JobView]:
        """Finish one more job once the queue is full or every job is submitted."""
        folder = StudyFolder.open(request.target)
        if len(open_jobs) == 2 or len(listener.jobs) == 6:
            done = open_jobs.pop(0)
            (name,) = (name for name, job in listener.jobs if job == done)
            folder.runs(name)[0].write_result(result_of(folder.runs(name)[0].point()))
        states = {job: "RUNNING" if job in open_jobs else "COMPLETED" for job in jobs}
        return {job: JobView(job=job, state=state) for job, state in states.items()}

    kind = type(SLURM.queue)
    monkeypatch.setattr(kind, "submit", submit)
    monkeypatch.setattr(kind, "ask", ask)
    monkeypatch.setattr("scalestudy.app.follow.pause", lambda cost: 0.0)
    monkeypatch.setattr("scalestudy.launch.polling.SHORTEST", 0.0)
    monkeypatch.setattr("scalestudy.launch.polling.LONGEST", 0.0)
    options = Options(at_most=None if refusal else 2)
    result = run_study(request, listener=listener, report=False, options=options)
    assert result.runs.height == len(listener.jobs) == 6 and result.failures == []
    assert max(most) == 2
    blocked = [note for note in listener.notes if FULL.words in note]
    assert len(blocked) == (1 if refusal else 0), (
        "a queue that takes no more is reported once"
    )


def test_what_a_launcher_says_while_it_waits_is_told(monkeypatch):
    monkeypatch.setattr(
        "scalestudy.app.follow.study_status", lambda folder, known, names=None: known
    )
    listener = RecordingListener()

    class Launcher:
        def start(self, folder, points, options):
            yield Note("a waits for a GPU")

    follow_launcher(Launcher(), None, [], Overview([]), Options(), listener)
    assert listener.notes == ["a waits for a GPU"]
