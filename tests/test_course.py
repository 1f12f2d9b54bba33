"""The course: every lesson asks, lets predict, runs, and checks its answer on what it computed."""

import ast
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scalestudy.study.expand import expand
from scalestudy.study.parse import load_study

COURSE = Path(__file__).parents[1] / "course"
LESSONS = sorted(file.stem for file in COURSE.glob("*.ipynb"))
COMPUTED = {"1", "2", "3", "7"}
"""Lessons that start no worker."""


def cells(lesson: str) -> list[dict[str, Any]]:
    return json.loads((COURSE / f"{lesson}.ipynb").read_text("utf-8"))["cells"]


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def asserts(source: str) -> list[ast.Assert]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]


def test_there_are_nine_lessons():
    assert [lesson.partition("-")[0] for lesson in LESSONS] == list("123456789")


@pytest.mark.parametrize("lesson", LESSONS)
class TestLesson:
    def test_it_holds_no_outputs_and_no_path_of_a_machine(self, lesson):
        assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in cells(lesson))
        assert not re.search(r'"/(home|root|work|tmp|data)\b', "".join(map(text, cells(lesson))))

    def test_it_has_a_question_a_prediction_a_run_and_a_checked_answer_in_this_order(self, lesson):
        parts = [(cell["id"], cell["cell_type"]) for cell in cells(lesson)]
        assert len(dict(parts)) == len(parts)
        assert parts[:3] == [
            ("question", "markdown"), ("prediction", "markdown"), ("prediction-values", "code")
        ]  # fmt: skip
        assert parts[3] == ("run", "markdown")
        assert parts[-2:] == [("answer", "markdown"), ("answer-check", "code")]
        runs = [kind for name, kind in parts[4:-2] if name.startswith("run-")]
        assert len(runs) == len(parts) - 6
        assert "code" in runs

    def test_its_prediction_is_left_to_the_reader_and_held_against_the_answer(self, lesson):
        *_, check = cells(lesson)
        assigned = ast.parse(text(cells(lesson)[2])).body
        for statement in assigned:
            assert isinstance(statement, ast.Assign)
            assert not ast.literal_eval(statement.value)
            (name,) = [target.id for target in statement.targets]
            assert re.search(rf"\b{name}\b", text(check))

    def test_its_answer_is_checked_on_names_that_it_computed(self, lesson):
        *_, check = cells(lesson)
        checks = asserts(text(check))
        assert len(checks) >= 3
        for statement in checks:
            assert any(isinstance(node, ast.Name) for node in ast.walk(statement))


def test_its_studies_fit_a_laptop_of_two_cores():
    for file in sorted(COURSE.glob("*.toml")):
        points = expand(load_study(file), gpus=0, cores=2)
        assert 1 <= len(points) <= 6
        assert not any(point.oversubscribed for point in points)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the course, whose lessons share the studies that they run, and a Jupyter without settings."""
    place = tmp_path_factory.mktemp("course")
    copy = shutil.copytree(COURSE, place / "course", ignore=shutil.ignore_patterns("studies"))
    source = os.pathsep.join([str(COURSE.parent / "src"), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch:
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(place / name))
        patch.setenv("PYTHONPATH", source)
        yield copy


def execute(folder: Path, lesson: str) -> Any:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (dev extra)")
    client = pytest.importorskip("nbclient", reason="nbclient is not installed (dev extra)")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed (dev extra)")
    notebook = nbformat.read(folder / f"{lesson}.ipynb", as_version=4)
    nbformat.validate(notebook)
    client.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


@pytest.mark.parametrize(
    "lesson",
    [
        pytest.param(lesson, marks=pytest.mark.slow if lesson[0] in COMPUTED else pytest.mark.engine)
        for lesson in LESSONS
    ],
)
def test_it_runs_and_its_answer_holds(folder, lesson):
    notebook = execute(folder, lesson)
    said = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output.text for output in said if output.get("name") == "stderr"]
    # The figures beside the prediction.
    assert any(output.get("name") == "stdout" for output in notebook.cells[-1].outputs)


@pytest.mark.slow
def test_a_wrong_answer_is_seen(folder, tmp_path):
    """The mean of the means, weighted by nothing, is taken for the gradient of the batch."""
    client = pytest.importorskip("nbclient", reason="nbclient is not installed (dev extra)")
    file = next(folder.glob("2-*.ipynb"))
    right = "len(part) / left_over * value for"
    assert right in file.read_text("utf-8")
    (tmp_path / file.name).write_text(file.read_text("utf-8").replace(right, "value / workers for"), "utf-8")
    with pytest.raises(client.exceptions.CellExecutionError, match="AssertionError"):
        execute(tmp_path, file.stem)
