from pathlib import Path

from scalestudy.cli.check_progress import CheckProgress


def test_without_a_terminal_what_a_job_waits_for_is_a_line_whenever_it_changes(capsys):
    progress = CheckProgress()
    progress.job_submitted("7", 2, 2, Path("check"))
    for seen in (
        "job 7: pending, held by its user",
        "job 7: pending, held by its user",
        "job 7: running on n1",
    ):
        progress.job_seen(seen)
    progress.waiting_ended()
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "Job 7: 2 processes on 2 nodes, files in check",
        "job 7: pending, held by its user",
        "job 7: running on n1",
    ]
