"""What submitting to a queue refuses and says before it starts."""

from pathlib import Path

import pytest

from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.launch.launcher import Note, Options, Submitted
from scalestudy.launch.slurm import SLURM
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
