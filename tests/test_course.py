"""The course: every lesson asks, lets readers predict, runs, and checks its claims and their answers."""

import ast
import importlib.util
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.stats

from scalestudy.analysis.study_table import RUN_FIELDS
from scalestudy.config.expand import expand
from scalestudy.config.parse import load_study

COURSE = Path(__file__).parents[1] / "course"


def number(lesson: str) -> int:
    return int(lesson.partition("-")[0])


LESSONS = sorted((file.stem for file in COURSE.glob("*.ipynb")), key=number)
COMPUTED = {1, 2, 3, 7}
"""Lessons that start no worker."""
NEEDS_ALL = {"10-by-hand"}
"""Lessons that need Horovod and PyTorch, too."""
BUSY = re.compile(r".*: other programs used .*\n.*\n")
"""The warning of a busy machine, and the line of the program that gave it."""


def cells(lesson: str) -> list[dict[str, Any]]:
    return json.loads((COURSE / f"{lesson}.ipynb").read_text("utf-8"))["cells"]


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def code(cell: dict[str, Any]) -> str:
    """Return the Python of a code cell, without the line that writes it into a file."""
    source = "".join(cell["source"])
    return source.partition("\n")[2] if source.startswith("%%writefile ") else source


def calls(source: str, name: str) -> list[ast.Call]:
    """Return the calls of a function in this cell."""
    return [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
    ]


def names_in(source: str) -> set[str]:
    """Return variables and functions of this cell."""
    nodes = list(ast.walk(ast.parse(source)))
    return {node.id for node in nodes if isinstance(node, ast.Name)} | {
        node.name for node in nodes if isinstance(node, ast.FunctionDef)
    }


def assigned(source: str) -> dict[str, Any]:
    """Return the constants that a cell assigns; it must do nothing else."""
    statements = ast.parse(source).body
    return {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in statements
    }


def claimed(lesson: str) -> list[ast.expr]:
    """Return the conditions for each claim of the lesson."""
    (call,) = calls(text(cells(lesson)[-4]), "confirm")
    return call.args[0].values


def module_of_answers() -> ModuleType:
    specification = importlib.util.spec_from_file_location(
        "course_answers", COURSE / "answers.py"
    )
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module  # dataclasses need it there
    specification.loader.exec_module(module)
    return module


ANSWERS = module_of_answers()


def test_there_are_ten_lessons():
    assert [number(lesson) for lesson in LESSONS] == list(range(1, 11))


