import pytest

from scalestudy.features.check import job
from scalestudy.launch.queue.base import JobView, QueueUnreachable
from scalestudy.launch.slurm import SLURM


@pytest.mark.parametrize(
    ("view", "words", "over"),
    [
        (
            JobView(job="7", state="PENDING", reason="Priority", start="2030-01-01T12:00:00"),
            "pending, others are before it, expected 2030-01-01 12:00:00", False,
        ),
        (JobView(job="7", state="FAILED", nodes="n1"), "failed on n1", True),
    ],
)  # fmt: skip
def test_a_checks_job_is_told_with_what_it_waits_for(monkeypatch, view, words, over):
    monkeypatch.setattr(SLURM.queue, "ask", lambda jobs: {"7": view})
    assert job._state("7") == (words, over)


def test_a_silent_queue_is_told_and_waited_for(monkeypatch):
    def silent(jobs):
        raise QueueUnreachable("Slurm", "squeue", "none within 1 s")

    monkeypatch.setattr(SLURM.queue, "ask", silent)
    assert job._state("7") == ("Slurm does not answer (none within 1 s)", False)
