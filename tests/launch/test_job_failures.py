from pathlib import Path

import pytest

from scalestudy.launch.failures import INTERRUPTED, log_files
from scalestudy.launch.failures import failure_of_job as cause_of
from scalestudy.launch.queue.scheduler import ENDED, UNKNOWN, JobView
from scalestudy.launch.slurm import SLURM
from scalestudy.store.records import Allocation, Cause, Hang, JobRecord, Progress
from scalestudy.store.run_folder import RunFolder


@pytest.fixture
def run(tmp_path: Path):
    """Write a run folder with these files."""

    def make(**files: str) -> RunFolder:
        (tmp_path / "logs").mkdir(exist_ok=True)
        for name, text in files.items():
            (
                tmp_path / name.replace("logs_", "logs/").replace("DOT", ".").replace("rank", "rank-")
            ).write_text(text)
        return RunFolder(tmp_path)

    return make


def view(state: str, **more) -> JobView:
    return JobView(job="7", state=state, **more)


def test_the_rank_that_fell_silent_is_named_though_srun_blames_the_one_that_noticed(run) -> None:
    folder = run(
        exit="79",
        logs_jobDOTlog="srun: error: node1: task 0: Exited with exit code 79\n",
        logs_rank0DOTlog="nothing moves\n",
        logs_rank1DOTlog="epoch 1\n",
    )
    folder.write_hang(Hang(rank=1, host="node2", phase="step", epoch=1, step=7, seconds=120.2, lives=False))
    failure = cause_of(folder, view("FAILED", nodes="node[1-2]", exit_code=79))
    assert failure.reason == (
        "rank 1 on node2 fell silent in epoch 1 after step 7 (step), and its process is stopped, or its node "
        "is gone: nothing moved for 120 s"
    )
    assert (failure.rank, failure.job_state, failure.tail) == (1, "FAILED", ["epoch 1"])
    assert cause_of(folder, view("CANCELLED")).job_state == "CANCELLED"


def test_what_a_job_printed_before_it_had_opened_its_log_is_its_log(run, tmp_path) -> None:
    folder = run()
    script = tmp_path / "native-w1-s0.sh"
    folder.write_job(JobRecord(job="7", submitted=1.0, site="here", script=str(script)))
    script.with_suffix(".out").write_text("line 9: cd: /studies/s: No such file or directory\n")
    failure = cause_of(folder, view("FAILED", exit_code=1, nodes="node1"))
    assert failure.tail == ["line 9: cd: /studies/s: No such file or directory"]
    for job in (True, False):
        assert [file for _, file in log_files(folder, job=job)] == [script.with_suffix(".out")]
    (tmp_path / "logs" / "job.log").write_text("job 7 on node1\n")
    assert log_files(folder, job=True) == [("", tmp_path / "logs" / "job.log")]


def test_what_the_ranks_have_written_counts_before_what_srun_says(run) -> None:
    folder = run(exit="143\n", logs_jobDOTlog="srun: error: node1: task 0: Killed\n")
    folder.write_cause(Cause(rank=0, time=9.0, host="node1", kind="signal", signal="SIGTERM"))
    folder.write_cause(Cause(rank=1, time=8.0, host="node2", kind="signal", signal="SIGKILL", oom_kills=1))
    failure = cause_of(folder, view("FAILED", nodes="node[1-2]", exit_code=143))
    assert failure.reason.startswith("rank 1 was ended by SIGKILL on node2: out of memory (the kernel killed")
    assert (failure.rank, failure.signal) == (1, "SIGKILL")


def test_ranks_that_the_queue_has_ended_are_not_to_blame(run) -> None:
    folder = run()
    folder.write_cause(Cause(rank=0, time=9.0, host="node1", kind="signal", signal="SIGTERM"))
    assert cause_of(folder, view("TIMEOUT")).reason == "the time limit was reached"
    assert (
        cause_of(folder, view("FAILED", exit_code=143)).reason == "the job ended with exit code 143 (SIGTERM)"
    )


def test_out_of_memory_names_the_rank_where_its_node_has_counted(run) -> None:
    folder = run()
    folder.write_cause(Cause(rank=0, time=9.0, kind="exception", exit_code=1, words="RuntimeError: peer"))
    assert cause_of(folder, view("OUT_OF_MEMORY", nodes="node1")).reason == "out of memory on node1"
    folder.write_cause(Cause(rank=1, time=8.0, host="node1", kind="signal", signal="SIGKILL", oom_kills=1))
    assert (
        "rank 1 was ended by SIGKILL on node1: out of memory"
        in cause_of(folder, view("OUT_OF_MEMORY")).reason
    )


def test_only_the_last_start_of_a_job_that_was_queued_again_counts(run) -> None:
    start = "2026-01-01T00:00:00Z job 7 on node1 of node1, restart {}\n"
    folder = run(
        exit="1",
        logs_jobDOTlog=start.format(0) + "srun: error: node1: task 1: Killed\n" + start.format(1) + "boom\n",
    )
    assert cause_of(folder, view("FAILED", exit_code=1)).reason == "the job ended with exit code 1: boom"


def test_an_exit_code_above_128_names_its_signal(run) -> None:
    failure = cause_of(run(exit="137"), view("FAILED", exit_code=137))
    assert failure.reason == "the job ended with exit code 137 (SIGKILL)"


