"""The live view: what is on the screen of made studies as they change, and in a real terminal."""

import os
import pty
import select
import shutil
import sys
import threading
import time
from io import StringIO

import pytest
from rich.console import Console

from made_result import result_of
from scalestudy.features.watch.picture import picture
from scalestudy.features.watch.view import View, after, chosen
from scalestudy.features.watch.watcher import Watched, Watcher, Watching, last_lines
from scalestudy.launch.queue.base import JobView, QueueUnreachable
from scalestudy.launch.slurm import SLURM
from scalestudy.study.records import EpochRecord, Failure, JobRecord, Progress, RankRecord
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.store import StudyFolder


def epoch(number: int) -> EpochRecord:
    return EpochRecord(
        epoch=number, steps=2, samples=16, learning_rate=0.1, loss=1.0 / number, train_seconds=1.0,
        input_seconds=0.0, elapsed_training_seconds=float(number),
    )  # fmt: skip


def progress(**changes: object) -> Progress:
    values = {"phase": "training", "epoch": 3, "epochs": 4, "step": 1, "steps": 2, "throughput": 1234.0,
              "seconds_left": 90.0, "quality": 0.8125, "updated": time.time()}  # fmt: skip
    return Progress(**{**values, **changes})


def shown(studies: list[Watched], view: View | None = None, width: int = 120, height: int | None = 30) -> str:
    console = Console(file=StringIO(), width=width, height=height or 30, force_terminal=False)
    console.print(picture(studies, view or View(), width, height))
    return console.file.getvalue()  # type: ignore[attr-defined]


def start(folder: StudyFolder, place: int = 0) -> RunFolder:
    run = folder.new_run(folder.points()[place])
    run.write_progress(progress())
    return run


def test_a_run_under_way_shows_its_epoch_rate_quality_utilisation_and_time_left(folder):
    run = start(folder)
    run.write_progress(progress(cpu_percent=96.0, gpu_percent=41.0, restarts=2))
    for number in (1, 2):
        run.append_epoch(epoch(number))
    text = shown([Watcher(folder.path).look()])
    line = next(line for line in text.splitlines() if line.startswith("native-w1-s0"))
    for part in ("3/4", "restart 2", "1,234", "0.8125", "1:30 min", " 96 %", " 41 %", "█▁"):
        assert part in line
    assert "⠀" in text or "⡇" in text  # the curve of the first point


def test_utilisation_that_nobody_tells_is_no_column(folder):
    start(folder)
    text = shown([Watcher(folder.path).look()])
    assert "CPU" not in text and "GPU" not in text and "%" not in text


def test_each_look_shows_what_has_changed_since(folder):
    watcher = Watcher(folder.path)
    assert "0/2 done · 2 missing" in shown([watcher.look()])
    run = start(folder)
    assert "1 running · 1 missing" in shown([watcher.look()])
    run.write_result(result_of(run.point()))
    assert "1/2 done · 1 missing" in shown([watcher.look()])
    shutil.rmtree(folder.path)
    assert "does not exist" in shown([watcher.look()])
    folder.path.mkdir(parents=True)
    assert "has no study.json" in shown([watcher.look()])


def test_a_finished_run_that_was_moved_away_runs_anew(folder):
    run = start(folder)
    run.write_result(result_of(run.point()))
    watcher = Watcher(folder.path)
    assert "1/2 done" in shown([watcher.look()])
    shutil.rmtree(run.path)
    assert "0/2 done · 2 missing" in shown([watcher.look()])
    start(folder)
    assert "1 running" in shown([watcher.look()])


def test_what_ends_the_looking_reaches_who_watches(folder, monkeypatch):
    watcher, looked = Watcher(folder.path), threading.Event()

    def look(chosen=None):
        raise RuntimeError("a bug")

    monkeypatch.setattr(watcher, "look", look)
    with Watching([watcher], 0.1, looked.set) as watching:
        assert looked.wait(60)
        with pytest.raises(RuntimeError, match="a bug"):
            _ = watching.seen


def test_what_runs_and_what_failed_is_on_top_and_names_its_reason(folder):
    first, second = folder.points()
    folder.new_run(first).write_result(result_of(first))
    run = folder.new_run(second)
    run.write_failure(Failure(rank=1, exit_code=3, reason="rank 1 ended", tail=["\x1b[2Jboom"]))
    text = shown([Watcher(folder.path).look()])
    assert text.index("native-w2-s0") < text.index("native-w1-s0")
    assert "rank 1 ended" in text and "boom" in text and "\x1b" not in text


def test_the_end_and_the_cost_are_told_with_their_range(folder):
    first, _ = folder.points()
    run = folder.new_run(first)
    run.write_result(result_of(first).model_copy(update={"wall_seconds": 3600.0}))
    text = shown([Watcher(folder.path).look()])
    assert "not run yet: 42:26 min (30:00 min … 1:00:00 h) · 1 of about 2.41 worker-hours" in text


def test_several_studies_are_chosen_by_tab_and_points_by_arrows(folder, tmp_path):
    start(folder, 1)
    studies = [Watcher(folder.path).look(), Watcher(tmp_path / "nothing").look()]
    view = View()
    assert chosen(view, studies).name == "native-w2-s0"
    view = after(view, "down", studies)
    assert view.point == "native-w1-s0" and after(view, "down", studies).point == "native-w1-s0"
    assert after(view, "up", studies).point == after(view, "home", studies).point == "native-w2-s0"
    other = after(view, "tab", studies)
    assert (other.study, other.point, chosen(other, studies)) == (1, None, None)
    assert "does not exist" in shown(studies, other) and after(other, "down", studies) == other
    assert after(other, "tab", studies).study == after(other, "left", studies).study == 0
    assert after(view, "q", studies).over and not after(view, "x", studies).over


