"""A prediction is checked before anything is written."""

import numpy as np
import pytest
from PIL import Image

from model_records import record
from scalestudy.features.predict.find_model import FoundModel
from scalestudy.features.predict.predict import MARK, Wanted, plan
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import UserError


@pytest.fixture
def planned(tmp_path):
    """Plan the prediction of three images, in `tmp_path/images`, or of those that are given."""
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(3):
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(folder / f"{number}.png")

    def call(*given, kind="masks", out="out", **more):
        model = FoundModel(tmp_path / "model.keras", record(kind), "a model", RunFolder(tmp_path))
        images = tuple(str(tmp_path / image) for image in given or ["images"])
        return plan(model, Wanted(images, tmp_path / out, device="cpu", **more))

    return call


def test_a_plan_names_all_images_and_writes_nothing(planned, tmp_path):
    assert [item.name for item in planned()["items"]] == ["0", "1", "2"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (["images/none.tif"], {}),
        (["images"], {"out": "images"}),
        (["images"], {"out": "images/predictions"}),
        (["images"], {"out": "full"}),
        (["images"], {"out": "full/notes.txt"}),
        (["images"], {"out": "earlier"}),
        (["full/masks/a.png"], {"out": "full", "force": True}),  # an image would be replaced
        (["images"], {"kind": "classes", "overlay": True}),
    ],
)
def test_what_would_harm_or_make_no_sense_is_refused(planned, tmp_path, given, options):
    (tmp_path / "full" / "masks").mkdir(parents=True)
    (tmp_path / "full" / "notes.txt").touch()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "full" / "masks" / "a.png")
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier" / MARK).write_text("{}")
    with pytest.raises(UserError):
        planned(*given, **options)
    assert planned(out="full", force=True) and planned(out="earlier", force=True)
