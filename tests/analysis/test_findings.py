from dataclasses import replace

import pytest

import synthetic
from scalestudy.analysis.findings import read_study
from scalestudy.analysis.study_runs import runs_of
from scalestudy.launch.point_run import KILLED
from scalestudy.launch.study_status import study_status


def test_a_folder_is_read_with_its_runs_ranks_and_failures(tmp_path):
    runs = synthetic.seeded((1, 2), ("horovod",))
    findings = read_study(
        synthetic.write(tmp_path / "study", "made", runs, synthetic.unfinished())
    )
    assert (findings.name, len(findings.runs)) == ("made", 6)
    first = findings.runs[0]
    assert first.folder == "points/horovod-w1-s0/run-1"
    assert (first.ranks[0].cpu_model, len(first.epochs)) == ("Made CPU @ 2.5 GHz", 12)
    points = {point.name: point for point in findings.planned}
    names = ("horovod-w8-s2", "horovod-w16-s0", "horovod-w16-s1")
    assert [points[name].state for name in names] == ["failed", "missing", "running"]
    assert points["horovod-w8-s2"].reason.startswith("Rank 3 was ended by signal 9")
    assert points["horovod-w16-s0"].folder is None


def test_a_run_counts_for_every_point_with_the_same_training(tmp_path):
    folder = synthetic.write(
        tmp_path / "study", "made", synthetic.seeded((1,), ("horovod",)), []
    )
    status, *_ = study_status(folder).points
    rules = [{"train.learning_rate_scaling": rule} for rule in ("none", "sqrt")]
    point = status.point.model_copy(update={"also": (rules[1],)})
    result = status.result.model_copy(update={"swept": rules[0]})
    one, other = runs_of(replace(status, point=point, result=result), folder.path)
    assert [run.result.swept for run in (one, other)] == rules
    assert other.result.name == "horovod-w1-s0-learning_rate_scaling=sqrt"
    assert one.result.quality == other.result.quality


@pytest.mark.parametrize("killed", [True, False])
def test_a_run_that_was_killed_with_its_launcher_or_whose_failure_is_damaged_has_failed(
    tmp_path, killed
):
    folder = synthetic.write(tmp_path / "study", "made", [], synthetic.unfinished())
    run = tmp_path / "study" / "points" / "horovod-w8-s2" / "run-1"
    if killed:
        (run / "failure.json").unlink()
        (run / "launcher.json").unlink()
    else:
        (run / "failure.json").write_text("{half")
    point = {point.name: point for point in read_study(folder).planned}["horovod-w8-s2"]
    assert point.state == "failed"
    assert point.reason == KILLED if killed else "failure.json" in point.reason
