"""A study with a NumPy engine, where no deep-learning framework can be imported."""

import csv
import json
import os
import subprocess
import sys
import sysconfig
import venv
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

TESTS = Path(__file__).parent
pytestmark = pytest.mark.slow
ENTRY_POINTS = """
[scalestudy.engines]
linear = linear:TRAITS
"""
NO_FRAMEWORK = """
import sys
sys.modules.update(dict.fromkeys(["tensorflow", "keras", "horovod", "torch", "jax"]))
"""
STUDY = """
task = "cnn"
[data]
source = "rows.npz"
cache = "cache"
[train]
epochs = 3
batch_size = 6
optimizer = "momentum"
learning_rate = 0.1
[sweep]
strategy = "rows"
workers = [1, 2]
seed = [0, 1]
"""


@pytest.fixture(scope="module")
def scalestudy(tmp_path_factory):
    """Our command line with a NumPy engine, without frameworks: a call returns (output, errors)."""
    site = tmp_path_factory.mktemp("site")
    package = site / "linear-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: linear\nVersion: 1.0\n"
    )
    (package / "entry_points.txt").write_text(ENTRY_POINTS)
    (site / "sitecustomize.py").write_text(NO_FRAMEWORK)
    path = os.pathsep.join(map(str, (site, TESTS.parent / "src", TESTS / "support")))

    def call(folder: Path, *words: str, code: int = 0) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "scalestudy", *words],
            cwd=folder,
            text=True,
            capture_output=True,
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout, done.stderr

    return call


@pytest.fixture(scope="module")
def study(scalestudy, tmp_path_factory):
    """The folder of a finished study: 60 images of three classes, each brighter in another row."""
    folder = tmp_path_factory.mktemp("study")
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = random.integers(0, 160, (60, 3, 4)).astype("uint8")
    x[np.arange(60), y] += 60
    np.savez(folder / "rows.npz", x_train=x, y_train=y)
    (folder / "study.toml").write_text(STUDY)
    scalestudy(folder, "run", "study.toml")
    return folder / "studies" / "study"


def test_a_study_names_its_engine_from_its_points_to_its_models(study):
    runs = sorted(study.glob("points/*/run-1"))
    assert [run.parent.name for run in runs] == [
        "rows-w1-s0",
        "rows-w1-s1",
        "rows-w2-s0",
        "rows-w2-s1",
    ]
    for run in runs:
        for name in ("point.json", "result.json", "model.json"):
            assert json.loads((run / name).read_text())["engine"] == "linear"
        assert json.loads((run / "model.json").read_text())["task"] == "cnn"
        assert np.shape(json.loads((run / "best.json").read_text())["value"]) == ()
        rank = json.loads((run / "ranks.jsonl").read_text().splitlines()[0])
        assert rank["versions"].keys() == {"python", "scalestudy", "numpy"}
        assert rank["build"].keys() == {"linear"}


def test_its_state_is_that_of_any_study(scalestudy, study):
    record = json.loads(scalestudy(study, "status", str(study), "--format", "json")[0])
    assert {point["state"] for point in record["points"]} == {"done"}


def test_its_report_holds_rows_against_one_worker_of_the_same_engine(scalestudy, study):
    table = scalestudy(study, "report", str(study), "--format", "csv")[0]
    rows = list(csv.DictReader(StringIO(table)))
    assert [(row["strategy"], row["workers"]) for row in rows] == [
        ("rows", "1"),
        ("rows", "2"),
    ]
    assert float(rows[0]["speedup"]) == 1
    assert float(rows[0]["quality"]) > 0.5
    record = json.loads(scalestudy(study, "report", str(study), "--format", "json")[0])
    assert [row["verdict"] != "no-reference" for row in record["quality"]] == [
        True,
        True,
    ]


def test_a_study_of_tensorflow_is_refused_where_there_is_none(scalestudy, tmp_path):
    np.savez(
        tmp_path / "rows.npz",
        x_train=np.zeros((60, 3, 4), "uint8"),
        y_train=np.arange(60) % 3,
    )
    (tmp_path / "study.toml").write_text(STUDY.replace('"rows"', '"native"'))
    assert "pip install" in scalestudy(tmp_path, "run", "study.toml", code=2)[1]


def test_points_start_in_the_environment_that_the_study_names_and_their_records_tell(
    scalestudy, study, tmp_path
):
    other = tmp_path / "venvs" / "other"
    venv.create(other, with_pip=False)
    packages = next(other.glob("lib/python*/site-packages"))
    (packages / "seen.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    launch = '[launch]\nenvironments = { linear = "venvs/other" }\n[sweep]'
    text = (
        STUDY.replace("[sweep]", launch).replace("[1, 2]", "1").replace("[0, 1]", "0")
    )
    (tmp_path / "study.toml").write_text(
        text.replace("rows.npz", str(study.parents[1] / "rows.npz"))
    )
    scalestudy(tmp_path, "run", "study.toml", "--no-report")
    (run,) = (tmp_path / "studies" / "study").glob("points/*/run-1")
    record = json.loads((run / "ranks.jsonl").read_text().splitlines()[0])
    here = json.loads(
        (study / "points" / "rows-w1-s0" / "run-1" / "ranks.jsonl").read_text()
    )
    assert (record["environment_name"], here["environment_name"]) == (
        str(other),
        sys.prefix,
    )
    one = study / "points" / run.parent.name / "run-1" / "result.json"
    results = [json.loads(path.read_text()) for path in (run / "result.json", one)]
    assert results[0]["weights_digest"] == results[1]["weights_digest"]
