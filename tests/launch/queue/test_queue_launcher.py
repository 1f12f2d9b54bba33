"""What submitting to a queue refuses and says before it starts; jobs that belong to no run of the folder."""

import time
from pathlib import Path

import pytest

from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.launch.launcher import Note, Options, Submitted
from scalestudy.launch.queue.queue_launcher import cancel_jobs, find_orphans
from scalestudy.launch.queue.scheduler import QueueUnreachable, new_mark
from scalestudy.launch.slurm import SLURM
from scalestudy.launch.study_status import study_status
from scalestudy.store.records import JobRecord
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import UserError

TEXT = 'task = "cnn"\n[sweep]\nworkers = 1\nseed = 0\n[launch]\non = "slurm"\nsite = "here.toml"\n'


@pytest.fixture
def queued(tmp_path: Path) -> StudyFolder:
    """A study of one point for the queue of a site without an account."""
    (tmp_path / "here.toml").write_text("cpus_per_node = 4\n")
    study = parse_study(TEXT, tmp_path / "study.toml")
    return StudyFolder.create_or_open(tmp_path / "results", study, expand(study, gpus=0, cores=8), TEXT)


def start(folder: StudyFolder, **options) -> tuple[list[str], list[str]]:
    """Submit all points; return the jobs and the notes."""
    steps = list(SLURM.start(folder, folder.points(), Options(base=folder.path.parent, **options)))
    return (
        [step.job for step in steps if isinstance(step, Submitted)],
        [step.text for step in steps if isinstance(step, Note)],
    )


def script_of(folder: StudyFolder) -> str:
    return next((folder.path / "jobs").glob("*.sh")).read_text()


def test_jobs_charge_the_users_account_if_the_profile_names_none(queued, programs, monkeypatch) -> None:
    programs(sbatch="echo 7", squeue="", sacct="", scontrol="")
    monkeypatch.setenv("SBATCH_ACCOUNT", "physics")
    monkeypatch.setenv("SBATCH_QOS", "high")
    jobs, notes = start(queued)
    assert jobs == ["7"]
    assert "#SBATCH --account=physics\n" in script_of(queued)
    assert any("physics" in note and "SBATCH_ACCOUNT" in note for note in notes)
    assert any(note.startswith("Ignored: SBATCH_QOS.") for note in notes)


def test_an_account_in_the_profile_takes_precedence_and_that_is_said(queued, programs, monkeypatch) -> None:
    programs(sbatch="echo 7", squeue="", sacct="", scontrol="")
    (queued.path.parent / "here.toml").write_text('cpus_per_node = 4\naccount = "biology"\n')
    monkeypatch.setenv("SBATCH_ACCOUNT", "physics")
    _, notes = start(queued)
    assert "#SBATCH --account=biology\n" in script_of(queued)
    assert any(note.startswith("Ignored: SBATCH_ACCOUNT.") for note in notes)


@pytest.mark.parametrize(
    ("squeue", "sacct"), [("", ""), ("", "echo '8|FAILED|1:0|node1|'")], ids=["unknown", "failed"]
)
def test_a_job_to_wait_for_that_can_never_succeed_is_refused(queued, programs, squeue, sacct) -> None:
    asked = programs(sbatch="echo 7", squeue=squeue, sacct=sacct, scontrol="")
    with pytest.raises(UserError, match="--after"):
        start(queued, after="8")
    assert not any(call.startswith("sbatch") for call in asked())


def test_a_job_to_wait_for_that_runs_or_has_completed_is_accepted(queued, programs) -> None:
    asked = programs(sbatch="echo 7", squeue="echo '8|RUNNING|node1|N/A|None'", sacct="", scontrol="")
    assert start(queued, after="8")[0] == ["7"]
    assert any("--dependency=afterok:8" in call for call in asked())


@pytest.mark.parametrize(("request_", "warned"), [("gpu:{gpus}", True), ("gpu:a100:{gpus}", False)])
def test_jobs_that_may_run_on_different_gpus_are_reported(queued, programs, request_, warned) -> None:
    (queued.path.parent / "here.toml").write_text(
        f'cpus_per_node = 8\ngpus_per_node = 2\ngpu_request = "--gres={request_}"\npartition = "gpu"\n'
    )
    nodes = "echo 'gpu|up|1:00|4|8|4000|gpu:a100:2'; echo 'gpu|up|1:00|3|8|4000|gpu:2'"
    programs(sbatch="echo 7", squeue="", sacct="", scontrol="", sinfo=nodes)
    assert any("a100, GPUs without a type" in note for note in start(queued)[1]) is warned


ORPHANED = 'task = "cnn"\n[launch]\non = "slurm"\nsite = "here"\n[sweep]\nworkers = [1]\nseed = 0\n'


@pytest.fixture
def folder(tmp_path):
    study = parse_study(ORPHANED, tmp_path / "study.toml")
    return StudyFolder.create_or_open(tmp_path / "results", study, expand(study, gpus=0, cores=8), ORPHANED)


@pytest.fixture
def queue(folder, programs):
    """A job of a run, a job of this folder without a run, a job of another study, and an unmarked job."""
    run = folder.new_run(folder.points()[0])
    run.write_job(JobRecord(job="7", submission="0" * 16, submitted=time.time(), site="here", script="x"))
    mark = new_mark(folder.path)
    lines = [
        f"7|RUNNING|s-p|scalestudy:{mark.study}:{'0' * 16}",
        f"8|PENDING|s-p|a site's | words {mark}",
        f"9|RUNNING|s-q|{new_mark(folder.path / 'other')}",
        "10|RUNNING|other|(null)",
    ]
    body = "".join(f"echo '{line.replace(chr(39), '')}';" for line in lines)
    return programs(squeue=f"[[ $* == *-j* ]] && echo '7|RUNNING|n1||None' || {{ {body} }}", scancel="")


def test_a_job_that_is_no_runs_is_named_and_cancelled_with_the_others(folder, queue):
    (orphan,) = find_orphans(folder, study_status(folder))
    assert (orphan.job.job, orphan.job.name, orphan.job.state) == ("8", "s-p", "PENDING")
    chosen, orphans = cancel_jobs(folder, [])
    assert ([status.job.job for status in chosen], orphans) == (["7"], [orphan])
    assert queue()[-1] == "scancel --quiet 7 8"
    assert cancel_jobs(folder, [folder.points()[0].name])[1] == []


def test_a_queue_that_does_not_answer_hides_them_unless_it_must(folder, programs):
    programs(squeue='echo "error: Unable to contact slurm controller" >&2; exit 1')
    overview = study_status(folder)
    assert find_orphans(folder, overview) == []
    with pytest.raises(QueueUnreachable):
        find_orphans(folder, overview, must=True)


def test_a_study_of_this_machine_asks_nobody(tmp_path, programs):
    text = ORPHANED.replace('on = "slurm"\nsite = "here"', "")
    study = parse_study(text, tmp_path / "study.toml")
    local = StudyFolder.create_or_open(tmp_path / "local", study, expand(study, gpus=0, cores=8), text)
    asked = programs(squeue="")
    assert find_orphans(local, study_status(local), must=True) == []
    assert asked() == []
