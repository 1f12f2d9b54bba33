"""A check from its subject to its report, without a terminal: it reports events and prints nothing."""

from pathlib import Path

import pytest

from scalestudy.features.check.check import CheckOptions, check, plan_of
from scalestudy.features.check.check_files import CheckPlan
from scalestudy.features.check.check_job import check_point
from scalestudy.features.check.check_report import Report, report_failure, report_pass
from scalestudy.features.check.check_subject import CheckSubject, needs_of
from scalestudy.plugins import strategies
from scalestudy.plugins.traits import Traits
from scalestudy.util.errors import UserError

GOOD = Report(lines=(report_pass("ranks", "n1", "2 ranks"),))
BAD = Report(lines=(report_failure("ranks", "n1", "closed", "Open it."),))
SITE = "cpus_per_node = 4\npartition = 'gpu'\n"
AHEAD = ("versions", "slurm")
"""Skipped: they start another Python and call Slurm."""


def telling():
    """Collect the notes and the progress of a check."""
    notes, progress = [], []
    return notes, progress, {"note": notes.append, "on_progress": progress.append}


@pytest.fixture
def here(monkeypatch):
    """Make processes on this machine return or raise `report`."""

    def say(report):
        def check_here(folder, plan, on_progress, environment):
            on_progress("ring, 1 of 3")
            (folder / "logs").mkdir(parents=True, exist_ok=True)
            if isinstance(report, Exception):
                raise report
            return report

        monkeypatch.setattr("scalestudy.features.check.check.check_here", check_here)

    return say


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("scalestudy.features.check.check.submit_check", lambda *_: "17")
    (tmp_path / "site.toml").write_text(SITE)
    return "site.toml"


def job_says(monkeypatch, report):
    def await_report(folder, job, on_progress):
        on_progress(f"job {job}: running")
        if isinstance(report, BaseException):
            raise report
        return report

    monkeypatch.setattr("scalestudy.features.check.check.await_report", await_report)


@pytest.mark.parametrize(
    ("report", "named"), [(GOOD, False), (BAD, False), (GOOD, True)]
)
def test_logs_of_a_failure_or_of_a_named_folder_stay_and_others_go(
    here, tmp_path, monkeypatch, report, named
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    here(report)
    notes, progress, listeners = telling()
    check(
        None,
        CheckOptions(workers=2, folder=tmp_path / "mine" if named else None),
        **listeners,
    )
    assert progress == ["Checking with 2 processes on this machine", "ring, 1 of 3"]
    if report is GOOD and not named:
        assert notes == [] and list(tmp_path.iterdir()) == []
    else:
        logs = Path(notes[-1].removeprefix("Logs: "))
        assert logs.is_dir() and logs.is_relative_to(tmp_path)


def test_a_job_is_told_with_its_report_or_how_to_get_it_if_it_is_left(
    site, monkeypatch, tmp_path
):
    job_says(monkeypatch, BAD)
    notes, progress, listeners = telling()
    options = CheckOptions(submit=True, nodes=2, skip=AHEAD, folder=tmp_path / "job")
    report = check(site, options, **listeners)
    assert notes == [f"Job 17: 8 processes on 2 nodes, files in {tmp_path / 'job'}"]
    assert progress == ["job 17: running"]
    assert report.failed and [line.topic for line in report.lines][-1:] == ["ranks"]
    job_says(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        check(
            site,
            CheckOptions(submit=True, skip=AHEAD, folder=tmp_path / "left"),
            **listeners,
        )
    assert (
        f"scalestudy check {tmp_path / 'left'}" in notes[-1]
        and "scancel 17" in notes[-1]
    )


def test_a_queue_that_cannot_be_checked_is_not_asked_and_not_submitted_to(
    tmp_path, monkeypatch
):
    (tmp_path / "site.toml").write_text("cpus_per_node = 4\n")
    study = 'task = "cnn"\n[sweep]\nworkers = 1\nseed = 0\n[launch]\non = "pbs"\nsite = "site.toml"\n'
    (tmp_path / "study.toml").write_text(study)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(UserError, match="pbs"):
        check(str(tmp_path / "study.toml"), CheckOptions(submit=True))
    report = check(str(tmp_path / "study.toml"), CheckOptions(skip=("versions",)))
    topics = {line.topic for line in report.lines}
    assert "folders" in topics and "slurm" not in topics


def points(*names):
    return [
        check_point(None, CheckPlan(workers=2)).on(implementation=name)
        for name in names
    ]


def test_needs_are_what_processes_meet_by_each_once():
    assert needs_of(points("single", "multiworker", "horovod", "multiworker")) == (
        "auto",
        "horovod",
    )
    assert needs_of(points("single", "mirrored", "virtual")) == ()


def test_a_strategy_of_another_package_brings_its_library(monkeypatch):
    mine = Traits(
        "mine",
        "a strategy of another package",
        "tensorflow",
        processes="per-worker",
        library="mpi4py",
    )
    monkeypatch.setitem(strategies.REGISTRY._built_in, "mine", "")
    monkeypatch.setitem(strategies.REGISTRY._loaded, "mine", mine)
    about = CheckSubject(points=points("mine"))
    assert (
        plan_of(about, CheckOptions(workers=2)).libraries == ("mpi4py",)
        and needs_of(about.points) == ()
    )


def test_one_engine_of_a_study_is_checked_in_the_environment_that_it_names(
    tmp_path, monkeypatch
):
    text = '[launch]\nenvironments = { torch = "x" }\n[sweep]\nstrategy = ["native", "ddp"]\nseed = 0\n'
    (tmp_path / "study.toml").write_text(f'task = "cnn"\n{text}')
    asked, (notes, _, listeners) = [], telling()

    def check_here(folder, plan, on_progress, environment):
        asked.append((plan.engine, environment))
        return Report(lines=())

    monkeypatch.setattr("scalestudy.features.check.check.check_here", check_here)
    study = str(tmp_path / "study.toml")
    check(study, **listeners)
    with pytest.raises(UserError) as refused:
        check(study, CheckOptions(engine="torch"), **listeners)
    assert "environments of torch" in refused.value.expected
    (tmp_path / "x").mkdir()
    check(study, CheckOptions(engine="torch"), **listeners)
    assert asked == [("tensorflow", None), ("torch", str(tmp_path / "x"))]
    assert "--engine torch" in notes[0] and "--engine tensorflow" in notes[1]
    with pytest.raises(UserError):
        check(study, CheckOptions(engine="tensorflaw"))
