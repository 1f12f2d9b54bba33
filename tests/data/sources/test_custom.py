"""A user's own `read` function, from the file to the prepared set."""

import json

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.data.preparation import find_prepared, prepare
from scalestudy.data.sources.custom import code_of_reading
from scalestudy.data.split import ensure_split
from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import RunError, UserError

ARRAYS = """
import numpy as np

def read(data):
    assert data.seed == 3
    table = np.loadtxt(data.source, delimiter=",")
    return {"age": table[:, 0].astype("float32"), "sex": ["fm"[int(v)] for v in table[:, 1]]}, table[:, 2]
"""
GENERATOR = """
sequences = ["inputs"]

def read(data):
    def samples(numbers):
        for number in numbers:
            yield list(range(1, number + 1)), number % 2, f"group {number // 4}"
    return {"train": samples(range(1, 13)), "validation": samples(range(20, 24))}
"""


def set_of(folder, text, **keys):
    (folder / "t.py").write_text(text)
    return data_of(
        keys.pop("source", folder / "t.py"),
        read=folder / "t.py",
        cache=folder / "cache",
        **keys,
    )


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("30,0,1.5\n40,1,2.5\n50,1,3.5\n")
    return set_of(tmp_path, ARRAYS, source=file, seed=3)


def test_named_arrays_are_stored_as_they_are_and_texts_as_numbers(table):
    made, told = None, []
    made = prepare(table, on_progress=lambda done, count: told.append((done, count)))
    assert made.kind == "custom" and made.count == 3
    assert (
        made.inputs["age"].tolist() == [30, 40, 50]
        and made.inputs["age"].dtype == np.float32
    )
    assert made.inputs["sex"].tolist() == [0, 1, 1]
    assert made.targets.tolist() == [1.5, 2.5, 3.5] and made.targets.dtype == np.float64
    inputs, target = made.columns
    assert inputs["sex"].vocabulary == ("f", "m")
    assert (inputs["age"].shape, inputs["age"].lowest, inputs["age"].highest) == (
        (),
        30,
        50,
    )
    assert target.classes == 0
    assert told[-1] == (3, 3)
    assert (
        made.understood
        == "inputs age [] of float32, sex [] of 2 texts; targets [] of float64"
    )


@pytest.mark.slow
def test_it_is_read_once_and_anew_when_the_file_that_it_reads_has_changed(table):
    made = prepare(table)
    assert find_prepared(table).path == made.path
    with open(table.source, "a") as file:
        file.write("60,0,4.5\n")
    assert find_prepared(table) is None
    assert prepare(table).count == 4


def test_sequences_keep_their_lengths_and_given_splits_their_rows(tmp_path):
    made = prepare(set_of(tmp_path, GENERATOR))
    assert made.has_sequences and made.given == {
        "train": (0, 12),
        "validation": (12, 16),
    }
    assert np.diff(made.inputs.offsets).tolist() == [*range(1, 13), *range(20, 24)]
    assert made.columns[0].shape == (None,) and made.classes == 2
    split = ensure_split(made, None, 0)
    assert (split.train.tolist(), split.validation.tolist()) == (
        [*range(12)],
        [*range(12, 16)],
    )
    assert (
        json.loads((made.path / "meta.json").read_text())["groups"][:5]
        == ["group 0"] * 3 + ["group 1"] * 2
    )


def test_a_damaged_column_is_found(tmp_path):
    made = prepare(set_of(tmp_path, GENERATOR))
    file = made.path / "inputs.npy"
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(UserError, match="greater than file size"):
        Prepared.open(made.path)


@pytest.mark.parametrize(
    ("body", "kind", "told"),
    [
        ("return 1 / 0", UserError, r"ZeroDivisionError.*t\.py, line 3, in read"),
        ("os.kill(os.getpid(), 9)", RunError, "ended by SIGKILL"),
    ],
)
def test_a_read_that_fails_is_told_with_its_line_and_leaves_nothing(
    tmp_path, body, kind, told
):
    with pytest.raises(kind, match=told):
        prepare(set_of(tmp_path, f"import os\ndef read(data):\n    {body}\n"))
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]


def test_what_the_file_prints_is_not_taken_for_an_answer(tmp_path):
    text = "def read(data):\n    print('{\"done\": 1}')\n    print(7)\n    return [1, 2], [1, 2]\n"
    assert prepare(set_of(tmp_path, text)).count == 2


def test_groups_of_samples_without_a_class_stay_on_one_side(tmp_path):
    text = "def read(data):\n    n = range(12)\n    return list(n), [i / 2 for i in n], [i // 3 for i in n]\n"
    made = prepare(set_of(tmp_path, text))
    assert made.classes == 0
    split = ensure_split(made, 0.25, 0)
    assert (
        len({made.groups[row] for row in split.validation.tolist()}) == 1
        and len(split.validation) == 3
    )


def test_nothing_cuts_what_a_file_reads(tmp_path):
    with pytest.raises(UserError, match=r"read by `read\(data\)`"):
        find_prepared(set_of(tmp_path, GENERATOR, tile=(2, 2)))


@pytest.mark.slow
def test_a_read_that_gives_nothing_is_ended_with_its_line(tmp_path):
    with pytest.raises(UserError, match=r"line 3 \(in read\)"):
        prepare(
            set_of(tmp_path, "def read(data):\n    yield 1, 0\n    while True: pass\n"),
            within=1,
        )


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


def test_what_read_needs_decides_and_the_loss_does_only_where_read_uses_it(tmp_path):
    first = code(tmp_path, TEXT)
    assert "loss" not in first
    assert (
        code(tmp_path, TEXT + "\ndef model(data):\n    return keras.Sequential()\n")
        == first
    )
    assert (
        code(tmp_path, TEXT.replace("data.source)", "data.source)  # another")) == first
    )
    text = "def loss():\n    return 1\n\ndef read(data):\n    return loss()\n"
    assert code(tmp_path, text) != code(tmp_path, text.replace("1", "2"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('COLUMNS = ["a"]', 'COLUMNS = ["b"]'),
        ("return COLUMNS, path", "return path"),
        ('= ["a"]\n\n', "= []\n\n"),
    ],
)
def test_a_change_of_anything_that_it_needs_counts(tmp_path, old, new):
    assert old in TEXT
    assert code(tmp_path, TEXT) != code(tmp_path, TEXT.replace(old, new))


def test_a_file_without_it_is_refused(tmp_path):
    with pytest.raises(UserError, match="a function `read"):
        code(tmp_path, "reed = 1\n")
