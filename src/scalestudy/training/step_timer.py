"""Timing runs, which end when the step time is known."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from math import ceil
from typing import Protocol, SupportsFloat

import numpy as np

from scalestudy.data.samples import Call, Indices
from scalestudy.data.split import Split
from scalestudy.engines.group import Group
from scalestudy.store.records import PROVING_STEPS, Timing

WARM_UP, LEAST_STEPS, LEAST_CALLS = 2.0, 8, 2
"""Seconds after the first call, which compiles, and steps after which the warm-up ends, unless
`WARM_UP_SHARE` of all steps is less; steps and calls that are measured at least."""
WARM_UP_SHARE = 0.1
MEASURE, MEASURE_SHARE, LONGEST = 5.0, 0.02, 60.0
"""Seconds that are measured: `MEASURE`; if more, this share of the training's time, but at most `LONGEST`."""
MEASURED_SHARE = 0.2
"""Largest share of all steps that is measured."""


class Training(Protocol):
    """What a timing run asks of its `Session`."""

    epochs: int
    split: Split

    @property
    def elapsed(self) -> float:
        """Seconds of training."""

    def is_due(self, epoch: int) -> bool:
        """Whether the model is evaluated after an epoch."""

    def measure(self, samples: Indices) -> dict[str, float]:
        """Evaluate the model on these samples."""


class StepTimer:
    """Measures the time of a step after a warm-up, in agreement among all ranks.

    The warm-up is checked after 1, 2, 4, 8, … calls. Its pace gives the number of calls to measure, so that
    neither ranks nor host and device wait for each other while they are measured.

    Args:
        group: All ranks.
        planned: Steps of the training.
    """

    def __init__(self, group: Group, planned: int) -> None:
        self._group = group
        self._planned = planned
        self._calls = self._steps = 0
        # The call after which the warm-up is checked next; None once it is over.
        self._next: int | None = 1
        self._last = 0
        # Calls and seconds at the last check; seconds of the first call, which compiles.
        self._checked = (0, 0.0)
        self._first = 0.0
        # Steps and seconds of the warm-up.
        self._warm = (0, 0.0)
        self._losses: list[tuple[SupportsFloat, int]] = []
        self._means: list[float] = []
        self._evaluations: list[float] = []
        self.over = False
        """Whether the step time is known."""

    def ends(
        self,
        call: Call,
        losses: SupportsFloat,
        pause: Callable[[], AbstractContextManager[None]],
        spent: Callable[[], float],
    ) -> bool:
        """Count a call and its losses; return whether it was the last one. Every rank must call this.

        `pause` waits for the device and pauses the timer, and `spent` returns its seconds.
        """
        steps = call[0].steps
        # Kept as they are: to convert them would wait for the device.
        if self._steps < PROVING_STEPS:
            self._losses.append((losses, steps * call[0].total))
        self._calls += 1
        self._steps += steps
        if self._next == self._calls:
            with pause():
                self._check(spent())
        self.over = self._next is None and self._calls >= self._last
        return self.over

    def _check(self, seconds: float) -> None:
        checked, before = self._checked
        pace = (seconds - before) / (self._calls - checked)
        self._checked = (self._calls, seconds)
        if self._first == 0.0:
            self._first = seconds
        # Clocks of ranks differ: rank 0 decides, so that all end after the same call.
        mine = np.zeros(2)
        if self._group.rank == 0:
            mine[:] = self._is_warm(seconds), pace
        warm, pace = self._group.host_sum(mine).tolist()
        # Each check waits for the device, so that they become rarer.
        if not warm:
            self._next = 2 * self._calls
            return
        self._next = None
        self._warm = (self._steps, seconds)
        self._last = self._calls + self._calls_to_measure(pace)

    def _is_warm(self, seconds: float) -> bool:
        """Return whether the warm-up is over after so many seconds of training."""
        if self._steps >= WARM_UP_SHARE * self._planned:
            return True
        return seconds - self._first >= WARM_UP and self._steps >= LEAST_STEPS

    def _calls_to_measure(self, pace: float) -> int:
        """Return the number of calls to measure, at so many seconds per call."""
        per_call = self._steps / self._calls
        calls = self._planned / per_call
        seconds = max(MEASURE, min(LONGEST, MEASURE_SHARE * calls * pace))
        wanted = seconds / max(pace, 1e-9)
        least = max(LEAST_CALLS, ceil(LEAST_STEPS / per_call))
        return max(least, int(min(wanted, MEASURED_SHARE * calls)))

    def evaluate(self, session: Training) -> dict[str, float]:
        """Evaluate once, and once more if the training does: the first evaluation compiles."""
        most = min(2, _evaluations(session))
        for _ in range(most):
            began = time.perf_counter()
            found = session.measure(session.split.validation)
            self._evaluations.append(time.perf_counter() - began)
        losses = [float(losses) for losses, _ in self._losses]
        sums = self._group.host_sum(np.array(losses)).tolist()
        self._means = []
        for total, (_, samples) in zip(sums, self._losses, strict=True):
            self._means.append(total / samples)
        return found

    def record(self, session: Training) -> Timing:
        """Return what was measured. If the training ended before the warm-up, all of it counts."""
        steps, seconds = self._warm
        if self._steps <= steps:
            steps = 0
            seconds = 0.0
        return Timing(
            warm_up_steps=steps,
            warm_up_seconds=seconds,
            steps=self._steps - steps,
            seconds=session.elapsed - seconds,
            evaluations=self._evaluations,
            training_epochs=session.epochs,
            training_updates=self._planned,
            training_samples=session.epochs * len(session.split.train),
            training_evaluations=_evaluations(session),
            losses=self._means,
        )


def _evaluations(session: Training) -> int:
    """Return how often a training evaluates its model."""
    return sum(map(session.is_due, range(session.epochs)))
