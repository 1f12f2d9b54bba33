"""The interface of an engine, through which a run uses a framework. All arrays are NumPy arrays."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from scalestudy.config.metric_senses import Sense
from scalestudy.config.point import Point
from scalestudy.data.samples import Call, Slice
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Joined
from scalestudy.hardware.no_gpus import Reason
from scalestudy.plugins.engines import engine_traits
from scalestudy.store.model_record import ModelRecord
from scalestudy.util.registry import load


class Engine(Protocol):
    """A framework that computes. It is imported at its first use; `set_up` must be called before anything."""

    def set_up(
        self,
        point: Point,
        *,
        threads: int,
        device: str,
    ) -> None:
        """Set up devices ("cpu" or "gpu"), threads, seeds, precision and determinism. Call once per run."""

    def devices(self, device: str) -> list[str]:
        """Return the names of the physical devices in use."""

    def why_missing(self) -> Reason:
        """Explain why the engine lists fewer GPUs than it was given. May take as long as an import."""

    def build_record(self) -> dict[str, Any]:
        """Return how the framework was built, keyed by its name."""

    def gpu_memory(self, device: str) -> list[tuple[int | None, int | None]]:
        """Return the peak bytes of tensors, and those held by the allocator, of each GPU; [] on CPUs.

        Unknown values are None.
        """

    def trainer(
        self,
        point: Point,
        prepared: Prepared,
        rates: NDArray[np.float64],
        joined: Joined,
    ) -> "Trainer":
        """Build a point's task, the same on every rank. `rates` are the learning rates, shape [steps].

        Raises:
            UserError: If the task cannot be built for this point.
        """

    def without_exchange(self, joined: Joined) -> Joined:
        """Return the same workers without summing gradients, so that their weights diverge; all else is kept.

        Layers that sum over workers multiply their own values by the number of workers instead.
        """

    def inference(self, path: str, record: ModelRecord) -> "Inference":
        """Load a trained model that `ModelFile.save` or `export` wrote, in this process only.

        Raises:
            UserError: If it cannot be loaded.
        """

    def export(
        self,
        path: str,
        record: ModelRecord,
        out: str,
        form: str,
    ) -> None:
        """Export the model that `ModelFile.save` wrote to `path`, so that it loads without this package.

        Args:
            path: The model file.
            record: The model's record.
            out: File or folder to write.
            form: One of `EngineTraits.export_forms`.

        Raises:
            UserError: If the model cannot be loaded, or not be written in this form.
        """

    def try_step(
        self,
        compute: Callable[[], tuple[Any, Any]],
        variables: Sequence[Any],
    ) -> "StepTrial":
        """Compute a step as in training, before training, to test a task.

        Args:
            compute: Returns the objective to differentiate, and losses of shape [B].
            variables: Variables of the model for which gradients are computed.
        """


class StepTrial(NamedTuple):
    """The result of `Engine.try_step`.

    Attributes:
        losses: Shape [B].
        reached: Whether each variable has a gradient.
        stray: A variable that the step reads but does not train, or None.
    """

    losses: NDArray[Any]
    reached: list[bool]
    stray: str | None


class Inference(Protocol):
    """A trained model in one process, without other workers."""

    def outputs(self, inputs: NDArray[Any], scale: float) -> NDArray[np.float32]:
        """Return the outputs for inputs of shape [B, H, W, C]; `inputs * scale` lies in [0, 1]."""

    def losses(
        self,
        inputs: NDArray[Any],
        targets: NDArray[Any],
        scale: float,
    ) -> NDArray[np.float64]:
        """Return the loss of each of B samples with targets, shape [B]; needs the task."""


class Flops(NamedTuple):
    """Floating-point operations of matrix products and convolutions in a step; a multiply-add is two.

    Attributes:
        per_sample: Forward and backward pass; None if a layer could not be counted.
        uncounted: Types of the layers that could not be counted.
    """

    per_sample: float | None
    uncounted: tuple[str, ...] = ()


class Variable(NamedTuple):
    """A variable without its value. If `own`, each worker has its own value, as for moving statistics."""

    dtype: str
    shape: tuple[int, ...]
    own: bool


class Values(NamedTuple):
    """The values of all variables.

    Attributes:
        common: Values that are the same on all workers, in the order of `ModelState.variables`.
        own: Values of the variables that each worker has for itself, of shape [copies in this process, ...].
    """

    common: list[NDArray[Any]]
    own: list[NDArray[Any]]


class DeviceMark(Protocol):
    """A point in the work of a device, which a host gives in advance."""

    def wait(self) -> None:
        """Wait until the device has reached it."""

    def seconds_since(self, earlier: Any) -> float:
        """Return the device's seconds since an earlier mark. Both must be reached."""


