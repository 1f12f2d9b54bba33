from pathlib import Path

from scalestudy.config.parse import load_study


def test_init_writes_a_study_that_can_be_read(call, tmp_path: Path) -> None:
    file = tmp_path / "new" / "study.toml"
    code, text, _ = call("init", file, "--task", "cnn")
    assert code == 0
    assert f"scalestudy run {file}" in text
    assert load_study(file).task == "cnn"


def test_init_overwrites_only_when_forced(call, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text("precious")
    code, _, errors = call("init", file)
    assert code == 2
    assert "--force" in errors
    assert file.read_text() == "precious"
    assert call("init", file, "--force")[0] == 0
    assert load_study(file).task == "cnn"


def test_init_refuses_an_unknown_task_and_writes_nothing(call, tmp_path: Path) -> None:
    for task in ("cnnn", "missing.py"):
        code, _, errors = call("init", tmp_path / "study.toml", "--task", task)
        assert code == 2
        assert "study.toml" not in errors  # which does not exist
    assert not list(tmp_path.iterdir())


def test_init_takes_the_engine_of_the_task_file(call, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "study.toml"
    file.parent.mkdir()
    for text in ("engine = 'torch'\n", "import torch\n"):
        (file.parent / "mine.py").write_text(text)
        assert call("init", file, "--task", "mine.py", "--force")[0] == 0
        assert load_study(file).engine == ("torch",)


def test_init_takes_a_task_file_beside_the_study(call, tmp_path: Path) -> None:
    (tmp_path / "mine.py").touch()
    assert call("init", tmp_path / "study.toml", "--task", "mine.py")[0] == 0
    assert load_study(tmp_path / "study.toml").task == str((tmp_path / "mine.py").resolve())