@pytest.mark.parametrize("lesson", LESSONS)
class TestLesson:
    def test_it_holds_no_path_of_a_machine(self, lesson):
        assert not re.search(
            r"""["'` ]/(home|root|work|tmp|data)\b""", json.dumps(cells(lesson))
        )

    def test_its_stored_outputs_are_of_this_text_and_hold_no_warnings(self, lesson):
        *before, check = [cell for cell in cells(lesson) if cell["cell_type"] == "code"]
        assert [cell["execution_count"] for cell in before] == list(
            range(1, len(before) + 1)
        )
        assert not check["outputs"]
        assert not [
            output
            for cell in before
            for output in cell["outputs"]
            if output.get("name") == "stderr"
        ]
        (printed,) = cells(lesson)[-4]["outputs"]
        (call,) = calls(text(cells(lesson)[-4]), "confirm")
        claims = call.args[0].keys
        lines = "".join(printed["text"]).splitlines()[-len(claims) :]
        for line, claim in zip(lines, claims, strict=True):
            # Of a claim with a figure in it only the beginning is known here.
            start = claim if isinstance(claim, ast.Constant) else claim.values[0]
            assert line.startswith(f"✓ {start.value}")

    def test_its_stored_figures_are_all_there_and_the_file_is_small(self, lesson):
        outputs = [
            output for cell in cells(lesson) for output in cell.get("outputs", [])
        ]
        figures = [
            output for output in outputs if "image/png" in output.get("data", {})
        ]
        assert len(figures) == sum(
            text(cell).count("alt.Chart(") for cell in cells(lesson)
        )
        assert (COURSE / f"{lesson}.ipynb").stat().st_size < 100_000

    def test_it_asks_predicts_runs_answers_and_sets_an_exercise(self, lesson):
        parts = [(cell["id"], cell["cell_type"]) for cell in cells(lesson)]
        assert len(dict(parts)) == len(parts)
        assert parts[:4] == [
            ("question", "markdown"),
            ("prediction", "markdown"),
            ("prediction-values", "code"),
            ("run", "markdown"),
        ]
        assert parts[-5:] == [
            ("answer", "markdown"),
            ("answer-check", "code"),
            ("exercise", "markdown"),
            ("exercise-values", "code"),
            ("exercise-check", "code"),
        ]
        runs = [kind for name, kind in parts[4:-5] if name.startswith("run-")]
        assert len(runs) == len(parts) - 9
        assert "code" in runs

    def test_its_prediction_is_left_to_the_reader_and_held_against_the_answer(
        self, lesson
    ):
        predicted = assigned(text(cells(lesson)[2]))
        assert predicted
        assert not any(predicted.values())
        compared = [
            call.args[1].id for call in calls(text(cells(lesson)[-4]), "compare")
        ]
        assert compared == list(predicted)

    def test_its_claims_are_checked_on_names_that_it_computed(self, lesson):
        claims = claimed(lesson)
        assert len(claims) >= 3
        for value in claims:
            assert any(isinstance(node, ast.Name) for node in ast.walk(value))

    def test_the_columns_of_runs_that_it_reads_exist(self, lesson):
        code = " ".join(
            text(cell) for cell in cells(lesson) if cell["cell_type"] == "code"
        )
        selected = re.findall(
            r"study\.runs(?:\.sort\([^)]*\))?\.select\(([^)]*)\)", code
        )
        read = re.findall(r'study\.runs(?:\.sort\([^)]*\))?\["(\w+)"\]', code)
        assert {*re.findall(r'"(\w+)"', " ".join(selected)), *read} <= set(RUN_FIELDS)

    def test_its_exercise_is_left_to_the_reader_and_checked(self, lesson):
        *others, values, check = [
            code(cell) for cell in cells(lesson) if cell["cell_type"] == "code"
        ]
        names = assigned(values)
        assert set(names.values()) == {None}
        assert set(names) == set(ANSWERS.EXERCISES[number(lesson)])
        (call,) = calls(check, "check")
        assert ast.literal_eval(call.args[0]) == number(lesson)
        assert {word.arg: word.value.id for word in call.keywords} == {
            name: name for name in names
        }
        assert not set(names) & set().union(
            *map(names_in, others)
        )  # otherwise one overwrites the other


class TestAnswers:
    @pytest.mark.parametrize(
        ("lesson", "name"),
        [(n, name) for n, of in ANSWERS.EXERCISES.items() for name in of],
    )
    def test_a_wrong_answer_is_refused_with_its_own_hint(self, lesson, name):
        exercise = ANSWERS.EXERCISES[lesson][name]
        ANSWERS.check(lesson, **{name: exercise.right})
        for answer, hint in exercise.mistakes.items():
            with pytest.raises(ANSWERS.DoesNotHold, match=re.escape(hint)):
                ANSWERS.check(lesson, **{name: answer})
        for answer in (-1, "a word", [1, 2]):
            with pytest.raises(
                ANSWERS.DoesNotHold, match=re.escape(exercise.otherwise)
            ):
                ANSWERS.check(lesson, **{name: answer})
        with pytest.raises(ANSWERS.DoesNotHold, match=name):
            ANSWERS.check(lesson, **{name: None})
        assert exercise.otherwise

    def test_numbers_of_numpy_and_rounded_ones_are_answers(self):
        ANSWERS.check(1, batch_for_half=np.int64(1024))
        ANSWERS.check(2, factors=np.array([0.2, 0.2, 0.2, 0.4]))
        ANSWERS.check(7, serial_seconds=6.7)
        ANSWERS.check(
            6,
            half_width=scipy.stats.t.ppf(0.975, 2)
            * np.std([10, 11, 12], ddof=1)
            / np.sqrt(3),
        )

    def test_a_claim_that_does_not_hold_is_refused_after_all_are_printed(self, capsys):
        with pytest.raises(ANSWERS.DoesNotHold, match="1"):
            ANSWERS.confirm({"first": np.False_, "second": np.True_})
        printed = capsys.readouterr().out.splitlines()
        assert [line.partition(" ")[2] for line in printed] == ["first", "second"]
        ANSWERS.confirm({"second": True})


