"""Other environments and images for an engine's workers, and the contents of a user's task file."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

import psutil
import pytest

import scalestudy
from data_settings import data_of
from few_digits import few_digits
from scalestudy.config.expand import expand
from scalestudy.config.file import study_toml
from scalestudy.config.parse import parse_study
from scalestudy.config.point import Point
from scalestudy.data.preparation import prepare
from scalestudy.engines.tensorflow.traits import ENGINE
from scalestudy.hardware.installed import Built
from scalestudy.launch import environments
from scalestudy.launch.environments import build_task, refuse_missing_software
from scalestudy.launch.queue.launchers import SLURM
from scalestudy.launch.queue.queue_launcher import job_script
from scalestudy.launch.worker_processes import Command, WorkerProcesses, started_in
from scalestudy.tasks.file import REMEDY
from scalestudy.util.errors import UserError
from sites import RUN, SCRIPT, SUBMISSION, site


def point(
    folder: Path | str | None, file: Path = Path("study.toml"), strategy: str = "native"
) -> Point:
    launch = (
        ""
        if folder is None
        else f'[launch]\nenvironments = {{ tensorflow = "{folder}" }}\n'
    )
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
        versions = {
            name.replace("_", "-"): version for name, version in packages.items()
        }
        built = Built("3.11", versions)
        monkeypatch.setattr(
            environments, "describe_other", lambda *given, **options: built
        )

    return be


def refusal(made: Point, *, images: bool = False) -> UserError:
    with pytest.raises(UserError) as caught:
        refuse_missing_software([made], images=images)
    return caught.value


def test_a_path_is_seen_from_the_study_file_and_from_the_users_home(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PLACE", str(tmp_path / "p"))
    for written, place in (
        ("venvs/x", "studies/venvs/x"),
        ("~/x", "x"),
        ("$PLACE/x", "p/x"),
    ):
        assert point(written, tmp_path / "studies" / "s.toml").environment == str(
            tmp_path / place
        )
    study = parse_study(
        'task = "cnn"\n[launch.environments]\ntensorflow = "x"\n', tmp_path / "s.toml"
    )
    assert parse_study(study_toml(study), tmp_path / "s.toml").launch == study.launch


@pytest.mark.parametrize(
    "value",
    ['"~/x"', '{ tensorflaw = "x" }', "{ tensorflow = 1 }", '{ tensorflow = "" }'],
)
def test_what_is_no_table_of_folders_by_engine_is_refused_with_its_line(value):
    with pytest.raises(UserError) as caught:
        parse_study(
            f'task = "cnn"\n[launch]\nenvironments = {value}\n', Path("study.toml")
        )
    assert "line 3" in caught.value.received and "tensorflow" in caught.value.expected


def test_where_it_runs_makes_no_other_point_and_stands_in_its_record():
    here, there = point(None), point("/venvs/x")
    assert here.same_as(there) and here.identity() == there.identity()
    assert json.loads(there.model_dump_json())["terms"]["launch"]["environments"] == {
        "tensorflow": "/venvs/x"
    }
    other = parse_study(
        'task = "cnn"\n[launch]\nenvironments = { tensorflow = "x" }\n', Path("s.toml")
    )
    assert here.environment is None and other.launch.environments is not None


@pytest.mark.slow
def test_a_worker_starts_by_the_python_of_its_environment_with_our_source(
    tmp_path, folder
):
    program = (
        "import json, os, sys, scalestudy; "
        "print(json.dumps([sys.prefix, os.environ['VIRTUAL_ENV'], scalestudy.__file__]))"
    )
    log = tmp_path / "log"
    command = Command(
        [sys.executable, "-c", program], dict(os.environ), (), log, tmp_path
    )
    assert started_in(None, command) is command
    with WorkerProcesses([started_in(str(folder), command)]) as workers:
        assert workers.wait() is None
    assert json.loads(log.read_text()) == [
        str(folder),
        str(folder),
        scalestudy.__file__,
    ]


def test_a_folder_that_is_missing_or_no_environment_is_refused(tmp_path):
    assert str(tmp_path / "none") in refusal(point(tmp_path / "none")).received
    assert (
        str(tmp_path / "none")
        in refusal(point(tmp_path / "none"), images=True).received
    )
    (tmp_path / "empty").mkdir()
    assert "bin/python" in refusal(point(tmp_path / "empty")).received


@pytest.mark.slow
def test_an_environment_without_what_scalestudy_needs_is_refused(folder):
    refused = refusal(point(folder))
    assert (
        "No module named" in refused.received
        and "environments of tensorflow" in refused.expected
    )


@pytest.mark.slow
def test_an_environment_that_has_the_engine_is_taken(folder):
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "seen.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    refuse_missing_software([point(folder)])


def test_an_environment_without_the_engine_or_a_library_is_refused_with_what_installs_it(
    folder, described
):
    described(keras="3.15.0")
    refused = refusal(point(folder))
    assert "TensorFlow" in refused.expected and ENGINE.install in refused.action
    described(keras="3.15.0", tensorflow_cpu="2.21.0")
    refuse_missing_software([point(folder)])
    assert (
        refusal(point(folder, strategy="horovod")).action
        == ENGINE.library("horovod").repair
    )


def test_another_version_of_scalestudy_is_refused_where_it_is_installed(
    folder, described, monkeypatch
):
    described(keras="3.15.0", tensorflow="2.21.0", scalestudy="0.0.1")
    refuse_missing_software(
        [point(folder)]
    )  # workers import the source of this process
    monkeypatch.setattr(environments, "own_source", lambda: None)
    assert "0.0.1" in refusal(point(folder)).received


def test_for_a_queue_only_what_points_name_is_looked_at(folder, monkeypatch):
    monkeypatch.setattr(
        type(ENGINE),
        "missing_software",
        lambda self, libraries=(): UserError("a", "b", "c"),
    )
    refuse_missing_software([point(None)], images=True)
    assert refusal(point(None)).expected == "a"
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to(
        "/opt/module/python"
    )  # from a module that is loaded on the nodes
    refuse_missing_software([point(folder)], images=True)


def script(place: Path, **keys) -> list[str]:
    made = point(place).on(
        launch=point(place).launch.model_copy(update={"on": "slurm"})
    )
    return job_script(
        made, SCRIPT, RUN, site(**keys), SLURM.queue, SUBMISSION
    ).splitlines()


def test_a_job_starts_in_the_environment_of_its_point_instead_of_the_site_s(
    folder, tmp_path
):
    lines = script(folder, environment="/venvs/site")
    assert any(
        line.startswith("export VIRTUAL_ENV=") and str(folder) in line for line in lines
    )
    assert not any("/venvs/site" in line for line in lines)
    image = tmp_path / "torch.sif"
    image.touch()
    lines = script(image, container={"image": "/images/site.sif", "python": "python9"})
    assert any(line.strip().endswith(str(image)) for line in lines)
    assert any("python9" in line for line in lines) and not any(
        "site.sif" in line for line in lines
    )
    lines = script(folder, container={"image": "/images/site.sif"})
    assert not any("apptainer" in line for line in lines)


TASK = """
import keras

