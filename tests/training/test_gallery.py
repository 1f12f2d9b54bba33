"""A run saves a few validation samples at its end, at low cost, and never fails because of them."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from data_settings import data_of
from linear import LinearTrainer
from model_records import Bright, record
from scalestudy.data.preparation import prepare
from scalestudy.store.model_record import ModelRecord
from scalestudy.store.run_folder import RunFolder
from scalestudy.training import gallery
from scalestudy.training.gallery import (
    are_logits,
    choose,
    classes_of,
    gallery_of,
    probabilities,
)
from scalestudy.util.errors import UserError


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (90, 6, 5)).astype("uint8")
    np.savez(folder / "rows.npz", x_train=images, y_train=np.arange(90) % 3)
    return prepare(data_of(str(folder / "rows.npz"), cache=folder))


@pytest.fixture
def folder(tmp_path, prepared):
    made = RunFolder(tmp_path)
    made.write_model_record(
        ModelRecord(
            task="cnn",
            kind="classes",
            input_shape=prepared.input_shape,
            dtype="uint8",
            scale=prepared.scale,
            class_names=list(prepared.class_names),
        )
    )
    return made


class Trained(LinearTrainer):
    def __init__(self):
        self.weight = np.random.default_rng(1).normal(0, 1, (30, 3))


def test_it_shows_the_best_and_the_worst_of_some_samples(folder, prepared):
    gallery.save_gallery(folder, Trained(), prepared, np.arange(90))
    record = folder.gallery_record()
    assert (record.considered, record.of) == (gallery.SAMPLES, 90)
    losses = [sample.loss for sample in record.samples]
    assert losses == sorted(losses)
    assert "best by loss" in record.samples[0].roles
    assert "worst by loss" in record.samples[-1].roles
    assert record.samples[-1].truth != record.samples[-1].predicted
    assert record.samples[0].probability > 0.9
    assert folder.gallery.stat().st_size < 100_000


def test_it_can_be_left_out(folder, prepared):
    record = folder.model_record()
    folder.write_model_record(record.model_copy(update={"train": {"gallery": False}}))
    gallery.save_gallery(folder, Trained(), prepared, np.arange(90))
    assert not folder.gallery.exists()


def test_a_model_that_fails_here_is_told_and_forgiven(folder, prepared, capsys):
    class Failing(Trained):
        def outputs(self, inputs, scale):
            raise ValueError("no such thing")

    gallery.save_gallery(folder, Failing(), prepared, np.arange(90))
    assert "this run has no gallery: no such thing" in capsys.readouterr().out
    assert not folder.gallery.exists()


@pytest.mark.parametrize(
    ("rows", "pixels", "count"),
    [(5, 64, 5), (1000, 64, 48), (1000, 2**20, 6), (4, 2**24, 4)],
)
def test_samples_are_spread_evenly_and_bounded_by_their_pixels(rows, pixels, count):
    some = gallery.some(np.arange(rows), pixels)
    assert len(some) == len(set(some.tolist())) == count
    assert some[0] == 0 and some[-1] == rows - 1


def test_best_median_and_worst_are_by_loss_and_what_is_not_finite_is_worst():
    losses = np.array([5.0, 1, 9, 3, 7, 2, np.nan, 4, 6])
    assert choose(losses, 1) == [
        (1, ("best by loss",)),
        (0, ("median by loss",)),
        (6, ("worst by loss",)),
    ]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_sample_is_shown_once_with_all_its_roles_and_few_samples_are_enough(count):
    assert [chosen.place for chosen in choose(np.array([2.0, 1]), count)] == [1, 0]
    assert choose(np.array([2.0]), count) == [
        (0, ("best by loss", "median by loss", "worst by loss"))
    ]


@pytest.fixture(scope="module")
def shown_set(tmp_path_factory):
    """Eight images with masks of their bright pixels; the last mask is wrong."""
    root = tmp_path_factory.mktemp("bright")
    random = np.random.default_rng(0)
    for folder in ("images", "masks"):
        (root / "set" / folder).mkdir(parents=True)
    for number in range(8):
        image = random.choice([20, 230], (16, 16)).astype(np.uint8)
        mask = (image > 127) if number < 7 else (image < 127)
        Image.fromarray(image).save(root / "set" / "images" / f"{number}.png")
        Image.fromarray((mask * 255).astype(np.uint8)).save(
            root / "set" / "masks" / f"{number}.png"
        )
    return prepare(data_of(str(root / "set"), cache=root / "cache"))


def test_a_gallery_names_its_samples_and_holds_their_pictures(shown_set):
    model = record(shape=(16, 16, 1), class_names=list(shown_set.class_names))
    rows = np.arange(8)
    made = gallery_of(Bright(), model, shown_set, rows, count=1, of=20)
    worst = made.samples[-1]
    assert worst.name == "images/7.png"
    assert worst.roles == ["worst by loss"]
    assert (made.considered, made.of) == (8, 20)
    assert list(worst.pictures) == ["image", "truth", "prediction", "difference"]
    for content in worst.pictures.values():
        assert Image.open(io.BytesIO(base64.b64decode(content))).size == (128, 128)


RANDOM = np.random.default_rng(0)


def test_one_channel_is_the_second_of_two_classes():
    outputs = RANDOM.random((2, 8, 8, 1)).astype(np.float32)
    found = probabilities(outputs, record(), logits=False)
    assert np.allclose(found[..., 1], outputs[..., 0])
    assert np.allclose(found.sum(-1), 1)
    assert np.array_equal(probabilities(outputs[..., 0], record(), logits=False), found)


def test_scores_become_probabilities():
    scores = RANDOM.normal(0, 5, (4, 3)).astype(np.float32)
    found = probabilities(scores, record("classes"), logits=True)
    expected = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    assert np.allclose(found, expected, atol=1e-6)
    one = probabilities(
        np.array([[0.0], [2.0]]), record("classes", class_names=["a", "b"]), logits=True
    )
    assert np.allclose(one[:, 1], [0.5, 1 / (1 + np.exp(-2))])


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ([[0.2, 0.8]], False),
        ([[0.2, 0.4]], True),
        ([[-1.0, 2.0]], True),
        ([[0.3]], False),
        ([[1.2]], True),
        ([[0.504, 0.5]], False),
    ],
)
def test_scores_are_told_from_probabilities(outputs, said):
    assert are_logits(np.array(outputs)) is said


@pytest.mark.parametrize("shape", [(2, 5), (2, 8, 8, 3), (2, 1)])
def test_outputs_that_are_not_of_the_classes_are_refused(shape):
    with pytest.raises(UserError, match="3 classes for each image"):
        probabilities(np.zeros(shape), record("classes"), logits=False)


def test_the_class_is_the_likeliest_and_one_half_is_the_second_of_two():
    assert classes_of(np.array([[0.5, 0.5], [0.51, 0.49]])).tolist() == [1, 0]
    assert classes_of(np.array([[0.2, 0.3, 0.5], [0.4, 0.4, 0.2]])).tolist() == [2, 0]


def test_what_the_model_did_not_see_is_of_no_class():
    assert classes_of(np.array([[np.nan, np.nan], [0.1, 0.9]])).tolist() == [255, 1]
