"""The commands that PBS is given, with answers in the form of its Reference Guide; no PBS is here."""

import json
import os
import time
from pathlib import Path

import pytest
from sites import MARK

from scalestudy.launch.base import Options, Submitted, launcher, launcher_of
from scalestudy.launch.pbs import PBS, TIMEOUT_VARIABLE, PbsAbsent, PbsRefused, PbsSilent
from scalestudy.launch.queue.base import MarkedJob
from scalestudy.launch.queue.submit import Batch
from scalestudy.launch.status import look
from scalestudy.study.parse import parse_study
from scalestudy.study.records import JobRecord
from scalestudy.study.store import StudyFolder

QUEUE = PBS.queue
TEXT = 'task = "cnn"\n[sweep]\nworkers = [1, 2]\nseed = [0, 1]\n[launch]\non = "pbs"\nsite = "./here.toml"\n'
TAKES_ALL = (
    'n=$(cat "$0.n" 2>/dev/null || echo 0); n=$((n + 1)); echo $n > "$0.n"; echo "$((100 + n))[].pbs01"'
)
GONE = 'echo "qstat: 7.s Job has finished, use -x or -H to obtain historical job information" >&2; exit 35'
UNKNOWN = 'echo "qstat: Unknown Job Id 7.s" >&2; exit 153'


def answer(**jobs: dict) -> str:
    told = {name.replace("_", "."): fields for name, fields in jobs.items()}
    return f"cat <<'END'\n{json.dumps({'Jobs': told})}\nEND"


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    (tmp_path / "here.toml").write_text("cpus_per_node = 4\n")
    parsed = parse_study(TEXT, tmp_path / "study.toml")
    points = launcher_of(parsed).points(parsed, Options(base=tmp_path))
    return StudyFolder.create_or_open(tmp_path / "results", parsed, points, TEXT)


def test_it_is_found_by_its_name():
    assert launcher("pbs") is PBS
    assert PBS.outlives


def test_points_are_submitted_as_arrays_that_wait_for_each_other(study, tmp_path, programs):
    asked = programs(qsub=TAKES_ALL)
    options = Options(base=tmp_path, at_most=1)
    points = [point.with_files("/data", "/data/split") for point in study.points()]
    steps = list(PBS.start(study, points, options))
    assert steps == [
        Submitted(("native-w1-s0", "native-w1-s1"), "101[].pbs01"),
        Submitted(("native-w2-s0", "native-w2-s1"), "102[].pbs01"),
    ]
    jobs = study.path.absolute() / "jobs"
    assert asked() == [
        f"qsub {jobs}/native-w1-x2.sh",
        f"qsub -W depend=afterany:101[].pbs01 {jobs}/native-w2-x2.sh",
    ]
    job = study.runs("native-w2-s1")[0].job()
    assert job and (job.job, job.queue) == ("102[1].pbs01", "pbs")
    assert "#PBS -J 0-1%1" in (jobs / "native-w1-x2.sh").read_text()


def test_dependencies_of_both_kinds_are_one_option():
    batch = Batch(("a",), afterok=(0,), afterany=(1, 2))
    assert QUEUE.options(batch, ["1.s", "2[].s", "3.s"]) == ["-W", "depend=afterok:1.s,afterany:2[].s:3.s"]
    assert QUEUE.options(Batch(("a",)), []) == []


def test_an_array_is_asked_about_once_with_its_tasks(programs):
    told = {"7[0].s": {"job_state": "R"}, "7[1].s": {"job_state": "Q"}, "7[].s": {"job_state": "B"}}
    asked = programs(qstat=f"echo '{json.dumps({'Jobs': told})}'")
    found = QUEUE.ask(["7[0].s", "7[1].s"])
    assert {job: view.state for job, view in found.items()} == {"7[0].s": "RUNNING", "7[1].s": "PENDING"}
    assert asked() == ["qstat -t -f -F json 7[].s"]


def test_a_job_that_qstat_has_forgotten_is_looked_up_in_the_history(programs):
    history = answer(**{"7_s": {"job_state": "F", "Exit_status": 3, "substate": 93}})
    asked = programs(qstat=f'[ "$1" = -x ] || {{ {GONE}; }}\n{history}')
    view = QUEUE.ask(["7.s"])["7.s"]
    assert (view.state, view.exit_code) == ("FAILED", 3)
    assert asked() == ["qstat -t -f -F json 7.s", "qstat -x -t -f -F json 7.s"]


