"""The callback that measures `model.fit` of a Keras script, of Keras 3 or of tf_keras (Keras 2)."""

import importlib
import math
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from scalestudy.config.metric_senses import Better
from scalestudy.util.errors import UserError


def keras_callback(
    workers: Any,
    quality: str,
    better: Better | None,
    batch_size: int | None,
) -> Any:
    """Return a callback for `model.fit` that measures its epochs; see `Workers.keras_callback`."""
    callbacks: Any = importlib.import_module(f"{_keras()}.callbacks")
    if not workers.measured:
        print(
            "scalestudy: nothing is measured unless `scalestudy launch` starts the script.",
            file=sys.stderr,
        )
        return callbacks.Callback()
    fit = FitMeasure(workers, quality, better, batch_size)

    class FitEpochs(callbacks.Callback):  # type: ignore[misc]
        """Pass the events of `fit` on."""

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            fit.begin_epoch(self.model, self.params["epochs"] - epoch)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            fit.step(batch + 1, logs or {})

        def on_test_begin(self, logs: Any = None) -> None:
            fit.end_training()

        def on_test_end(self, logs: Any = None) -> None:
            fit.end_evaluation()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            fit.end_epoch(logs or {})

    return FitEpochs()


class Seen(NamedTuple):
    """What was counted of an epoch.

    Attributes:
        samples: Number of samples.
        loss: Their mean loss, None if unknown.
        shared: Whether these are of all replicas of a strategy, not of this process alone.
    """

    samples: int
    loss: float | None
    shared: bool = False


class FitMeasure:
    """Reports the epochs of `fit` to `Workers`.

    Keras's own mean of the loss, whose `count` is public, has counted the samples: of partial last batches,
    and of all replicas of a strategy. It starts anew with each epoch and with each evaluation.

    Args:
        workers: Receives the measurements.
        quality: Name of a metric that `fit` logs.
        better: Its direction, if its name does not imply it.
        batch_size: Samples of a step of this process, for a model whose own `train_step` counts none.
    """

    def __init__(
        self,
        workers: Any,
        quality: str,
        better: Better | None,
        batch_size: int | None,
    ) -> None:
        self._workers = workers
        self._quality = quality
        self._better = better
        self._given = batch_size
        self._model: Any = None
        self._steps = self._largest = 0
        self._last: Mapping[str, Any] = {}
        self._training: Seen | None = None
        self._evaluated: Seen | None = None

    def begin_epoch(self, model: Any, left: int) -> None:
        """Begin an epoch, with `left` epochs to train."""
        if self._model is None:
            self._model = model
            self._workers.begin(left, model)
            if self._workers.is_chief and not self._quality.startswith("val_"):
                print(
                    f"scalestudy: {self._quality} is measured on the training samples. Give fit "
                    'validation_data and name "val_…" for a quality to compare.',
                    file=sys.stderr,
                )
        self._steps = 0
        self._training = None
        self._evaluated = None
        self._workers.begin_epoch()

    def step(self, steps: int, logs: Mapping[str, Any]) -> None:
        """Record that `steps` of this epoch are done."""
        self._steps = steps
        self._last = logs
        if not self._largest:  # reading a variable waits for the device, so only once
            self._largest = -(-self._read().samples // steps)
        self._workers.progress(self._largest * steps, steps)

    def end_training(self) -> None:
        """Record the steps of the epoch, before its evaluation begins to count."""
        if self._model is None or self._training is not None:
            return
        seen = self._training = self._read()
        self._workers.count_steps(
            seen.samples,
            self._steps,
            largest=self._largest,
            loss=seen.loss,
            shared=seen.shared,
        )
        self._workers.pause()

    def end_evaluation(self) -> None:
        """Keep how many samples were evaluated."""
        if self._model is not None:
            self._evaluated = _counted(self._model)

    def end_epoch(self, logs: Mapping[str, Any]) -> None:
        """Record the quality, and end the epoch.

        Raises:
            UserError: `fit` logs no such metric.
        """
        self.end_training()
        of_validation = self._quality.startswith("val_")
        seen = self._evaluated if of_validation else self._training
        if self._quality in logs:
            rows = 1.0
            if seen is not None and seen.samples:
                rows = seen.samples
                # Each process knows the sum over all.
                if seen.shared:
                    rows /= self._workers.processes
            value = float(logs[self._quality])
            self._workers.quality(
                self._quality,
                value * rows,
                rows,
                better=self._better,
            )
        elif seen is not None:  # evaluated in this epoch, but not by this metric
            raise UserError(
                f"a metric {self._quality!r} that model.fit logs",
                ", ".join(logs) or "none",
                "Name one of these in keras_callback, or add it to compile(metrics=[…]).",
            )
        self._workers.end_epoch()

    def _read(self) -> Seen:
        """Return what this epoch has trained on so far.

        Raises:
            UserError: It is not counted.
        """
        if self._given is not None:
            samples = self._given * self._steps
            # Other callbacks may average the epoch's loss over workers, but not that of its last step.
            loss = self._last.get("loss")
            if loss is not None:
                loss = float(loss)
            return Seen(samples, loss)
        keras: Any = importlib.import_module(_keras())
        kind = type(self._model)
        counts = kind.train_step is keras.Model.train_step
        seen = None
        if counts:
            seen = _counted(self._model)
        if seen is None or not seen.samples:
            raise UserError(
                "a model that Keras's own train_step trains, which counts samples",
                f"{kind.__name__}, which does not",
                "Name the samples of a step of this process: keras_callback(…, batch_size=32).",
            )
        return seen


def _keras() -> str:
    """Return the Keras of the script: tf_keras is imported only where it is asked for."""
    return "tf_keras" if "tf_keras" in sys.modules else "keras"


def _counted(model: Any) -> Seen | None:
    """Return samples and mean of the loss since Keras last reset it; None for a model without such a mean."""
    # Keras keeps the mean of the loss over samples, and with it their number.
    for metric in model.metrics:
        if metric.name == "loss" and hasattr(metric, "count"):
            break
    else:
        return None
    samples = float(metric.count.numpy())
    total = float(metric.total.numpy())
    loss = None
    if samples and math.isfinite(total):
        loss = total / samples
    return Seen(round(samples), loss, shared=_is_shared(model))


def _is_shared(model: Any) -> bool:
    """Return whether a strategy sums what several replicas of a model have counted."""
    strategy = getattr(model, "distribute_strategy", None)
    if strategy is None:  # Keras on another backend than TensorFlow
        return False
    return int(strategy.num_replicas_in_sync) > 1