data = "digits"
kind: str = "classes"
kind = "classes"


def model(data):
    data = "not this one"
    path = keras.utils.get_file("head.weights", {url!r})
    made = keras.Sequential([keras.Input(data and (8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(10)])
    open(path).close()
    return made


loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""
SILENT = """
import keras


class Silent(keras.Model):
    def __init__(self, units):
        super().__init__()
        self.last = keras.layers.Dense(units)

    def call(self, inputs):
        return self.last(keras.ops.reshape(inputs, (-1, 64)))


def model(data):
    made = Silent(data.classes)
    made(keras.ops.zeros((1, *data.input_shape)))
    return made


loss = "sparse_categorical_crossentropy"
metrics = ["accuracy"]
"""


@pytest.fixture(scope="module")
def info(tmp_path_factory):
    """Prepared digits."""
    cache = tmp_path_factory.mktemp("cache")
    return {"prepared": str(prepare(data_of(few_digits(cache, 20), cache=cache)).path)}


@pytest.fixture
def task(tmp_path, monkeypatch):
    """A task whose model needs a file of weights, and an empty Keras folder."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    (tmp_path / "served").write_text("weights")
    file = tmp_path / "task.py"
    file.write_text(TASK.format(url=(tmp_path / "served").as_uri()))
    return file


@pytest.mark.engine
def test_building_a_model_fetches_its_weights_into_keras_folder(task, tmp_path, info):
    build_task(task, info)
    assert (tmp_path / "keras" / "datasets" / "head.weights").read_text() == "weights"


@pytest.mark.engine
def test_a_model_that_could_not_be_saved_is_refused_before_any_run(tmp_path, info):
    (tmp_path / "silent.py").write_text(SILENT)
    with pytest.raises(UserError, match="Received Silent: ") as caught:
        build_task(tmp_path / "silent.py", info)
    assert "get_config()" in caught.value.action


WAITING = (
    "import os\nos.path.exists('here')\n{}\nloss = 'mse'\nmetrics = ['accuracy']\n"
)
"""A task file with code in line 3."""


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize(
    ("code", "received", "action"),
    [
        ("import sys; sys.exit(0)", r"sys\.exit\(0\) \(t\.py, line 3\)", ""),
        (
            "def model(data): raise ValueError('no')",
            r"ValueError: no \(t\.py, line 3, in model\)",
            "",
        ),
        ("raise ValueError('no')", "no", REMEDY),
        ("os.kill(os.getpid(), 9)", "its process was ended by SIGKILL", "os._exit"),
    ],
)
def test_a_file_that_ends_the_program_is_told_so_and_where(
    tmp_path, code, received, action, info
):
    (tmp_path / "t.py").write_text(WAITING.format(code))
    with pytest.raises(UserError) as caught:
        build_task(tmp_path / "t.py", info)
    assert re.search(received, caught.value.received)
    assert action in caught.value.action


@pytest.mark.slow
@pytest.mark.engine
def test_a_file_that_does_not_return_is_refused_with_its_line(tmp_path):
    (tmp_path / "t.py").write_text(WAITING.format("while True: pass"))
    with pytest.raises(UserError) as caught:
        build_task(tmp_path / "t.py", {}, within=2)
    assert str(tmp_path / "t.py") in caught.value.expected
    assert "line 3" in caught.value.received
    assert "progress_timeout" in caught.value.action


@pytest.mark.slow
@pytest.mark.engine
def test_the_process_that_imports_it_ends_with_who_asked(tmp_path):
    (tmp_path / "t.py").write_text(WAITING.format("while True: pass"))
    asks = "import sys; from scalestudy.launch.environments import build_task; build_task(sys.argv[1], {})"
    with subprocess.Popen(
        [sys.executable, "-c", asks, str(tmp_path / "t.py")]
    ) as asker:
        while not (children := psutil.Process(asker.pid).children()):
            assert asker.poll() is None
            time.sleep(0.02)
        asker.kill()
    assert not psutil.wait_procs(children, timeout=300)[1]
