"""What is refused before a model's process starts: other data, and places where nothing may be written."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from model_records import record
from scalestudy.app.follow import Listener
from scalestudy.features.model.evaluate import refuse_other_data, write_gallery
from scalestudy.features.model.export_model import export_trained_model, metadata_path
from scalestudy.features.model.find_model import FoundModel
from scalestudy.features.model.predict import MARK, Wanted, plan_prediction
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import UserError


def found(folder: Path, kind="classes") -> FoundModel:
    return FoundModel(
        folder / "model.keras", record(kind), "a model", RunFolder(folder)
    )


def a_set(*names, kind="classes", scale=1 / 255):
    return SimpleNamespace(kind=kind, class_names=names, scale=scale)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (a_set("a", "b", "d"), "other with a, b, d"),
        (a_set("c", "a", "b"), "other with c, a, b"),
        (a_set("a", "b", "c", kind="masks"), "of the kind masks"),
        (a_set("a", "b", "c", scale=1.0), "other, multiplied by 1"),
    ],
)
def test_other_classes_kinds_and_numbers_are_refused(other, message):
    refuse_other_data(record("classes"), a_set("a", "b", "c"), "same")
    with pytest.raises(UserError, match=message):
        refuse_other_data(record("classes"), other, "other")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("m.h5", "ends in .keras or nothing"),
        ("m.pt2", "or .onnx"),
        ("none/m.keras", "which does not exist"),
        ("there.keras", "replace them with --force"),
        ("full", r"Name another with --out\."),
        ("linked.keras", "not a link"),
        ("beside.keras", "not a link"),
    ],
)
def test_an_export_to_a_wrong_place_or_form_is_refused(tmp_path, name, message):
    (tmp_path / "there.keras").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    (tmp_path / "linked.keras").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "beside.keras.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=message):
        export_trained_model(found(tmp_path / "run"), tmp_path / name, Listener())


def test_the_models_own_file_is_not_replaced_even_by_force(tmp_path):
    model = tmp_path / "model.keras"
    model.write_bytes(b"weights")
    (tmp_path / "link.keras").symlink_to(model)
    for out in (model, tmp_path / "link.keras", tmp_path / "best.keras"):
        with pytest.raises(UserError) as refused:
            export_trained_model(found(tmp_path), out, Listener(), force=True)
        assert str(out) in refused.value.received
    assert model.read_bytes() == b"weights"


def test_two_forms_of_one_name_have_a_record_each():
    assert [metadata_path(Path(name)).name for name in ("m.keras", "m")] == [
        "m.keras.json",
        "m.json",
    ]


def test_a_file_that_is_no_page_is_not_overwritten_by_samples(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text('task = "cnn"')
    with pytest.raises(UserError, match=r"ends in \.html"):
        write_gallery(found(tmp_path), study, Listener())
    assert study.read_text() == 'task = "cnn"'


@pytest.fixture
def planned(tmp_path):
    """Plan the prediction of three images, in `tmp_path/images`, or of those that are given."""
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(3):
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(folder / f"{number}.png")

    def call(*given, kind="masks", out="out", **more):
        images = tuple(str(tmp_path / image) for image in given or ["images"])
        return plan_prediction(
            found(tmp_path, kind), Wanted(images, tmp_path / out, device="cpu", **more)
        )

    return call


def test_a_prediction_names_all_images_and_writes_nothing_before(planned, tmp_path):
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
        (
            ["full/masks/a.png"],
            {"out": "full", "force": True},
        ),  # an image would be replaced
        (["images"], {"kind": "classes", "overlay": True}),
    ],
)
def test_a_prediction_that_would_harm_or_make_no_sense_is_refused(
    planned, tmp_path, given, options
):
    (tmp_path / "full" / "masks").mkdir(parents=True)
    (tmp_path / "full" / "notes.txt").touch()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(
        tmp_path / "full" / "masks" / "a.png"
    )
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier" / MARK).write_text("{}")
    with pytest.raises(UserError):
        planned(*given, **options)
    assert planned(out="full", force=True) and planned(out="earlier", force=True)
