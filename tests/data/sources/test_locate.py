"""The folder of a source: paths that cannot be read end in a message, not in an OSError."""

import os
from pathlib import Path

import numpy as np
import pytest

from data_settings import data_of
from scalestudy.data.images.tiles import stitch, tiles_of
from scalestudy.data.sources.locate import find_source
from scalestudy.data.sources.paths import folder_of
from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError


def refusal_of(source, base=Path()):
    with pytest.raises(UserError) as refused:
        find_source(data_of(source), base=base)
    return refused.value


def test_the_folder_of_a_source_is_seen_through_links(mask_folder, tmp_path):
    root = mask_folder()
    (tmp_path / "linked").symlink_to(root)
    assert (
        folder_of("linked", tmp_path) == folder_of(str(root), Path()) == root.resolve()
    )
    assert folder_of("indents:8", tmp_path) is None
    assert folder_of("none.npz", tmp_path) is None
    (tmp_path / "itself").symlink_to("itself")
    assert "does not exist" in refusal_of("itself", tmp_path).received
    assert folder_of("itself", tmp_path) is None


def test_a_folder_that_may_not_be_entered(mask_folder, monkeypatch):
    root = mask_folder()
    if os.geteuid() == 0:  # root can enter every folder

        def denied(self):
            raise PermissionError(13, "Permission denied", str(self))

        monkeypatch.setattr(Path, "exists", denied)
    root.parent.chmod(0)
    try:
        assert "ermission denied" in refusal_of(root).received
    finally:
        root.parent.chmod(0o755)


SIZES = ((40, 60), (33, 47), (12, 70))


def masks(index):
    return (np.random.default_rng(index + 9).random(SIZES[index]) > 0.6).astype(
        np.uint8
    )


def pixels(index):
    return np.random.default_rng(index).integers(0, 256, SIZES[index], np.uint8)


@pytest.fixture
def large(tmp_path, save):
    for index in range(len(SIZES)):
        save(tmp_path / "large" / "images" / f"{index}.png", pixels(index))
        save(tmp_path / "large" / "masks" / f"{index}.png", masks(index))
    return tmp_path / "large"


def test_images_of_any_size_are_cut_into_tiles_that_hold_each_pixel_once(large, ready):
    prepared = ready(large, tile=(16, 24))
    assert prepared.input_shape == (16, 24, 1) and prepared.ignore == 255
    assert prepared.targets.shape == (prepared.count, 16, 24)
    for index, size in enumerate(SIZES):
        tiles = tiles_of(size, (16, 24), 2)
        rows = [
            row
            for row, name in enumerate(prepared.names)
            if name.startswith(f"images/{index}.png at ")
        ]
        whole = stitch([prepared.inputs[row] for row in rows], tiles, size)
        assert (whole[:, :, 0] == pixels(index)).all()
        assert (
            stitch([prepared.targets[row] for row in rows], tiles, size) == masks(index)
        ).all()
    counted = (prepared.targets[:] != 255).sum()
    assert counted == sum(height * width for height, width in SIZES)
    assert (
        "3 images cut into" in prepared.remarks[0]
        and "overlap by 2 at least" in prepared.remarks[0]
    )
    assert Prepared.open(prepared.path) == prepared


def test_splits_given_by_folders_stay(tmp_path, save, ready):
    for split, index in (("train", 0), ("train", 1), ("val", 2)):
        save(tmp_path / "s" / split / "images" / f"{index}.png", pixels(index))
        save(tmp_path / "s" / split / "masks" / f"{index}.png", masks(index))
    prepared = ready(tmp_path / "s", tile=(16, 24))
    start, stop = prepared.given["validation"]
    assert prepared.given["train"] == (0, start) and stop == prepared.count
    assert {prepared.groups[row] for row in range(start, stop)} == {"val/images/2.png"}


def test_tiles_that_cannot_be_are_refused(large, class_folder, refusal):
    assert (
        "Remove one of the two"
        in refusal(large, tile=(16, 24), image_size=(8, 8)).action
    )
    assert (
        "to cut into tiles"
        in refusal(class_folder({"a": 2, "b": 2}), tile=(4, 4)).expected
    )
