"""Named sources are distinguished from paths without heavy imports."""

import subprocess
import sys

import pytest

from scalestudy.data.sources.registry import named_source


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("indents", "indents"),
        ("indents:40", "indents"),
        ("digits", "digits"),
        ("./indents", None),
        ("digits.npz", None),
        ("digits:3", "digits"),
        ("data/nuclei", None),
    ],
)
def test_names_of_sources(source, made):
    assert named_source(source) == made


def test_asking_imports_no_numpy_and_no_sklearn():
    program = (
        "import scalestudy.data.sources.registry; sys.exit(bool({'numpy', 'sklearn'} & sys.modules.keys()))"
    )
    path = f"import sys; sys.path[:0] = {sys.path!r}; "
    assert subprocess.run([sys.executable, "-c", path + program], check=False).returncode == 0