class ModelState(Protocol):
    """The values that training changes, in one process: of the model, the optimizer and the loss scale.

    Attributes:
        variables: All of them, without their values.
        parameters: Number of parameters of the model.
    """

    variables: Sequence[Variable]
    parameters: int

    def values(self) -> Values:
        """Return the values of all variables in this process."""

    def assign(self, values: Values) -> None:
        """Restore the result of `values`, possibly from another process."""

    def weights(self) -> list[list[NDArray[Any]]]:
        """Return the weights of the model, for each copy of it in this process."""

    def begin_with(self, weights: Sequence[NDArray[Any]]) -> None:
        """Set the weights of the model, in the order of `weights`, in this process."""

    def share(self) -> None:
        """Give every process the values of rank 0. Every rank must call this."""

    def average(self) -> None:
        """Set the moving statistics of every worker to their mean over workers. Every rank must call this."""

    @property
    def momentum(self) -> float | None:
        """Largest share of its moving statistics that a layer keeps at an update; None without layers."""

    def with_statistics(
        self, sums: Sequence[NDArray[np.float64]]
    ) -> AbstractContextManager[None]:
        """Give every worker the statistics of batch normalisation of `Trainer.statistics`, in the block.

        Layers that these do not cover keep their moving statistics. After the block, all are as before.

        Args:
            sums: The arrays of `Trainer.statistics`, summed over slices and processes.
        """

    def not_finite(self) -> str | None:
        """Return the name of the first weight of the model, in its order, that is not finite; else None.

        It reads all weights. A single rank may call this.
        """


class ModelFile(Protocol):
    """The model of a training as a file of its framework, which loads without this package.

    Attributes:
        suffix: Suffix of the files that `save` writes.
    """

    suffix: str

    def prove_savable(self, path: str) -> None:
        """Save the current model to `path` and load it back.

        Raises:
            UserError: If that fails; names the classes that do not belong to the framework.
            OSError: If the file cannot be written.
        """

    def save(self, path: str) -> None:
        """Save the model as a plain model of the framework, without layers of this package."""

    def restore(self, path: str) -> None:
        """Load the weights that `save` wrote into every copy of the model in this process.

        Raises:
            UserError: If they belong to a different model.
        """

    def inference(self) -> Inference:
        """Return the plain model with the current weights. A single rank may call this."""


class Trainer(Protocol):
    """One process's part of a run: trains and evaluates the model with its optimizer.

    Attributes:
        metrics: Names of the task's metrics; the first is the quality.
        sense: Better direction of the quality, and whether it lies in [0, 1].
        computed: Called in a step before gradients are exchanged, by engines that know when. A rank that
            stands still in its own part of a step is thereby distinguished from those that wait for it.
    """

    metrics: Sequence[str]
    sense: Sense
    computed: Callable[[], None]

    @property
    def state(self) -> ModelState:
        """The values that training changes."""

    @property
    def file(self) -> ModelFile:
        """The model as a file."""

    @property
    def phases(self) -> Sequence[int]:
        """Steps of the run, from 0, at which another compiled function takes over; the first is 0."""

    @property
    def has_callbacks(self) -> bool:
        """Whether the task has callbacks, which may change the rate and the weights on rank 0."""

    @property
    def rate(self) -> float | None:
        """Learning rate if callbacks may set it, or None if it follows a table."""

    def enter(self, step: int) -> None:
        """Enter the phase of `step` of the run: `rate` and callbacks then refer to its optimizer."""

    def set_rate(self, rate: float) -> None:
        """Set the learning rate in this process."""

    def stage(self, part: Slice, device: int) -> Slice:
        """Move the arrays of a slice to the device with this index in advance.

        The thread that reads for the device calls this during earlier steps. It waits for the copy, if any;
        the memory of the arrays is reused as soon as nothing refers to them.
        """

    def train(self, call: Call) -> SupportsFloat:
        """Compute the steps of a call on all workers and update the weights after each step.

        The gradient of a step is the sum over all workers of the gradients of (sum of the slice's losses) /
        (rows of the global batch), for slices of any size.

        Returns:
            The sum of losses of this process's workers. It may still be computing; `float` waits for it.
        """

    def mark(self) -> "DeviceMark | None":
        """Mark the end of the work given to the device so far; None if calls return when computed."""

    def evaluate(self, call: Call) -> list[Any]:
        """Return values to add up over slices, which may stay on the device; see `arrays`."""

    def arrays(self, sums: Sequence[Any]) -> list[NDArray[np.float64]]:
        """Return sums of `evaluate` as arrays; the first two are losses and samples."""

    def results(self, sums: Sequence[NDArray[np.float64]]) -> dict[str, float]:
        """Return loss and metrics from sums over all processes, then per-class values."""

    def constant(
        self,
        targets: Iterable[NDArray[Any]],
        answer: NDArray[np.float64],
    ) -> float | None:
        """Return the quality of a constant prediction, or None if the outputs are not classes.

        A single rank may call this. `targets` yields parts of shape [B, ...]; `answer` is the probability of
        each class for every sample or pixel, shape [classes].
        """

    def statistics(self, call: Call) -> list[Any]:
        """Return arrays to sum over slices and processes, from which `ModelState.with_statistics` computes statistics.

        Each slice is a batch: a layer of batch normalisation that is trained in this phase normalises it by
        its own statistics. All other layers compute as in evaluation.
        """

    def callbacks(self, *, epochs: int, steps: int) -> Any:
        """Return the task's callbacks as a `keras.callbacks.CallbackList`. Only for rank 0."""

    @property
    def stops(self) -> bool:
        """Whether a callback has asked to end the training."""

    def flops(self) -> Flops:
        """Count the operations of a step in the current phase. A single rank may call this."""


def engine_of(name: str) -> Engine:
    """Return the engine of this name, imported at its first use."""
    engine: Engine = load(engine_traits(name).implementation)
    return engine
