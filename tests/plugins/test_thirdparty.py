"""A third-party package is installed and used in a study; none of our code names its contents."""

import csv
import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STUDY = """
task = "thirdparty"
[data]
cache = "cache"
[sweep]
strategy = ["single", "thirdparty"]
workers = [1, 2]
seed = 0
"""


@pytest.fixture(scope="module")
def scalestudy(tmp_path_factory):
    """Our command line with the installed package; a call returns (output, errors)."""
    site = tmp_path_factory.mktemp("site")
    install = [
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--target",
        str(site),
    ]
    source = tmp_path_factory.mktemp("source") / "package"
    subprocess.run(["cp", "-r", str(HERE), str(source)], check=True)
    subprocess.run(
        [sys.executable, "-m", "pip", *install, str(source)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    path = os.pathsep.join((str(HERE.parents[1] / "src"), str(site)))

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


@pytest.mark.slow
def test_a_third_party_package_is_offered_like_our_own(scalestudy, tmp_path):
    scalestudy(tmp_path, "init", "study.toml", "--task", "thirdparty")
    text = (tmp_path / "study.toml").read_text()
    names, _, rest = text.partition("task = ")
    assert "thirdparty" in names.split("Names: ")[1].strip().split(", ")
    assert rest.startswith('"thirdparty"\n')
    (tmp_path / "study.toml").write_text('task = "thirdpart"')
    _, refused = scalestudy(tmp_path, "run", "study.toml", code=2)
    assert 'Did you mean "thirdparty"?' in refused


@pytest.mark.engine
def test_a_study_of_a_third_party_package_runs_from_its_data_to_its_report(
    scalestudy, tmp_path
):
    (tmp_path / "study.toml").write_text(STUDY)
    scalestudy(tmp_path, "run", "study.toml")
    folder = "studies/study"
    rows = list(
        csv.DictReader(
            StringIO(scalestudy(tmp_path, "report", folder, "--format", "csv")[0])
        )
    )
    assert [(row["strategy"], row["workers"]) for row in rows] == [
        ("single", "1"),
        ("thirdparty", "1"),
    ]
    assert float(rows[0]["quality"]) == float(rows[1]["quality"]) > 0.9
    point = json.loads(
        (
            tmp_path / folder / "points" / "thirdparty-w1-s0" / "run-1" / "point.json"
        ).read_text()
    )
    assert (point["data"]["source"], point["train"]["batch_size"]) == (
        "thirdparty:60",
        10,
    )
    assert rows[0]["metric"] == "thirdparty"


@pytest.mark.slow
def test_without_the_package_its_study_is_refused_by_name(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    done = subprocess.run(
        [sys.executable, "-m", "scalestudy", "run", "study.toml"],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(HERE.parents[1] / "src")},
        check=False,
    )
    assert done.returncode == 2
    assert "thirdparty" in done.stderr
