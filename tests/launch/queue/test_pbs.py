"""The commands of PBS, with answers in the form of its Reference Guide; PBS itself is not used."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from scalestudy.config.parse import parse_study
from scalestudy.launch import scheduler
from scalestudy.launch.job_view import JobView
from scalestudy.launch.launcher import Options, Submitted, launcher_of
from scalestudy.launch.queue.job_script import render_script
from scalestudy.launch.queue.launchers import PBS
from scalestudy.launch.queue.pbs_output import job_view, parse_qstat
from scalestudy.launch.queue.point_job import JobScript
from scalestudy.launch.queue.queue_launcher import cancel_jobs
from scalestudy.launch.scheduler import QueueAbsent, QueueRefused, QueueUnreachable
from scalestudy.launch.study_status import study_status
from scalestudy.launch.waiting import Waiting
from scalestudy.store.records import JobRecord
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError
from sites import MARK, SUBMISSION, job, site

QUEUE = PBS.queue
RECORDED = Path(__file__).parent / "pbs"
TEXT = 'task = "cnn"\n[sweep]\nworkers = [1, 2]\nseed = [0, 1]\n[launch]\non = "pbs"\nsite = "./here.toml"\n'
TAKES_ALL = 'n=$(cat "$0.n" 2>/dev/null || echo 0); n=$((n + 1)); echo $n > "$0.n"; echo $((100 + n)).pbs01'
GONE = 'echo "qstat: 7.s Job has finished, use -x or -H to obtain historical job information" >&2; exit 35'
UNKNOWN = 'echo "qstat: Unknown Job Id 7.s" >&2; exit 153'


def views_of(text: str) -> dict[str, JobView]:
    return {job: job_view(job, fields) for job, fields in parse_qstat(text).items()}


def answer(**jobs: dict) -> str:
    told = {name.replace("_", "."): fields for name, fields in jobs.items()}
    return f"cat <<'END'\n{json.dumps({'Jobs': told})}\nEND"


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    (tmp_path / "here.toml").write_text("cpus_per_node = 4\n")
    parsed = parse_study(TEXT, tmp_path / "study.toml")
    points = launcher_of(parsed).points(parsed, Options(base=tmp_path))
    return StudyFolder.create_or_open(tmp_path / "results", parsed, points, TEXT)


def test_points_are_submitted_in_their_order(study, tmp_path, programs):
    asked = programs(qsub=TAKES_ALL)
    points = [point.with_files("/data", "/data/split") for point in study.points()]
    steps = list(PBS.start(study, points, Options(base=tmp_path)))
    assert [step for step in steps if isinstance(step, Submitted)] == [
        Submitted(point.name, f"{101 + index}.pbs01")
        for index, point in enumerate(points)
    ]
    jobs = study.path.absolute() / "jobs"
    assert asked() == [f"qsub {jobs}/{point.name}.sh" for point in points]
    record = study.runs("native-w2-s1")[0].job()
    assert record and (record.job, record.queue) == ("104.pbs01", "pbs")


def test_a_job_that_qstat_has_forgotten_is_looked_up_in_the_history(programs):
    history = answer(**{"7_s": {"job_state": "F", "Exit_status": 3, "substate": 93}})
    asked = programs(qstat=f'[ "$1" = -x ] || {{ {GONE}; }}\n{history}')
    view = QUEUE.ask(["7.s"])["7.s"]
    assert (view.state, view.exit_code) == ("FAILED", 3)
    assert asked() == ["qstat -E -f -F json 7.s", "qstat -x -E -f -F json 7.s"]


def test_without_an_answer_a_job_is_unknown_and_without_pbs_that_is_said(
    programs, monkeypatch, tmp_path
):
    programs(qstat=UNKNOWN)
    assert QUEUE.ask(["7.s"])["7.s"].state == "UNKNOWN"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(QueueAbsent, match="qstat"):
        QUEUE.ask(["1.s"])


def test_a_listing_that_leaves_a_job_out_without_a_word_is_no_answer(programs):
    programs(qstat=answer(**{"7_s": {"job_state": "R"}}))
    with pytest.raises(QueueUnreachable, match="no word of 1 of 2 jobs"):
        QUEUE.ask(["7.s", "8.s"])


def test_a_job_that_is_named_in_an_error_is_forgotten_and_the_others_are_told(programs):
    running = answer(**{"7_s": {"job_state": "R"}})
    programs(qstat=f'echo "qstat: Unknown Job Id 8.s" >&2\n{running}\nexit 153')
    views = QUEUE.ask(["7.s", "8.s"])
    assert (views["7.s"].state, views["8.s"].state) == ("RUNNING", "UNKNOWN")


def test_answers_of_a_real_server_are_read(programs):
    views = views_of((RECORDED / "qstat.json").read_text())
    assert {job: view.state for job, view in views.items() if "[" not in job} == {
        "0.pbshead": "COMPLETING"
    }
    assert (
        QUEUE.explain(views["2[0].pbshead"].reason).words
        == "not enough free nodes available"
    )
    assert parse_qstat((RECORDED / "qstat-none.json").read_text()) == {}


def test_jobs_are_deleted_in_one_call_and_the_ended_are_passed_over(programs):
    asked = programs(qdel='echo "qdel: Unknown Job Id 2.s" >&2; exit 153')
    QUEUE.cancel(["1.s", "2.s"])
    assert asked() == ["qdel 1.s 2.s"]


def test_what_pbs_refuses_is_told_in_its_own_words_and_leaves_nothing(
    study, tmp_path, programs
):
    programs(qsub='echo "qsub: Unknown queue" >&2; exit 170')
    points = [point.with_files("/data", "/data/split") for point in study.points()]
    with pytest.raises(QueueRefused, match="Unknown queue"):
        list(PBS.start(study, points, Options(base=tmp_path)))
    assert not list((study.path / "points").rglob("run-*"))


def test_a_server_that_does_not_answer_is_silent(programs, monkeypatch):
    silent = "qstat: cannot connect to server pbs01 (errno=15010)"
    programs(qstat=f'echo "Connection refused" >&2; echo "{silent}" >&2; exit 1')
    with pytest.raises(QueueUnreachable, match="cannot connect to server pbs01"):
        QUEUE.ask(["1.s"])
    monkeypatch.setattr(scheduler, "TIMEOUT", 0.3)
    programs(qstat="sleep 60")
    with pytest.raises(QueueUnreachable, match=r"none within 0\.3 s"):
        QUEUE.ask(["1.s"])


def test_an_answer_that_is_no_json_is_refused(programs):
    programs(qstat="echo 'Job id  Name'")
    with pytest.raises(QueueRefused, match="not its JSON"):
        QUEUE.ask(["1.s"])


@pytest.mark.parametrize(
    ("told", "state", "reason"),
    [
        (
            {"job_state": "Q", "comment": "Not Running: Not enough free nodes"},
            "queued",
            "",
        ),
        ({"job_state": "R"}, "running", ""),
        (
            {"job_state": "F", "Exit_status": -29, "substate": 93},
            "failed",
            "the time limit was reached",
        ),
        (
            {"job_state": "F", "Exit_status": 271, "substate": 91},
            "cancelled",
            "cancelled",
        ),
        (
            {"job_state": "F", "Exit_status": 3, "substate": 93, "exec_host": "x1/0"},
            "failed",
            "the job ended with exit code 3 on x1",
        ),
    ],
)
def test_the_state_of_a_point_follows_from_the_same_machine_as_slurms(
    study, programs, told, state, reason
):
    programs(qstat=f"echo '{json.dumps({'Jobs': {'7.s': told}})}'")
    run = study.new_run(study.points()[0])
    run.write_job(
        JobRecord(
            queue="pbs", job="7.s", submitted=time.time(), site="here", script="x.sh"
        )
    )
    found = study_status(study).of("native-w1-s0")
    assert (found.state, found.reason) == (state, reason)
    if state == "queued":
        assert found.waiting.words == "not enough free nodes"


def test_a_job_that_was_cancelled_is_cancelled_though_the_queue_keeps_no_history(
    study, programs
):
    run = study.new_run(study.points()[0])
    run.write_job(
        JobRecord(
            queue="pbs", job="7.s", submitted=time.time(), site="here", script="x.sh"
        )
    )
    programs(qstat=answer(**{"7_s": {"job_state": "R"}}), qdel="", qselect="")
    assert [status.name for status in cancel_jobs(study, [])] == ["native-w1-s0"]
    programs(qstat=UNKNOWN)
    assert study_status(study, must=True).of("native-w1-s0").state == "cancelled"


def test_live_jobs_that_carry_a_mark_are_listed(programs):
    mark = {"PBS_O_HOME": "/h", "SCALESTUDY_MARK": str(MARK)}
    told = {
        "7.s": {"job_state": "F", "Variable_List": mark, "Job_Name": "x"},
        "8.s": {"job_state": "Q", "Variable_List": mark, "Job_Name": "x"},
        "9.s": {
            "job_state": "R",
            "Variable_List": {"PBS_O_HOME": "/h"},
            "Job_Name": "other",
        },
    }
    asked = programs(
        qselect="echo 7.s 8.s; echo 9.s", qstat=f"echo '{json.dumps({'Jobs': told})}'"
    )
    assert PBS.queue.marked() == {SUBMISSION: "8.s"}
    assert asked()[0].startswith("qselect -u ")
    assert asked()[1] == "qstat -E -f -F json 7.s 8.s 9.s"


ANSWER = """
{
    "timestamp":1763733600,
    "pbs_version":"2022.1.1",
    "pbs_server":"pbs01",
    "Jobs":{
        "11.pbs01":{
            "Job_Name":"s-native-w1-s0",
            "Job_Owner":"me@login1",
            "job_state":"Q",
            "queue":"prod",
            "server":"pbs01",
            "Resource_List":{"ncpus":4, "nodect":1, "place":"scatter", "walltime":"01:00:00"},
            "substate":10,
            "comment":"Not Running: Insufficient amount of resource: ngpus ",
            "estimated":{"exec_vnode":"(x1:ncpus=4)", "start_time":"Wed Oct 12 14:48:45 2022"}
        },
        "12.pbs01":{
            "job_state":"R",
            "exec_host":"x1/0*4+x2/0*4",
            "exec_vnode":"(x1:ncpus=4)+(x2:ncpus=4)",
            "substate":42,
            "stime":"Tue Oct 11 08:13:45 2022",
            "comment":"Job run at Tue Oct 11 at 08:13 on (x1:ncpus=4)+(x2:ncpus=4)"
        },
        "13.pbs01":{"job_state":"H", "substate":22, "depend":"afterok:12.pbs01@pbs01", "Hold_Types":"s"},
        "15.pbs01":{"job_state":"E", "substate":51, "exec_host":"x1/0"},
        "16.pbs01":{"job_state":"S", "substate":45, "exec_host":"x1/0"}
    }
}
"""


def ended(**fields):
    text = json.dumps(
        {"Jobs": {"1.s": {"job_state": "F", "exec_host": "x1/0*4"} | fields}}
    )
    return views_of(text)["1.s"]


def test_jobs_that_are_not_over_are_told_in_the_common_words():
    found = views_of(ANSWER)
    assert {job: view.state for job, view in found.items()} == {
        "11.pbs01": "PENDING",
        "12.pbs01": "RUNNING",
        "13.pbs01": "PENDING",
        "15.pbs01": "COMPLETING",
        "16.pbs01": "SUSPENDED",
    }
    assert found["12.pbs01"].nodes == "x1,x2"
    assert found["12.pbs01"].start == "2022-10-11T08:13:45"
    assert found["11.pbs01"].start == "2022-10-12T14:48:45"
    assert all(view.live for view in found.values())


def test_what_a_job_waits_for_is_said_in_words():
    found = views_of(ANSWER)
    explained = QUEUE.explain(found["11.pbs01"].reason)
    assert explained.words.strip() == "insufficient amount of resource: ngpus"
    assert QUEUE.explain("") == Waiting(
        "will start", "not yet considered", "qstat -f {jobs}"
    )
    assert (
        QUEUE.explain("Can Never Run: Insufficient amount of server resource").group
        == "needs you"
    )


@pytest.mark.parametrize(
    ("fields", "group"),
    [
        ({"Hold_Types": "u"}, "needs you"),
        ({"Hold_Types": "uo"}, "needs the site"),
        ({"Hold_Types": "s"}, "needs the site"),
        ({"Hold_Types": "s", "depend": "afterok:7"}, "will start"),
    ],
)
def test_a_held_job_waits_for_whoever_holds_it(fields, group):
    view = job_view("11.s", {"job_state": "H"} | fields)
    assert view.waiting and QUEUE.explain(view.reason).group == group


@pytest.mark.parametrize(
    ("fields", "state", "code", "signal"),
    [
        ({"Exit_status": 0, "substate": 92}, "COMPLETED", 0, None),
        ({"Exit_status": 3, "substate": 93}, "FAILED", 3, None),
        ({"Exit_status": 75, "substate": 93}, "FAILED", 75, None),
        ({"Exit_status": -29, "substate": 93}, "TIMEOUT", None, None),
        ({"Exit_status": -27, "substate": 93}, "OUT_OF_MEMORY", None, None),
        ({"Exit_status": -20, "substate": 93}, "NODE_FAIL", None, None),
        ({"Exit_status": 271, "substate": 91}, "CANCELLED", None, None),
        ({"substate": 91}, "CANCELLED", None, None),
        ({"Exit_status": 137, "substate": 93}, "FAILED", None, 9),
        ({"Exit_status": 143, "substate": 93}, "FAILED", None, 15),
        ({"Exit_status": 255, "substate": 93}, "FAILED", 255, None),
        ({"Exit_status": 265, "substate": 93}, "FAILED", None, 9),
        ({"Exit_status": -1, "substate": 93}, "FAILED", None, None),
        ({"Exit_status": 271, "substate": 93}, "FAILED", None, 15),
    ],
)
def test_how_a_job_ended_is_told_by_its_status_and_substate(
    fields, state, code, signal
):
    view = ended(**fields)
    assert (view.state, view.exit_code, view.signal) == (state, code, signal)
    assert view.ended


def test_nothing_is_no_job_and_anything_else_is_refused():
    assert parse_qstat("") == {}
    for text in ("[]", '{"Jobs": 3}', "qstat: no"):
        with pytest.raises(ValueError, match=r".*"):
            parse_qstat(text)


@pytest.mark.parametrize("job", ["1234.pbs01", "1234.pbs-01.hsn.cluster.net", "1234"])
def test_the_id_of_a_job_is_found_whatever_is_printed_around_it(
    programs, tmp_path, job
):
    programs(qsub=f"echo Welcome; echo '{job}'")
    assert QUEUE.submit(tmp_path / "job.sh") == job
    programs(qsub="echo 'qsub: waiting'")
    with pytest.raises(QueueRefused, match="waiting"):
        QUEUE.submit(tmp_path / "job.sh")


def script(made: JobScript) -> str:
    return render_script(made, PBS.queue)


def directives(text: str) -> list[str]:
    return [
        line.removeprefix("#PBS ")
        for line in text.splitlines()
        if line.startswith("#PBS ")
    ]


def started(text: str) -> str:
    return " ".join(text.partition("launch=(")[2].partition("\n)")[0].split())


def test_a_job_asks_for_what_its_layout_says():
    on = site(
        partition="prod",
        account="me",
        gpus_per_node=4,
        cpus_per_node=32,
        memory_per_node="180G",
        time_limit="1-02:00:00",
        constraint="system=polaris",
        directives=("-l filesystems=home:eagle",),
    )
    assert directives(script(job("horovod", 6, on))) == [
        "-N s-p",
        "-S /bin/bash",
        "-j oe",
        "-o /studies/s/jobs/p.out",
        "-l select=2:ncpus=24:mpiprocs=3:ngpus=3:mem=180gb:system=polaris",
        "-l place=scatter:excl",
        "-r y",
        "-l walltime=26:00:00",
        f"-v SCALESTUDY_MARK={MARK}",
        "-q prod",
        "-A me",
        "-l filesystems=home:eagle",
    ]


def test_a_sites_own_request_for_gpus_stands_in_the_chunk():
    on = site(gpus_per_node=4, gpu_request="ngpus={gpus}:gputype=V100")
    assert "-l select=1:ncpus=4:mpiprocs=2:ngpus=2:gputype=V100" in directives(
        script(job("horovod", 2, on))
    )


def test_a_quality_of_service_which_pbs_has_not_is_refused():
    with pytest.raises(UserError, match="qos"):
        script(job("single", 1, site(qos="high")))


@pytest.mark.parametrize(
    ("launcher", "command"),
    [
        ("srun", "mpiexec -n 6 --ppn 3 --depth=1 --cpu-bind depth"),
        ("hydra", "mpiexec.hydra -n 6 -ppn 3 -bind-to none"),
        (
            "mpirun",
            'mpirun -n 6 --map-by ppr:3:node --rank-by slot --bind-to none --hostfile "$PBS_NODEFILE"',
        ),
    ],
)
def test_a_launcher_is_told_the_ranks_of_a_node(launcher, command):
    text = script(
        job("horovod", 6, site(cpus_per_node=4, launcher=launcher, env={"MY_OWN": "1"}))
    )
    assert started(text) == command
    assert "srun" not in text and "SLURM" not in text
    assert ("|SCALESTUDY_|PBS_|MY_OWN)" in text) == (launcher == "mpirun")


@pytest.mark.parametrize(("limit", "reminder"), [("01:00:00", 3480), ("infinite", 0)])
def test_a_job_reminds_itself_of_its_time_limit_since_pbs_does_not(limit, reminder):
    text = script(job("single", 1, site(time_limit=limit)))
    assert f"wrapper pbs {reminder} " in text and "scontrol" not in text
    assert ("walltime" in text) == (limit != "infinite")


def test_all_ranks_are_told_the_nodes_of_the_job_each_once_in_order(tmp_path):
    file = tmp_path / "nodes"
    file.write_text("n2\nn2\nn1\nn1\n")
    lines = "\n".join(PBS.queue.prepare())
    done = subprocess.run(
        ["bash", "-c", f'PBS_NODEFILE={file}\n{lines}\necho "$SCALESTUDY_NODES"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "n2,n1\n"


SOURCE = Path(__file__).parents[3] / "src"
WORKER = """#!/bin/bash
run=${!#}
case "$(cat "$run/plan")" in
  good) echo done > "$run/result.json" ;;
  stops) until [ -e "$run/stop" ]; do sleep 0.05; done; 
    touch "$run/checkpoint.npz"; echo '{"epoch": 1, "step": 2}' >"$run/stopped.json" ;;
  fails) exit 3 ;;
