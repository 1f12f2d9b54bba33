"""A run saves a few validation samples at its end, at low cost, and never fails because of them."""

import numpy as np
import pytest

from data_settings import data_of
from linear import LinearTrainer
from scalestudy.config.objectives import Sense
from scalestudy.data.store.preparation import prepare
from scalestudy.store.model_record import ModelRecord
from scalestudy.store.run_folder import RunFolder
from scalestudy.training import gallery


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
            metric="accuracy",
        )
    )
    return made


class Trained(LinearTrainer):
    sense = Sense("higher")

    def __init__(self):
        self.weight = np.random.default_rng(1).normal(0, 1, (30, 3))


def test_it_shows_the_best_and_the_worst_of_some_samples(folder, prepared):
    gallery.leave(folder, Trained(), prepared, np.arange(90))
    record = folder.gallery_record()
    assert (record.considered, record.of) == (gallery.SAMPLES, 90)
    losses = [sample.loss for sample in record.samples]
    assert losses == sorted(losses)
    assert "best by loss" in record.samples[0].roles
    assert "worst by accuracy" in record.samples[-1].roles
    assert record.samples[-1].truth != record.samples[-1].predicted
    assert record.samples[0].probability > 0.9
    assert folder.gallery.stat().st_size < 100_000


def test_its_bytes_are_bounded(folder, prepared, monkeypatch):
    monkeypatch.setattr(gallery, "BYTES", 1500)
    gallery.leave(folder, Trained(), prepared, np.arange(90))
    assert folder.gallery.stat().st_size <= 1501
    assert 0 < len(folder.gallery_record().samples) < 6


def test_it_can_be_left_out(folder, prepared):
    record = folder.model_record()
    folder.write_model_record(record.model_copy(update={"train": {"gallery": False}}))
    gallery.leave(folder, Trained(), prepared, np.arange(90))
    assert not folder.gallery.exists()


def test_a_model_that_fails_here_is_told_and_forgiven(folder, prepared, capsys):
    class Failing(Trained):
        def outputs(self, inputs, scale):
            raise ValueError("no such thing")

    gallery.leave(folder, Failing(), prepared, np.arange(90))
    assert "this run has no gallery: no such thing" in capsys.readouterr().out
    assert not folder.gallery.exists()


@pytest.mark.parametrize(
    ("rows", "pixels", "count"), [(5, 64, 5), (1000, 64, 48), (1000, 2**20, 6), (4, 2**24, 4)]
)
def test_samples_are_spread_evenly_and_bounded_by_their_pixels(rows, pixels, count):
    some = gallery.some(np.arange(rows), pixels)
    assert len(some) == len(set(some.tolist())) == count
    assert some[0] == 0 and some[-1] == rows - 1
