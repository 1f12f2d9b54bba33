"""Run the commands of each tutorial in order and compare their output with the page."""

import functools
import importlib.util
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from scalestudy.cli import app
from tutorials import (
    FOLDER,
    TutorialCommand,
    TutorialFile,
    differing,
    do,
    steps,
)

PAGES = ("install", "demo", "first-study", "own-data", "cluster")
BEFORE = {"cluster": "first-study"}
"""Pages that continue in the folder of another."""


def with_fewer_epochs(file: TutorialFile) -> TutorialFile:
    """Train 2 epochs for 10: what is printed then differs in numbers alone, which are set aside."""
    pattern = r'^(\s*epochs = |train = {"epochs": )10\b'
    return replace(file, text=re.sub(pattern, r"\g<1>2", file.text, flags=re.MULTILINE))


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], tuple[Path, list[str]]]:
    """Run a page once; return its folder and the output that it shows but that was not printed."""

    @functools.cache
    def run(page: str) -> tuple[Path, list[str]]:
        place = tmp_path_factory.mktemp(page)
        if page in BEFORE:
            shutil.copytree(run(BEFORE[page])[0], place, dirs_exist_ok=True)
        missing = []
        for step in steps(FOLDER / f"{page}.md"):
            if isinstance(step, TutorialFile):
                do(with_fewer_epochs(step), place)
                continue
            lacks_torch = not importlib.util.find_spec("torch")
            if not step.is_run or (step.needs_torch and lacks_torch):
                continue
            printed = do(step, place)
            if step.is_compared:
                lines = differing(step.shown, printed)
                missing += (
                    [f"$ {step.line}", *lines, "--- printed:", printed] if lines else []
                )
        return place, missing

    return run


@pytest.mark.slow
def test_the_installation_is_checked(folder):
    _, missing = folder("install")
    assert not missing, "\n".join(missing)


@pytest.mark.slow
def test_the_demo(folder):
    place, missing = folder("demo")
    assert not missing, "\n".join(missing)
    assert (place / "published-unet.html").stat().st_size > 100_000


@pytest.mark.engine
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in ("install", "demo")]
)
def test_a_tutorial(folder, page: str):
    _, missing = folder(page)
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_need_a_cluster_exist(page: str):
    """Commands and options that no test runs at least exist."""
    top = typer.main.get_command(app)
    for step in steps(FOLDER / f"{page}.md"):
        if isinstance(step, TutorialCommand) and not step.is_run:
            program, *words = shlex.split(step.line, comments=True)
            if program != "scalestudy":
                continue
            command = top
            while hasattr(command, "commands"):
                command = command.commands[words.pop(0)]
            known = {
                option for parameter in command.params for option in parameter.opts
            }
            assert {word for word in words if word.startswith("-")} <= known, step.line


def test_numbers_are_set_aside_and_words_are_not():
    shown = ("native   1  10.2  1.00  0.962 ± 0.007", "...", "Page: a.html")
    assert not differing(
        shown,
        "first\nnative 2 1:03 min 0.9 0.8 (0.1–3)\n".replace("1:03 min", "63")
        + "Page: a.html\n",
    )
    assert differing(shown, "native 1 10 1 0.9\nPage: b.html\n") == ["Page: a.html"]
    assert differing(("a", "b"), "a\nc\nb\n") == ["a", "b"]
