"""Optimizers of `torch.optim` by name or of a task file, with the learning rate of each step of a run."""

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from scalestudy.config.point import Averages, Point, scale_averages
from scalestudy.tasks.task import Task
from scalestudy.util.errors import UserError

KINDS: dict[str, tuple[Callable[..., torch.optim.Optimizer], dict[str, Any]]] = {
    "sgd": (torch.optim.SGD, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}),
    "nesterov": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    "adam": (torch.optim.Adam, {}),
    "adamw": (torch.optim.AdamW, {}),
}
FUSED = ("cpu", "cuda")
"""Types of devices for which `torch.optim` has fused kernels; elsewhere it uses `_foreach` ones."""
SCHEDULED = ("lr", "momentum", "betas")
"""Entries of parameter groups that a scheduler of PyTorch may change."""
FACTOR = "factor"
"""Entry of each parameter group: what callbacks have made of its learning rate; the state dict keeps it."""


class StateDict:
    """The state of an optimizer or a gradient scaler as one variable: the bytes of its state dict.

    PyTorch creates the state of an optimizer in its first step, so its tensors are no variables at the start.
    """

    dtype = "uint8"
    shape = ()

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    @property
    def value(self) -> NDArray[np.uint8]:
        """The bytes."""
        buffer = io.BytesIO()
        # Bytes, so that a checkpoint stores the state of any optimizer without knowing it.
        torch.save(self._owner.state_dict(), buffer)
        return np.frombuffer(buffer.getvalue(), np.uint8)

    def assign(self, value: NDArray[np.uint8]) -> None:
        """Restore the state from bytes."""
        # Tensors and plain values alone: what a checkpoint holds must not be able to run code.
        self._owner.load_state_dict(
            torch.load(io.BytesIO(value.tobytes()), "cpu", weights_only=True)
        )


Entries = Callable[[int], Sequence[dict[str, Any]]]
"""Step of the run -> what its schedule sets in each parameter group."""


class ScheduledOptimizer:
    """An optimizer of PyTorch that takes the learning rate of each step from a schedule.

    Attributes:
        inner: The optimizer of PyTorch.
        settable: Whether the rate is constant, so that callbacks may set it.
        variables: Its state.

    Args:
        inner: The optimizer, in its initial state.
        entries: The schedule.
        settable: See above.
    """

    def __init__(
        self,
        inner: torch.optim.Optimizer,
        entries: Entries,
        first: int,
        *,
        settable: bool,
    ) -> None:
        self.inner = inner
        self.settable = settable
        self._entries = entries
        self._first = first
        for group in inner.param_groups:
            group[FACTOR] = 1.0
        self.variables = [StateDict(inner)]

    @property
    def learning_rate(self) -> float:
        """The rate of the first parameter group; callbacks may set it if it is constant."""
        factor = self.inner.param_groups[0][FACTOR]
        scheduled = self._entries(self._first)[0]["lr"]
        return float(factor * scheduled)

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        if not self.settable:
            raise TypeError(
                'The learning rate follows a schedule. Expected: schedule = "constant".'
            )
        for group in self.inner.param_groups:
            group[FACTOR] = float(rate) / self._entries(self._first)[0]["lr"]

    def begin(self, step: int) -> None:
        """Set the learning rates of `step` of the run, and clear the gradients."""
        scheduled = self._entries(step)
        for group, entries in zip(self.inner.param_groups, scheduled, strict=True):
            group.update(entries)
            group["lr"] *= group[FACTOR]
        # PyTorch frees gradients, or clears the views of DistributedDataParallel's buckets.
        self.inner.zero_grad()


