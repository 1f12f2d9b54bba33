"""`[launch] environments`: an engine's workers start in another virtual environment or image."""

import json
import os
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import scalestudy
from scalestudy.config.expand import expand
from scalestudy.config.file import study_toml
from scalestudy.config.parse import parse_study
from scalestudy.config.point import Point
from scalestudy.engines.tensorflow.traits import ENGINE
from scalestudy.hardware.installed import Built
from scalestudy.launch import environments
from scalestudy.launch.environments import refuse_missing_software
from scalestudy.launch.queue.submission import job_script
from scalestudy.launch.slurm import SLURM
from scalestudy.launch.worker_processes import Command, WorkerProcesses, started_in
from scalestudy.util.errors import UserError
from sites import MARK, RUN, SCRIPT, site


def point(folder: Path | str | None, file: Path = Path("study.toml"), strategy: str = "native") -> Point:
    launch = "" if folder is None else f'[launch]\nenvironments = {{ tensorflow = "{folder}" }}\n'
    text = f'task = "cnn"\n{launch}[sweep]\nworkers = 1\nseed = 0\nstrategy = "{strategy}"\n'
    return expand(parse_study(text, file), gpus=0, cores=4)[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A virtual environment without packages."""
    venv.create(tmp_path / "other", with_pip=False)
    return tmp_path / "other"


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch):
    """Make the other environment report these packages."""

    def be(**packages: str) -> None:
        built = Built(
            id="0",
            name="",
            prefix="",
            recorded="",
            python="3.11",
            host="",
            system="",
            cpu="",
            packages={name.replace("_", "-"): version for name, version in packages.items()},
        )
        monkeypatch.setattr(environments, "describe_other", lambda *given, **options: built)

    return be


def refusal(made: Point, *, images: bool = False) -> UserError:
    with pytest.raises(UserError) as caught:
        refuse_missing_software([made], images=images)
    return caught.value


def test_a_path_is_seen_from_the_study_file_and_from_the_users_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PLACE", str(tmp_path / "p"))
    for written, place in (("venvs/x", "studies/venvs/x"), ("~/x", "x"), ("$PLACE/x", "p/x")):
        assert point(written, tmp_path / "studies" / "s.toml").environment == str(tmp_path / place)
    study = parse_study('task = "cnn"\n[launch.environments]\ntensorflow = "x"\n', tmp_path / "s.toml")
    assert parse_study(study_toml(study), tmp_path / "s.toml").launch == study.launch


@pytest.mark.parametrize(
    "value", ['"~/x"', '{ tensorflaw = "x" }', "{ tensorflow = 1 }", '{ tensorflow = "" }']
)
def test_what_is_no_table_of_folders_by_engine_is_refused_with_its_line(value):
    with pytest.raises(UserError) as caught:
        parse_study(f'task = "cnn"\n[launch]\nenvironments = {value}\n', Path("study.toml"))
    assert "line 3" in caught.value.received and "tensorflow" in caught.value.expected


def test_where_it_runs_makes_no_other_point_and_stands_in_its_record():
    here, there = point(None), point("/venvs/x")
    assert here.same_as(there) and here.identity() == there.identity()
    assert json.loads(there.model_dump_json())["terms"]["launch"]["environments"] == {
        "tensorflow": "/venvs/x"
    }
    other = parse_study('task = "cnn"\n[launch]\nenvironments = { tensorflow = "x" }\n', Path("s.toml"))
    assert here.environment is None and other.launch.environments is not None


@pytest.mark.slow
def test_a_worker_starts_by_the_python_of_its_environment_with_our_source(tmp_path, folder):
    program = (
        "import json, os, sys, scalestudy; "
        "print(json.dumps([sys.prefix, os.environ['VIRTUAL_ENV'], scalestudy.__file__]))"
    )
    log = tmp_path / "log"
    command = Command([sys.executable, "-c", program], dict(os.environ), (), log, tmp_path)
    assert started_in(None, command) is command
    with WorkerProcesses([started_in(str(folder), command)]) as workers:
        assert workers.wait() is None
    assert json.loads(log.read_text()) == [str(folder), str(folder), scalestudy.__file__]


def test_a_folder_that_is_missing_or_no_environment_is_refused(tmp_path):
    assert str(tmp_path / "none") in refusal(point(tmp_path / "none")).received
    assert str(tmp_path / "none") in refusal(point(tmp_path / "none"), images=True).received
    (tmp_path / "empty").mkdir()
    assert "bin/python" in refusal(point(tmp_path / "empty")).received


@pytest.mark.slow
def test_an_environment_without_what_scalestudy_needs_is_refused(folder):
    refused = refusal(point(folder))
    assert "No module named" in refused.received and "environments of tensorflow" in refused.expected


@pytest.mark.slow
def test_an_environment_that_has_the_engine_is_taken(folder):
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "seen.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    refuse_missing_software([point(folder)])


def test_an_environment_without_the_engine_or_a_library_is_refused_with_what_installs_it(folder, described):
    described(keras="3.15.0")
    refused = refusal(point(folder))
    assert "TensorFlow" in refused.expected and ENGINE.install in refused.action
    described(keras="3.15.0", tensorflow_cpu="2.21.0")
    refuse_missing_software([point(folder)])
    assert refusal(point(folder, strategy="horovod")).action == ENGINE.library("horovod").mend


def test_another_version_of_scalestudy_is_refused_where_it_is_installed(folder, described, monkeypatch):
    described(keras="3.15.0", tensorflow="2.21.0", scalestudy="0.0.1")
    refuse_missing_software([point(folder)])  # workers import the source of this process
    monkeypatch.setattr(environments, "own_source", lambda: None)
    assert "0.0.1" in refusal(point(folder)).received


def test_for_a_queue_only_what_points_name_is_looked_at(folder, monkeypatch):
    monkeypatch.setattr(type(ENGINE), "missing_software", lambda self, libraries=(): UserError("a", "b", "c"))
    refuse_missing_software([point(None)], images=True)
    assert refusal(point(None)).expected == "a"
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to("/opt/module/python")  # from a module that is loaded on the nodes
    refuse_missing_software([point(folder)], images=True)


def script(place: Path, **keys) -> list[str]:
    made = point(place).on(launch=point(place).launch.model_copy(update={"on": "slurm"}))
    return job_script(made, SCRIPT, RUN, site(**keys), SLURM.queue, MARK).splitlines()


def test_a_job_starts_in_the_environment_of_its_point_instead_of_the_site_s(folder, tmp_path):
    lines = script(folder, environment="/venvs/site")
    assert any(line.startswith("export VIRTUAL_ENV=") and str(folder) in line for line in lines)
    assert not any("/venvs/site" in line for line in lines)
    image = tmp_path / "torch.sif"
    image.touch()
    lines = script(image, container={"image": "/images/site.sif", "python": "python9"})
    assert any(line.strip().endswith(str(image)) for line in lines)
    assert any("python9" in line for line in lines) and not any("site.sif" in line for line in lines)
    lines = script(folder, container={"image": "/images/site.sif"})
    assert not any("apptainer" in line for line in lines)