def test_a_job_that_the_history_has_forgotten_too_is_unknown(programs):
    programs(qstat=UNKNOWN)
    assert QUEUE.ask(["7.s"])["7.s"].state == "UNKNOWN"


def test_jobs_are_deleted_in_one_call_and_the_ended_are_passed_over(programs):
    asked = programs(qdel='echo "qdel: Unknown Job Id 2.s" >&2; exit 153')
    QUEUE.cancel(["1[0].s", "2.s"])
    assert asked() == ["qdel 1[0].s 2.s"]


def test_what_pbs_refuses_is_told_in_its_own_words_and_leaves_nothing(study, tmp_path, programs):
    programs(qsub='echo "qsub: Unknown queue" >&2; exit 170')
    points = [point.with_files("/data", "/data/split") for point in study.points()]
    with pytest.raises(PbsRefused, match="Unknown queue"):
        list(PBS.start(study, points, Options(base=tmp_path)))
    assert not list((study.path / "points").rglob("run-*"))


def test_a_server_that_does_not_answer_is_silent(programs, monkeypatch):
    silent = "qstat: cannot connect to server pbs01 (errno=15010)"
    programs(qstat=f'echo "Connection refused" >&2; echo "{silent}" >&2; exit 1')
    with pytest.raises(PbsSilent, match="cannot connect to server pbs01"):
        QUEUE.ask(["1.s"])
    monkeypatch.setenv(TIMEOUT_VARIABLE, "0.3")
    programs(qstat="sleep 60")
    with pytest.raises(PbsSilent, match=r"none within 0\.3 s"):
        QUEUE.ask(["1.s"])


def test_an_answer_that_is_no_json_is_refused(programs):
    programs(qstat="echo 'Job id  Name'")
    with pytest.raises(PbsRefused, match="not its JSON"):
        QUEUE.ask(["1.s"])


def test_a_machine_without_pbs_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PbsAbsent, match="qstat"):
        QUEUE.ask(["1.s"])
    assert os.environ["PATH"] == str(tmp_path)


@pytest.mark.parametrize(
    ("told", "state", "reason"),
    [
        ({"job_state": "Q", "comment": "Not Running: Not enough free nodes"}, "queued", ""),
        ({"job_state": "R"}, "running", ""),
        ({"job_state": "F", "Exit_status": -29, "substate": 93}, "failed", "the time limit was reached"),
        ({"job_state": "F", "Exit_status": 271, "substate": 91}, "cancelled", "cancelled"),
        (
            {"job_state": "F", "Exit_status": 3, "substate": 93, "exec_host": "x1/0"},
            "failed", "the job ended with exit code 3 on x1",
        ),
    ],
)  # fmt: skip
def test_the_state_of_a_point_follows_from_the_same_machine_as_slurms(study, programs, told, state, reason):
    programs(qstat=f"echo '{json.dumps({'Jobs': {'7.s': told}})}'")
    run = study.new_run(study.points()[0])
    run.write_job(JobRecord(queue="pbs", job="7.s", submitted=time.time(), site="here", script="x.sh"))
    found = look(study).of("native-w1-s0")
    assert (found.state, found.reason) == (state, reason)
    if state == "queued":
        assert found.waits == "not enough free nodes"


def test_jobs_that_carry_a_mark_are_listed_with_the_tasks_of_arrays(programs):
    mark = {"PBS_O_HOME": "/h", "SCALESTUDY_MARK": str(MARK)}
    told = {
        "8[].s": {"job_state": "B", "array": "True", "Variable_List": mark, "Job_Name": "x"},
        "8[0].s": {"job_state": "X", "Variable_List": mark, "Job_Name": "x"},
        "8[1].s": {"job_state": "Q", "Variable_List": mark, "Job_Name": "x"},
        "9.s": {"job_state": "R", "Variable_List": {"PBS_O_HOME": "/h"}, "Job_Name": "other"},
    }
    asked = programs(qselect="echo '8[].s'; echo 9.s", qstat=f"echo '{json.dumps({'Jobs': told})}'")
    assert PBS.queue.marked() == [MarkedJob("8[1].s", "8[].s", "x", "PENDING", MARK)]
    assert asked()[0].startswith("qselect -u ")
    assert asked()[1] == "qstat -t -f -F json 8[].s 9.s"
