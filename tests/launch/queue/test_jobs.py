"""Jobs of a study that no run of its folder names: an earlier study's, or a script's by hand."""

import time

import pytest

from scalestudy.launch.queue.base import QueueUnreachable, new_mark
from scalestudy.launch.queue.jobs import end_orphans, find_orphans
from scalestudy.study.expand import expand
from scalestudy.study.parse import parse_study
from scalestudy.study.records import JobRecord
from scalestudy.study.store import StudyFolder

TEXT = 'task = "cnn"\n[launch]\non = "slurm"\nsite = "here"\n[sweep]\nworkers = [1]\nseed = 0\n'


@pytest.fixture
def folder(tmp_path):
    study = parse_study(TEXT, tmp_path / "study.toml")
    return StudyFolder.create_or_open(tmp_path / "results", study, expand(study, gpus=0, cores=8), TEXT)


@pytest.fixture
def queue(folder, programs):
    """A job of a run, one of the folder that no run knows, one of another study, and one of none."""
    run = folder.new_run(folder.points()[0])
    run.write_job(JobRecord(job="7", submission="0" * 16, submitted=time.time(), site="here", script="x"))
    own = new_mark(folder.path)
    lines = [
        f"7|7|RUNNING|s-p|{own}",
        f"8_1|8|PENDING|s-p|a site's | words {own}",
        f"9|9|RUNNING|s-q|{new_mark(folder.path / 'other')}",
        "10|10|RUNNING|other|(null)",
    ]
    return programs(squeue="".join(f"echo '{line.replace(chr(39), '')}';" for line in lines), scancel="")


def test_a_job_that_no_run_knows_of_is_named(folder, queue):
    (orphan,) = find_orphans(folder)
    assert orphan.sentence() == "Job 8_1 (pending, s-p) is of this folder, and no run in it knows of it"


def test_it_alone_is_ended(folder, queue):
    end_orphans(find_orphans(folder))
    assert queue()[-1] == "scancel --quiet 8_1"


def test_a_queue_that_does_not_answer_hides_them_unless_it_must(folder, programs):
    programs(squeue='echo "error: Unable to contact slurm controller" >&2; exit 1')
    assert find_orphans(folder) == []
    with pytest.raises(QueueUnreachable):
        find_orphans(folder, must=True)


def test_a_study_of_this_machine_asks_nobody(tmp_path, programs):
    text = TEXT.replace('on = "slurm"\nsite = "here"', "")
    study = parse_study(text, tmp_path / "study.toml")
    local = StudyFolder.create_or_open(tmp_path / "local", study, expand(study, gpus=0, cores=8), text)
    asked = programs(squeue="")
    assert find_orphans(local, must=True) == []
    assert asked() == []
