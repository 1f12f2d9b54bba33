"""Sets written by TensorFlow Datasets are read from a local copy, without a network."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from data_settings import data_of
from paths import SUPPORT
from scalestudy.data.sources.public import tfds as module
from scalestudy.data.store.prepare import find_prepared, prepare
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.engine
pytest.importorskip("tensorflow_datasets", reason="needs pip install 'scalestudy[tfds]'")


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tfds")
    program = SUPPORT / "make_tfds.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, program, folder], env=environment, check=True, capture_output=True)
    return folder


@pytest.fixture(autouse=True)
def process_finds_what_the_test_does(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))


def test_labels_of_array_record_files_keep_their_official_splits(written, tmp_path):
    data = data_of(
        f"tfds:{written}/array_record/leaves/0.1.0@label", cache=tmp_path / "cache", image_size=(16, 16)
    )
    made = prepare(data)
    assert made.kind == "classes"
    assert made.given == {"train": (0, 6), "validation": (6, 10), "test": (10, 12)}
    assert made.class_names == ("cbb", "cmd")
    assert made.targets.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 1]
    # Image i within a split has grey value 40 * i, so that its label can be checked.
    grey = made.inputs[:, 8, 8, 0] // 40
    assert (grey % 2 == made.targets).all()
    assert sorted(grey[:6].tolist()) == [0, 1, 2, 3, 4, 5]


def test_masks_of_tfrecord_files_are_numbered_from_0(written, tmp_path, monkeypatch):
    data = data_of(f"tfds:{written}/tfrecord/leaves/0.1.0", cache=tmp_path / "cache", image_size=(16, 32))
    made = prepare(data, task_kind="masks")
    assert made.given == {"train": (0, 6), "validation": (6, 10), "test": (10, 12)}
    assert made.classes == 3
    assert set(np.unique(made.targets).tolist()) == {0, 1, 2, 255}
    # From here on TFDS is not called.
    monkeypatch.setattr(module, "ask", None)
    assert find_prepared(data, task_kind="masks") == made


def test_a_name_is_found_where_tfds_keeps_it(written, tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(written / "named"))
    made = prepare(data_of("tfds:small", cache=tmp_path / "cache"))
    assert made.given == {"train": (0, 9), "validation": (9, 18)}
    assert made.class_names == ("zero", "one", "two")
    assert (made.inputs[:, 0, 0, 0] // 20 % 3 == made.targets).all()
    told = [str(each) for each in made.left_out]
    assert told == [
        "1 left out (a split of another name than train, validation and test): extra",
        "1 left out (a split without labels): test",
    ]


def test_a_name_that_tfds_does_not_know_is_told(tmp_path):
    with pytest.raises(UserError, match="a data set of TensorFlow Datasets"):
        prepare(data_of("tfds:no_such_set", cache=tmp_path / "cache"))
