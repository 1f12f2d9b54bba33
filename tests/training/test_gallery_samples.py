"""Which samples a gallery shows, and how it describes them."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from data_settings import data_of
from model_records import Bright, record
from scalestudy.data.store.preparation import prepare
from scalestudy.training.gallery import choose, gallery_of

NONE = np.full(9, np.nan)


def roles(chosen):
    return {role: each.place for each in chosen for role in each.roles}


def test_best_median_and_worst_are_by_loss():
    losses = np.array([5.0, 1, 9, 3, 7, 2, 8, 4, 6])
    found = roles(choose(losses, NONE, "iou", "higher", 1))
    assert found == {"best by loss": 1, "median by loss": 0, "worst by loss": 2}


@pytest.mark.parametrize(("better", "best"), [("higher", 2), ("lower", 0)])
def test_and_by_the_quality_in_the_way_that_it_is_better(better, best):
    found = roles(choose(np.arange(3.0), np.array([0.1, 0.5, 0.9]), "iou", better, 1))
    assert found["best by iou"] == best
    assert found["worst by iou"] == 2 - best


def test_samples_of_one_quality_are_told_apart_by_their_loss():
    found = roles(choose(np.array([3.0, 1, 2, 4]), np.array([1.0, 1, 0, 0]), "accuracy", "higher", 1))
    assert found["best by accuracy"] == 1
    assert found["worst by accuracy"] == 3


def test_what_is_not_finite_is_worst():
    found = roles(choose(np.array([1.0, np.nan, 2]), np.array([0.2, 0.3, np.nan]), "iou", "higher", 1))
    assert found["worst by loss"] == 1
    assert found["worst by iou"] == 2


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_sample_is_shown_once_with_all_its_roles_and_few_samples_are_enough(count):
    chosen = choose(np.array([2.0, 1]), np.array([0.5, 0.9]), "iou", "higher", count)
    assert sorted(each.place for each in chosen) == [0, 1]
    assert chosen[0].place == 1


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Eight images with masks of their bright pixels; the last mask is wrong."""
    root = tmp_path_factory.mktemp("bright")
    random = np.random.default_rng(0)
    for folder in ("images", "masks"):
        (root / "set" / folder).mkdir(parents=True)
    for number in range(8):
        image = random.choice([20, 230], (16, 16)).astype(np.uint8)
        mask = (image > 127) if number < 7 else (image < 127)
        Image.fromarray(image).save(root / "set" / "images" / f"{number}.png")
        Image.fromarray((mask * 255).astype(np.uint8)).save(root / "set" / "masks" / f"{number}.png")
    return prepare(data_of(str(root / "set"), cache=root / "cache"))


def test_a_gallery_names_its_samples_and_holds_their_pictures(prepared):
    model = record(shape=(16, 16, 1), class_names=list(prepared.class_names))
    rows = np.arange(8)
    made = gallery_of(Bright(), model, prepared, rows, count=1, better="higher", of=20)
    worst = made.samples[-1]
    assert worst.name == "images/7.png"
    assert {"worst by loss", "worst by iou"} <= set(worst.roles)
    assert worst.quality == 0
    assert made.samples[0].quality == 1
    assert (made.considered, made.of) == (8, 20)
    assert list(worst.pictures) == ["image", "truth", "prediction", "difference"]
    for content in worst.pictures.values():
        assert Image.open(io.BytesIO(base64.b64decode(content))).size == (128, 128)
