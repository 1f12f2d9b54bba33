"""What the callback for `model.fit` reports, by a model that counts as Keras's do."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from scalestudy.engines.keras.fit_callback import FitMeasure, keras_callback
from scalestudy.util.errors import UserError


class Number:
    def __init__(self, value=0.0):
        self.value = value

    def numpy(self):
        return self.value


class Model:
    """As keras.Model: its mean of the loss counts samples."""

    def __init__(self, replicas=1):
        self.loss = SimpleNamespace(name="loss", count=Number(), total=Number())
        self.metrics = [self.loss]
        self.distribute_strategy = SimpleNamespace(num_replicas_in_sync=replicas)

    def train_step(self):
        pass

    def see(self, samples, loss):
        self.loss.count.value += samples
        self.loss.total.value += samples * loss

    def reset(self):
        self.loss.count.value = self.loss.total.value = 0.0


class OwnStep(Model):
    def train_step(self):
        pass


class Notebook:
    """Writes down what it is told, as `Workers`."""

    measured = is_chief = True
    processes = 2

    def __init__(self):
        self.told = []

    def __getattr__(self, name):
        return lambda *given, **named: self.told.append((name, *given, *named.values()))

    def of(self, name):
        return [told[1:] for told in self.told if told[0] == name]


@pytest.fixture(autouse=True)
def keras(monkeypatch):
    module = ModuleType("keras")
    module.Model = Model
    monkeypatch.setitem(sys.modules, "keras", module)
    monkeypatch.delitem(sys.modules, "tf_keras", raising=False)


def epoch(fit, model, logs, *, evaluated=0):
    """An epoch of 32, 32 and 16 samples, as `fit` trains it."""
    fit.begin_epoch(model, 3)
    model.reset()
    for step, samples in enumerate((32, 32, 16)):
        model.see(samples, 0.5)
        fit.step(step + 1, {"loss": 0.25})
    if evaluated:
        fit.end_training()
        model.reset()
        model.see(evaluated, 9.0)
        fit.end_evaluation()
    fit.end_epoch(logs)


def test_samples_steps_loss_and_quality_of_each_epoch_are_reported():
    workers, model = Notebook(), Model()
    fit = FitMeasure(workers, "val_accuracy", None, None)
    for _ in range(2):
        epoch(fit, model, {"loss": 0.7, "val_accuracy": 0.75}, evaluated=20)
    assert workers.of("begin") == [(3, model)]
    assert workers.of("count_steps") == [(80, 3, 32, 0.5, False)] * 2
    assert workers.of("progress")[:3] == [(32, 1), (64, 2), (96, 3)]
    assert workers.of("quality") == [("val_accuracy", 15.0, 20, None)] * 2
    names = [told[0] for told in workers.told if told[0] != "progress"]
    assert (
        names[1:] == ["begin_epoch", "count_steps", "pause", "quality", "end_epoch"] * 2
    )


def test_without_validation_the_quality_is_of_the_training_samples(capsys):
    workers = Notebook()
    epoch(FitMeasure(workers, "accuracy", "higher", None), Model(), {"accuracy": 0.5})
    assert workers.of("quality") == [("accuracy", 40.0, 80, "higher")]
    assert "training samples" in capsys.readouterr().err
    assert workers.of("count_steps") == [(80, 3, 32, 0.5, False)]


def test_what_a_strategy_counts_is_of_all_its_replicas():
    workers = Notebook()
    epoch(FitMeasure(workers, "loss", None, None), Model(replicas=2), {"loss": 0.5})
    assert workers.of("count_steps") == [(80, 3, 32, 0.5, True)]
    assert workers.of("quality") == [("loss", 20.0, 40.0, None)]


def test_an_epoch_without_evaluation_has_no_quality_and_a_wrong_name_is_refused():
    workers = Notebook()
    epoch(
        FitMeasure(workers, "val_iou", None, None), Model(), {"loss": 0.5}
    )  # validation_freq=2
    assert workers.of("quality") == [] and len(workers.of("end_epoch")) == 1
    with pytest.raises(UserError, match=r"(?s)'val_iou'.*val_accuracy"):
        epoch(
            FitMeasure(workers, "val_iou", None, None),
            Model(),
            {"val_accuracy": 1.0},
            evaluated=5,
        )
    with pytest.raises(UserError, match="'acc'"):
        epoch(FitMeasure(workers, "acc", None, None), Model(), {"accuracy": 1.0})


def test_a_model_with_its_own_step_needs_the_batch_and_its_last_loss_is_not_averaged():
    workers = Notebook()
    with pytest.raises(UserError, match=r"OwnStep.*\n?.*batch_size"):
        epoch(FitMeasure(workers, "loss", None, None), OwnStep(), {"loss": 0.5})
    epoch(FitMeasure(workers, "loss", None, 32), OwnStep(), {"loss": 0.9})
    assert workers.of("count_steps") == [(96, 3, 32, 0.25, False)]


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_the_callback_is_of_the_scripts_keras_and_does_nothing_unless_launched(
    monkeypatch, package, capsys
):
    Callback = type("Callback", (), {"model": None, "params": {"epochs": 3}})
    for name in {"keras", package}:
        module = ModuleType(name)
        module.callbacks = ModuleType(f"{name}.callbacks")
        module.callbacks.Callback = Callback if name == package else object
        module.Model = Model
        monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setitem(sys.modules, f"{name}.callbacks", module.callbacks)
    workers = Notebook()
    callback = keras_callback(workers, "loss", None, None)
    assert isinstance(callback, Callback)
    callback.on_test_begin()  # an evaluation before the training
    callback.on_test_end()
    assert workers.told == []
    workers.measured = False
    assert type(keras_callback(workers, "loss", None, None)) is Callback
    assert "scalestudy launch" in capsys.readouterr().err
