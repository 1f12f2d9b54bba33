"""Quality is measured with statistics of batch normalisation that do not depend on the number of workers."""

from itertools import product

import numpy as np
import pytest

from paths import SUPPORT

pytestmark = pytest.mark.engine

SEVERAL = [("virtual", 2), ("virtual", 8), ("mirrored", 2)]


def statistics(session) -> list[np.ndarray]:
    """The statistics with which a session evaluates."""
    with session.evaluating():
        return [variable.value.numpy() for variable in session.trainer.state.local]


def spoilt(session):
    """Give the moving statistics other values, as other numbers of updates would."""
    for variable in session.trainer.state.local:
        variable.assign(variable.value + 1)
    return session


def test_the_same_weights_have_the_same_statistics_on_any_number_of_workers(session):
    # Of 20 samples, batches of 6 leave the second of two workers a short one, and 3 per step of 8 none.
    one = statistics(session("unet", batch_size=6))
    for (implementation, workers), batch in product(SEVERAL, ("per-worker", "global")):
        several = statistics(
            spoilt(session("unet", implementation, workers, batch_size=6, batch=batch))
        )
        for a, b in zip(one, several, strict=True):
            np.testing.assert_allclose(
                a,
                b,
                rtol=2e-6,
                atol=1e-7,
                err_msg=f"{implementation} {workers} {batch}",
            )


def test_they_are_mean_and_variance_of_all_values_that_reach_a_layer(session, sets):
    import keras

    made = session("unet", precision="float64", batch_size=6)
    mean, variance, *_ = statistics(made)
    plain = made.trainer.file.plain().model
    first = keras.Model(
        plain.inputs, plain.layers[1].output
    )  # a convolution, before batch normalisation
    prepared, split = sets["unet"]
    values = np.asarray(first(prepared.inputs[split.train] / 255.0)).reshape(
        -1, len(mean)
    )
    np.testing.assert_allclose(mean, values.mean(0), rtol=1e-9)
    np.testing.assert_allclose(variance, values.var(0), rtol=1e-9)


@pytest.mark.parametrize(("implementation", "workers"), SEVERAL[1:])
def test_training_is_the_same_to_the_bit(session, implementation, workers):
    ended = []
    for kind in ("fresh", "moving"):
        made = session(
            "unet", implementation, workers, batch_norm=kind, optimizer="adam"
        )
        losses = [
            (record.loss, record.validation["loss"]) for record in made.epoch_records()
        ]
        ended.append((losses, made.trainer.state.values()))
    (fresh, values), (moving, others) = ended
    assert [loss for loss, _ in fresh] == [loss for loss, _ in moving]
    assert [loss for _, loss in fresh] != [loss for _, loss in moving]
    for some, same in zip(values, others, strict=True):
        assert all(map(np.array_equal, some, same))


def test_a_frozen_layer_keeps_the_statistics_that_it_was_trained_with(session):
    made = spoilt(
        session(str(SUPPORT / "pretrained_task.py"), epochs=2, frozen_epochs=1)
    )
    records = made.epoch_records()
    next(records)
    np.testing.assert_array_equal(statistics(made)[0], np.ones(4))
    next(records)
    assert np.abs(statistics(made)[0] - 1).min() > 1e-3


def test_a_model_without_batch_normalisation_computes_none(session, monkeypatch):
    made = session("cnn")
    monkeypatch.setattr(type(made.trainer), "statistics", None)
    fresh = [record.validation for record in made.epoch_records()]
    assert fresh == [
        record.validation
        for record in session("cnn", batch_norm="moving").epoch_records()
    ]


def test_the_model_is_saved_with_them(session, tmp_path):
    import keras

    made = session("unet")
    list(made.epoch_records())
    with made.evaluating():
        made.trainer.file.save(str(tmp_path / "model.keras"))
    saved = keras.models.load_model(tmp_path / "model.keras", compile=False)
    known = {weight.path.split("/")[-1] for weight in saved.non_trainable_weights}
    assert known == {"moving_mean", "moving_variance"}
    for weight, value in zip(
        saved.non_trainable_weights, statistics(made), strict=True
    ):
        np.testing.assert_array_equal(weight.numpy(), value)
