"""The first rank that failed is blamed, not the ranks that fail as a consequence."""

import pytest

from scalestudy.launch.failures import (
    failure_of,
    failure_of_hang,
    first_cause,
    sentence,
)
from scalestudy.launch.logs import telling_line
from scalestudy.store.records import Cause, Hang
from scalestudy.store.run_folder import RunFolder


def killed(rank: int, time: float, name: str = "SIGKILL", **more) -> Cause:
    return Cause(rank=rank, time=time, kind="signal", signal=name, **more)


def raised(rank: int, time: float, frame: str = "") -> Cause:
    return Cause(
        rank=rank, time=time, kind="exception", words="E: x", exit_code=1, frame=frame
    )


LOST_PEER = raised(0, 10.0)
TOLD = Cause(
    rank=0,
    time=10.0,
    kind="exception",
    words="UnavailableError: Connection reset",
    exit_code=1,
)
SHUT_DOWN = TOLD.model_copy(
    update={"words": "UnknownError: op: Horovod has been shut down. This was"}
)
REMOTE = TOLD.model_copy(
    update={
        "words": "InternalError: NCCL: remote process exited or there was a network error."
    }
)
OWN = raised(1, 10.0, "task.py, line 2")


@pytest.mark.parametrize(
    ("causes", "rank"),
    [
        ([killed(1, 10.0), raised(0, 10.2)], 1),
        ([raised(0, 9.9), killed(1, 10.0)], 1),  # by two clocks
        ([raised(0, 5.0), killed(1, 10.0)], 0),  # a consequence of rank 0's failure
        ([killed(1, 10.0), killed(0, 10.1, "SIGTERM"), killed(2, 10.0, "SIGABRT")], 1),
        ([killed(0, 9.8, "SIGTERM"), OWN], 1),
        ([raised(0, 9.8), OWN], 1),
        ([Cause(rank=1, time=3.0, kind="stopped", signal="SIGSTOP"), LOST_PEER], 1),
        ([Cause(rank=1, time=9.9, kind="os._exit", exit_code=0), LOST_PEER], 1),
        ([killed(0, 10.0, "SIGTERM"), killed(1, 10.1, "SIGTERM")], 0),
        ([TOLD, killed(1, 10.2, "SIGABRT")], 1),  # an abort takes a moment
        ([raised(0, 10.0), killed(1, 10.2, "SIGABRT")], 0),
        ([TOLD, raised(1, 10.2)], 1),
        ([REMOTE, raised(1, 10.2)], 1),
        ([SHUT_DOWN, killed(1, 10.2, "SIGTERM")], 1),
        (
            [killed(0, 9.0, "SIGHUP"), killed(1, 10.0)],
            1,
        ),  # from the launcher, before its cause was seen
    ],
)
def test_the_first_to_fail_is_blamed_and_no_echo(causes, rank):
    assert first_cause(causes).rank == rank
    assert first_cause(reversed(causes)).rank == rank


def test_of_two_hosts_whose_clocks_differ_by_seconds_the_one_that_tells_no_echo_is_blamed():
    echo, own = (
        cause.model_copy(update={"host": f"n{cause.rank}"}) for cause in (TOLD, OWN)
    )
    late = own.model_copy(update={"time": 13.0})
    assert first_cause([echo, late]).rank == 1
    here = late.model_copy(update={"host": "n0"})
    assert first_cause([echo, here]).rank == 0
    assert first_cause([echo, late.model_copy(update={"time": 60.0})]).rank == 0


TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "t.py", line 1, in f',
    "    f()",
    "ValueError: no",
)
NOISE = (
    "srun: error: n1: task 0: Exited with code 1",
    "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***",
    "2026-01-01 00:00:00.000001: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.",
    "I0000 00:00:1700000000.000001 12 gpu_device.cc:2022] Created device",
)


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ((), ""),
        (("loss 0.3", *NOISE), "loss 0.3"),
        (NOISE[:1], NOISE[0]),
        ((*TRACEBACK, "at exit", *NOISE), "ValueError: no"),
        (tuple(f"[rank1]: {line}" for line in TRACEBACK), "ValueError: no"),
        (
            (*TRACEBACK, "scalestudy: Expected a. Received b. Do c.", *NOISE),
            "scalestudy: Expected a. Received b. Do c.",
        ),
        (
            ("scalestudy: continues in epoch 2 after step 3 (restart 1)", "killed"),
            "killed",
        ),
    ],
)
def test_of_a_log_the_line_that_tells_the_cause_is_quoted(lines, line):
    assert telling_line(lines) == line


def test_without_causes_nobody_is_blamed():
    assert first_cause([]) is None


@pytest.mark.parametrize(
    ("kills", "said"),
    [
        (None, "rank 1 was ended by SIGKILL (often: out of memory)"),
        (
            0,
            "rank 1 was ended by SIGKILL, but not by the kernel for lack of memory: "
            "a person or a program sent it",
        ),
        (
            2,
            "rank 1 was ended by SIGKILL: out of memory (the kernel killed 2 processes of its cgroup for it)",
        ),
    ],
)
def test_a_kill_says_what_the_kernel_has_counted(kills, said):
    assert sentence(killed(1, 0.0, oom_kills=kills)) == said


def test_the_host_is_named_where_there_are_several():
    cause = killed(1, 0.0, "SIGSEGV", host="node2", frame="task.py, line 2")
    assert (
        sentence(cause, hosts=True)
        == "rank 1 was ended by SIGSEGV on node2 (task.py, line 2)"
    )
    assert sentence(cause) == "rank 1 was ended by SIGSEGV (task.py, line 2)"


def test_the_last_line_is_quoted_only_where_nothing_better_is_known():
    ended = Cause(rank=0, time=0.0, kind="exit", exit_code=3)
    assert sentence(ended, last="bye") == "rank 0 ended with exit code 3: bye"
    assert sentence(ended) == "rank 0 ended with exit code 3"
    assert sentence(raised(0, 0.0), last="bye") == "rank 0 ended with exit code 1: E: x"


def test_a_failure_holds_the_last_lines_of_the_rank_that_is_blamed(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank-1.log").write_text("one\n\ntwo\n")
    failure = failure_of(RunFolder(tmp_path), killed(1, 0.0), job_state="FAILED")
    assert (failure.rank, failure.signal, failure.tail) == (
        1,
        "SIGKILL",
        ["one", "two"],
    )
    assert failure.job_state == "FAILED"


def test_a_rank_that_was_killed_while_others_still_wait_for_it_is_not_called_silent(
    tmp_path,
):
    run, hang = (
        RunFolder(tmp_path),
        Hang(rank=1, host="node1", phase="serving", seconds=60, lives=False),
    )
    run.write_cause(killed(1, 9.0))
    assert failure_of_hang(run, hang).signal == "SIGKILL"
    assert failure_of_hang(run, hang.model_copy(update={"rank": 0})).signal is None
    run.write_cause(Cause(rank=1, time=9.0, kind="stopped", signal="SIGSTOP"))
    assert failure_of_hang(run, hang).signal is None
