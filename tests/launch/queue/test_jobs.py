"""Jobs that belong to no run of the folder: of an earlier study, or from a script submitted by hand."""

import time

import pytest

from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.launch.queue.queue_launcher import cancel_jobs, find_orphans
from scalestudy.launch.queue.scheduler import QueueUnreachable, new_mark
from scalestudy.launch.study_status import study_status
from scalestudy.store.records import JobRecord
from scalestudy.store.study_folder import StudyFolder

TEXT = 'task = "cnn"\n[launch]\non = "slurm"\nsite = "here"\n[sweep]\nworkers = [1]\nseed = 0\n'


@pytest.fixture
def folder(tmp_path):
    study = parse_study(TEXT, tmp_path / "study.toml")
    return StudyFolder.create_or_open(tmp_path / "results", study, expand(study, gpus=0, cores=8), TEXT)


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
    text = TEXT.replace('on = "slurm"\nsite = "here"', "")
    study = parse_study(text, tmp_path / "study.toml")
    local = StudyFolder.create_or_open(tmp_path / "local", study, expand(study, gpus=0, cores=8), text)
    asked = programs(squeue="")
    assert find_orphans(local, study_status(local), must=True) == []
    assert asked() == []
