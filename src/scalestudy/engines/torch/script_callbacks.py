"""Callbacks of libraries that have a training loop of their own: they report its epochs to `LoopWorkers`."""

import importlib
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from scalestudy.util.errors import UserError


def lightning_callback(workers: Any, quality: str, better: str | None) -> Any:
    """Return a callback for Lightning's Trainer that measures epochs; see `LoopWorkers`."""
    older = "pytorch_lightning" in sys.modules and "lightning" not in sys.modules
    package: Any = importlib.import_module("pytorch_lightning" if older else "lightning.pytorch")

    class LightningEpochs(package.Callback):  # type: ignore[misc]
        """Report the events of training to `workers`."""

        def on_train_start(self, trainer: Any, module: Any) -> None:
            workers.begin(trainer.max_epochs, module)

        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            workers.begin_epoch()

        def on_train_batch_end(
            self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
            workers.count(_rows(batch), loss)

        def on_validation_start(self, trainer: Any, module: Any) -> None:
            if not trainer.sanity_checking:
                workers.pause()

        def on_validation_end(self, trainer: Any, module: Any) -> None:
            if trainer.sanity_checking:
                return
            _refuse_unknown(quality, trainer.callback_metrics, "Log it with self.log(...)")
            workers.quality(quality, trainer.callback_metrics[quality], better=better)
            workers.go_on()

        def on_train_end(self, trainer: Any, module: Any) -> None:
            workers.end_epoch()

    return LightningEpochs()


def transformers_callback(workers: Any, quality: str, better: str | None) -> Any:
    """Return a callback for the Trainer of transformers that measures epochs; see `LoopWorkers`.

    The Trainer passes no batches to callbacks, so a hook of the model counts their rows and their loss.
    """
    package: Any = importlib.import_module("transformers")

    class TransformersEpochs(package.TrainerCallback):  # type: ignore[misc]
        """Report the events of training to `workers`."""

        def __init__(self) -> None:
            self._rows = 0
            self._loss: Any = 0.0
            self._hook: Any = None

        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any, **_: Any) -> None:
            self._hook = model.register_forward_hook(self._count, with_kwargs=True)
            across = workers.size > 1 and getattr(args, "average_tokens_across_devices", False)
            self._in_parts = across or args.gradient_accumulation_steps > 1
            workers.begin(math.ceil(state.num_train_epochs), model)

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            workers.begin_epoch()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            workers.count(self._rows, None if self._loss is None else self._loss / self._rows)
            self._rows, self._loss = 0, 0.0

        def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            workers.pause()

        def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any, **_: Any) -> None:
            _refuse_unknown(quality, metrics, "Return it from compute_metrics")
            workers.quality(quality, metrics[quality], better=better)
            workers.go_on()

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            workers.end_epoch()
            self._hook.remove()

        def _count(self, model: Any, given: Any, named: Any, outputs: Any) -> None:
            if not model.training:
                return
            rows = _rows([*given, *named.values()])
            loss = outputs.get("loss") if isinstance(outputs, dict) else None
            self._rows += rows
            # Given the items of a step in several parts, some models return their part of its mean, others
            # the mean of their part: the loss of the step is then unknown.
            unknown = self._in_parts and named.get("num_items_in_batch") is not None
            if self._loss is not None:
                self._loss = None if loss is None or unknown else self._loss + loss.detach() * rows

    return TransformersEpochs()


def _refuse_unknown(quality: str, metrics: Iterable[str], action: str) -> None:
    if quality not in metrics:
        raise UserError(
            f"a metric {quality!r} of the validation",
            ", ".join(metrics) or "none",
            f"{action}, or name another metric in the callback.",
        )


def _rows(batch: Any) -> int:
    """Return the samples of a batch: the length of its first tensor that has one."""
    if isinstance(batch, torch.Tensor):
        return len(batch)
    for part in batch.values() if isinstance(batch, Mapping) else batch:
        try:
            return _rows(part)
        except TypeError:
            continue
    raise TypeError("a batch without a tensor")
