"""`scalestudy check --environment`: the contents of an environment."""

import json
import sys
import venv
from pathlib import Path

import pytest

from scalestudy.hardware.installed import RECORD_FILE, Built, environment_id, read_record

SOURCE = Path(__file__).parents[2] / "src"


def test_it_shows_this_environment_under_the_id_that_runs_record(call):
    code, out, _ = call("check", "--environment")
    assert code == 0
    assert out.splitlines()[0] == f"Environment {environment_id()}"
    assert str(Path(sys.prefix)) in out
    assert not any(line.split()[:2] == ["build_ids", "tensorflow"] for line in out.splitlines())


def test_json_holds_every_package(call):
    record = json.loads(call("check", "--environment", "--format", "json")[1])
    assert {"keras", "pydantic", "scalestudy"} <= record["packages"].keys()


def test_a_folder_without_python_is_refused(call, tmp_path):
    code, _, err = call("check", tmp_path, "--environment")
    assert code == 2
    assert "bin/python" in err
    assert "environments/venv.sh" in err


@pytest.fixture
def bare(tmp_path):
    """A virtual environment without packages."""
    venv.create(tmp_path / "bare", with_pip=False)
    return tmp_path / "bare"


@pytest.fixture
def other(bare):
    """A virtual environment that can import this environment's packages."""
    import sysconfig

    site = next(bare.glob("lib/python*/site-packages"))
    (site / "seen.pth").write_text(sysconfig.get_paths()["purelib"] + "\n" + str(SOURCE) + "\n")
    return bare


@pytest.mark.engine
def test_recording_asks_tensorflow_and_what_was_recorded_is_shown_again(call, other):
    code, out, _ = call("check", other, "--environment", "--record")
    assert code == 0, out
    kept = read_record(other)
    assert kept is not None
    assert kept.builds["tensorflow"].startswith("2.")
    code, out, err = call("check", other, "--environment", "--format", "json")
    assert Built.model_validate_json(out) == kept
    assert err == ""


@pytest.mark.slow
def test_a_record_of_other_versions_is_not_believed(call, other):
    code, out, _ = call("check", other, "--environment", "--format", "json")
    now = Built.model_validate_json(out)
    (other / RECORD_FILE).write_text(now.model_copy(update={"id": "0" * 10}).model_dump_json())
    code, out, _ = call("check", other, "--environment")
    assert code == 0
    assert out.splitlines()[0] == f"Environment {now.id}"
