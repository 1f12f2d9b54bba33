"""Arguments that `scalestudy diagnose` refuses; `test_run.py` has the real run."""


def test_another_format_is_refused_before_anything_is_looked_at(call, tmp_path):
    code, out, err = call("diagnose", tmp_path / "none", "--format", "yaml")
    assert (code, out) == (2, "")
    assert "table, json, markdown, html" in err


def test_a_point_of_one_worker_is_refused_with_what_to_name(call, begun_study):
    code, _, err = call("diagnose", begun_study().path, "--point", "mirrored-w1-s0")
    assert code == 2
    assert "a point of several workers" in err


def test_a_study_file_that_was_not_run_is_told_to_run_first(call, begun_study, tmp_path):
    begun_study(run=False)
    code, _, err = call("diagnose", tmp_path / "study.toml", "--point", "mirrored-w2-s0")
    assert code == 2
    assert "first: scalestudy run" in err
