"""An internal error prints no traceback; it is written to a file that users can send."""

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(path: Path) -> None:
        raise KeyError(f"of {path}")

    monkeypatch.setattr("scalestudy.app.survey.load_study", load)


def test_the_traceback_goes_to_a_file_and_the_message_asks_for_a_report(
    call, broken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    code, _, errors = call("run", "a.toml")
    assert code == 70
    assert "Traceback" not in errors
    assert "a bug in scalestudy: KeyError: 'of a.toml' (test_bug.py, line" in errors
    assert "please report it" in errors
    file = Path(re.search(r"in (\S+): please", errors)[1])
    assert tmp_path in file.parents
    text = file.read_text()
    assert "Traceback (most recent call last)" in text
    assert text.startswith("scalestudy ")


def test_without_a_folder_for_logs_it_goes_into_a_new_one_of_this_user_alone(
    call, broken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("time.strftime", lambda form: "now")
    errors = call("run", "a.toml")[2] + call("run", "a.toml")[2]
    files = [Path(name) for name in re.findall(r"in (\S+): please", errors)]
    assert len(set(files)) == 2 and all(file.parents[1] == tmp_path for file in files)
    assert {path.stat().st_mode & 0o077 for file in files for path in (file, file.parent)} == {0}


@pytest.mark.slow
def test_a_reader_that_has_had_enough_ends_it_quietly() -> None:
    command = f"{sys.executable} -m scalestudy train --keys | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout[1:].strip() in ("0", "1")
