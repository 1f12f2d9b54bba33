"""Messages if TensorFlow Datasets is missing or its process ends; a stand-in package does so."""

import os
import sys

import pytest

from data_settings import data_of
from scalestudy.data.store.prepare import prepare
from scalestudy.util.errors import UserError


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Make the process import this text as the package."""

    def stand_in(text: str) -> None:
        (tmp_path / "first").mkdir()
        (tmp_path / "first" / "tensorflow_datasets.py").write_text(text)
        paths = [str(tmp_path / "first"), *(path for path in sys.path if path)]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))

    return stand_in


def test_its_absence_is_told_with_what_to_install(stand_in, tmp_path):
    stand_in("raise ModuleNotFoundError('No module', name='tensorflow_datasets')")
    with pytest.raises(UserError) as refused:
        prepare(data_of("tfds:mnist", cache=tmp_path / "cache"))
    assert refused.value.received == "no tensorflow_datasets in this environment"
    assert "pip install 'scalestudy[tfds]'" in refused.value.action


def test_a_process_that_dies_is_told_with_its_last_words(stand_in, tmp_path):
    stand_in(
        "import os, sys\nprint('{not ours')\nsys.stdout.flush()\nos.write(2, b'it broke\\n')\nos._exit(7)"
    )
    with pytest.raises(UserError, match=r"a process that ended with 7: \{not ours / it broke"):
        prepare(data_of("tfds:mnist", cache=tmp_path / "cache"))
