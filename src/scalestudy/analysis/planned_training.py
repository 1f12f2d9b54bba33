"""The time of a training of another length than the measured ones, from what a run recorded.

Studies are short and the trainings they decide about are long. A training takes a fixed time (start-up,
compilation, the last save) and, in every epoch, the time of its steps, of its evaluations and of what else
is repeated. A run that recorded its epochs gives each of these parts. So each run, whether it trained to the
end or only timed its steps, gives one value of the planned time; the spread of these values gives its
interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from scalestudy.analysis.runs import Run
from scalestudy.config.settings import PlanSettings
from scalestudy.store.records import EpochRecord, Timing

STEPS = ("steps", "input")
"""Phases of a training's steps."""
FIXED = (
    "start-up",
    "framework",
    "join",
    "build",
    "compile",
    "saving",
    "proof",
    "other",
)
"""Phases that do not grow with the epochs; all others but `STEPS` and the evaluation are repeated in each."""
EVALUATION = "evaluation"


@dataclass(frozen=True)
class PlannedTraining:
    """A training of which only the length is known; None stands for what the run itself had."""

    epochs: int | None = None
    samples: int | None = None

    @classmethod
    def of(cls, plan: PlanSettings) -> "PlannedTraining":
        """The training that the section [plan] describes."""
        return cls(plan.epochs, plan.samples)

    @property
    def as_measured(self) -> bool:
        """Whether it is as long as the trainings of the study."""
        return self.epochs is None and self.samples is None


@dataclass(frozen=True)
class TimeParts:
    """Seconds of a training: `fixed` once, the others for each epoch.

    Attributes:
        steps: Steps and waiting for input.
        evaluation: Evaluations, as a mean over all epochs.
        repeated: All else that is repeated, such as callbacks.
    """

    fixed: float
    steps: float
    evaluation: float
    repeated: float

    @property
    def epoch(self) -> float:
        """Seconds that an epoch adds."""
        return self.steps + self.evaluation + self.repeated


def time_parts(run: Run) -> TimeParts | None:
    """Split the time of a run's training; None if its length in seconds or in epochs is unknown."""
    result, wall = run.result, run.wall_seconds
    if wall is None or not result.epochs:
        return None
    phases = result.phases
    # Logs of other programs know less of their epochs.
    epochs = [epoch for epoch in run.epochs if isinstance(epoch, EpochRecord)]
    if result.timing is not None:
        steps, evaluation = _timed(result.timing)
    elif epochs:
        steps = _steady_steps(epochs)
        evaluation = _steady_evaluation(epochs)
    elif phases:
        of_steps = [phases.get(name, 0.0) for name in STEPS]
        steps = sum(of_steps) / result.epochs
        evaluation = phases.get(EVALUATION, 0.0) / result.epochs
    else:
        return None
    not_repeated = (*FIXED, *STEPS, EVALUATION)
    repeated = []
    for name, seconds in phases.items():
        if name not in not_repeated:
            repeated.append(seconds)
    each = sum(repeated) / result.epochs
    # What the first epoch takes longer, as by compiling, is not repeated: it remains in the fixed part.
    growing = result.epochs * (steps + evaluation + each)
    fixed = max(0.0, wall - growing)
    return TimeParts(fixed, steps, evaluation, each)


def _timed(timing: Timing) -> tuple[float, float]:
    """Seconds of the steps and of the evaluations of an epoch, from a timing run."""
    epochs = timing.training_epochs
    updates = timing.training_updates / epochs
    steps = updates * timing.seconds / timing.steps
    if not timing.evaluations:
        return steps, 0.0
    evaluations = timing.training_evaluations
    # A single evaluation at the end belongs to the fixed part, however long the training is.
    if _only_at_the_end(evaluations, epochs):
        return steps, 0.0
    # The first evaluation compiles.
    return steps, timing.evaluations[-1] * evaluations / epochs


def _steady_steps(epochs: Sequence[EpochRecord]) -> float:
    """Mean seconds of the steps of an epoch in which no process started, if there is one."""
    # The first epoch of a process compiles.
    steady = [epoch for epoch in epochs[1:] if not epoch.resumed] or epochs
    seconds = [epoch.train_seconds for epoch in steady]
    return sum(seconds) / len(seconds)


def _steady_evaluation(epochs: Sequence[EpochRecord]) -> float:
    """Seconds of evaluations for each epoch. The first one compiles, so others count if there are any."""
    evaluated = [epoch for epoch in epochs if epoch.evaluation_seconds]
    if not evaluated or _only_at_the_end(len(evaluated), len(epochs)):
        return 0.0
    steady = evaluated[1:] or evaluated
    seconds = [epoch.evaluation_seconds for epoch in steady]
    mean = sum(seconds) / len(seconds)
    # The first evaluated epoch is the interval; the last epoch is evaluated whatever that is.
    every = evaluated[0].epoch
    return mean / every


def _only_at_the_end(evaluations: int, epochs: int) -> bool:
    return evaluations <= 1 < epochs


def planned_seconds(run: Run, planned: PlannedTraining) -> float | None:
    """Seconds from start to result of the planned training on a run's row; None if they are unknown."""
    if planned.as_measured:
        return run.wall_seconds
    parts, result = time_parts(run), run.result
    if parts is None or not result.epochs:
        return None
    more_steps = more_evaluation = 1.0
    if planned.samples is not None:
        if not result.training_samples:
            return None
        # Evaluations are taken to grow in proportion.
        more_evaluation = planned.samples / result.training_samples
        more_steps = more_evaluation
        if result.global_batch:
            # The last batch of an epoch is smaller, but it takes a step, too.
            planned_steps = ceil(planned.samples / result.global_batch)
            own_steps = ceil(result.training_samples / result.global_batch)
            more_steps = planned_steps / own_steps
    steps = parts.steps * more_steps
    evaluation = parts.evaluation * more_evaluation
    epoch = steps + evaluation + parts.repeated
    return parts.fixed + (planned.epochs or result.epochs) * epoch