def test_its_studies_fit_a_laptop_of_two_cores():
    for file in sorted(COURSE.glob("*.toml")):
        points = expand(load_study(file), gpus=0, cores=2)
        assert 1 <= len(points) <= 6
        assert not any(point.oversubscribed for point in points)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the course, whose lessons share their studies, and a Jupyter without settings."""
    place = tmp_path_factory.mktemp("course")
    copy = shutil.copytree(
        COURSE, place / "course", ignore=shutil.ignore_patterns("studies")
    )
    source = os.pathsep.join(
        [str(COURSE.parent / "src"), os.environ.get("PYTHONPATH", "")]
    )
    with pytest.MonkeyPatch.context() as patch:
        for name in (
            "JUPYTER_CONFIG_DIR",
            "JUPYTER_DATA_DIR",
            "JUPYTER_RUNTIME_DIR",
            "IPYTHONDIR",
        ):
            patch.setenv(name, str(place / name))
        patch.setenv("PYTHONPATH", source)
        yield copy


def execute(folder: Path, lesson: str, **answers: Any) -> Any:
    """Run the notebook with the right answers, except for those given; return it with its outputs."""
    nbformat = pytest.importorskip(
        "nbformat", reason="nbformat is not installed (dev extra)"
    )
    client = pytest.importorskip(
        "nbclient", reason="nbclient is not installed (dev extra)"
    )
    pytest.importorskip("ipykernel", reason="ipykernel is not installed (dev extra)")
    notebook = nbformat.read(folder / f"{lesson}.ipynb", as_version=4)
    nbformat.validate(notebook)
    right = {
        name: exercise.right
        for name, exercise in ANSWERS.EXERCISES[number(lesson)].items()
    }
    written = [f"{name} = {value!r}" for name, value in {**right, **answers}.items()]
    notebook.cells[-2].source = "\n".join(written)
    client.NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(folder)}}
    ).execute()
    return notebook


@pytest.mark.parametrize(
    "lesson",
    [
        pytest.param(
            lesson,
            marks=pytest.mark.slow
            if number(lesson) in COMPUTED
            else pytest.mark.engine,
        )
        for lesson in LESSONS
    ],
)
def test_it_runs_and_its_answers_hold(folder, lesson):
    if lesson in NEEDS_ALL and not all(
        importlib.util.find_spec(name) for name in ("horovod", "torch")
    ):
        pytest.skip("Horovod or PyTorch is not installed")
    notebook = execute(folder, lesson)
    said = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    warned = "".join(output.text for output in said if output.get("name") == "stderr")
    assert not BUSY.sub("", warned)
    predictions = assigned(text(cells(lesson)[2]))
    printed = "".join(output.text for output in notebook.cells[-4].outputs).splitlines()
    assert len(printed) >= len(predictions) + len(claimed(lesson))
    figures = [output for output in said if "image/png" in output.get("data", {})]
    assert len(figures) == sum(text(cell).count("alt.Chart(") for cell in cells(lesson))


@pytest.mark.slow
def test_a_wrong_answer_stops_the_notebook_with_its_hint_alone(folder):
    client = pytest.importorskip(
        "nbclient", reason="nbclient is not installed (dev extra)"
    )
    (wrong, hint), *_ = ANSWERS.EXERCISES[2]["factors"].mistakes.items()
    lesson = LESSONS[1]
    with pytest.raises(client.exceptions.CellExecutionError) as stopped:
        execute(folder, lesson, factors=wrong)
    assert hint in stopped.value.traceback
    assert (
        "answers.py" not in stopped.value.traceback
    )  # this place does not help the reader
