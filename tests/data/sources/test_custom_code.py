import pytest

from scalestudy.data.sources.custom import code_of_reading
from scalestudy.util.errors import UserError

TEXT = """
import keras
COLUMNS = ["a"]
sequences = ["a"]

def _load(path):
    return COLUMNS, path

def read(data):
    return _load(data.source)

def loss(targets, outputs):
    return {}
"""


def code(folder, text):
    (folder / "t.py").write_text(text)
    return code_of_reading(folder / "t.py")


def test_what_read_needs_decides_and_the_loss_does_not(tmp_path):
    first = code(tmp_path, TEXT.format("1"))
    assert "loss" not in first and "import keras" not in first
    assert code(tmp_path, TEXT.format("2  # another")) == first


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('COLUMNS = ["a"]', 'COLUMNS = ["b"]'),
        ("return COLUMNS, path", "return path"),
        ('= ["a"]\n\n', "= []\n\n"),
    ],
)
def test_a_change_of_anything_that_it_needs_counts(tmp_path, old, new):
    text = TEXT.format("1")
    assert old in text
    assert code(tmp_path, text) != code(tmp_path, text.replace(old, new))


def test_a_file_without_it_is_refused(tmp_path):
    with pytest.raises(UserError, match="a function `read"):
        code(tmp_path, "reed = 1\n")


def test_a_file_that_is_no_python_is_refused(tmp_path):
    with pytest.raises(UserError, match="SyntaxError"):
        code(tmp_path, "def read(:\n")


@pytest.mark.parametrize(
    "text",
    [
        "MORE = {}\nfor i in range(2): MORE[i] = 1\n",
        "MORE = {}\nfirst, MORE['a'] = 0, 1\n",
        "with open(__file__) as file: MORE = file.read(1)\n",
        "if True:\n    def MORE():\n        step = 1\n        return step\n",
        "from lib1 import *\n",
    ],
)
def test_what_changes_what_it_needs_counts_too(tmp_path, text):
    reading = f"{text}\nSTEPS = {{}}\nfor each in 'ab': STEPS[each] = 5\n\ndef read(data):\n    return MORE\n"
    first = code(tmp_path, reading)
    assert "STEPS[" not in first
    assert code(tmp_path, reading.replace("1", "2")) != first


def test_a_read_inside_a_block_is_found(tmp_path):
    assert "return 1" in code(tmp_path, "if True:\n    def read(data):\n        return 1\n")
