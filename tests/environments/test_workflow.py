"""The workflow of continuous integration calls what exists, for every version of Python that is supported."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORKFLOW = (ROOT / ".github" / "workflows" / "tests.yml").read_text()


def test_it_calls_targets_of_the_makefile_and_all_tests_among_them():
    makefile = (ROOT / "Makefile").read_text()
    called = {
        target
        for words in re.findall(
            r"run: make (.+)", re.sub(r"\$\{\{.*?\}\}", "", WORKFLOW)
        )
        for target in words.split()
        if "=" not in target
    }
    assert called == {"lint", "types", "test", "docs"}
    for target in called:
        assert re.search(rf"(?m)^(\S+ )*{target}( \S+)*:", makefile), target


def test_the_tests_run_under_every_python_that_the_set_up_takes():
    bounds = re.search(
        r"\((3), (\d+)\) <= sys.version_info < \(3, (\d+)\)",
        (ROOT / "environments" / "setup.sh").read_text(),
    )
    matrix = re.search(r"python: \[(.*)\]", WORKFLOW)
    assert bounds and matrix
    taken = [f"3.{minor}" for minor in range(int(bounds[2]), int(bounds[3]))]
    assert re.findall(r"3\.\d+", matrix[1]) == taken
