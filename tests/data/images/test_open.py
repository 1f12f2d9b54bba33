"""Images that cannot be opened: the message names the fault and what to do."""

import os

import numpy as np
import pytest
from PIL import Image

from scalestudy.data.images.decode import read_pixels
from scalestudy.data.images.open import DamagedFile, opened
from scalestudy.util.errors import UserError


def refusal(path):
    with pytest.raises(UserError) as refused, opened(path) as picture:
        picture.load()
    assert str(path) in refused.value.received
    return refused.value


def test_damage_has_a_kind_and_the_decoders_words(tmp_path, save):
    path = save(tmp_path / "a.png", np.arange(10_000, dtype=np.uint16).reshape(100, 100))
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DamagedFile) as refused:
        read_pixels(path)
    assert (refused.value.path, refused.value.reason) == (path, "truncated")
    assert "--skip-bad" in refused.value.action


def test_a_file_that_has_gone(tmp_path):
    assert str(tmp_path / "a.png") in refusal(tmp_path / "a.png").received


def test_a_file_that_may_not_be_read(tmp_path, save, monkeypatch):
    path = save(tmp_path / "a.png", np.zeros((2, 3), np.uint8))
    if os.geteuid() == 0:  # root can read every file

        def denied(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Image, "open", denied)
    path.chmod(0)
    assert "permissions" in refusal(path).action


def test_an_image_beyond_what_is_decoded(tmp_path, save, monkeypatch):
    path = save(tmp_path / "a.png", np.zeros((20, 30), np.uint8))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 250)
    error = refusal(path)
    assert "at most 500 pixels" in error.expected
    assert "tiles" in error.action
