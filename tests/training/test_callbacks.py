import keras
import numpy as np
import pytest

from scalestudy.training import checkpoint
from scalestudy.training.session import Session

pytestmark = pytest.mark.engine


@pytest.fixture
def with_callbacks(session):
    def make(*callbacks, task: str = "cnn", workers: int = 1, **train) -> Session:
        one = session(task, "mirrored" if workers > 1 else "single", workers, **train)
        one.trainer.task.callbacks.extend(callbacks)
        return one

    return make


def test_early_stopping_ends_the_run_with_its_last_epoch_evaluated(with_callbacks):
    stop = keras.callbacks.EarlyStopping(monitor="val_loss", patience=0, min_delta=100)
    records = list(with_callbacks(stop, epochs=5, evaluate_every=1).epoch_records())
    assert len(records) == 2
    assert records[1].validation


@pytest.mark.parametrize("workers", [1, 2])
def test_a_callback_may_set_the_learning_rate(with_callbacks, workers):
    halve = keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.04 / 2**epoch)
    records = list(with_callbacks(halve, workers=workers, epochs=3).epoch_records())
    assert [record.learning_rate for record in records] == pytest.approx(
        [0.04, 0.02, 0.01]
    )


def test_a_callback_sees_epochs_batches_and_logs(with_callbacks):
    seen = []

    class Watcher(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            seen.append("begin")

        def on_train_batch_end(self, batch, logs=None):
            seen.append(batch)

        def on_epoch_end(self, epoch, logs=None):
            seen.append((epoch, sorted(logs)))

        def on_train_end(self, logs=None):
            seen.append("end")

    list(
        with_callbacks(
            Watcher(), epochs=1, batch_size=60, steps_per_call=1
        ).epoch_records()
    )
    assert seen == [
        "begin",
        0,
        1,
        (0, ["learning_rate", "loss", "val_accuracy", "val_loss"]),
        "end",
    ]


@pytest.mark.parametrize(
    ("monitor", "mode"),
    [("val_accuracy", "max"), ("accuracy", "max"), ("val_loss", "auto")],
)
@pytest.mark.parametrize("kind", ["EarlyStopping", "ReduceLROnPlateau"])
def test_a_callback_that_watches_a_metric_learns_which_way_is_better(
    with_callbacks, kind, monitor, mode
):
    watching = getattr(keras.callbacks, kind)(monitor=monitor)
    one = with_callbacks(watching)
    one.trainer.callbacks(epochs=2, steps=1)
    assert watching.mode == mode


def test_a_mode_that_the_task_gives_stays(with_callbacks):
    stop = keras.callbacks.EarlyStopping(monitor="val_accuracy", mode="min")
    with_callbacks(stop).trainer.callbacks(epochs=2, steps=1)
    assert stop.mode == "min"


def falling_apart(rate: float) -> list[keras.callbacks.Callback]:
    """A rate that ruins the weights after the first epoch, and the callback that restores them."""
    return [
        keras.callbacks.LearningRateScheduler(lambda epoch, _: rate if epoch else 0.01),
        keras.callbacks.EarlyStopping(
            monitor="val_loss", patience=1, restore_best_weights=True
        ),
    ]


@pytest.mark.parametrize(("task", "workers"), [("cnn", 1), ("unet", 2)])
def test_the_validation_of_a_run_is_of_the_weights_that_a_callback_restores(
    with_callbacks, tmp_path, task, workers
):
    settings = {"task": task, "workers": workers, "epochs": 5, "batch_size": 10}
    one = with_callbacks(*falling_apart(9.0), **settings)
    records = list(one.epoch_records())
    best = min(records, key=lambda record: record.validation["loss"])
    assert len(records) > best.epoch
    assert records[-1].validation != best.validation
    assert one.validation() == best.validation
    checkpoint.write_checkpoint(
        tmp_path / "checkpoint.npz", *one.checkpoint(), one.fingerprint()
    )
    again = with_callbacks(*falling_apart(9.0), **settings)
    position = checkpoint.read_position(
        tmp_path / "checkpoint.npz", again.fingerprint()
    )
    again.restore(position, checkpoint.read_values(tmp_path / "checkpoint.npz"))
    assert list(again.epoch_records()) == []
    assert again.validation() == best.validation
    assert again.digests() == one.digests()


def test_a_validation_that_nothing_has_changed_is_not_computed_again(
    session, monkeypatch
):
    one = session(epochs=1)
    (record,) = one.epoch_records()
    monkeypatch.setattr(
        one.trainer, "evaluate", lambda call: pytest.fail("computed again")
    )
    assert one.validation() == record.validation


def test_callbacks_read_the_mean_of_the_workers_statistics(with_callbacks):
    class Reader(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.seen = self.model.get_weights()

    reader = Reader()
    one = with_callbacks(
        reader, task="unet", workers=2, epochs=1, evaluate_every=2, batch_size=5
    )
    list(one.epoch_records())
    one.trainer.state.average()
    (first, second) = one.trainer.state.weights()
    for seen, a, b in zip(reader.seen, first, second, strict=True):
        assert np.array_equal(a, b)
        assert np.array_equal(seen, a)