def test_a_job_that_was_killed_names_the_signal_and_what_that_often_means(run) -> None:
    folder = run(
        logs_jobDOTlog="2026-01-01T00:00:00Z job 7 on node1\nscalestudy: rank 0 of 1 on node1: x.log\n",
        logs_rank0DOTlog="epoch 4\n",
    )
    failure = cause_of(folder, view("FAILED", nodes="node1", exit_code=0, signal=9))
    assert failure.reason == "the job was ended by SIGKILL (often: out of memory) on node1: epoch 4"
    assert failure.signal == "SIGKILL" and failure.exit_code is None


def test_a_process_that_is_alone_is_the_one_to_blame(run) -> None:
    folder = run(exit="1", logs_jobDOTlog="2026-01-01T00:00:00Z job 7 on n\n", logs_rank0DOTlog="boom\n")
    failure = cause_of(folder, view("FAILED", exit_code=1))
    assert (failure.reason, failure.rank) == ("rank 0 ended with exit code 1: boom", 0)


def test_the_time_limit_says_how_far_it_was(run) -> None:
    folder = run()
    folder.write_progress(Progress(phase="training", epoch=3, epochs=8, step=1, steps=2, updated=0.0))
    assert cause_of(folder, view("TIMEOUT")).reason == "the time limit was reached in epoch 3 of 8"


def test_a_repeated_time_limit_says_how_many_more_jobs_the_run_needs(run) -> None:
    folder = run()
    folder.write_progress(Progress(phase="training", epoch=3, epochs=8, step=1, steps=2, updated=0.0))
    for number in range(5):
        folder.write_allocation(Allocation(job="7", nodes=1, cores=4, gpus=0, began=float(number)))
    reason = cause_of(folder, view("TIMEOUT")).reason
    assert reason.endswith("after 5 jobs it needs about 11 more")  # 5.5 of 8 epochs at half an epoch a job
    folder.write_progress(Progress(phase="training", epoch=1, epochs=8, step=0, steps=2, updated=0.0))
    assert "time_limit" in cause_of(folder, view("TIMEOUT")).reason


def test_a_node_that_cannot_open_the_output_does_not_see_the_results(tmp_path) -> None:
    folder = RunFolder(tmp_path / "study" / "points" / "p" / "run-1")
    folder.path.mkdir(parents=True)
    failure = cause_of(folder, view("FAILED", signal=53, nodes="node2"))
    assert failure.reason.startswith(f"node2 does not see {tmp_path / 'study'},")
    assert (failure.signal, failure.job_state) == (None, "FAILED")


def test_who_cancelled_it_is_named(run) -> None:
    assert cause_of(run(), view("CANCELLED", by="4000000")).reason == "cancelled by user 4000000"
    assert cause_of(run(), view("CANCELLED", by="0")).reason == "cancelled by root"
    assert cause_of(run(), view("CANCELLED")).reason == "cancelled"


def test_what_waited_for_a_failed_job_says_so(run) -> None:
    failure = cause_of(run(), view("CANCELLED", reason="DependencyNeverSatisfied"))
    assert failure.reason == "cancelled, since what it waited for has failed"


def test_a_stop_that_led_nowhere_is_an_interruption(run) -> None:
    failure = cause_of(run(exit="75"), view("FAILED", exit_code=75))
    assert failure.job_state == "STOPPED" and failure.job_state in INTERRUPTED


@pytest.mark.parametrize("state", ["COMPLETED", UNKNOWN])
def test_a_job_that_ends_well_without_a_result_has_failed_all_the_same(run, state: str) -> None:
    failure = cause_of(run(logs_jobDOTlog="scalestudy: disk full\n"), view(state))
    assert failure.reason.startswith("the job ended without a result")
    assert failure.reason.endswith(": scalestudy: disk full")


@pytest.mark.parametrize("state", sorted(ENDED | {UNKNOWN}))
def test_every_end_has_a_sentence(run, state: str) -> None:
    reason = cause_of(run(), view(state, nodes="node1")).reason
    assert reason and "\n" not in reason and not reason.endswith(".")


def test_reasons_are_said_in_words_and_limits_by_their_names() -> None:
    assert SLURM.queue.waiting_reason("Resources") == "waits for free nodes"
    assert (
        SLURM.queue.waiting_reason("ReqNodeNotAvail, UnavailableNodes:node1")
        == "its nodes are down, drained or reserved"
    )
    assert SLURM.queue.waiting_reason("(Priority)") == "others come first"
    assert (
        SLURM.queue.waiting_reason("QOSMaxJobsPerUserLimit") == "a limit is reached (QOSMaxJobsPerUserLimit)"
    )
    assert SLURM.queue.waiting_reason("AssocGrpGRES") == "a limit is reached (AssocGrpGRES)"
    assert SLURM.queue.waiting_reason("SomethingNew") == "SomethingNew"
    assert SLURM.queue.waiting_reason("") == "not yet considered"


def test_lines_that_mpirun_draws_are_no_reason(run) -> None:
    folder = run(logs_jobDOTlog=f"mpirun noticed that a process was killed\n{'-' * 74}\n")
    assert cause_of(folder, view("FAILED", exit_code=1)).tail == ["mpirun noticed that a process was killed"]
