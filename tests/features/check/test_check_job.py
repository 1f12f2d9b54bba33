"""What a queue reports about the jobs of a check."""

import pytest

from scalestudy.features.check import check_job
from scalestudy.features.check.check_files import CheckPlan
from scalestudy.launch.job_view import JobView
from scalestudy.launch.queue.launchers import SLURM
from scalestudy.launch.queue.site_profile import find_site
from scalestudy.launch.scheduler import QueueUnreachable

SBATCH = """#!/bin/sh
test "$1" = --test-only || exit 9
grep -q partition=gpu "$2" && echo "sbatch: Job 7 to start at 2030-01-01T12:00:00" >&2 && exit
echo "allocation failure: Invalid partition name specified" >&2
exit 1
"""


@pytest.mark.parametrize(
    ("view", "words", "over"),
    [
        (
            JobView(
                job="7", state="PENDING", reason="Priority", start="2030-01-01T12:00:00"
            ),
            "pending, others come first, expected 2030-01-01 12:00:00",
            False,
        ),
        (
            JobView(job="7", state="PENDING", reason="JobHeldUser"),
            "pending, needs you: held by you (JobHeldUser)",
            False,
        ),
        (JobView(job="7", state="FAILED", nodes="n1"), "failed on n1", True),
    ],
)
def test_a_checks_job_is_told_with_what_it_waits_for(monkeypatch, view, words, over):
    monkeypatch.setattr(SLURM.queue, "ask", lambda jobs: {"7": view})
    assert check_job._state("7")[:2] == (words, over)


def test_a_check_whose_job_cannot_start_ends_with_why_and_cancels_it(
    monkeypatch, tmp_path
):
    view, cancelled = (
        JobView(job="7", state="PENDING", reason="AssocGrpCPUMinutesLimit"),
        [],
    )
    monkeypatch.setattr(check_job, "ASK", 0.0)
    monkeypatch.setattr(SLURM.queue, "ask", lambda jobs: {"7": view})
    monkeypatch.setattr(SLURM.queue, "cancel", cancelled.extend)
    (line,) = check_job.await_report(tmp_path, "7", lambda text: None).lines
    assert (
        line.status == "fail"
        and "no hours left" in line.seen
        and "sshare" in line.action
    )
    assert cancelled == ["7"]


def test_a_silent_queue_is_told_and_waited_for(monkeypatch):
    def silent(jobs):
        raise QueueUnreachable("Slurm", "squeue", "none within 1 s")

    monkeypatch.setattr(SLURM.queue, "ask", silent)
    assert check_job._state("7") == (
        "Slurm does not answer (none within 1 s)",
        False,
        None,
    )


@pytest.fixture
def lines(tmp_path, monkeypatch):
    """Return the lines about the jobs of a site; this script is Slurm's sbatch."""

    def ask(script, partition="gpu"):
        (tmp_path / "site.toml").write_text(
            f"cpus_per_node = 4\npartition = '{partition}'\n"
        )
        if script:
            (tmp_path / "sbatch").write_text(script)
            (tmp_path / "sbatch").chmod(0o755)
        monkeypatch.setenv(
            "PATH", f"{tmp_path}:/usr/bin:/bin" if script else str(tmp_path)
        )
        site, point = (
            find_site(str(tmp_path / "site.toml"), tmp_path),
            check_job.check_point(None, CheckPlan(workers=8)),
        )
        shape = check_job.check_layout(point, site, 2)
        return check_job.queue_lines(site, point, [shape, shape])

    return ask


def test_slurm_says_whether_it_would_take_a_job(lines):
    (line,) = lines(SBATCH)
    assert line.status == "pass"
    (line,) = lines(SBATCH, "nonsense")
    assert (
        line.status == "fail"
        and "Invalid partition name" in line.seen
        and "sinfo" in line.action
    )


def test_a_machine_without_slurm_fails_with_what_to_do(lines):
    (line,) = lines("")
    assert line.status == "fail" and line.action


def test_a_controller_that_does_not_answer_ends_with_the_limit(lines, monkeypatch):
    monkeypatch.setattr("scalestudy.launch.scheduler.TIMEOUT", 0.3)
    (line,) = lines("#!/bin/sh\nexec /bin/sleep 600\n")
    assert line.status == "fail" and "0.3 s" in line.seen
