from io import StringIO

from rich.console import Console

from scalestudy.cli.live import Live
from scalestudy.study.store import StudyFolder


def run_live(folder: StudyFolder, launcher, *, terminal: bool) -> str:
    console = Console(file=StringIO(), force_terminal=terminal, width=120, height=30)
    with Live(folder, folder.points(), console) as live:
        launcher(folder, folder.points(), watch=live.watch)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_without_a_terminal_each_run_is_one_line_when_it_ends(folder: StudyFolder, launcher) -> None:
    launcher.fail = {"native-w1-s0"}
    lines = run_live(folder, launcher, terminal=False).splitlines()
    assert lines == [
        "[1/2] native-w1-s0 failed, rank 1 ended with exit code 3",
        "[2/2] native-w2-s0 done, 200 samples/s, 1.5 s of training, quality 0.7500",
    ]


def test_in_a_terminal_the_table_follows_and_stays(folder: StudyFolder, launcher) -> None:
    text = run_live(folder, launcher, terminal=True)
    assert "start-up" in text
    assert "1/2" in text
    assert "2 points: 2 done" in text.splitlines()[-2]
