"""Skipped files are listed each time and recorded in the manifest of the prepared set."""

import numpy as np

from data_settings import data_of
from scalestudy.data.sources.files import BESIDE, SYSTEM, LeftOut
from scalestudy.data.store.prepare import look
from scalestudy.data.store.prepared import Prepared

DOT = np.zeros((1, 1), np.uint8)


def test_what_lies_beside_images_and_masks_is_told(mask_folder, ready, save):
    root = mask_folder()
    (root / "readme.txt").touch()
    save(root / "stray.png", DOT)
    save(root / "overlays" / "s0.png", DOT)
    (root / ".git").mkdir()
    told = (LeftOut(SYSTEM, 1, (".git/",)), LeftOut(BESIDE, 3, ("overlays/", "readme.txt", "stray.png")))
    assert look(data_of(root)) == told
    prepared = ready(root)
    assert (prepared.count, prepared.left_out) == (4, told)
    assert Prepared.open(prepared.path).left_out == told


def test_what_lies_beside_classes_and_splits_is_told(class_folder, ready, save):
    class_folder({"a": 2, "b": 3}, at="set/train")
    root = class_folder({"b": 2}, at="set/val").parent
    save(root / "extra" / "0.png", DOT)
    save(root / "train" / "stray.png", DOT)
    (left,) = ready(root).left_out
    assert left == LeftOut(BESIDE, 2, ("extra/", "train/stray.png"))