def test_sorting_goes_round_and_puts_unknown_values_last(folder):
    first, second = folder.points()
    folder.new_run(first).write_result(result_of(first))
    start(folder, 1)
    studies, view, seen = [Watcher(folder.path).look()], View(), []
    for _ in range(4):
        view = after(view, "s", studies)
        seen.append((view.sort, chosen(view, studies).name))
    assert seen == [
        ("name", first.name), ("rate", second.name), ("quality", second.name), ("state", second.name),
    ]  # fmt: skip


def test_logs_take_the_place_of_the_curve(folder):
    run = start(folder)
    run.log(0).write_text("first\nepoch 1 \x1b[31mdone\n")
    studies = [Watcher(folder.path).look()]
    text = shown(studies, after(View(), "l", studies))
    assert "[0] first" in text and "done" in text and "\x1b" not in text
    os.mkfifo(folder.path / "pipe")
    assert last_lines([("[0] ", folder.path / "pipe"), ("[1] ", folder.path / "none")]) == []


@pytest.mark.parametrize(("width", "height"), [(120, 30), (80, 24), (60, 18), (40, 12), (30, 8)])
def test_hundreds_of_points_fit_any_terminal(folder, width, height):
    point = folder.points()[0]
    many = [
        point.model_copy(update={"name": f"native-w1-s{seed}-batch_size=64", "seed": seed})
        for seed in range(300)
    ]
    wide = StudyFolder.create_or_open(folder.path.parent / "many", folder.study, many, "")
    wide.new_run(many[150]).write_progress(progress())
    studies = [Watcher(wide.path).look()]
    for view in (View(), after(View(), "end", studies), after(View(), "page down", studies)):
        lines = shown(studies, view, width, height).splitlines()
        assert len(lines) <= height and max(map(len, lines)) <= width
        assert "below" in "".join(lines)
        if view.point:
            assert any(line.startswith(view.point[:7]) for line in lines)
    assert "3/4" in shown(studies, View(), width, height)


def test_a_queue_that_does_not_answer_is_told_beside_what_the_files_say(folder, monkeypatch):
    run = folder.new_run(folder.points()[0])
    run.write_job(JobRecord(job="7", submitted=time.time(), site="here", script="x.sh"))
    monkeypatch.setattr(
        type(SLURM.queue), "ask", lambda self, jobs, cluster="": {"7": JobView(job="7", state="PENDING")}
    )
    assert "1 queued" in shown([Watcher(folder.path, wait=60.0).look()])

    def silent(self, jobs, cluster=""):
        error = QueueUnreachable("Slurm", "squeue", "none")
        error.reason = "timed out after 20 s"
        raise error

    monkeypatch.setattr(type(SLURM.queue), "ask", silent)
    text = shown([Watcher(folder.path, wait=60.0).look()])
    assert "Slurm does not answer (timed out after 20 s)" in text and "1 queued" in text


def test_without_a_terminal_one_picture_of_all_is_printed(folder, call, tmp_path):
    start(folder)
    before = {file: file.stat().st_mtime_ns for file in folder.path.rglob("*")}
    code, text, _ = call("watch", folder.path, tmp_path / "nothing")
    assert code == 0 and "1 running" in text and "does not exist" in text and "quit" not in text
    assert {file: file.stat().st_mtime_ns for file in folder.path.rglob("*")} == before
    assert call("watch", tmp_path / "nothing")[0] == 2


def test_in_a_terminal_it_follows_keys_and_leaves_no_trace(folder):
    run = start(folder)
    run.write_rank(RankRecord(
        rank=0, size=1, local_rank=0, host="here", pid=1, placement_source="made", cpus=[0], threads=1,
        devices=[], versions={},
    ))  # fmt: skip
    run.log(0).write_text("a word of rank 0\n")
    child, terminal = pty.fork()
    if not child:
        os.environ.update(TERM="xterm", COLUMNS="100", LINES="30", NO_COLOR="1")
        os.execv(
            sys.executable,
            [sys.executable, "-m", "scalestudy", "watch", str(folder.path), "--interval", "0.1"],
        )
    seen = Seen(terminal)
    seen.until("1 running")
    os.write(terminal, b"l")
    seen.until("[0] a word of rank 0")
    run.write_result(result_of(run.point()))
    seen.until("1/2 done")
    os.write(terminal, b"q")
    seen.until("\x1b[?1049l")  # the screen is given back
    assert os.waitpid(child, 0)[1] == 0
    assert "\x1b[31m" not in seen.text and "\x1b[1;36m" not in seen.text
    os.close(terminal)


class Seen:
    """What a terminal was sent."""

    def __init__(self, terminal: int) -> None:
        self.terminal, self.text = terminal, ""

    def until(self, part: str) -> None:
        """Read until this is there; a minute without is a failure."""
        while part not in self.text:
            ready, _, _ = select.select([self.terminal], [], [], 60)
            assert ready, f"no {part!r} in {self.text[-2000:]!r}"
            try:
                self.text += os.read(self.terminal, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"it ended without {part!r}: {self.text[-2000:]!r}") from None
