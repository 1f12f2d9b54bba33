"""A prediction is checked before anything is written."""

import json

import numpy as np
import pytest
from PIL import Image

from scalestudy.app.listener import Listener
from scalestudy.features.predict.find_model import FoundModel
from scalestudy.features.predict.predict import MARK, Wanted, plan
from scalestudy.study.model_record import ModelRecord
from scalestudy.util.errors import UserError


def model(tmp_path, kind="masks"):
    record = ModelRecord(
        task="unet", kind=kind, input_shape=(8, 8, 1), dtype="uint8", scale=1 / 255, class_names=["a", "b"]
    )
    return FoundModel(tmp_path / "model.keras", record, "a model")


@pytest.fixture
def images(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(3):
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(folder / f"{number}.png")
    return folder


class Told(Listener):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def planned(tmp_path, *given, kind="masks", **more):
    wanted = Wanted(tuple(map(str, given)), more.pop("out", tmp_path / "out"), device="cpu", **more)
    return plan(model(tmp_path, kind), wanted, Told())


def test_a_plan_names_all_images_and_writes_nothing(tmp_path, images):
    job = planned(tmp_path, images, workers=8)
    assert [item.name for item in job.items] == ["0", "1", "2"]
    assert job.size == 3  # no more processes than images
    assert not (tmp_path / "out").exists()


def test_patterns_that_the_shell_has_left_are_filled_in(tmp_path, images):
    assert len(planned(tmp_path, images / "[01].png").items) == 2
    with pytest.raises(UserError, match="which matches none"):
        planned(tmp_path, images / "*.tif")


def test_files_of_which_none_is_an_image_are_refused(tmp_path, images):
    (tmp_path / "my.py").write_text("pass")
    with pytest.raises(UserError, match=r"my\.py"):
        planned(tmp_path, tmp_path / "my.py")
    assert len(planned(tmp_path, tmp_path / "my.py", images).items) == 4
    unnamed = (images / "0.png").rename(tmp_path / "unnamed")
    assert len(planned(tmp_path, unnamed).items) == 1


@pytest.mark.parametrize("out", ["images", "images/predictions"])
def test_nothing_is_written_among_the_images(tmp_path, images, out):
    with pytest.raises(UserError, match="separate folders"):
        planned(tmp_path, images, out=tmp_path / out)


def test_no_image_is_replaced_even_by_force(tmp_path):
    file = tmp_path / "out" / "masks" / "a.png"
    file.parent.mkdir(parents=True)
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(file)
    with pytest.raises(UserError, match="separate folders"):
        planned(tmp_path, file, force=True)


def test_a_folder_of_other_things_is_refused_unless_forced(tmp_path, images):
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").touch()
    with pytest.raises(UserError, match="which holds other files"):
        planned(tmp_path, images)
    assert planned(tmp_path, images, force=True)
    (out / MARK).write_text(json.dumps({}))
    assert planned(tmp_path, images)
    with pytest.raises(UserError, match="which is a file"):
        planned(tmp_path, images, out=out / "thesis.tex")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "at least one worker"),
        ({"kind": "classes", "overlay": True}, "--overlay for a model"),
        ({"kind": "classes", "probabilities": True}, "the table holds the probability"),
        ({"kind": "other"}, "a model of images with masks or classes"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(tmp_path, images, options, message):
    with pytest.raises(UserError, match=message):
        planned(tmp_path, images, **options)
