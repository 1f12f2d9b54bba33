"""Where an exported model and a page of samples may be written."""

from pathlib import Path

import pytest

from scalestudy.app.follow import Listener
from scalestudy.features.predict.find_model import FoundModel
from scalestudy.features.predict.use_model import export_model, metadata_path, write_gallery
from scalestudy.store.model_record import ModelRecord
from scalestudy.store.run_folder import RunFolder
from scalestudy.util.errors import UserError

RECORD = ModelRecord(
    task="cnn", kind="classes", input_shape=(8, 8, 1), dtype="uint8", scale=1 / 255, class_names=["a", "b"]
)


@pytest.mark.parametrize(
    ("name", "form", "message"),
    [
        ("m.keras", "h5", "--format keras, savedmodel, onnx"),
        ("m.onnx", "keras", "a file that ends in .keras"),
        ("m", "onnx", "a file that ends in .onnx"),
        ("m.keras", "savedmodel", "a folder's name"),
        ("none/m.keras", "keras", "which does not exist"),
        ("there.keras", "keras", "replace them with --force"),
        ("full", "savedmodel", r"Name another with --out\."),
    ],
)
def test_a_wrong_place_or_form_is_refused_before_anything_is_started(tmp_path, name, form, message):
    (tmp_path / "there.keras").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    found = FoundModel(tmp_path / "model.keras", RECORD, "a model", RunFolder(tmp_path / "run"))
    with pytest.raises(UserError, match=message):
        export_model(found, tmp_path / name, form, Listener())


def test_the_models_own_file_is_not_replaced_even_by_force(tmp_path):
    model = tmp_path / "model.keras"
    model.write_bytes(b"weights")
    (tmp_path / "link.keras").symlink_to(model)
    run = FoundModel(model, RECORD, "a model", RunFolder(tmp_path))
    for out in (model, tmp_path / "link.keras", tmp_path / "best.keras"):
        with pytest.raises(UserError) as refused:
            export_model(run, out, "keras", Listener(), force=True)
        assert str(out) in refused.value.received
    assert model.read_bytes() == b"weights"


def test_two_forms_of_one_name_have_a_record_each(tmp_path):
    assert metadata_path(tmp_path / "m.keras").name == "m.keras.json"
    assert metadata_path(tmp_path / "m.onnx").name == "m.onnx.json"
    assert metadata_path(tmp_path / "m").name == "m.json"


def test_a_file_that_is_no_page_is_not_overwritten(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text('task = "cnn"')
    with pytest.raises(UserError, match=r"ends in \.html"):
        write_gallery(
            FoundModel(Path("model.keras"), RECORD, "model", RunFolder(tmp_path)), study, Listener()
        )
    assert study.read_text() == 'task = "cnn"'
