"""`scalestudy diagnose`: what it refuses and what it plans; `test_run.py` has the real run."""

from few_digits import few_digits

TEXT = """
task = "cnn"
[data]
source = "{source}"
[launch]
device = "cpu"
[sweep]
strategy = ["mirrored"]
workers = [1, 2]
"""


def test_a_dry_run_shows_what_would_be_run_and_writes_nothing(call, tmp_path, monkeypatch):
    monkeypatch.setattr("scalestudy.hardware.cores.granted", lambda: [0, 1])
    file = tmp_path / "study.toml"
    file.write_text(TEXT.format(source=few_digits(tmp_path, 100)))
    code, out, _ = call("diagnose", file, "--dry-run", "--rounds", 2, "--seconds", 1)
    assert code == 0
    assert out.startswith("mirrored-w2-s0 (the largest of the study): mirrored")
    assert "2 rounds" in out
    assert "at least 14 s" in out
    assert not (tmp_path / "studies").exists()


def test_another_format_is_refused_before_anything_is_looked_at(call, tmp_path):
    code, out, err = call("diagnose", tmp_path / "none", "--format", "yaml")
    assert (code, out) == (2, "")
    assert "table, json, markdown, html" in err


def test_a_point_of_one_worker_is_refused_with_what_to_name(call, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(TEXT.format(source=few_digits(tmp_path, 100)))
    code, _, err = call("diagnose", file, "mirrored-w1-s0")
    assert code == 2
    assert "whose efficiency is 1 by definition" in err


def test_a_folder_that_is_no_study_is_refused(call, tmp_path):
    code, _, err = call("diagnose", tmp_path)
    assert code == 2
    assert "study.json" in err
