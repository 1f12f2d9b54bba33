"""The live view: what is on the screen of made studies as they change, and in a real terminal."""

import math
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
from scalestudy.features.watch.live import names, show
from scalestudy.features.watch.screen import View, last_lines, meter, picture, sparkline
from scalestudy.features.watch.state import StatePoller, StateReader, StudyState
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


def shown(study: StudyState, view: View | None = None, width: int = 120, height: int | None = 30) -> str:
    console = Console(file=StringIO(), width=width, height=height or 30, force_terminal=False)
    console.print(picture(study, view or View(), width, height))
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
    text = shown(StateReader(folder.path).read())
    line = next(line for line in text.splitlines() if line.startswith("native-w1-s0"))
    for part in ("3/4", "restart 2", "1,234", "0.8125", "1:30 min", " 96 %", " 41 %", "█▁"):
        assert part in line
    assert any(line.startswith("loss 1 █") and line.rstrip().endswith(" 0.5") for line in text.splitlines())


def test_utilisation_that_nobody_tells_is_no_column(folder):
    start(folder)
    text = shown(StateReader(folder.path).read())
    assert "CPU" not in text and "GPU" not in text and "%" not in text


def test_each_look_shows_what_has_changed_since(folder):
    reader = StateReader(folder.path)
    assert "0/2 done · 2 missing" in shown(reader.read())
    run = start(folder)
    assert "1 running · 1 missing" in shown(reader.read())
    run.write_result(result_of(run.point()))
    assert "1/2 done · 1 missing" in shown(reader.read())
    shutil.rmtree(folder.path)
    assert "does not exist" in shown(reader.read())
    folder.path.mkdir(parents=True)
    assert "has no study.json" in shown(reader.read())


def test_a_finished_run_that_was_moved_away_runs_anew(folder):
    run = start(folder)
    run.write_result(result_of(run.point()))
    reader = StateReader(folder.path)
    assert "1/2 done" in shown(reader.read())
    shutil.rmtree(run.path)
    assert "0/2 done · 2 missing" in shown(reader.read())
    start(folder)
    assert "1 running" in shown(reader.read())


def test_a_damaged_result_is_shown_beside_the_rest(folder):
    run = start(folder)
    run.write_result(result_of(run.point()))
    (run.path / "result.json").write_text("{")
    assert "1 missing · 1 corrupt" in shown(StateReader(folder.path).read())


def test_what_ends_the_reading_reaches_who_looks(folder, monkeypatch):
    reader, called = StateReader(folder.path), threading.Event()

    def read():
        called.set()
        raise RuntimeError("a bug")

    monkeypatch.setattr(reader, "read", read)
    with StatePoller(reader, 0.1) as poller:
        assert called.wait(60)
        poller.thread.join(60)
        with pytest.raises(RuntimeError, match="a bug"):
            _ = poller.state


def test_what_runs_and_what_failed_is_on_top_and_names_its_reason(folder):
    first, second = folder.points()
    folder.new_run(first).write_result(result_of(first))
    run = folder.new_run(second)
    run.write_failure(Failure(rank=1, exit_code=3, reason="rank 1 ended", tail=["\x1b[2Jboom"]))
    text = shown(StateReader(folder.path).read())
    assert text.index("native-w2-s0") < text.index("native-w1-s0")
    assert "rank 1 ended" in text and "boom" in text and "\x1b" not in text


def test_the_end_and_the_cost_are_told_with_their_range(folder):
    first, _ = folder.points()
    run = folder.new_run(first)
    run.write_result(result_of(first).model_copy(update={"wall_seconds": 3600.0}))
    text = shown(StateReader(folder.path).read())
    assert "not run yet: 42:26 min (30:00 min … 1:00:00 h) · 1 of about 2.41 worker-hours" in text


