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
    assert "loss" not in first
    assert code(tmp_path, TEXT + "\ndef model(data):\n    return keras.Sequential()\n") == first
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


def test_a_loss_that_it_uses_counts(tmp_path):
    text = "def loss():\n    return 1\n\ndef read(data):\n    return loss()\n"
    assert code(tmp_path, text) != code(tmp_path, text.replace("1", "2"))