esac
"""


@pytest.mark.slow
@pytest.mark.parametrize(("plan", "code"), [("good", 0), ("fails", 3), ("stops", 75)])
def test_the_script_leaves_the_exit_code_of_its_workers(
    tmp_path, monkeypatch, plan, code
):
    """Bash reads the script from standard input, as PBS may; the reminder comes at once."""
    run = tmp_path / "points" / "p" / "run-1"
    run.mkdir(parents=True)
    (run / "plan").write_text(plan)
    record = JobRecord(
        queue="pbs",
        job="",
        submission=SUBMISSION,
        submitted=time.time(),
        site="here",
        script="x.sh",
    )
    RunFolder(run).write_job(record)
    (run / "point.json").touch()
    worker, nodes = tmp_path / "worker", tmp_path / "nodes"
    worker.write_text(WORKER)
    worker.chmod(0o755)
    nodes.write_text("n1\n")
    on = site(wrapper=(str(worker),))
    made = replace(job("single", 1, on, run), python=sys.executable, source=SOURCE)
    text = script(made).replace("wrapper pbs 3480", "wrapper pbs 1")
    monkeypatch.setenv("PBS_NODEFILE", str(nodes))
    monkeypatch.setenv("PBS_JOBID", "7.server")
    done = subprocess.run(["bash"], input=text, text=True, check=False, timeout=600)
    assert done.returncode == code, (run / "logs" / "job.log").read_text()
    assert (run / "exit").read_text() == f"{code}\n"
    assert "job 7.server on" in (run / "logs" / "job.log").read_text()


@pytest.mark.parametrize(
    "text",
    [
        "-J 0-9",
        "-J0-9",
        "-N x",
        "-l select=2",
        "-l a=b,walltime=1",
        "-W depend=afterok:1",
        "-v A=1",
        "-VJ 0-9",
        "-l a -J 0-9",
        "--array=1",
        "-P 'a b'",
        "-C x",
        "-m abe x -J 1",
    ],
)
def test_directives_that_would_change_a_job_are_refused(text):
    with pytest.raises(UserError):
        script(job("single", 1, site(directives=(text,))))


@pytest.mark.parametrize(
    "text", ["-P ab12", "-l filesystems=home:eagle", "-V", "-m abe", "-W umask=022"]
)
def test_all_others_stand_as_they_are(text):
    assert directives(script(job("single", 1, site(directives=(text,)))))[-1] == text


@pytest.mark.parametrize("key", ["partition", "account", "constraint"])
@pytest.mark.parametrize("value", ["a -J 0-9", 'a" b', "a\\", "a#b"])
def test_a_name_that_qsub_would_split_is_refused(key, value):
    with pytest.raises(UserError, match=key):
        script(job("single", 1, site(**{key: value})))


def test_a_job_that_shares_its_nodes_says_so_and_asks_for_its_share_of_the_memory():
    on = site(cpus_per_node=8, memory_per_node="16G", exclusive=False)
    text = script(job("horovod", 2, on))
    assert "-l select=1:ncpus=2:mpiprocs=2:mem=4096mb" in directives(text)
    assert "-l place=scatter" in directives(text)
    assert "SCALESTUDY_NODES_SHARED=yes" in text
    assert "SCALESTUDY_NODES_SHARED=no" in script(job("horovod", 8, on))
    assert "SCALESTUDY_NODES_SHARED=no" in script(
        job("horovod", 2, site(cpus_per_node=8))
    )
