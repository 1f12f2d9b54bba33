from pathlib import Path

import pytest

from scalestudy.launch.job_failures import INTERRUPTED
from scalestudy.launch.job_failures import failure_of_job as cause_of
from scalestudy.launch.job_view import UNKNOWN, JobView
from scalestudy.launch.logs import log_files
from scalestudy.store.records import Cause, Hang, JobRecord
from scalestudy.store.run_folder import RunFolder
from synthetic_result import progress_of


@pytest.fixture
def run(tmp_path: Path):
    """Write a run folder with these files."""

    def make(**files: str) -> RunFolder:
        (tmp_path / "logs").mkdir(exist_ok=True)
        for name, text in files.items():
            (
                tmp_path
                / name.replace("logs_", "logs/")
                .replace("DOT", ".")
                .replace("rank", "rank-")
            ).write_text(text)
        return RunFolder(tmp_path)

    return make


def view(state: str, **more) -> JobView:
    return JobView(job="7", state=state, **more)


def test_the_rank_that_fell_silent_is_named_though_srun_blames_the_one_that_noticed(
    run,
) -> None:
    folder = run(
        exit="79",
        logs_jobDOTlog="srun: error: node1: task 0: Exited with exit code 79\n",
        logs_rank0DOTlog="nothing moves\n",
        logs_rank1DOTlog="epoch 1\n",
    )
    folder.write_hang(
        Hang(
            rank=1,
            host="node2",
            phase="step",
            epoch=1,
            step=7,
            seconds=120.2,
            lives=False,
        )
    )
    failure = cause_of(folder, view("FAILED", nodes="node[1-2]", exit_code=79))
    assert failure.reason == (
        "rank 1 on node2 fell silent in epoch 1 after step 7 (step), and its process is stopped, or its node "
        "is gone: nothing moved for 120 s"
    )
    assert (failure.rank, failure.job_state, failure.tail) == (1, "FAILED", ["epoch 1"])
    assert cause_of(folder, view("CANCELLED")).job_state == "CANCELLED"


def test_what_a_job_printed_before_it_had_opened_its_log_is_its_log(
    run, tmp_path
) -> None:
    folder = run()
    script = tmp_path / "native-w1-s0.sh"
    folder.write_job(JobRecord(job="7", submitted=1.0, site="here", script=str(script)))
    script.with_suffix(".out").write_text(
        "line 9: cd: /studies/s: No such file or directory\n"
    )
    failure = cause_of(folder, view("FAILED", exit_code=1, nodes="node1"))
    assert failure.tail == ["line 9: cd: /studies/s: No such file or directory"]
    for job in (True, False):
        assert [file for _, file in log_files(folder, job=job)] == [
            script.with_suffix(".out")
        ]
    (tmp_path / "logs" / "job.log").write_text("job 7 on node1\n")
    assert log_files(folder, job=True) == [("", tmp_path / "logs" / "job.log")]


def test_what_the_ranks_have_written_counts_before_what_srun_says(run) -> None:
    folder = run(exit="143\n", logs_jobDOTlog="srun: error: node1: task 0: Killed\n")
    folder.write_cause(
        Cause(rank=0, time=9.0, host="node1", kind="signal", signal="SIGTERM")
    )
    folder.write_cause(
        Cause(
            rank=1, time=8.0, host="node2", kind="signal", signal="SIGKILL", oom_kills=1
        )
    )
    failure = cause_of(folder, view("FAILED", nodes="node[1-2]", exit_code=143))
    assert failure.reason.startswith(
        "rank 1 was ended by SIGKILL on node2: out of memory (the kernel killed"
    )
    assert (failure.rank, failure.signal) == (1, "SIGKILL")


def test_ranks_that_the_queue_has_ended_are_not_to_blame(run) -> None:
    folder = run()
    folder.write_cause(
        Cause(rank=0, time=9.0, host="node1", kind="signal", signal="SIGTERM")
    )
    assert cause_of(folder, view("TIMEOUT")).reason == "the time limit was reached"
    assert (
        cause_of(folder, view("FAILED", exit_code=143)).reason
        == "the job ended with exit code 143 (SIGTERM)"
    )


def test_out_of_memory_names_the_rank_where_its_node_has_counted(run) -> None:
    folder = run()
    folder.write_cause(
        Cause(
            rank=0, time=9.0, kind="exception", exit_code=1, words="RuntimeError: peer"
        )
    )
    assert (
        cause_of(folder, view("OUT_OF_MEMORY", nodes="node1")).reason
        == "out of memory on node1"
    )
    folder.write_cause(
        Cause(
            rank=1, time=8.0, host="node1", kind="signal", signal="SIGKILL", oom_kills=1
        )
    )
    assert (
        "rank 1 was ended by SIGKILL on node1: out of memory"
        in cause_of(folder, view("OUT_OF_MEMORY")).reason
    )


