import synthetic
from scalestudy.analysis.read import read_study
from scalestudy.launch.status import KILLED


def test_a_folder_is_read_with_its_runs_ranks_and_failures(tmp_path):
    folder = synthetic.write(
        tmp_path / "study", "made", synthetic.seeded((1, 2), ("horovod",)), synthetic.unfinished()
    )
    findings = read_study(folder)
    assert findings.name == "made"
    assert len(findings.runs) == 6
    assert findings.runs[0].folder == "points/horovod-w1-s0/run-1"
    assert findings.runs[0].ranks[0].cpu_model == "Made CPU @ 2.5 GHz"
    assert len(findings.runs[0].epochs) == 12
    states = {point.name: point for point in findings.planned}
    assert states["horovod-w8-s2"].state == "failed"
    assert states["horovod-w8-s2"].reason.startswith("Rank 3 was ended by signal 9")
    assert states["horovod-w16-s0"].state == "missing"
    assert states["horovod-w16-s0"].folder is None
    assert states["horovod-w16-s1"].state == "running"


def test_a_folder_without_results_is_read_too(tmp_path):
    findings = read_study(synthetic.write(tmp_path / "study", "made", [], synthetic.unfinished()))
    assert findings.rows == ()
    assert findings.advice.choice is None


def test_a_run_that_was_killed_with_its_owner_counts_as_interrupted(tmp_path):
    folder = synthetic.write(tmp_path / "study", "made", [], synthetic.unfinished())
    (tmp_path / "study" / "points" / "horovod-w8-s2" / "run-1" / "failure.json").unlink()
    (tmp_path / "study" / "points" / "horovod-w8-s2" / "run-1" / "launcher.json").unlink()
    found = {point.name: point for point in read_study(folder).planned}["horovod-w8-s2"]
    assert (found.state, found.reason) == ("failed", KILLED)


def test_a_failure_whose_record_is_damaged_stays_a_failure_and_says_so(tmp_path):
    folder = synthetic.write(tmp_path / "study", "made", [], synthetic.unfinished())
    (tmp_path / "study" / "points" / "horovod-w8-s2" / "run-1" / "failure.json").write_text("{half")
    found = {point.name: point for point in read_study(folder).planned}["horovod-w8-s2"]
    assert found.state == "failed"
    assert "its record is lost: failure.json: " in (found.reason or "")
