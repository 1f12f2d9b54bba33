"""What the listener prints, in a terminal and without one."""

from io import StringIO
from pathlib import Path

from rich.console import Console

from scalestudy.app.plan import Request
from scalestudy.app.run_study import run_study
from scalestudy.cli.terminal_listener import Terminal
from scalestudy.config.parse import load_study
from scalestudy.launch.launcher import Options, Overview, PointStatus
from scalestudy.launch.waiting import Waiting
from scalestudy.store.records import JobRecord
from scalestudy.store.study_folder import StudyFolder


def run_live(study: Path, *, terminal: bool) -> str:
    console = Console(file=StringIO(), force_terminal=terminal, width=120, height=30)
    request = Request(
        load_study(study), study.read_text(), study.parent, study.parent / "results"
    )
    run_study(request, listener=Terminal(console), options=Options(), report=False)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_without_a_terminal_each_run_is_one_line_when_it_ends(
    study: Path, launcher
) -> None:
    launcher.fail = {"native-w1-s0"}
    lines = run_live(study, terminal=False).splitlines()
    assert [line[:6] for line in lines] == ["[1/2] ", "[2/2] "]
    assert sorted(line[6:] for line in lines) == [
        "native-w1-s0 failed, rank 1 ended with exit code 3",
        "native-w2-s0 done, 200 samples/s, 1.5 s of training, quality 0.7500",
    ]


def test_in_a_terminal_the_table_follows_and_stays(study: Path, launcher) -> None:
    text = run_live(study, terminal=True)
    assert "start-up" in text
    assert "1/2" in text
    assert "2 points: 2 done" in text.splitlines()[-2]


def test_bars_leave_nothing_in_a_log(capsys):
    terminal = Terminal()
    with terminal.progress("Predicting", 2) as on_progress:
        on_progress(2)
    with terminal.progress("Fetching weights", unit="bytes") as on_bytes:
        on_bytes(1, None)
    assert capsys.readouterr().err == ""


def test_what_a_stuck_job_needs_is_printed_once(folder: StudyFolder) -> None:
    job = JobRecord(job="7", submitted=1.0, site="here", script="x.sh")
    waiting = Waiting("needs you", "held", "release {jobs}")
    overview = Overview(
        [PointStatus(folder.points()[0], "queued", job=job, waiting=waiting)]
    )
    console = Console(file=StringIO(), width=200)
    terminal = Terminal(console)
    with terminal.following(overview):
        terminal.points_changed(overview)
    assert console.file.getvalue().count("needs you: held. Next: release 7") == 1
