import keras
import pytest

from scalestudy.training.session import Session

pytestmark = pytest.mark.engine


@pytest.fixture
def with_callbacks(session):
    def make(*callbacks, workers: int = 1, **train) -> Session:
        one = session("cnn", "mirrored" if workers > 1 else "single", workers, **train)
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
    assert [record.learning_rate for record in records] == pytest.approx([0.04, 0.02, 0.01])


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

    list(with_callbacks(Watcher(), epochs=1, batch_size=60, steps_per_call=1).epoch_records())
    assert seen == ["begin", 0, 1, (0, ["learning_rate", "loss", "val_accuracy", "val_loss"]), "end"]


@pytest.mark.parametrize(
    ("monitor", "mode"), [("val_accuracy", "max"), ("accuracy", "max"), ("val_loss", "auto")]
)
@pytest.mark.parametrize("kind", ["EarlyStopping", "ReduceLROnPlateau"])
def test_a_callback_that_watches_a_metric_learns_which_way_is_better(with_callbacks, kind, monitor, mode):
    watching = getattr(keras.callbacks, kind)(monitor=monitor)
    one = with_callbacks(watching)
    one.trainer.callbacks(epochs=2, steps=1)
    assert watching.mode == mode


def test_early_stopping_by_the_quality_needs_no_mode(with_callbacks):
    stop = keras.callbacks.EarlyStopping(monitor="val_accuracy", patience=0, min_delta=1)
    assert len(list(with_callbacks(stop, epochs=5, evaluate_every=1).epoch_records())) == 2


def test_a_mode_that_the_task_gives_stays(with_callbacks):
    stop = keras.callbacks.EarlyStopping(monitor="val_accuracy", mode="min")
    with_callbacks(stop).trainer.callbacks(epochs=2, steps=1)
    assert stop.mode == "min"
