"""A set before it is trained on: what is understood, counted and found in sets with known mistakes."""

import numpy as np
import pytest
from PIL import Image

from data_settings import data_of
from scalestudy.data.store.prepare import prepare
from scalestudy.errors import UserError
from scalestudy.features.inspect import dataset as module
from scalestudy.features.inspect.inspection import show_data


def scene(seed, size=(48, 64)):
    small = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), np.uint8)
    return Image.fromarray(small).resize(size[::-1], Image.Resampling.BICUBIC)


def write(path, picture, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, **options)


@pytest.fixture(scope="module")
def flawed(tmp_path_factory):
    """Classes with one copy across splits, one near copy, one label that contradicts, one black image, ..."""
    root = tmp_path_factory.mktemp("flawed")
    for number in range(12):
        write(root / "train" / "a" / f"{number}.png", scene(number))
        write(root / "val" / "a" / f"{number}.png", scene(100 + number))
    for number in range(3):
        write(root / "train" / "b" / f"{number}.png", scene(200 + number))
        write(root / "val" / "b" / f"{number}.png", scene(300 + number))
    write(root / "val" / "a" / "copy.png", scene(3))
    write(root / "val" / "a" / "near.jpg", scene(4, (96, 128)), quality=60)
    write(root / "train" / "b" / "torn.png", scene(5))
    write(root / "train" / "a" / "again.png", scene(6))
    write(root / "train" / "a" / "black.png", Image.new("RGB", (64, 48)))
    write(root / "train" / "a" / "thumb.png", scene(400, (6, 8)))
    return root


@pytest.fixture(scope="module")
def shown(flawed):
    return show_data(data_of(flawed))


def finding(shown, words):
    (found,) = [each for each in shown.findings if words in each.title]
    return found


def test_copies_across_splits_come_first_and_name_both(shown):
    found = shown.findings[0]
    assert found.serious and found.title == "1 image in more than one split, pixel for pixel"
    assert found.names == ("train/a/3.png (train) = val/a/copy.png (validation)",)
    assert "remove the copies" in found.action


def test_copies_with_another_class_are_found(shown):
    found = finding(shown, "with different classes")
    assert found.serious and found.names == ("train/a/5.png (train) = train/b/torn.png (train)",)


def test_copies_within_a_split_are_found(shown):
    found = finding(shown, "more than once in one split")
    assert found.names == ("train/a/6.png (train) = train/a/again.png (train)",)


def test_near_copies_across_splits_are_found_and_copies_are_none(shown):
    found = finding(shown, "nearly the same in different splits")
    assert found.names == ("train/a/4.png (train) ~ val/a/near.jpg (validation)",)
    assert not any("nearly the same in one split" in each.title for each in shown.findings)


def test_images_of_one_value_and_of_unusual_sizes_are_found(shown):
    assert finding(shown, "of a single value").names == ("train/a/black.png (train)",)
    assert finding(shown, "far from the usual 48 x 64").names == ("train/a/thumb.png (6 x 8)",)


def test_sizes_that_differ_are_told_until_it_is_said_how_they_are_fitted(flawed, shown):
    assert "[48, 64]" in finding(shown, "3 sizes of images, while a model needs one").action
    fitted = show_data(data_of(flawed, image_size=(32, 32)))
    assert not any("a model needs one" in each.title for each in fitted.findings)


def test_small_classes_are_found_and_counted_by_split(shown):
    assert [(each.name, each.samples, each.splits) for each in shown.classes] == [
        ("a", 29, {"train": 15, "validation": 14}),
        ("b", 7, {"train": 4, "validation": 3}),
    ]
    assert finding(shown, "fewer than 10 samples").names == ("b (7)",)


def test_what_was_understood_is_said(shown):
    assert shown.count == shown.seen == 36
    assert shown.splits == {"train": 19, "validation": 17}
    assert shown.facts["Holds"] == "images with one class each"
    assert shown.facts["Files"] == "8-bit colour (36)"
    assert shown.sizes[0] == ((48, 64), 34, "train/a/0.png")
    assert "the source, not prepared yet: all 36 images" in shown.basis
    assert len(shown.pictures) == 8 and shown.pictures[0].about == "48 x 64, a"


def test_of_a_large_source_some_images_are_drawn_unless_all_are_asked_for(flawed, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 10)
    drawn = show_data(data_of(flawed))
    assert (drawn.seen, drawn.count) == (10, 36)
    assert "10 of 36 images, drawn at random; --all looks at each" in drawn.basis
    assert sum(each.samples for each in drawn.classes) == 10
    assert drawn.splits == {"train": 19, "validation": 17}
    assert show_data(data_of(flawed), everything=True).seen == 36


def test_of_a_prepared_set_every_sample_is_seen_as_it_is_trained_on(flawed, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 10)
    data = data_of(flawed, image_size=(32, 32), cache=tmp_path)
    prepare(data)
    shown = show_data(data)
    assert shown.seen == 36 and "as prepared in" in shown.basis
    assert shown.facts["Fitted"] == "into 32 x 32 pixels, aspect kept, padded"
    assert "36 x 32 x 32 x 3 uint8" in shown.facts["Stored as"]
    assert shown.sizes[0] == ((48, 64), 34, "train/a/0.png")
    assert shown.findings[0].names == ("train/a/3.png (train) = val/a/copy.png (validation)",)
    assert shown.splits == {"train": 19, "validation": 17}


