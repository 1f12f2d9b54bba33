"""A check from its subject to its report, without a terminal: what it tells, and that it prints nothing."""

import pytest

from scalestudy.features.check.check import CheckOptions, check
from scalestudy.features.check.line import Report, failed, passed
from scalestudy.features.check.listener import CheckListener
from scalestudy.util.errors import RunError, UserError

GOOD = Report(lines=(passed("ranks", "n1", "2 ranks"),))
BAD = Report(lines=(failed("ports", "n1", "closed", "Open it."),))
SITE = "cpus_per_node = 4\npartition = 'gpu'\n"
AHEAD = ("versions", "slurm")
"""Left out: they ask another Python, and Slurm."""


def telling():
    """A listener that keeps what it hears."""
    heard = []

    class Heard(CheckListener):
        def __getattribute__(self, name):
            return lambda *arguments: heard.append((name, *arguments))

    return heard, Heard()


@pytest.fixture
def here(monkeypatch):
    """What processes on this machine are said to report."""

    def say(report):
        def check_here(folder, plan):
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
    def await_report(folder, job, *, limit, tell):
        tell(f"job {job}: running")
        if isinstance(report, BaseException):
            raise report
        return report

    monkeypatch.setattr("scalestudy.features.check.check.await_report", await_report)


def test_nothing_is_printed_and_nobody_need_listen(here, capfd):
    here(GOOD)
    assert check() == GOOD
    assert capfd.readouterr() == ("", "")


def test_waiting_for_processes_is_told_and_files_of_a_good_check_go(here, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    here(GOOD)
    heard, listener = telling()
    check(None, CheckOptions(workers=2), listener)
    assert heard == [("processes_started", 2), ("waiting_ended",)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("report", "named"), [(BAD, False), (GOOD, True)])
def test_logs_of_a_failure_or_of_a_named_folder_stay(here, tmp_path, monkeypatch, report, named):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    here(report)
    heard, listener = telling()
    check(None, CheckOptions(workers=2, folder=tmp_path / "mine" if named else None), listener)
    (name, logs) = heard[-1]
    assert name == "logs_kept" and logs.is_dir() and logs.is_relative_to(tmp_path)


def test_waiting_ends_when_processes_end_without_a_report(here, tmp_path):
    here(RunError("a report", "none", "Look."))
    heard, listener = telling()
    with pytest.raises(RunError):
        check(None, CheckOptions(workers=2, folder=tmp_path / "mine"), listener)
    assert heard[-1] == ("waiting_ended",)


def test_a_site_without_a_job_says_that_nodes_were_not_seen(site):
    heard, listener = telling()
    report = check(site, CheckOptions(skip=AHEAD), listener)
    assert heard == [("nodes_not_seen",)] and not report.failed


def test_a_job_and_its_states_are_told_and_its_report_comes_last(site, monkeypatch, tmp_path):
    job_says(monkeypatch, BAD)
    heard, listener = telling()
    options = CheckOptions(submit=True, nodes=2, skip=AHEAD, folder=tmp_path / "job")
    report = check(site, options, listener)
    assert heard == [
        ("job_submitted", "17", 8, 2, tmp_path / "job"), ("job_seen", "job 17: running"), ("waiting_ended",),
    ]  # fmt: skip
    assert report.failed and [line.topic for line in report.lines][-2:] == ["site", "ports"]


def test_a_job_that_is_left_says_how_to_get_its_report(site, monkeypatch, tmp_path):
    job_says(monkeypatch, KeyboardInterrupt())
    heard, listener = telling()
    with pytest.raises(KeyboardInterrupt):
        check(site, CheckOptions(submit=True, skip=AHEAD, folder=tmp_path / "job"), listener)
    names = [name for name, *_ in heard]
    assert names.index("waiting_ended") < names.index("job_left")  # no spinner beside the words
    (later,) = {name: rest for name, *rest in heard}["job_left"]
    assert f"scalestudy check {tmp_path / 'job'}" in later and "scancel 17" in later


def test_a_job_that_does_not_end_in_time_is_an_error_with_what_to_do(site, monkeypatch, tmp_path):
    job_says(monkeypatch, None)
    with pytest.raises(RunError, match=r"within 5 s.*scancel 17"):
        check(site, CheckOptions(submit=True, wait=5, skip=AHEAD, folder=tmp_path / "job"))


def test_wrong_options_are_refused_before_anything_starts():
    with pytest.raises(UserError, match="one of versions"):
        check(None, CheckOptions(skip=("colour",)))
    with pytest.raises(UserError, match="a site"):
        check(None, CheckOptions(submit=True))


def test_a_queue_that_cannot_be_checked_is_not_asked_and_not_submitted_to(tmp_path, monkeypatch):
    (tmp_path / "site.toml").write_text("cpus_per_node = 4\n")
    study = 'task = "cnn"\n[sweep]\nworkers = 1\nseed = 0\n[launch]\non = "pbs"\nsite = "site.toml"\n'
    (tmp_path / "study.toml").write_text(study)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(UserError, match="PBS"):
        check(str(tmp_path / "study.toml"), CheckOptions(submit=True))
    topics = {
        line.topic for line in check(str(tmp_path / "study.toml"), CheckOptions(skip=("versions",))).lines
    }
    assert "site" in topics
    assert "slurm" not in topics
