"""The interface of an engine: all that a run asks of a framework. Arrays are NumPy's, everywhere."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from scalestudy.cluster.placement import Placement
from scalestudy.data.loading.slices import Call, Slice
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Joined
from scalestudy.hardware.no_gpus import Reason
from scalestudy.study.engines import engine_traits
from scalestudy.study.metrics import Sense
from scalestudy.study.model_record import ModelRecord
from scalestudy.study.point import Point
from scalestudy.util.registry import loaded


class Engine(Protocol):
    """A framework that computes. It is imported at its first use; then `set_up` comes before all else."""

    def set_up(self, point: Point, *, threads: int, device: str) -> None:
        """Take the devices ("cpu" or "gpu") and threads; set seeds, precision, determinism. Once a run."""

    def devices(self, device: str) -> list[str]:
        """Names of the physical devices in use."""

    def why_missing(self) -> Reason:
        """Why it lists fewer GPUs than this process was given; may take as long as a start."""

    def build_record(self) -> dict[str, Any]:
        """How the framework was built, by its name."""

    def allocated(self, device: str) -> list[int | None]:
        """The most bytes that tensors have held at once on each GPU, None where not told; nothing on CPUs."""

    def trainer(
        self, point: Point, prepared: Prepared, rates: NDArray[np.float64], joined: Joined
    ) -> "Trainer":
        """Build a point's task, alike on every rank; `rates` are those of each step, shape [steps].

        Raises:
            UserError: If the task cannot be built so.
        """

    def without_exchange(self, joined: Joined) -> Joined:
        """The same workers, who compute all else as before and sum no gradients, so that their weights part.

        What layers sum over workers is taken to be alike on all, so that its size is right.
        """

    def inference(self, path: str, record: ModelRecord) -> "Inference":
        """Load a trained model that `Trainer.save` or `export` wrote, alone in this process.

        Raises:
            UserError: If it cannot be loaded.
        """

    def export(self, path: str, record: ModelRecord, out: str, form: str) -> None:
        """Write the model that `Trainer.save` wrote to `path` so that it loads without this package.

        Args:
            path: The model's file.
            record: What it is of; `record.inputs` says whether it is to take inputs as stored or scaled.
            out: File or folder to write.
            form: One of `EngineTraits.export_forms`.

        Raises:
            UserError: If it cannot be loaded, or not be written in this form.
        """

    def try_step(
        self, compute: Callable[[], tuple[Any, Any]], variables: Sequence[Any],
        change: Callable[[list[Any]], None],
    ) -> "StepTrial":  # fmt: skip
        """Compute a step as training would, before there is any.

        Args:
            compute: Gives the objective, whose gradients are taken, and losses of shape [B].
            variables: Of the model and its loss, by which gradients are taken.
            change: Is given the gradients, zeros where there are none.
        """

    def script_session(
        self, strategy: str, placement: Placement, *, workers: int, device: str, threads: int
    ) -> Any:
        """Join the other workers of a user's script, which share `group` and the methods of `Workers`.

        Raises:
            UserError: If the framework has computed before.
            RunError: If the others are not found.
        """


class StepTrial(NamedTuple):
    """What a step that was tried has shown.

    Attributes:
        losses: Shape [B].
        reached: Whether each variable has a gradient.
        stray: A variable that the step reads and does not train; None without one.
    """

    losses: NDArray[Any]
    reached: list[bool]
    stray: str | None


class Judged(NamedTuple):
    """What a model makes of B samples with a target, each by itself.

    Attributes:
        outputs: Shape [B, ...].
        losses: Shape [B].
        qualities: The task's first metric over each sample alone, shape [B]; NaN where it has none.
    """

    outputs: NDArray[np.float32]
    losses: NDArray[np.float64]
    qualities: NDArray[np.float64]


class Inference(Protocol):
    """A trained model in one process: nothing is shared with other workers."""

    def outputs(self, inputs: NDArray[Any], scale: float) -> NDArray[np.float32]:
        """The model's outputs for inputs of shape [B, H, W, C], which `scale` multiplies into [0, 1]."""

    def judged(self, inputs: NDArray[Any], targets: NDArray[Any], scale: float) -> Judged:
        """The same of samples with targets (shape [B, ...]). Not of a model without its task."""


class Flops(NamedTuple):
    """Floating-point operations of a training step: of products and convolutions, two for each product.

    Attributes:
        per_sample: Forward and backward; None where not all are known.
        uncounted: Layers that multiply and could not be counted.
    """

    per_sample: float | None
    uncounted: tuple[str, ...] = ()


class Variable(NamedTuple):
    """A variable but for its value; `own` is one of which every worker keeps a value (moving statistics)."""

    dtype: str
    shape: tuple[int, ...]
    own: bool


class Values(NamedTuple):
    """The values of all variables.

    Attributes:
        common: Of those that all workers have alike, in the order of `Trainer.variables`.
        own: Of those that each worker keeps for itself, each of shape [copies in this process, ...].
    """

    common: list[NDArray[Any]]
    own: list[NDArray[Any]]