@pytest.fixture
def masks(tmp_path):
    root = tmp_path / "masks"
    for number in range(24):
        mask = np.zeros((48, 64), np.uint8)
        mask[:24, : 0 if number == 7 else 32] = 1
        mask[0, 0] = 2 if number in (3, 4) else mask[0, 0]
        write(root / "images" / f"{number:02}.png", scene(number).convert("L"))
        write(root / "masks" / f"{number:02}.png", Image.fromarray(mask))
    return root


def test_of_masks_the_shares_of_pixels_empty_ones_and_rare_classes_are_told(masks):
    shown = show_data(data_of(masks), samples=3)
    background, one, two = shown.classes
    labelled = 23 * 24 * 32 - 2
    assert (one.samples, two.samples) == (23, 2)
    assert one.share == pytest.approx(labelled / (24 * 48 * 64)) and background.share > 0.7
    assert finding(shown, "without any labelled pixel").names == ("images/07.png",)
    assert "saved empty" in finding(shown, "without any labelled pixel").action
    assert finding(shown, "less than 1% of the pixels").names == (f"2 ({two.share:.2%})",)
    assert finding(shown, "in the masks of fewer than 10 samples").names == ("2 (2)",)
    assert all(each.laid.shape == each.image.shape for each in shown.pictures)
    assert (shown.pictures[0].laid != shown.pictures[0].image).any()


def test_tiles_of_one_image_are_no_copies_of_each_other(masks, tmp_path):
    data = data_of(masks, tile=(32, 32), overlap=8, cache=tmp_path / "c")
    prepare(data)
    shown = show_data(data)
    assert shown.facts["Cut"] == "into tiles of 32 x 32 pixels"
    assert shown.facts["Groups"] == "24, none of which a split parts"
    assert "24 images cut into" in shown.facts["Told"]
    for each in shown.findings:
        assert not each.serious, each


def test_uneven_classes_are_told_with_how_uneven(tmp_path):
    for name, count in (("few", 2), ("many", 30)):
        for number in range(count):
            write(tmp_path / "u" / name / f"{number}.png", scene(1000 * count + number))
    found = finding(show_data(data_of(tmp_path / "u")), "the largest class has 15 times")
    assert found.names == ("few (2)", "many (30)") and "balanced accuracy" in found.action


def test_a_damaged_image_is_named(flawed, tmp_path):
    root = tmp_path / "d"
    for name in ("a", "b"):
        for number in range(2):
            write(root / name / f"{number}.png", scene(number))
    (root / "a" / "1.png").write_bytes(b"")
    with pytest.raises(UserError, match=r"a/1\.png: an empty file"):
        show_data(data_of(root))


def test_the_wrong_kind_is_refused(flawed):
    with pytest.raises(UserError, match="one class each"):
        show_data(data_of(flawed), "masks")


def test_how_far_it_is_is_told(flawed):
    from contextlib import contextmanager

    from scalestudy.conduct.listener import Listener

    told = []

    class Hearing(Listener):
        @contextmanager
        def looking(self, what):
            yield lambda done, total: told.append((what.endswith("beside each"), done, total))

    show_data(data_of(flawed), listener=Hearing())
    assert (False, 36, 36) in told and told[-1][0] and told[-1][1] == told[-1][2]


def test_all_but_pictures_is_json(shown):
    import json

    found = json.loads(json.dumps(shown.as_json()))
    assert found["count"] == 36 and found["sizes"][0] == {
        "height": 48, "width": 64, "images": 34, "first": "train/a/0.png",
    }  # fmt: skip
    assert found["findings"][0]["serious"] and found["classes"][1]["splits"] == {"train": 4, "validation": 3}
    assert "pictures" not in found


def test_what_a_task_reads_itself_is_refused_prepared_or_not(tmp_path):
    file = tmp_path / "t.py"
    file.write_text("def read(data):\n    return [[1.0], [2.0], [3.0]], [0, 1, 0]\n")
    data = data_of(file, read=file, cache=tmp_path / "cache")
    for received in ("not prepared yet", "of a task's own reading"):
        with pytest.raises(UserError, match="a set of images to show") as refused:
            show_data(data)
        assert received in refused.value.received
        prepare(data)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({}, "as the source brings it"),
        ({"validation": 0.25}, "made from the seed"),
        ({"folds": 3, "fold": 1}, "fold 1 of 3, made from the seed"),
    ],
)
def test_a_split_that_is_asked_for_is_not_told_as_the_sources(flawed, tmp_path, keys, told):
    data = data_of(flawed, image_size=(8, 8), cache=tmp_path / "cache", **keys)
    assert looked_at(data).startswith(told)
    prepare(data)
    assert looked_at(data).startswith(told)


def looked_at(data):
    return show_data(data, samples=0).facts["Split"]


def test_a_folder_train_alone_brings_no_split(tmp_path):
    for name in ("a/0", "a/1", "b/0", "b/1", "b/2"):
        write(tmp_path / "set" / "train" / f"{name}.png", scene(len(name)))
    assert looked_at(data_of(tmp_path / "set", cache=tmp_path / "cache")) == "made from the seed"
