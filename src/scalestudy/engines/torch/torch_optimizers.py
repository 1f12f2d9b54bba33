"""Optimizers of `torch.optim` by name or of a task file, with the learning rate of each step of a run."""

import io
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from scalestudy.config.point import Averages, Point, scale_averages
from scalestudy.tasks.task import Task
from scalestudy.util.errors import UserError


class Lamb(torch.optim.Optimizer):
    """LAMB (You et al. 2020, arXiv:1904.00962): Adam with a rate for each weight, by its norm and its step's.

    It never waits for the device. A step whose gradients are not finite (see `torch.amp.GradScaler`) changes
    nothing.
    """

    _step_supports_amp_scaling = True  # GradScaler then leaves `found_inf` on the device

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-7,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update the parameters by their gradients."""
        for group in self.param_groups:
            parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
            if parameters:
                self._update(group, parameters)

    def _update(self, group: dict[str, Any], parameters: list[Any]) -> None:
        gradients = [parameter.grad for parameter in parameters]
        states = [self.state[parameter] for parameter in parameters]
        for state, parameter in zip(states, parameters, strict=True):
            if not state:
                state["step"] = torch.zeros((), device=parameter.device)
                state["exp_avg"], state["exp_avg_sq"] = (
                    torch.zeros_like(parameter),
                    torch.zeros_like(parameter),
                )
        steps, means, squares = (
            [state[key] for state in states] for key in ("step", "exp_avg", "exp_avg_sq")
        )
        goes, (first, second) = torch.ones_like(steps[0]), group["betas"]
        inverse, found = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        if found is not None:
            goes -= found
            gradients = [torch.where(found > 0, 0, gradient) for gradient in gradients]
        if inverse is not None:
            gradients = list(torch._foreach_div(gradients, inverse))
        torch._foreach_add_(steps, [goes] * len(steps))  # a tensor alone would be read
        for averages, beta, values in (
            (means, first, gradients),
            (squares, second, torch._foreach_mul(gradients, gradients)),
        ):
            torch._foreach_mul_(averages, 1 - goes * (1 - beta))
            torch._foreach_add_(averages, torch._foreach_mul(values, 1 - beta))
        step = torch.clamp(steps[0], min=1)
        changes = torch._foreach_sqrt(torch._foreach_div(squares, 1 - second**step))
        torch._foreach_add_(changes, group["eps"])
        changes = torch._foreach_div(torch._foreach_div(means, 1 - first**step), changes)
        if group["weight_decay"]:
            torch._foreach_add_(changes, parameters, alpha=group["weight_decay"])
        sizes, lengths = (torch.stack(torch._foreach_norm(values)) for values in (parameters, changes))
        ratios = torch.where((sizes > 0) & (lengths > 0), sizes / lengths, 1) * (goes * group["lr"])
        torch._foreach_mul_(changes, ratios.unbind())
        torch._foreach_sub_(parameters, changes)


KINDS: dict[str, tuple[Callable[..., torch.optim.Optimizer], dict[str, Any]]] = {
    "sgd": (torch.optim.SGD, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}),
    "nesterov": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    "adam": (torch.optim.Adam, {}),
    "adamw": (torch.optim.AdamW, {}),
    "lamb": (Lamb, {}),
}
OF_KERAS = {"adam": {"eps": 1e-7}, "adamw": {"eps": 1e-7, "weight_decay": 0.004}}
"""Constants of Keras's optimizers that differ from those of `torch.optim`."""
FUSED = ("cpu", "cuda")
"""Types of devices for which `torch.optim` has fused kernels; elsewhere it uses `_foreach` ones."""
SCHEDULED = ("lr", "momentum", "betas")
"""Entries of parameter groups that a scheduler of PyTorch may change."""


class StateDict:
    """The state of an optimizer or a gradient scaler as one variable: the bytes of its state dict.

    PyTorch creates the state of an optimizer in its first step, so its tensors are no variables at the start.
    """

    dtype, shape = "uint8", ()

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    @property
    def value(self) -> NDArray[np.uint8]:
        """The bytes."""
        buffer = io.BytesIO()
        torch.save(self._owner.state_dict(), buffer)
        return np.frombuffer(buffer.getvalue(), np.uint8)

    def assign(self, value: NDArray[np.uint8]) -> None:
        """Restore the state from bytes."""
        self._owner.load_state_dict(torch.load(io.BytesIO(value.tobytes()), "cpu", weights_only=True))


