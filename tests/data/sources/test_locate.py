"""The folder of a source: paths that cannot be read end in a message, not in an OSError."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import tifffile

from data_settings import data_of
from scalestudy.data.images.tiles import stitch
from scalestudy.data.sources.locate import find_source, folder_of
from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError


def refusal_of(source, base=Path()):
    with pytest.raises(UserError) as refused:
        find_source(data_of(source), base=base)
    return refused.value


def test_the_folder_of_a_source_is_seen_through_links(mask_folder, tmp_path):
    root = mask_folder()
    (tmp_path / "linked").symlink_to(root)
    assert folder_of("linked", tmp_path) == folder_of(str(root), Path()) == root.resolve()
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


def test_a_folder_that_goes_while_it_is_listed(class_folder, monkeypatch):
    from scalestudy.data.sources import labels

    root, listed = class_folder({"a": 2, "b": 2}), labels.image_files

    def image_files(folder, left):
        if folder.name == "a":
            shutil.rmtree(root / "b")
        return listed(folder, left)

    monkeypatch.setattr(labels, "image_files", image_files)
    assert f"{root / 'b'}: No such file" in refusal_of(root).received


SIZES = ((40, 60), (33, 47), (12, 70))


def masks(index):
    return (np.random.default_rng(index + 9).random(SIZES[index]) > 0.6).astype(np.uint8)


def pixels(index):
    return np.random.default_rng(index).integers(0, 256, SIZES[index], np.uint8)


@pytest.fixture
def large(tmp_path, save):
    for index in range(len(SIZES)):
        save(tmp_path / "large" / "images" / f"{index}.png", pixels(index))
        save(tmp_path / "large" / "masks" / f"{index}.png", masks(index))
    return tmp_path / "large"


def by_image(prepared):
    """Return rows and tiles by image name and size."""
    found = {}
    for row, (name, size, tile) in enumerate(prepared.tiling.rows()):
        found.setdefault((name, size), []).append((row, tile))
    return found


def test_images_of_any_size_are_cut_into_tiles_that_hold_each_pixel_once(large, ready):
    prepared = ready(large, tile=(16, 24), overlap=4)
    assert prepared.input_shape == (16, 24, 1) and prepared.ignore == 255
    assert prepared.targets.shape == (prepared.count, 16, 24)
    images = by_image(prepared)
    assert [name for name, _ in images] == ["images/0.png", "images/1.png", "images/2.png"]
    for index, ((_, size), rows) in enumerate(images.items()):
        tiles = [tile for _, tile in rows]
        whole = stitch([prepared.inputs[row] for row, _ in rows], tiles, size)
        assert (whole[:, :, 0] == pixels(index)).all()
        assert (stitch([prepared.targets[row] for row, _ in rows], tiles, size) == masks(index)).all()
    counted = (prepared.targets[:] != 255).sum()
    assert counted == sum(height * width for height, width in SIZES)
    assert "3 images cut into" in prepared.remarks[0] and "overlap by 4 at least" in prepared.remarks[0]
    assert Prepared.open(prepared.path) == prepared


def test_splits_given_by_folders_stay(tmp_path, save, ready):
    for split, index in (("train", 0), ("train", 1), ("val", 2)):
        save(tmp_path / "s" / split / "images" / f"{index}.png", pixels(index))
        save(tmp_path / "s" / split / "masks" / f"{index}.png", masks(index))
    prepared = ready(tmp_path / "s", tile=(16, 24), overlap=0)
    start, stop = prepared.given["validation"]
    assert prepared.given["train"] == (0, start) and stop == prepared.count
    assert {prepared.groups[row] for row in range(start, stop)} == {"val/images/2.png"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_size": (8, 8)}, "Remove one of the two"),
        ({"overlap": 16}, "an overlap smaller than a tile"),
    ],
)
def test_tiles_that_cannot_be_are_refused(large, refusal, options, message):
    assert message in str(refusal(large, tile=(16, 24), **options))


def test_images_with_one_class_each_are_not_cut_into_tiles(class_folder, refusal):
    assert "to cut into tiles" in refusal(class_folder({"a": 2, "b": 2}), tile=(4, 4)).expected


@pytest.fixture
def stacks(tmp_path):
    for name, pages in (("a", 3), ("b", 2)):
        for kind in ("images", "masks"):
            (tmp_path / "stacks" / kind).mkdir(parents=True, exist_ok=True)
            numbers = np.arange(pages)[:, None, None] + np.zeros((pages, 6, 8))
            values = numbers * 10 + 5 if kind == "images" else (np.indices((pages, 6, 8))[1] > numbers)
            tifffile.imwrite(
                tmp_path / "stacks" / kind / f"{name}.tif", values.astype(np.uint8), photometric="minisblack"
            )
    return tmp_path / "stacks"


def test_pages_of_stacks_are_samples_of_one_group_each(stacks, ready):
    prepared = ready(stacks, stack="samples")
    assert prepared.inputs[:, 0, 0, 0].tolist() == [5, 15, 25, 5, 15]
    assert [int(mask.sum()) // 8 for mask in prepared.targets] == [5, 4, 3, 5, 4]
    assert prepared.names[0] == "images/a.tif, page 1"
    assert prepared.groups == ("images/a.tif",) * 3 + ("images/b.tif",) * 2
    assert "5 pages of 2 stacks are samples, each stack one group" in prepared.remarks


def test_pages_are_fitted_and_cut_like_images(stacks, ready):
    assert ready(stacks, stack="samples", image_size=(8, 8)).inputs.shape == (5, 8, 8, 1)
    tiled = ready(stacks, stack="samples", tile=(4, 4), overlap=0)
    assert tiled.count == 5 * 2 * 2
    assert tiled.inputs[4 : 4 + 4].max() == tiled.inputs[4:8].min() == 15
    assert tiled.tiling.images[1] == ("images/a.tif, page 2", (6, 8))


def test_stacks_are_refused_until_it_is_said_what_they_are(stacks, ready, refusal):
    error = refusal(stacks)
    assert "stack of 3 images" in error.received and 'stack = "samples"' in error.action
    first = ready(stacks, stack="first")
    assert first.inputs[:, 0, 0, 0].tolist() == [5, 5]
    assert first.remarks == ("2 images with further pages, which are left out: images/a.tif, images/b.tif",)


def test_a_stack_needs_a_page_of_a_mask_for_each_of_its_pages(stacks, refusal):
    tifffile.imwrite(stacks / "masks" / "a.tif", np.zeros((6, 8), np.uint8))
    received = refusal(stacks, stack="samples").received
    assert "1 page of 6 x 8 for " in received and "a.tif of 3 pages of 6 x 8" in received


def test_a_stack_of_a_class_gives_samples_of_that_class(tmp_path, ready):
    for name in ("a", "b"):
        (tmp_path / "c" / name).mkdir(parents=True)
        stack = np.zeros((2, 4, 4), np.uint8)
        tifffile.imwrite(tmp_path / "c" / name / "s.tif", stack, photometric="minisblack")
    prepared = ready(tmp_path / "c", stack="samples")
    assert prepared.targets[:].tolist() == [0, 0, 1, 1]
    assert prepared.groups == ("a/s.tif", "a/s.tif", "b/s.tif", "b/s.tif")
    assert ready(tmp_path / "c", stack="channels").input_shape == (4, 4, 2)