def optimizer_of(
    point: Point,
    task: Task,
    rates: NDArray[np.float64],
    first: int,
    variables: Sequence[Any],
) -> ScheduledOptimizer:
    """Return the optimizer of a phase of a run.

    Args:
        point: The point of the run.
        task: Its task, whose own optimizer and scheduler come before those of the study.
        rates: Learning rate of each step of the phase, shape [steps].
        first: The first step of the phase in the run.
        variables: The variables that the phase trains.

    Raises:
        UserError: If the task's optimizer leaves weights out, or cannot be used step by step.
    """
    train = point.train
    parameters = [variable.value for variable in variables]
    # Groups keep the rates that the task gives them at the peak; the schedule scales them.
    peak = float(rates.max())
    if task.optimizer is None:
        inner = make_optimizer(
            train.optimizer,
            parameters,
            peak,
            kappa=point.batch_ratio,
            scaling=train.learning_rate_scaling,
        )
    else:
        inner = _of_task(task, variables, peak)
    if task.scheduler is not None:
        table = _scheduled(inner, task.scheduler, len(rates), train.epochs)

        def entries_of_scheduler(step: int) -> list[dict[str, Any]]:
            return table[min(step - first, len(table) - 1)]

        return ScheduledOptimizer(inner, entries_of_scheduler, first, settable=False)
    # A task may give its groups different rates, which the schedule scales alike.
    bases = [group["lr"] for group in inner.param_groups]
    last = len(rates) - 1

    def entries(step: int) -> list[dict[str, Any]]:
        rate = rates[min(step - first, last)]
        return [{"lr": float(base * rate / peak)} for base in bases]

    constant = bool(np.all(rates == rates[0]))
    return ScheduledOptimizer(inner, entries, first, settable=constant)


def make_optimizer(
    name: str,
    parameters: Sequence[Any],
    rate: float,
    *,
    kappa: float = 1.0,
    scaling: str = "none",
) -> torch.optim.Optimizer:
    """Create the optimizer `name` of `torch.optim`, in fused kernels where PyTorch has them.

    For an adaptive optimizer, scaling "sqrt" also changes the averages; see `scale_averages`.
    """
    kind, words = KINDS[name]
    if parameters[0].device.type in FUSED:
        words = words | {"fused": True}
    else:
        words = words | {"foreach": True}
    made = kind(parameters, lr=rate, **words)
    if scaling != "sqrt" or kappa == 1 or "betas" not in made.defaults:
        return made
    first, second = made.defaults["betas"]
    plain = Averages(first, second, made.defaults["eps"])
    first, second, epsilon = scale_averages(plain, kappa)
    words = words | {"betas": (first, second), "eps": epsilon}
    return kind(parameters, lr=rate, **words)


def _of_task(
    task: Task,
    variables: Sequence[Any],
    rate: float,
) -> torch.optim.Optimizer:
    """Return the optimizer that the task file makes, which must train all `variables`."""
    assert task.optimizer is not None
    inner = task.optimizer(getattr(task.model, "module", task.model), rate)
    # LBFGS computes gradients several times in a step, by a closure that no exchange follows.
    if not isinstance(inner, torch.optim.Optimizer) or isinstance(
        inner,
        torch.optim.LBFGS,
    ):
        raise UserError(
            "an optimizer of PyTorch whose step() takes no closure from optimizer(model, rate)",
            type(inner).__name__,
            "Return an instance such as torch.optim.AdamW(model.parameters(), lr=rate).",
        )
    known: set[int] = set()
    for group in inner.param_groups:
        known.update(map(id, group["params"]))
    missing = [
        variable.path for variable in variables if id(variable.value) not in known
    ]
    if missing:
        raise UserError(
            "an optimizer(model, rate) that trains every weight of the model",
            f"one without {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}",
            "Add these parameters to one of its groups, or freeze them with requires_grad_(False).",
        )
    return inner


def _scheduled(
    inner: torch.optim.Optimizer,
    scheduler: Callable[..., Any],
    steps: int,
    epochs: int,
) -> list[list[dict[str, Any]]]:
    """Return what a scheduler of PyTorch sets in each parameter group at each step, without training."""
    made = scheduler(inner, steps, epochs)
    table = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the optimizer takes no steps
        for _ in range(steps):
            table.append([_settings_of(group) for group in inner.param_groups])
            try:
                made.step()
            except TypeError as error:
                raise UserError(
                    "a scheduler(optimizer, steps, epochs) whose step() needs no metric",
                    f"{type(made).__name__}: {error}",
                    "For rates by a metric, put keras.callbacks.ReduceLROnPlateau into callbacks.",
                ) from error
    return table


def _settings_of(group: dict[str, Any]) -> dict[str, Any]:
    return {key: group[key] for key in SCHEDULED if key in group}