START = "2026-01-01T00:00:00Z job 7 on node1\n"


@pytest.mark.parametrize(
    ("files", "state", "more", "reason", "rest"),
    [
        pytest.param(
            {
                "exit": "1",
                "logs_jobDOTlog": f"{START}srun: error: task 1: Killed\n{START}boom\n",
            },
            *("FAILED", {"exit_code": 1}, "the job ended with exit code 1: boom", {}),
            id="only the last start of a job that was queued again counts",
        ),
        pytest.param(
            {"exit": "137"},
            *(
                "FAILED",
                {"exit_code": 137},
                "the job ended with exit code 137 (SIGKILL)",
                {},
            ),
            id="an exit code above 128 names its signal",
        ),
        pytest.param(
            {
                "logs_jobDOTlog": f"{START}scalestudy: rank 0 of 1 on node1: x.log\n",
                "logs_rank0DOTlog": "epoch 4\n",
            },
            *("FAILED", {"nodes": "node1", "exit_code": 0, "signal": 9}),
            "the job was ended by SIGKILL (often: out of memory) on node1: epoch 4",
            {"signal": "SIGKILL", "exit_code": None},
            id="a job that was killed",
        ),
        pytest.param(
            {"exit": "1", "logs_jobDOTlog": START, "logs_rank0DOTlog": "boom\n"},
            *(
                "FAILED",
                {"exit_code": 1},
                "rank 0 ended with exit code 1: boom",
                {"rank": 0},
            ),
            id="a process that is alone is the one to blame",
        ),
        pytest.param(
            {
                "logs_jobDOTlog": f"mpirun noticed that a process was killed\n{'-' * 74}\n"
            },
            *("FAILED", {"exit_code": 1}),
            "the job ended with exit code 1: mpirun noticed that a process was killed",
            {"tail": ["mpirun noticed that a process was killed"]},
            id="lines that mpirun draws are no reason",
        ),
        pytest.param(
            {
                "exit": "1",
                "logs_jobDOTlog": f"{START}srun: error: node1: task 0: Exited with code 1\n"
                "slurmstepd: error: *** STEP 7.0 ON node1 CANCELLED ***\n",
                "logs_rank0DOTlog": "scalestudy: Expected a GPU. Received none. Ask.\n"
                "I0000 00:00:1 x.cc:2] y\n",
            },
            *("FAILED", {"exit_code": 1}),
            "rank 0 ended with exit code 1: scalestudy: Expected a GPU. Received none. Ask.",
            {"rank": 0},
            id="noise of the launcher hides no rank's own words",
        ),
        ({}, "CANCELLED", {}, "cancelled", {}),
        *(
            pytest.param(
                *({"logs_jobDOTlog": "scalestudy: disk full\n"}, state, {}),
                f"the job ended without a result, and {known}: scalestudy: disk full",
                *({},),
                id=f"{state}, but without a result",
            )
            for state, known in (
                ("COMPLETED", "the queue says COMPLETED"),
                (
                    UNKNOWN,
                    "it has left the queue: deleted by force, or its node failed",
                ),
            )
        ),
    ],
)
def test_the_end_of_a_job_is_told_in_one_sentence(
    run, files, state, more, reason, rest
) -> None:
    failure = cause_of(run(**files), view(state, **more))
    assert failure.reason == reason
    assert failure.model_dump(include=set(rest)) == rest


def test_the_time_limit_says_how_far_it_was(run) -> None:
    folder = run()
    folder.write_progress(progress_of(epoch=3, epochs=8))
    assert (
        cause_of(folder, view("TIMEOUT")).reason
        == "the time limit was reached in epoch 3 of 8"
    )


def test_a_node_that_cannot_open_the_output_does_not_see_the_results(tmp_path) -> None:
    folder = RunFolder(tmp_path / "study" / "points" / "p" / "run-1")
    folder.path.mkdir(parents=True)
    failure = cause_of(folder, view("FAILED", signal=53, nodes="node2"))
    assert failure.reason.startswith(f"node2 does not see {tmp_path / 'study'},")
    assert (failure.signal, failure.job_state) == (None, "FAILED")


def test_a_stop_that_led_nowhere_is_an_interruption(run) -> None:
    failure = cause_of(run(exit="75"), view("FAILED", exit_code=75))
    assert failure.job_state == "STOPPED" and failure.job_state in INTERRUPTED
