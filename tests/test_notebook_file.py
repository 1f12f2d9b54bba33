"""The notebook of the published analysis runs on a study's folder and contains no path of a machine."""

import json
import os
import re
from pathlib import Path

import pytest

from scalestudy.config.expand import expand
from scalestudy.config.parse import parse_study
from scalestudy.store.study_folder import StudyFolder

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "post-processing.ipynb"
TEXT = 'task = "cnn"\n[sweep]\nstrategy = ["native", "horovod"]\nworkers = [1, 2]\nseed = [0, 1]\n'


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study with synthetic runs, except for a missing one."""
    from synthetic_result import finish

    loaded = parse_study(TEXT, Path("study.toml"))
    points = expand(loaded, gpus=0, cores=8)
    folder = StudyFolder.create_or_open(
        tmp_path_factory.mktemp("made") / "study", loaded, points, TEXT
    )
    for point in points[:-1]:
        run = folder.new_run(point)
        finish(run, quality=0.75 + 0.01 * point.seed)
    return folder.path


def test_it_holds_no_outputs_and_no_path_of_a_machine():
    notebook = json.loads(NOTEBOOK.read_text())
    assert all(
        not cell.get("outputs") and not cell.get("execution_count")
        for cell in notebook["cells"]
    )
    text = "".join(line for cell in notebook["cells"] for line in cell["source"])
    assert not re.search(r'"/(home|root|work|tmp|data)\b', text)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])


@pytest.mark.slow
def test_it_runs_on_a_folder_and_shows_its_tables_and_figures(
    study, monkeypatch, tmp_path
):
    nbformat = pytest.importorskip(
        "nbformat", reason="nbformat is not installed (dev extra)"
    )
    client = pytest.importorskip(
        "nbclient", reason="nbclient is not installed (dev extra)"
    )
    pytest.importorskip("ipykernel", reason="ipykernel is not installed (dev extra)")
    monkeypatch.setenv("SCALESTUDY_STUDY", str(study))
    for name in (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "IPYTHONDIR",
    ):
        monkeypatch.setenv(name, str(tmp_path / name))
    source = Path(__file__).parents[1] / "src"
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    )
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    client.NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [
        output.output_type for output in outputs if output.output_type == "error"
    ] == []
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 6
    said = "".join(
        output.get("text", "") + output.get("data", {}).get("text/plain", "")
        for output in outputs
    )
    assert "shape: (4, 8)" in said and "done" in said
    assert "1 run is missing: horovod-w2-s1." in said
