"""A set of Keras is exported once, stored completely, and then read without it."""

import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.data.sources import keras_sets
from scalestudy.data.sources.keras_sets import NAMES, KerasSet, export
from scalestudy.data.store.prepare import prepare
from scalestudy.data.store.write import locked
from scalestudy.util.errors import UserError

X, Y = np.arange(14 * 64, dtype=np.uint8).reshape(14, 8, 8), np.arange(14, dtype=np.uint8) % 10


class Exports:
    """Takes the place of the process with Keras: counts its exports, and can fail."""

    def __init__(self) -> None:
        self.count = 0
        self.error: Exception | None = None

    def __call__(self, name, folder):
        self.count += 1
        export(name, folder)
        if self.error:
            raise self.error


@pytest.fixture
def exports(monkeypatch):
    given = SimpleNamespace(load_data=lambda: ((X[:11], Y[:11]), (X[11:], Y[11:])))
    monkeypatch.setitem(sys.modules, "keras.datasets.fashion_mnist", given)
    exports = Exports()
    monkeypatch.setattr(keras_sets, "ask_export", exports)
    return exports


@pytest.fixture
def source(tmp_path, exports):
    """Create the source anew, as each command does."""
    return lambda: KerasSet("fashion_mnist", data_of("keras:fashion_mnist", cache=tmp_path / "cache"))


def left_in(source) -> list[str]:
    return sorted(entry.name for entry in source._place.parent.iterdir() if entry.suffix != ".lock")


def test_a_set_is_exported_once(source, exports):
    first, again = source(), source()
    first.fetch()
    again.fetch()
    assert exports.count == 1
    assert again.contents().count == len(list(again.rows())) == 14
    assert again.fingerprint == first.fingerprint
    assert left_in(first) == ["keras-fashion_mnist"]


@pytest.mark.parametrize("error", [UserError("a", "b", "c"), OSError(28, "No space left on device")])
def test_a_failure_leaves_nothing(source, exports, error):
    exports.error = error
    with pytest.raises(UserError):
        source().fetch()
    assert left_in(source()) == []
    exports.error = None
    source().fetch()
    assert left_in(source()) == ["keras-fashion_mnist"]


def test_a_set_without_its_file_is_exported_again(source, exports):
    source().fetch()
    (source()._place / "set.npz").unlink()
    with pytest.raises(UserError):
        source().contents()
    source().fetch()
    assert exports.count == 2
    assert source().contents().count == 14


def test_two_processes_export_a_set_once(source, exports):
    with locked(source()._place):
        waiting = threading.Thread(target=source().fetch)
        waiting.start()
        source()._place.mkdir()
        exports("fashion_mnist", source()._place)
    waiting.join()
    assert exports.count == 1


@pytest.mark.parametrize("argument", [None, "", "imdb"])
def test_other_names_are_refused(argument, tmp_path):
    with pytest.raises(UserError) as refused:
        KerasSet(argument, data_of("keras", cache=tmp_path))
    assert all(f"keras:{name}" in refused.value.expected for name in NAMES)


def test_a_set_is_read_from_its_arrays(tmp_path, exports):
    made = prepare(data_of("keras:fashion_mnist", cache=tmp_path / "cache"))
    assert made.given == {"train": (0, 11), "test": (11, 14)}
    np.testing.assert_array_equal(made.inputs[:, :, :, 0], X)
    np.testing.assert_array_equal(made.targets, Y)
    assert (made.class_names[0], made.class_names[9]) == ("T-shirt/top", "Ankle boot")


def test_a_set_that_keras_cannot_download_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "keras.datasets.mnist", SimpleNamespace())
    with pytest.raises(UserError, match=r"keras:mnist from keras\.datasets"):
        export("mnist", tmp_path)