Entries = Callable[[int], Sequence[dict[str, Any]]]
"""Step of the run -> what its schedule sets in each parameter group."""
FACTOR = "factor"
"""Entry of each parameter group: what callbacks have made of its learning rate; the state dict keeps it."""


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
        uncorrected: Whether Adam adds epsilon before the bias correction, as in Keras, not after it.
    """

    def __init__(
        self,
        inner: torch.optim.Optimizer,
        entries: Entries,
        first: int,
        *,
        settable: bool,
        uncorrected: bool = False,
    ) -> None:
        self.inner, self._entries, self._first, self.settable = inner, entries, first, settable
        self._epsilon = inner.defaults["eps"] if uncorrected else None
        for group in inner.param_groups:
            group[FACTOR] = 1.0
        self.variables = [StateDict(inner)]

    @property
    def learning_rate(self) -> float:
        """The rate of the first parameter group; callbacks may set it if it is constant."""
        return float(self.inner.param_groups[0][FACTOR] * self._entries(self._first)[0]["lr"])

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        if not self.settable:
            raise TypeError('The learning rate follows a schedule. Expected: schedule = "constant".')
        for group in self.inner.param_groups:
            group[FACTOR] = float(rate) / self._entries(self._first)[0]["lr"]

    def begin(self, step: int) -> None:
        """Set the learning rates of `step` of the run, and clear the gradients."""
        for group, entries in zip(self.inner.param_groups, self._entries(step), strict=True):
            group.update(entries)
            group["lr"] *= group[FACTOR]
            if self._epsilon is not None:
                beta = group["betas"][1]
                group["eps"] = self._epsilon / math.sqrt(1 - beta ** (step - self._first + 1))
        self.inner.zero_grad()


def optimizer_of(
    point: Point, task: Task, rates: NDArray[np.float64], first: int, variables: Sequence[Any]
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
    train, parameters = point.train, [variable.value for variable in variables]
    peak = float(rates.max())
    if task.optimizer is None:
        inner = make_optimizer(
            train.optimizer,
            parameters,
            peak,
            kappa=point.batch_ratio,
            scaling=train.learning_rate_scaling,
            constants=train.optimizer_constants,
        )
    else:
        inner = _of_task(task, variables, peak)
    if task.scheduler is not None:
        table = _scheduled(inner, task.scheduler, len(rates), train.epochs)
        return ScheduledOptimizer(
            inner, lambda step: table[min(step - first, len(table) - 1)], first, settable=False
        )
    bases, last = [group["lr"] for group in inner.param_groups], len(rates) - 1

    def entries(step: int) -> list[dict[str, Any]]:
        return [{"lr": float(base * rates[min(step - first, last)] / peak)} for base in bases]

    of_keras = train.optimizer_constants == "keras" and isinstance(inner, torch.optim.Adam)
    return ScheduledOptimizer(
        inner,
        entries,
        first,
        settable=bool(np.all(rates == rates[0])),
        uncorrected=of_keras and task.optimizer is None,
    )


def make_optimizer(
    name: str,
    parameters: Sequence[Any],
    rate: float,
    *,
    kappa: float = 1.0,
    scaling: str = "none",
    constants: str = "framework",
) -> torch.optim.Optimizer:
    """Create the optimizer `name` of `torch.optim`, in fused kernels where PyTorch has them.

    For an adaptive optimizer, scaling "sqrt" also changes the averages; see `scale_averages`. With
    `constants` "keras", the values of epsilon and weight decay are Keras's.
    """
    kind, words = KINDS[name]
    words = words | (OF_KERAS.get(name, {}) if constants == "keras" else {})
    if kind is not Lamb:
        words |= {"fused": True} if parameters[0].device.type in FUSED else {"foreach": True}
    made = kind(parameters, lr=rate, **words)
    if scaling != "sqrt" or kappa == 1 or "betas" not in made.defaults:
        return made
    first, second = made.defaults["betas"]
    first, second, epsilon = scale_averages(Averages(first, second, made.defaults["eps"]), kappa)
    return kind(parameters, lr=rate, **words | {"betas": (first, second), "eps": epsilon})


def _of_task(task: Task, variables: Sequence[Any], rate: float) -> torch.optim.Optimizer:
    """Return the optimizer that the task file makes, which must train all `variables`."""
    assert task.optimizer is not None
    inner = task.optimizer(getattr(task.model, "module", task.model), rate)
    if not isinstance(inner, torch.optim.Optimizer) or isinstance(inner, torch.optim.LBFGS):
        raise UserError(
            "an optimizer of PyTorch whose step() takes no closure from optimizer(model, rate)",
            type(inner).__name__,
            "Return an instance such as torch.optim.AdamW(model.parameters(), lr=rate).",
        )
    known = {id(parameter) for group in inner.param_groups for parameter in group["params"]}
    missing = [variable.path for variable in variables if id(variable.value) not in known]
    if missing:
        raise UserError(
            "an optimizer(model, rate) that trains every weight of the model",
            f"one without {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}",
            "Add these parameters to one of its groups, or freeze them with requires_grad_(False).",
        )
    return inner


def _scheduled(
    inner: torch.optim.Optimizer, scheduler: Callable[..., Any], steps: int, epochs: int
) -> list[list[dict[str, Any]]]:
    """Return what a scheduler of PyTorch sets in each parameter group at each step, without training."""
    made, table = scheduler(inner, steps, epochs), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the optimizer takes no steps
        for _ in range(steps):
            table.append(
                [{key: group[key] for key in SCHEDULED if key in group} for group in inner.param_groups]
            )
            try:
                made.step()
            except TypeError as error:
                raise UserError(
                    "a scheduler(optimizer, steps, epochs) whose step() needs no metric",
                    f"{type(made).__name__}: {error}",
                    "For rates by a metric, put keras.callbacks.ReduceLROnPlateau into callbacks.",
                ) from error
    return table