def test_points_are_chosen_by_keys(folder):
    start(folder, 1)
    points = StateReader(folder.path).read().points
    assert View().ordered(points)[View().chosen(points)].name == "native-w2-s0"
    view = View().after("down", points)
    assert view.point == "native-w1-s0" and view.after("down", points) == view
    assert view.after("up", points).point == view.after("home", points).point == "native-w2-s0"
    assert view.after("x", points) == view and View().after("end", []) == View()


def test_sorting_goes_round_and_puts_unknown_values_last(folder):
    first, second = folder.points()
    folder.new_run(first).write_result(result_of(first))
    start(folder, 1)
    points, view, seen = StateReader(folder.path).read().points, View(), []
    for _ in range(4):
        view = view.after("s", points)
        seen.append((view.sort, view.ordered(points)[0].name))
    assert seen == [
        ("name", first.name), ("throughput", second.name), ("quality", second.name), ("state", second.name),
    ]  # fmt: skip


def test_the_last_lines_of_logs_stand_below_the_losses(folder):
    run = start(folder)
    run.log(0).write_text("first\nepoch 1 \x1b[31mdone\n")
    text = shown(StateReader(folder.path).read())
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
    study = StateReader(wide.path).read()
    for view in (View(), View().after("end", study.points), View().after("page down", study.points)):
        lines = shown(study, view, width, height).splitlines()
        assert len(lines) <= height and max(map(len, lines)) <= width
        assert "below" in "".join(lines)
        if view.point:
            assert any(line.startswith(view.point[:7]) for line in lines)
    assert "3/4" in shown(study, View(), width, height)


def test_a_queue_that_does_not_answer_is_told_beside_what_the_files_say(folder, monkeypatch):
    run = folder.new_run(folder.points()[0])
    run.write_job(JobRecord(job="7", submitted=time.time(), site="here", script="x.sh"))
    monkeypatch.setattr(
        type(SLURM.queue), "ask", lambda self, jobs, cluster="": {"7": JobView(job="7", state="PENDING")}
    )
    assert "1 queued" in shown(StateReader(folder.path, wait=60.0).read())

    def silent(self, jobs, cluster=""):
        error = QueueUnreachable("Slurm", "squeue", "none")
        error.reason = "timed out after 20 s"
        raise error

    monkeypatch.setattr(type(SLURM.queue), "ask", silent)
    text = shown(StateReader(folder.path, wait=60.0).read())
    assert "Slurm does not answer (timed out after 20 s)" in text and "1 queued" in text


def test_without_a_terminal_one_picture_is_printed(folder, tmp_path):
    start(folder)
    before = {file: file.stat().st_mtime_ns for file in folder.path.rglob("*")}
    stream = StringIO()
    assert show(folder.path, Console(file=stream, width=100))
    assert "1 running" in stream.getvalue() and "quit" not in stream.getvalue()
    assert {file: file.stat().st_mtime_ns for file in folder.path.rglob("*")} == before
    assert not show(tmp_path / "nothing", Console(file=stream, width=100))


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
            [sys.executable, "-m", "scalestudy", "status", str(folder.path), "--live", "--interval", "0.1"],
        )
    seen = Seen(terminal)
    seen.until("1 running")
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


def test_keys_are_named_whatever_the_terminal_sends_for_them():
    assert list(names(b"\x1b[A\x1bOBqs\x1b[F")) == ["up", "down", "q", "s", "end"]
    assert list(names(b"\x1b[1;5Cs\x1b[15~\x1b")) == ["s"]  # unknown ones are passed over whole


def test_a_sparkline_is_high_where_values_are_and_holds_all_of_them():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([7.0] * 100 + [0.0] * 100, 2) == "█▁"
    assert sparkline([1.0, math.nan, 2.0], 5) == "▁ █"
    assert sparkline([], 5) == sparkline([math.nan], 5) == ""


def test_a_meter_is_full_at_a_hundred_per_cent_and_never_fuller():
    assert meter(100, 4) == meter(180, 4) == "████" and meter(0, 4) == meter(-3, 4) == "    "
    assert meter(50, 4) == "██  " and meter(3.2, 4) == "▏   "
