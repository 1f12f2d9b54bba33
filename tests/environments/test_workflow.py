"""The workflow of continuous integration calls what exists, for every version of Python that is supported."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORKFLOW = (ROOT / ".github" / "workflows" / "tests.yml").read_text()


def test_it_calls_targets_of_the_makefile_and_all_tests_among_them():
    makefile = (ROOT / "Makefile").read_text()
    called = {
        target
        for words in re.findall(r"run: make (.+)", WORKFLOW)
        for target in words.split()
        if "=" not in target and "{{" not in target and target != "}}"
    }
    assert called == {"lint", "types", "test", "docs"}
    for target in called:
        assert re.search(rf"(?m)^(\S+ )*{target}( \S+)*:", makefile), target


def test_the_tests_run_under_every_supported_python():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    matrix = re.search(r"python: \[(.*)\]", WORKFLOW)
    assert matrix
    assert re.findall(r"3\.\d+", matrix[1]) == (supported or ["3.11", "3.12", "3.13"])