class Bucket(NamedTuple):
    """Gradients that are summed over workers at once.

    Attributes:
        bytes: Of one worker's.
        work: Multiplications of the forward pass, a sample, with the variables of these gradients; None where
            the model does not tell.
    """

    bytes: int
    work: int | None


class Callbacks(Protocol):
    """A task's callbacks, told where the run is. Epochs and steps count from 0."""

    def begin(self) -> None:
        """Training begins."""

    def epoch_begin(self, epoch: int) -> None:
        """An epoch begins."""

    def batch_end(self, step: int) -> None:
        """The call that ends with step `step` of the epoch is done."""

    def epoch_end(self, epoch: int, logs: dict[str, float]) -> bool:
        """An epoch is over; returns whether they want training to stop."""

    def end(self, logs: dict[str, float]) -> None:
        """Training is over."""


class Trainer(Protocol):
    """One process's part of a run: the model and its optimizer, and what is computed with them.

    Attributes:
        metrics: Names of the task's metrics, the quality first.
        sense: What the quality means: which way is better, and whether it lies in [0, 1].
        senses: The same of each metric, as far as anything says so.
        parameters: Of the model.
        variables: All that changes while training: the model's, the optimizer's, the loss scale.
        model_suffix: Of the files that `save` writes.
        buckets: In which gradients are summed over workers, in that order, once all layers learn that will.
    """

    metrics: Sequence[str]
    sense: Sense
    senses: Mapping[str, Sense]
    parameters: int
    variables: Sequence[Variable]
    model_suffix: str
    buckets: Sequence[Bucket]

    @property
    def phases(self) -> Sequence[int]:
        """Steps of the run, from 0, each of which begins with another compiled function; the first is 0."""

    @property
    def has_callbacks(self) -> bool:
        """Whether the task has any, which may set the rate and the weights on rank 0."""

    @property
    def rate(self) -> float | None:
        """Learning rate where a callback may set it; None where a table rules."""

    def enter(self, step: int) -> None:
        """Take up the phase that `step` of the run belongs to: `rate` and callbacks are of its optimizer."""

    def set_rate(self, rate: float) -> None:
        """Set it for this process."""

    def stage(self, part: Slice, device: int) -> Slice:
        """Take the arrays of a slice, as read, to this process's device of that index, ahead of need.

        The thread that reads for that device asks, while steps before it are computed. It waits for the copy,
        if one is made; the arrays' memory is used anew as soon as nothing refers to them any more.
        """

    def train(self, call: Call) -> SupportsFloat:
        """Compute the steps of a call on all workers, and update the weights after each.

        The gradient is that of (sum of the slices' losses) / (rows of the global batch), summed over all
        workers, whatever the sizes of their slices.

        Returns:
            The sum of losses of this process's workers, perhaps still under way: `float` waits for it.
        """

    def evaluate(self, call: Call) -> list[NDArray[np.float64]]:
        """What adds up to `results` over slices and processes; the first two are losses and samples."""

    def results(self, sums: Sequence[NDArray[np.float64]]) -> dict[str, float]:
        """Loss and metrics of what `evaluate` gave, added up: each divided once; then values of classes."""

    def matrices(self, sums: Sequence[NDArray[np.float64]]) -> dict[str, list[list[int]]]:
        """Confusion matrices of the same sums, by the names of their metrics: a row for each true class."""

    def constant(self, targets: Iterable[NDArray[Any]], answer: NDArray[np.float64]) -> float | None:
        """Quality of a model that answers the same everywhere; None where its outputs are not of classes.

        One rank may ask alone. `targets` come in parts of shape [B, ...]; `answer` is the probability of each
        class for every sample or pixel, shape [classes].
        """

    def values(self) -> Values:
        """The values of all variables in this process."""

    def assign(self, values: Values) -> None:
        """Restore what `values` gave, perhaps in another process."""

    def average(self) -> None:
        """Set what each worker keeps for itself to its mean over all workers. Every rank must ask."""

    def share(self) -> None:
        """Give every process the values that rank 0 has. Every rank must ask."""

    def weights(self) -> list[list[NDArray[Any]]]:
        """The weights of the model, for each copy of it in this process."""

    def callbacks(self, *, epochs: int, steps: int) -> Callbacks:
        """The task's callbacks, for a run of so many epochs of so many steps. Only rank 0 asks."""

    def flops(self) -> Flops:
        """What a step computes in the present phase. One rank may ask alone."""

    def prove_savable(self, path: str) -> None:
        """Save the model as it is to `path`, and load it back.

        Raises:
            UserError: If that cannot be done; names the classes that are not the framework's.
            OSError: If the file cannot be written.
        """

    def save(self, path: str) -> None:
        """Save the model as a plain one of the framework's, free of this package's layers."""

    def restore(self, path: str) -> None:
        """Take the weights that `save` has written, on every copy of the model in this process.

        Raises:
            UserError: If they are another model's.
        """

    def inference(self) -> Inference:
        """The plain model with the present weights. One rank may ask alone."""


def engine_of(name: str) -> Engine:
    """The engine of this name, imported at its first use, without what its framework only looks for."""
    engine: Engine = loaded(engine_traits(name).implementation)
    return engine
