"""What a task file says is read, and it is never run."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.study.catalog import NAMES, read_task_file
from scalestudy.util.errors import UserError


@pytest.fixture
def read(tmp_path):
    def of(text: str):
        (tmp_path / "t.py").write_text(text)
        return read_task_file(tmp_path / "t.py")

    return of


def test_literals_at_the_top_are_known(read):
    text = read(
        'import keras\ndata = "folder"\nkind: str = "masks"\ntrain = {"epochs": 3}\nraise SystemExit\n'
    )
    assert text.values == {"data": "folder", "kind": "masks", "train": {"epochs": 3}}
    assert not text.unknown


def test_names_inside_functions_and_classes_are_others(read):
    text = read('data = "a"\ndef model(data):\n    data = "b"\nclass C:\n    kind = "masks"\n')
    assert text.values == {"data": "a"}
    assert not text.unknown


@pytest.mark.parametrize(
    "text",
    [
        'import os\ndata = os.environ["DATA"]',
        'if True:\n    data = "a"',
        'data = "a"\nfor data in ["b"]:\n    pass',
        'data, kind = "a", "masks"',
        'data = "a"\ndata += "b"',
        "from somewhere import data",
        "from somewhere import *",
        "import somewhere as data",
        'with open("f") as data:\n    pass',
        'print(data := "a")',
        "def data():\n    pass",
        'try:\n    from somewhere import data\nexcept ImportError:\n    data = "a"',
    ],
)
def test_what_only_running_would_tell_is_not_known(read, text):
    assert "data" in read(text).unknown
    assert "data" not in read(text).values


def test_the_last_word_counts(read):
    assert read('data = f()\ndata = "a"').values == {"data": "a"}
    assert read('data = "a"\ndata = f()').unknown == {"data"}


@pytest.mark.parametrize("content", ["def model(:", "data = '\0'"])
def test_what_is_no_python_is_refused(read, content):
    with pytest.raises(UserError, match=r"t\.py"):
        read(content)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"none\.py"):
        read_task_file(tmp_path / "none.py")


LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(NAMES), LITERALS))
def test_any_literal_is_read_as_python_would(tmp_path_factory, values):
    file: Path = tmp_path_factory.mktemp("t") / "t.py"
    file.write_text("".join(f"{name} = {value!r}\n" for name, value in values.items()), encoding="utf-8")
    assert read_task_file(file).values == values


def test_a_named_pipe_is_refused_and_not_opened(tmp_path):
    os.mkfifo(tmp_path / "t.py")
    with pytest.raises(UserError, match="no regular file"):
        read_task_file(tmp_path / "t.py")
