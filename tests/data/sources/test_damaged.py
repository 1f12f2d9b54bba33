"""Damaged files in a set of a thousand: all are found in one pass, or skipped."""

import io
import json
import random

import numpy as np
import pytest
from PIL import Image

from data_settings import data_of
from scalestudy.data.store.preparation import find_prepared, prepare
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


def test_all_are_found_with_their_reasons(thousand, tmp_path):
    root, spoilt = thousand
    with pytest.raises(UserError) as refused:
        prepare(data_of(root, cache=tmp_path / "cache"))
    found = {error.path: error.reason for error in refused.value.errors}
    assert found.keys() == spoilt.keys()
    for path, reason in spoilt.items():
        assert found[path] in ({"truncated", "broken"} if "broken" in reason else {reason}) | {
            # For some formats the remaining bytes do not identify the format.
            "no image inside of a format that is read"
        }
    assert refused.value.received.startswith("30 that are refused: ")
    assert "an empty file (" in refused.value.received
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
        *("s0.png", "s2.png", "s3.png"),
        *("s1.png", "s2.png"),
        *("s0.png", "s1.png"),
    ]
    assert [each.names for each in made.left_out] == [
        ("train/images/s1.png",),
        ("val/masks/s0.png",),
    ]
    assert made.inputs[:, 0, 0, 0].tolist() == [0, 20, 30, 10, 20, 0, 10]


def test_a_class_or_a_split_without_a_whole_file_is_refused(class_folder, mask_folder, refusal):
    root = class_folder({"a": 3, "b": 2, "c": 1})
    for file in (root / "b").iterdir():
        file.write_bytes(b"")
    expected = "2 of 6 samples damaged, among them all of class b"
    assert refusal(root, skip_bad=True).received == expected
    root = mask_folder(3, at="two/train").parent
    mask_folder(1, at="two/val")
    (root / "val" / "masks" / "s0.png").write_text("no image")
    assert "among them all of split validation" in refusal(root, skip_bad=True).received


def test_damage_that_only_decoding_shows_is_listed_with_wrong_masks(tmp_path, refusal, save):
    root = tmp_path / "noise"
    for i in range(4):
        save(root / "images" / f"{i}.jpg", DRAW.integers(0, 256, (60, 60), dtype=np.uint8))
        save(root / "masks" / f"{i}.png", np.arange(3600, dtype=np.uint8).reshape(60, 60) // 64 % 2 * 255)
    content = (root / "images" / "1.jpg").read_bytes()
    (root / "images" / "1.jpg").write_bytes(content[: len(content) // 2])
    save(root / "masks" / "2.png", np.array([[0, 128, 255] * 20] * 60, np.uint8))
    received = refusal(root).received
    assert "1.jpg" in received and "2.png with values 0, 128, 255" in received
