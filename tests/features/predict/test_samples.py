"""What a gallery refuses before anything is computed."""

from pathlib import Path

import pytest

from scalestudy.app.listener import Listener
from scalestudy.features.predict.find_model import FoundModel
from scalestudy.features.predict.samples import write_gallery
from scalestudy.study.model_record import ModelRecord
from scalestudy.util.errors import UserError

RECORD = ModelRecord(
    task="cnn", kind="classes", input_shape=(8, 8, 1), dtype="uint8", scale=1 / 255, class_names=["a"]
)


def test_a_file_that_is_no_page_is_not_overwritten(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text('task = "cnn"')
    with pytest.raises(UserError, match=r"ends in \.html"):
        write_gallery(FoundModel(Path("model.keras"), RECORD, "model"), study, Listener())
    assert study.read_text() == 'task = "cnn"'
