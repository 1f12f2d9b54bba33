"""Damaged files in a set of a thousand: all are found in one pass, or skipped."""

import io
import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from data_settings import data_of
from scalestudy.data.images.open import DamagedFile
from scalestudy.data.sources.faults import sift
from scalestudy.data.sources.layouts.base import ListedSample, Listing
from scalestudy.data.store.prepare import find_prepared, prepare
from scalestudy.data.store.prepared import Prepared
from scalestudy.util.errors import UserError

pytestmark = pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
DRAW = np.random.default_rng(0)
FORMS = {"png": "PNG", "jpg": "JPEG", "tif": "TIFF", "bmp": "BMP", "gif": "GIF", "webp": "WEBP"}


def encoded(form: str, **options) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(DRAW.integers(0, 256, (16, 12), dtype=np.uint8)).save(buffer, form, **options)
    return buffer.getvalue()


GOOD = {suffix: encoded(form, lossless=True) for suffix, form in FORMS.items()}
SPOIL = {
    "an empty file": lambda good, draw: b"",
    "truncated or broken": lambda good, draw: good[: draw.randrange(len(good) // 5, len(good) * 3 // 5)],
    "no image inside of a format that is read": lambda good, draw: b"<html>404 not found</html>" * 9,
}


@pytest.fixture
def thousand(tmp_path):
    """A thousand images of three classes, 30 of them damaged: return the printed reason for each of these."""
    draw = random.Random(7)
    files = []
    for i in range(1000):
        suffix = draw.choice(list(FORMS))
        file = tmp_path / "set" / "abc"[i % 3] / f"{i:04}.{suffix}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(GOOD[suffix])
        files.append(file)
    spoilt = {}
    for file in draw.sample(files, 30):
        spoilt[file] = draw.choice(list(SPOIL))
        file.write_bytes(SPOIL[spoilt[file]](GOOD[file.suffix[1:]], draw))
    # Not damaged: a whole image with the extension of another format. Its content counts.
    misnamed = next(file for file in files if file not in spoilt and file.suffix == ".png")
    misnamed.write_bytes(GOOD["jpg"])
    return tmp_path / "set", spoilt


def test_all_are_found_and_listed_in_one_file(thousand, tmp_path):
    root, spoilt = thousand
    with pytest.raises(UserError) as refused:
        prepare(data_of(root, cache=tmp_path / "cache"))
    (file,) = (tmp_path / "cache").glob("*.refused.txt")
    lines = dict(reversed(line.split(": ")[0].split("\t")) for line in file.read_text().splitlines())
    assert sorted(lines) == sorted(map(str, spoilt))
    for path, reason in spoilt.items():
        assert lines[str(path)] in ({"truncated", "broken"} if "broken" in reason else {reason}) | {
            # For some formats the remaining bytes do not identify the format.
            "no image inside of a format that is read"
        }
    assert refused.value.received.startswith("30 that are refused: ")
    assert (
        "an empty file (" in refused.value.received
        and f"all 30 are listed in {file}" in refused.value.received
    )
    assert "--skip-bad" in refused.value.action
    assert not list((tmp_path / "cache").glob("*/"))


@pytest.mark.slow
def test_skip_bad_goes_on_without_them_and_records_which(thousand, tmp_path):
    root, spoilt = thousand
    data = data_of(root, cache=tmp_path / "cache", skip_bad=True)
    made = prepare(data)
    assert made.count == 970
    assert not {root / name for name in made.names} & set(spoilt)
    recorded = (made.path / "damaged.txt").read_text().splitlines()
    assert sorted(line.split("\t")[1].split(": ")[0] for line in recorded) == sorted(map(str, spoilt))
    told = {each.reason: each.count for each in made.left_out}
    assert sum(told.values()) == 30
    assert told["damaged: an empty file"] == sum(reason == "an empty file" for reason in spoilt.values())
    # Printed again each time although nothing is decoded, and recorded in the manifest.
    for again in (prepare(data, on_progress=lambda *_: 1 / 0), find_prepared(data), Prepared.open(made.path)):
        assert again == made
    assert len(json.loads((made.path / "meta.json").read_text())["left_out"]) == len(told)
    # Without skip_bad it is another set, which is not prepared.
    assert find_prepared(data_of(root, cache=tmp_path / "cache")) is None


def test_of_a_pair_both_go_and_the_splits_stay_in_their_rows(mask_folder, ready):
    for split, count in (("train", 4), ("val", 3), ("test", 2)):
        root = mask_folder(count, at=f"set/{split}").parent
    (root / "train" / "images" / "s1.png").write_bytes(b"")
    (root / "val" / "masks" / "s0.png").write_bytes((root / "val" / "masks" / "s0.png").read_bytes()[:40])
    made = ready(root, skip_bad=True)
    assert made.given == {"train": (0, 3), "validation": (3, 5), "test": (5, 7)}
    assert [name.rsplit("/", 1)[1] for name in made.names] == [
        *("s0.png", "s2.png", "s3.png"), *("s1.png", "s2.png"), *("s0.png", "s1.png"),
    ]  # fmt: skip
    assert [each.names for each in made.left_out] == [
        ("train/images/s1.png",),
        ("val/masks/s0.png",),
    ]
    assert made.inputs[:, 0, 0, 0].tolist() == [0, 20, 30, 10, 20, 0, 10]


def test_an_image_goes_with_the_mask_of_one_of_its_objects(tmp_path, ready, save):
    root = tmp_path / "objects"
    for name in "abcd":
        save(root / name / "images" / f"{name}.png", np.full((8, 8), ord(name), np.uint8))
        for i in range(2):
            save(root / name / "masks" / f"{i}.png", np.eye(8, k=i, dtype=np.uint8) * 255)
    (root / "b" / "masks" / "1.png").write_bytes(b"")
    made = ready(root, skip_bad=True)
    assert made.inputs[:, 0, 0, 0].tolist() == [ord(name) for name in "acd"]
    assert [str(each) for each in made.left_out] == ["1 left out (damaged: an empty file): b/masks/1.png"]


def test_annotations_are_no_image_to_be_damaged(tmp_path, ready, save):
    root = tmp_path / "coco"
    for i in range(4):
        save(root / "images" / f"{i}.png", np.full((8, 8), i, np.uint8))
    square = [[1, 1, 5, 1, 5, 5, 1, 5]]
    annotations = {
        "images": [{"id": i, "file_name": f"{i}.png", "width": 8, "height": 8} for i in range(4)],
        "categories": [{"id": 1, "name": "cell"}],
        "annotations": [
            {"id": i, "image_id": i, "category_id": 1, "segmentation": square, "iscrowd": 0, "area": 16}
            for i in range(4)
        ],
    }
    (root / "annotations.json").write_text(json.dumps(annotations))
    (root / "images" / "2.png").write_bytes(b"")
    made = ready(root, skip_bad=True)
    assert made.inputs[:, 0, 0, 0].tolist() == [0, 1, 3]
    assert (made.targets.reshape(3, -1).sum(axis=1) > 0).all()


def test_a_class_or_a_split_without_a_whole_file_is_refused(class_folder, mask_folder, ready):
    root = class_folder({"a": 3, "b": 2, "c": 1})
    for file in (root / "b").iterdir():
        file.write_bytes(b"")
    with pytest.raises(UserError, match="2 of 6 samples damaged, among them all of class b"):
        ready(root, skip_bad=True)
    root = mask_folder(3, at="two/train").parent
    mask_folder(1, at="two/val")
    (root / "val" / "masks" / "s0.png").write_text("no image")
    with pytest.raises(UserError, match="among them all of split validation"):
        ready(root, skip_bad=True)


def test_damage_that_only_decoding_shows_is_listed_with_wrong_masks(tmp_path, ready, save):
    root = tmp_path / "noise"
    for i in range(4):
        save(root / "images" / f"{i}.jpg", DRAW.integers(0, 256, (60, 60), dtype=np.uint8))
        save(root / "masks" / f"{i}.png", np.arange(3600, dtype=np.uint8).reshape(60, 60) // 64 % 2 * 255)
    content = (root / "images" / "1.jpg").read_bytes()
    (root / "images" / "1.jpg").write_bytes(content[: len(content) // 2])
    save(root / "masks" / "2.png", np.array([[0, 128, 255] * 20] * 60, np.uint8))
    with pytest.raises(UserError) as refused:
        ready(root)
    assert "1.jpg" in refused.value.received
    assert "2.png with values 0, 128, 255" in refused.value.received


def test_what_skip_bad_does_not_forgive_is_refused(mask_folder, ready, save):
    root = mask_folder(4)
    save(root / "masks" / "s2.png", np.zeros((5, 8), np.uint8))
    with pytest.raises(UserError, match="a mask as large as its image"):
        ready(root, skip_bad=True)


def read(name: Path) -> None:
    """Fail as a decoder does, for names with an "x"."""
    if "x" in name.stem:
        raise DamagedFile(name, "broken", "it is")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=3))
def test_rows_of_splits_follow_what_stays(damaged):
    samples, ranges = [], {}
    for split, of_split in zip(("train", "validation", "test"), damaged, strict=False):
        start = len(samples)
        samples += [Path(f"{split} {i}{'x' * bad}.png") for i, bad in enumerate(of_split)]
        ranges[split] = (start, len(samples))
    listing = Listing([ListedSample(image, "class") for image in samples], "", ["class"], given=ranges)
    if any(all(each) for each in damaged):
        with pytest.raises(UserError, match="all of split"):
            sift(listing, read)
        return
    sifted, files = sift(listing, read)
    for split, (start, stop) in sifted.given.items():
        kept = [sample.image for sample in sifted.samples[start:stop]]
        first, last = ranges[split]
        assert kept == [image for image in samples[first:last] if "x" not in image.stem]
    assert len(files) == sum(map(sum, damaged))
