import threading

import pytest

from scalestudy.store.records import Failure
from scalestudy.store.study_folder import RunFolder, StudyFolder


def run_with_logs(folder: StudyFolder, number: int = 0, **logs: str) -> RunFolder:
    run = folder.new_run(folder.points()[number])
    (run.path / "logs").mkdir()
    for name, text in logs.items():
        (run.path / "logs" / f"{name.replace('_', '-')}.log").write_text(text)
    return run


def test_each_line_has_its_rank_before_it(call, folder: StudyFolder) -> None:
    run = run_with_logs(folder, rank_0="one\ntwo\n", rank_10="ten\n", rank_2="[b]\n", job="srun\n")
    code, text, _ = call("logs", folder.path)
    assert code == 0
    assert text.splitlines() == [str(run.path / "logs"), "[0] one", "[0] two", "[2] [b]", "[10] ten"]


def test_one_rank_or_the_job_alone(call, folder: StudyFolder) -> None:
    run_with_logs(folder, rank_0="zero\n", rank_1="one\n", job="srun says\n")
    assert call("logs", folder.path, "--rank", "1")[1].splitlines()[1:] == ["[1] one"]
    assert call("logs", folder.path, "--job")[1].splitlines()[1:] == ["srun says"]


def test_as_long_as_no_rank_has_said_anything_the_jobs_log_is_shown(call, folder: StudyFolder) -> None:
    run = run_with_logs(folder, job="srun: error: no such partition\n")
    shown = [str(run.path / "logs"), "[job] srun: error: no such partition"]
    assert call("logs", folder.path)[1].splitlines() == shown
    run.log(0).touch()
    assert call("logs", folder.path)[1].splitlines() == shown
    run.log(0).write_text("zero\n")
    assert call("logs", folder.path)[1].splitlines()[1:] == ["[0] zero"]


def test_the_last_lines_are_shown_and_only_whole_ones(call, folder: StudyFolder) -> None:
    run_with_logs(folder, rank_0="".join(f"line {number}\n" for number in range(50)) + "half")
    lines = call("logs", folder.path, "--lines", "2")[1].splitlines()
    assert lines[1:] == ["[0] line 48", "[0] line 49"]


def test_a_point_is_chosen_by_name_and_its_newest_run_is_shown(call, folder: StudyFolder) -> None:
    run_with_logs(folder, 0, rank_0="first attempt\n")
    run_with_logs(folder, 0, rank_0="second attempt\n")
    run_with_logs(folder, 1, rank_0="another point\n")
    assert call("logs", folder.path, "--point", "native-w1-s0")[1].splitlines()[1:] == ["[0] second attempt"]


def test_without_a_name_the_running_point_is_shown(call, folder: StudyFolder) -> None:
    run_with_logs(folder, 0, rank_0="at work\n")
    run_with_logs(folder, 1, rank_0="over\n").write_failure(Failure(rank=0, exit_code=1, reason="x"))
    assert call("logs", folder.path)[1].splitlines()[1:] == ["[0] at work"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--point", "native-w3-s0"], "native-w1-s0"),
        (["--point", "native-w2-s0"], "none yet"),
        (["--rank", "7"], "a log of rank 7"),
        (["--job"], "a job.log"),
    ],
)
def test_what_there_is_not_is_refused(call, folder: StudyFolder, arguments: list[str], message: str) -> None:
    run_with_logs(folder, rank_0="zero\n")
    code, _, errors = call("logs", folder.path, *arguments)
    assert code == 2
    assert message in errors


def test_following_goes_on_until_the_run_has_ended(call, folder: StudyFolder) -> None:
    run = run_with_logs(folder, rank_0="before\nhal")
    began = threading.Event()

    def work() -> None:
        began.wait()
        with open(run.log(0), "a") as log:
            log.write("f\nlast\n")
        run.write_failure(Failure(rank=0, exit_code=1, reason="x"))

    worker = threading.Thread(target=work)
    worker.start()
    began.set()
    lines = call("logs", folder.path, "--follow")[1].splitlines()
    worker.join()
    assert lines[1:] == ["[0] before", "[0] half", "[0] last"]
