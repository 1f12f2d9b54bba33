"""A source that returns other samples than announced is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from scalestudy.data.sources.base import Contents
from scalestudy.data.store.write import write_set
from scalestudy.util.errors import UserError


class Given:
    """A source with the given rows."""

    kind = "classes"
    label = identity = fingerprint = "given"

    def __init__(self, rows, names=("a", "b")):
        self._rows, self._names = rows, list(names)

    def contents(self):
        return Contents(2, (2, 2, 1), np.dtype(np.uint8), 1.0, None, {})

    def rows(self):
        return iter(self._rows)

    def class_names(self):
        return self._names


class Masks(Given):
    kind = "masks"


IMAGE = np.zeros((2, 2, 1), np.uint8)
MASK = np.zeros((2, 2), np.uint8)


def refusal(source, folder, **changes):
    with pytest.raises(UserError) as refused:
        write_set(source, replace(source.contents(), **changes), folder, None)
    assert not (folder / "meta.json").exists()
    return refused.value.received


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([(IMAGE, 0)], "1 samples"),
        ([(IMAGE, 0), (IMAGE, 1), (IMAGE, 0)], "3 samples"),
        ([(IMAGE, 0), (IMAGE, 2)], "classes up to 2"),
        ([(IMAGE, 0), (IMAGE, -1)], "sample 1 of given, of class -1"),
        ([(IMAGE, 0), (IMAGE, 0.5)], "the target of sample 1"),
        ([(IMAGE, 0), (IMAGE, 2**40)], "the target of sample 1"),
        ([(IMAGE, 0), (IMAGE[:1], 1)], "sample 1 of given of shape [1, 2, 1]"),
        ([(IMAGE, 0), (IMAGE + 0.5, 1)], "sample 1 of given, with values 0.5..0.5"),
        ([(IMAGE, 0), (IMAGE.astype(int) + 256, 1)], "sample 1 of given, with values 256..256"),
        ([(IMAGE, 0), (IMAGE + np.nan, 1)], "NaN"),
        ([(IMAGE.astype(object), 0)], "of type object"),
    ],
)
def test_samples_other_than_announced(tmp_path, rows, told):
    assert told in refusal(Given(rows), tmp_path)


def test_masks_beyond_the_classes(tmp_path):
    beyond = [(IMAGE, MASK), (IMAGE, MASK + np.uint8(9))]
    assert "classes up to 9" in refusal(Masks(beyond), tmp_path)
    ignored = Masks([(IMAGE, MASK), (IMAGE, MASK + np.uint8(255))])
    write_set(ignored, ignored.contents(), tmp_path, None)
    assert np.load(tmp_path / "targets.npy")[1].tolist() == [[255, 255]] * 2
    assert json.loads((tmp_path / "meta.json").read_text())["ignore"] == 255


def test_floats_of_any_width_are_stored_as_announced(tmp_path):
    rows = [(IMAGE + 0.5, 0), (IMAGE + np.float16(2), 1)]
    contents = replace(Given(rows).contents(), dtype=np.dtype(np.float32))
    write_set(Given(rows), contents, tmp_path, None)
    assert np.load(tmp_path / "inputs.npy").ravel().tolist() == [0.5] * 4 + [2] * 4
