"""The times of a run: a clock by phase, and the distribution of step times."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import log2

from scalestudy.measure.hang_detection import Heartbeat
from scalestudy.store.records import EpochSteps, StepRecord


class PhaseClock:
    """Adds up wall-clock seconds by phase. Phases nest; an inner phase's time does not count as the outer's.

    `started` is the Unix time at which the process started; the time since then counts as "start-up". Every
    change of phase is marked in `heart`.
    """

    def __init__(self, started: float | None = None) -> None:
        self.heart = Heartbeat()
        self.started = time.time() if started is None else started
        self._origin = time.perf_counter()
        self.seconds: dict[str, float] = {}
        self._inner: list[float] = []
        if started is not None:
            before = max(0.0, time.time() - started)
            self.seconds["start-up"] = before
            self._origin -= before

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of the block as phase `name`."""
        start = time.perf_counter()
        self._inner.append(0.0)
        outer = self.heart.last.phase
        self.heart.enter(name)
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + spent - self._inner.pop()
            if self._inner:
                self._inner[-1] += spent
            self.heart.enter(outer)

    def add(self, name: str, seconds: float) -> None:
        """Count `seconds`, measured by the caller, as phase `name`."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        if self._inner:
            self._inner[-1] += seconds

    def resume(self, phases: dict[str, float], wall: float) -> None:
        """Add the results of an earlier process: its `phases()` and its `wall`."""
        self._origin -= wall
        for name, seconds in phases.items():
            if name != "other":
                self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    @property
    def wall(self) -> float:
        """Seconds since the process started, plus those of the processes it continues."""
        return time.perf_counter() - self._origin

    def phases(self) -> dict[str, float]:
        """Return seconds by phase, which add up to the wall time; "other" is the time outside of phases."""
        other = self.wall - sum(self.seconds.values())
        return {**self.seconds, "other": max(0.0, other)}


PER_OCTAVE = 64
"""Classes of the histogram per factor of two; each is 1 % wide."""
MOST = 512
"""Maximum number of entries for epochs; beyond it, pairs of consecutive entries are merged."""


def class_of(seconds: float) -> int:
    """Return the class i of a time: from 2^(i/64) to 2^((i+1)/64) microseconds; 0 for shorter times."""
    return max(0, int(PER_OCTAVE * log2(max(1e6 * seconds, 1.0))))


def seconds_of(index: int) -> float:
    """Return the geometric mean of the limits of a class, in seconds."""
    return float(2 ** ((index + 0.5) / PER_OCTAVE) / 1e6)


def quantile(histogram: dict[int, int], share: float) -> float:
    """Return the quantile at `share`, to the width of a class. The histogram must not be empty."""
    left = share * sum(histogram.values())
    for index in sorted(histogram):
        left -= histogram[index]
        if left <= 0:
            return seconds_of(index)
    return seconds_of(max(histogram))


class StepTimes:
    """Counts the durations of calls and of waits for input, and their sums per epoch."""

    def __init__(self, rank: int) -> None:
        self._rank, self._together, self._stride = rank, 1, 1
        self._calls: Counter[int] = Counter()
        self._waits: Counter[int] = Counter()
        self._epochs: list[EpochSteps] = []
        self._count = self._steps = 0
        self._seconds = self._waited = self._longest = 0.0

    def add(self, steps: int, seconds: float, waited: float) -> None:
        """Count a call of `steps` steps that took `seconds`, after waiting `waited` seconds for input."""
        if steps > self._together:
            self._together = steps
            self._calls.clear()
        if steps == self._together:
            self._calls[class_of(seconds)] += 1
        self._waits[class_of(waited)] += 1
        self._count += 1
        self._steps += steps
        self._seconds += seconds
        self._waited += waited
        self._longest = max(self._longest, seconds)

    def epoch_end(self, epoch: int) -> None:
        """Store the sums of an epoch, counted from 1, and start the next one."""
        own = EpochSteps(
            epochs=(epoch, epoch),
            calls=self._count,
            steps=self._steps,
            step_seconds=self._seconds,
            input_seconds=self._waited,
            longest=self._longest,
        )
        last = self._epochs[-1] if self._epochs else None
        if last is not None and last.epochs[1] - last.epochs[0] + 1 < self._stride:
            self._epochs[-1] = _join(last, own)
        else:
            self._epochs.append(own)
        if len(self._epochs) > MOST:
            self._stride *= 2
            pairs = zip(self._epochs[::2], self._epochs[1::2], strict=False)
            rest = self._epochs[-1:] if len(self._epochs) % 2 else []
            self._epochs = [_join(first, second) for first, second in pairs] + rest
        self._begin()

    def record(self) -> StepRecord:
        """Return the histograms of all calls, and the entries of finished epochs."""
        return StepRecord(
            rank=self._rank,
            steps_per_call=self._together,
            calls=dict(self._calls),
            waits=dict(self._waits),
            epochs=list(self._epochs),
        )

    def _begin(self) -> None:
        self._count = self._steps = 0
        self._seconds = self._waited = self._longest = 0.0


def _join(first: EpochSteps, second: EpochSteps) -> EpochSteps:
    return EpochSteps(
        epochs=(first.epochs[0], second.epochs[1]),
        calls=first.calls + second.calls,
        steps=first.steps + second.steps,
        step_seconds=first.step_seconds + second.step_seconds,
        input_seconds=first.input_seconds + second.input_seconds,
        longest=max(first.longest, second.longest),
    )
