"""The stored results of `read(data)` in a task file: each form, and each fault by name."""

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.data.store.prepared import Prepared
from scalestudy.tasks.child import store_samples
from scalestudy.util.errors import UserError

FORMS = {
    "arrays": "return np.arange(4), np.arange(4.0)",
    "lists": "return [0, 1, 2, 3], [0.0, 1.0, 2.0, 3.0]",
    "generator": "return ((np.int64(n), float(n)) for n in range(4))",
    "a frame's columns": "return pl.DataFrame({'x': [0, 1, 2, 3]})['x'], np.arange(4.0)",
    "an object with NumPy's samples": """
    class Data:
        def as_numpy_iterator(self):
            return ((np.int64(n), np.float64(n)) for n in range(4))
    return Data()""",
    "a map-style Dataset of PyTorch": """
    class Data:
        def __len__(self):
            return 4
        def __getitem__(self, n):
            return np.int64(n), np.float64(n)
    return Data()""",
}


def stored(folder, text):
    """Run `read` of a file in this process and open the stored set."""
    (folder / "t.py").write_text(text)
    (folder / "set").mkdir()
    asked = {
        "file": str(folder / "t.py"),
        "folder": str(folder / "set"),
        "identity": "it",
        "fingerprint": "0",
        "data": data_of("nothing").model_dump(mode="json"),
    }
    store_samples(asked, lambda said: None)
    return Prepared.open(folder / "set")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_stored_alike(tmp_path, form):
    made = stored(
        tmp_path,
        f"import numpy as np\nimport polars as pl\ndef read(data):\n    {FORMS[form]}\n",
    )
    assert (made.inputs.tolist(), made.targets.tolist()) == ([0, 1, 2, 3], [0, 1, 2, 3])
    assert (made.inputs.dtype, made.targets.dtype) == (np.int64, np.float64)


@pytest.mark.parametrize(
    ("given", "kept"), [("bool", "uint8"), ("int16", "int32"), ("uint32", "int64")]
)
def test_types_that_frameworks_do_not_share_are_stored_as_larger_ones(
    tmp_path, given, kept
):
    text = f"import numpy as np\ndef read(data):\n    return np.ones(2, '{given}'), np.ones(2)\n"
    assert stored(tmp_path, text).inputs.dtype == kept


def test_a_vocabulary_of_the_file_sets_the_numbers_of_texts(tmp_path):
    text = "vocabularies = {'targets': ['b', 'a', 'c']}\ndef read(data):\n    return [1, 2], ['a', 'b']\n"
    made = stored(tmp_path, text)
    assert made.targets.tolist() == [1, 0] and made.class_names == ("b", "a", "c")


def test_class_names_of_the_file_name_the_classes_and_must_be_enough(tmp_path):
    text = "class_names = {}\ndef read(data):\n    return [1, 2], [0, 1]\n"
    assert stored(tmp_path, text.format(["no", "yes"])).class_names == ("no", "yes")
    (tmp_path / "again").mkdir()
    with pytest.raises(UserError, match=r"for 2 classes.*1"):
        stored(tmp_path / "again", text.format(["no"]))


FAULTS = {
    "a DataLoader": (
        "class DataLoader:\n    collate_fn = None\ndef read(data):\n    return DataLoader()\n",
        r"batches of a DataLoader.*loader\.dataset",
    ),
    "another form": ("def read(data):\n    return [1, 2], \n", "tuple of 1"),
    "no samples": ("def read(data):\n    return [], []\n", "at least 2 samples"),
    "different numbers": (
        "def read(data):\n    return [1, 2], [1]\n",
        "2 inputs, 1 targets",
    ),
    "another shape": (
        "def read(data):\n    for n in (2, 2, 3):\n        yield {'x': [0.5] * n}, 1\n",
        r"input 'x' in one shape and type: \[2\] of float64.*\[3\] of float64 in sample 2.*`sequences`",
    ),
    "another type": (
        "def read(data):\n    yield 1, 1\n    yield 1.5, 1\n",
        "float64 in sample 1",
    ),
    "another name": (
        "def read(data):\n    yield {'a': 1}, 1\n    yield {'b': 1}, 1\n",
        "inputs a, as in sample 0.*b in sample 1",
    ),
    "not finite": (
        "def read(data):\n    return [1.0, float('nan')], [1, 2]\n",
        "NaN or infinity in samples 0 to 1",
    ),
    "a misspelt sequence": (
        "sequences = ['word']\ndef read(data):\n    return [1, 2], [1, 2]\n",
        "'word'",
    ),
    "another text": (
        "vocabularies = {'targets': ['a']}\ndef read(data):\n    return [1, 2], ['a', 'b']\n",
        "'b' in samples 0",
    ),
    "a bad name": ("def read(data):\n    return {'a/b': [1, 2]}, [1, 2]\n", "'a/b'"),
    "a split without the other": (
        "def read(data):\n    return {'train': ([1], [1])}\n",
        "'train'",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_cannot_be_stored_is_told_by_name_and_leaves_no_manifest(tmp_path, fault):
    text, said = FAULTS[fault]
    with pytest.raises(UserError) as caught:
        stored(tmp_path, text)
    assert caught.match(f"(?s){said}")
    assert not (tmp_path / "set" / "meta.json").exists()
