"""The folders of `data` have an order too: what drives a set, its sources, its store, its images."""

import ast
from pathlib import Path

import pytest

from scalestudy import data

ORDER = ("", "sources", "store", "images")
"""From top to bottom; "" are the files of `data` itself that are named below, which drive the others."""
DRIVERS = {"augment", "loader", "preparation", "split"}
FOLDER = Path(data.__file__).parent


def imported(file: Path) -> set[str]:
    """Return the first name below `scalestudy.data` of each module that a file imports from there."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            package, _, inner = node.module.partition("scalestudy.data.")
            if not package and inner:
                names.add(inner.partition(".")[0])
    return names


@pytest.mark.parametrize("place", range(1, len(ORDER)))
def test_a_folder_imports_only_those_below_it(place):
    above = {*ORDER[1:place], *DRIVERS}
    files = sorted((FOLDER / ORDER[place]).glob("*.py"))
    assert len(files) > 1
    assert {
        file.name: found for file in files if (found := imported(file) & above)
    } == {}


def test_what_all_folders_use_imports_none_of_them():
    for name in ("samples", "left_out"):
        assert imported(FOLDER / f"{name}.py") == set()
