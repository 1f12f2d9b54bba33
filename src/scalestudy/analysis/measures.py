"""Measurements over all rows of a study: each quantity on its scale, with the spread of its design.

Runs of one seed are a block (`analysis.statistics`): they share split and initial weights. Times are compared
within blocks only where their runs were taken in one round (`analysis.rounds`). Only comparable rows share a
design: qualities by one metric, for rows whose runs all learned; times of real workers separate from those of
virtual and of asynchronous workers, and never of oversubscribed runs.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import isclose
from typing import Literal, TypeVar

from scalestudy.analysis.divergence import FailedRun, failures
from scalestudy.analysis.estimate import NOTHING, Contrast, Estimate
from scalestudy.analysis.planned_training import (
    PlannedTraining,
    planned_seconds,
)
from scalestudy.analysis.rounds import Rounds, rounds_of
from scalestudy.analysis.runs import (
    Key,
    Run,
    RunsByRow,
    all_foreign,
    quality_sense,
    seed_of,
    values_of,
)
from scalestudy.analysis.scales import (
    LINEAR,
    LOGARITHM,
    Scale,
    exponential,
    quality_decimals,
    quality_scale,
)
from scalestudy.analysis.statistics import contrast, mean
from scalestudy.analysis.variances import Design, Values, design_of
from scalestudy.config.metric_senses import Sense
from scalestudy.plugins.strategies import is_synchronous, is_timed, references
from scalestudy.store.records import PROVING_STEPS, Timing

T = TypeVar("T", bound=Hashable)
Groups = Mapping[Key, Sequence[Run]]
Basis = Literal["throughput", "epoch", "training"]
BASES: tuple[Basis, ...] = ("throughput", "epoch", "training")
"""The quantities whose ratio may be the speed-up: throughput in samples processed per second. Numbers from other
tools may lack it; then the inverse of the mean time of an epoch or of the whole training is used, assuming
that all runs did the same work."""
EQUAL = 1e-4
"""Relative difference of losses that rounding explains; other updates differ by more within a few steps. Only
the first losses are compared, since the differences of rounding grow with every update."""


@dataclass(frozen=True)
class Measure:
    """One quantity over all rows.

    Attributes:
        values: Each row's values by block; empty for rows that lack it.
        scales: Scale on which the interval of each row's mean is computed.
        differences: Scale on which two rows are compared: logarithmic for ratios, otherwise linear.
        of_means: Design of each row on its scale in `scales`.
        of_differences: Design of each row on the scale `differences`.
        rounds: Which runs were taken together, for times; other quantities do not depend on it.
    """

    values: Mapping[Key, Values]
    scales: Mapping[Key, Scale]
    differences: Scale
    of_means: Mapping[Key, Design | None]
    of_differences: Mapping[Key, Design | None]
    rounds: Rounds = field(default_factory=Rounds)

    def mean(self, key: Key) -> Estimate:
        """Mean over a row's runs: geometric on the logarithmic scale, else arithmetic."""
        if key not in self._means:
            values = [*self.values[key].values()]
            design = self.of_means[key]
            self._means[key] = mean(values, self.scales[key], design)
        return self._means[key]

    @cached_property
    def _means(self) -> dict[Key, Estimate]:
        """Means that were asked for. Reports and the choice of the next runs ask for each many times."""
        return {}

    def contrast(self, key: Key, reference: Key) -> Contrast | None:
        """Row minus reference on the scale of differences; None if a value lies outside that scale."""
        if (key, reference) not in self._contrasts:
            self._contrasts[key, reference] = self._contrast(key, reference)
        return self._contrasts[key, reference]

    @cached_property
    def _contrasts(self) -> dict[tuple[Key, Key], Contrast | None]:
        """Contrasts that were asked for."""
        return {}

    def _contrast(self, key: Key, reference: Key) -> Contrast | None:
        ours = self.values[key]
        theirs = self.values[reference]
        if not ours or not theirs:
            return None
        every = [*ours.values(), *theirs.values()]
        if not all(map(self.differences.holds, every)):
            return None
        between = None
        # Seeds of rows that were run apart do not show how the machine differs between hours.
        if self.rounds.apart(key, reference):
            between = self.rounds.between
        return contrast(
            _on(self.differences, self.rounds.named(key, ours)),
            _on(self.differences, self.rounds.named(reference, theirs)),
            self.of_differences[key],
            self.of_differences[reference],
            between,
        )

    def difference(self, key: Key, reference: Key) -> Estimate:
        """A row's arithmetic mean minus the reference's."""
        compared = self.contrast(key, reference)
        if compared is None:
            return NOTHING
        return compared.estimate

    def ratio(self, key: Key, reference: Key) -> Estimate:
        """Ratio of two rows' geometric means."""
        return self.difference(key, reference).map(exponential)


def build_measure(
    values: Mapping[Key, Values],
    scales: Mapping[Key, Scale],
    alike: Iterable[Sequence[Key]],
    differences: Scale,
    rounds: Rounds | None = None,
) -> Measure:
    """A quantity with a design for each group in `alike` (comparable rows); other rows have no design.

    Without `rounds`, all runs of a block were taken in one round.
    """
    rounds = rounds or Rounds()
    named = {}
    for key, row in values.items():
        named[key] = rounds.named(key, row)
    of_means: dict[Key, Design | None] = dict.fromkeys(values)
    of_differences: dict[Key, Design | None] = dict.fromkeys(values)
    for keys in alike:
        compared = _design(keys, named, dict.fromkeys(keys, differences))
        of_differences |= compared
        # On the same scale it is the same design, and a design takes most of the time.
        if all(scales[key] is differences for key in keys):
            of_means |= compared
        else:
            of_means |= _design(keys, named, scales)
    return Measure(values, scales, differences, of_means, of_differences, rounds)


def measure_times(groups: Groups, values: Mapping[Key, Values]) -> Measure:
    """Times or rates, which are compared as ratios; oversubscribed rows have no design."""
    usable = []
    for key, runs in groups.items():
        # Times on shared cores spread as other programs do, which says nothing about the other rows.
        if values.get(key) and not why_oversubscribed(runs):
            usable.append(key)

    def kind_of_workers(key: Key) -> tuple[bool, bool]:
        return is_virtual(groups[key]), is_asynchronous(groups[key])

    return build_measure(
        values,
        dict.fromkeys(values, LOGARITHM),
        gather_keys(usable, kind_of_workers).values(),
        LOGARITHM,
        rounds_of(groups, values),
    )


def _design(
    keys: Sequence[Key],
    values: Mapping[Key, Values],
    scales: Mapping[Key, Scale],
) -> dict[Key, Design | None]:
    """The design of `keys`, for each row that belongs to it."""
    on_scale: dict[Key, Values] = {}
    for key in keys:
        # A row with a value outside its scale, as a throughput of 0, has no spread on it.
        if all(map(scales[key].holds, values[key].values())):
            on_scale[key] = _on(scales[key], values[key])
    return dict.fromkeys(on_scale, design_of([*on_scale.values()]))


def _on(scale: Scale, values: Values) -> Values:
    on_scale = {}
    for block, value in values.items():
        on_scale[block] = scale.forward(value)
    return on_scale


def gather_keys(keys: Iterable[Key], of: Callable[[Key], T]) -> dict[T, list[Key]]:
    """Group rows by a property, in order."""
    groups: dict[T, list[Key]] = {}
    for key in keys:
        groups.setdefault(of(key), []).append(key)
    return groups


@dataclass(frozen=True)
class Measures:
    """A study's runs by row, and what was measured over them.

    Quantities that the choice of the next runs does not need are computed when they are asked for.

    Attributes:
        wall_seconds: `Run.wall_seconds`: the time of a training of the study.
        planned_seconds: The time of the planned training, which users will wait and pay for; the same as
            `wall_seconds` without a plan.
        bases: What `rate` is for each row.
        senses: Direction and bounds of each row's quality.
        digits: Decimals of each row's quality in text.
        failed: Runs of each row that failed to learn.
        trained: Trainings that tell the quality of each row: its own, and those of rows with equal updates.
        updates: The first row whose updates each row's equal; see `equal_updates`.
        fails_everywhere: Failed runs of each row, if a part of every row's runs fails; they are left out of
            `trained`, since they say nothing about the number of workers.
    """

    groups: RunsByRow
    wall_seconds: Measure
    planned_seconds: Measure
    quality: Measure
    bases: Mapping[Key, Basis]
    senses: Mapping[Key, Sense]
    digits: Mapping[Key, int]
    failed: Mapping[Key, Sequence[FailedRun]]
    trained: Groups
    updates: Mapping[Key, Key]
    fails_everywhere: Mapping[Key, int]

    @cached_property
    def throughput(self) -> Measure:
        """Samples processed per second."""
        return _times(self.groups, lambda run: run.result.throughput)

    @cached_property
    def training_seconds(self) -> Measure:
        """Seconds of the epochs."""
        return _times(self.groups, lambda run: run.result.training_seconds)

    @cached_property
    def rate(self) -> Measure:
        """The quantity whose ratio is the speed-up: throughput, or a substitute if that is unknown."""
        if not set(self.bases.values()) - {"throughput"}:
            return self.throughput
        rates = {}
        for key, runs in self.groups.items():
            rate = _rate_of(self.bases[key])
            rates[key] = values_of(timed_runs(runs), rate)
        return measure_times(self.groups, rates)

    @cached_property
    def sequential(self) -> bool:
        """Whether seeds were added until a verdict stood, so that levels for repeated looks are due."""
        return any(run.is_timing for run in _every_run(self.groups))

    @cached_property
    def looks(self) -> tuple[int, ...]:
        """Numbers of seeds that the study has had, as its runs recorded them when they were started."""
        planned = set()
        for run in _every_run(self.trained):
            if run.result.blocks is not None:
                planned.add(run.result.blocks)
        return tuple(sorted(planned))


def _every_run(groups: Groups) -> Iterator[Run]:
    """The runs of all rows, row by row."""
    return chain.from_iterable(groups.values())


def measure_rows(groups: RunsByRow, planned: PlannedTraining | None = None) -> Measures:
    """Measure every quantity over the rows of a study; prices are of the `planned` training, else of its own."""

    def metric_of(key: Key) -> str:
        return groups[key][0].result.metric

    by_metric = gather_keys(groups, metric_of).values()
    senses: dict[Key, Sense] = {}
    for keys in by_metric:
        runs: list[Run] = []
        for key in keys:
            runs += groups[key]
        senses |= dict.fromkeys(keys, quality_sense(runs))
    updates = equal_updates(groups)
    trained: Groups = _trainings(groups, updates)
    qualities, scales, digits = _qualities(trained, by_metric, senses)
    failed: dict[Key, Sequence[FailedRun]] = {}
    for key, members in trained.items():
        failed[key] = failures(members, senses[key])
    fails_everywhere = _fail_everywhere(trained, failed)
    if fails_everywhere:
        # A seed that fails whatever the number of workers says nothing about that number.
        trained = _without_failed(trained, failed)
        failed = dict.fromkeys(trained, ())
        qualities, scales, digits = _qualities(trained, by_metric, senses)
    learned = []
    for keys in by_metric:
        # Rows with equal updates count once in a design.
        alone = [key for key in keys if updates[key] == key]
        learned.append([key for key in alone if not failed[key]])
    quality = build_measure(qualities, scales, learned, LINEAR)
    # A row that was not trained itself takes the design of the row with its updates.
    of_means, of_differences = {}, {}
    for key in groups:
        of_means[key] = quality.of_means[updates[key]]
        of_differences[key] = quality.of_differences[updates[key]]
    wall_seconds = _times(groups, lambda run: run.wall_seconds)
    planned_times = wall_seconds
    if planned is not None and not planned.as_measured:
        planned_times = measure_planned(groups, planned)
    return Measures(
        groups=groups,
        wall_seconds=wall_seconds,
        planned_seconds=planned_times,
        quality=replace(quality, of_means=of_means, of_differences=of_differences),
        bases=_bases(groups),
        senses=senses,
        digits=digits,
        failed=failed,
        trained=trained,
        updates=updates,
        fails_everywhere=fails_everywhere,
    )


def _trainings(
    groups: RunsByRow, updates: Mapping[Key, Key]
) -> dict[Key, Sequence[Run]]:
    """Trainings that tell the quality of each row: those of all rows with equal updates."""
    by_updates: dict[Key, list[Run]] = {}
    for key, runs in groups.items():
        members = by_updates.setdefault(updates[key], [])
        # A timing run stops before it has learned anything.
        members += [run for run in runs if not run.is_timing]
    trained: dict[Key, Sequence[Run]] = {}
    for key in groups:
        trained[key] = by_updates[updates[key]]
    return trained


def _times(groups: Groups, value: Callable[[Run], float | None]) -> Measure:
    """A time or rate of every row, from the runs whose times count."""
    values = {}
    for key, runs in groups.items():
        values[key] = values_of(timed_runs(runs), value)
    return measure_times(groups, values)


def _qualities(
    trained: Groups,
    by_metric: Iterable[Sequence[Key]],
    senses: Mapping[Key, Sense],
) -> tuple[dict[Key, Values], dict[Key, Scale], dict[Key, int]]:
    """The qualities of each row, their scale, and their decimals in text."""
    qualities: dict[Key, Values] = {}
    for key, runs in trained.items():
        qualities[key] = values_of(runs, lambda run: run.result.quality)
    scales: dict[Key, Scale] = {}
    digits: dict[Key, int] = {}
    for keys in by_metric:
        values: list[float] = []
        for key in keys:
            values += qualities[key].values()
        # One scale for all rows of a metric, since they are compared.
        bounded = all(senses[key].bounded for key in keys)
        scale = quality_scale(bounded, values)
        scales |= dict.fromkeys(keys, scale)
        digits |= dict.fromkeys(keys, quality_decimals(scale, values))
    return qualities, scales, digits


def _fail_everywhere(
    trained: Groups, failed: Mapping[Key, Sequence[FailedRun]]
) -> dict[Key, int]:
    """Failed runs of each trained row, if some but less than half of every row's runs fail; else nothing."""
    counts = {}
    for key, runs in trained.items():
        if not runs:
            continue
        if not 0 < len(failed[key]) < len(runs) / 2:
            return {}
        counts[key] = len(failed[key])
    # A single row does not tell whether its workers are the cause.
    if len(counts) < 2:
        return {}
    return counts


def _without_failed(
    trained: Groups, failed: Mapping[Key, Sequence[FailedRun]]
) -> dict[Key, Sequence[Run]]:
    learned: dict[Key, Sequence[Run]] = {}
    for key, runs in trained.items():
        seeds = {run.seed for run in failed[key]}
        learned[key] = [run for run in runs if seed_of(run) not in seeds]
    return learned


def gpu_names(runs: Sequence[Run]) -> frozenset[str]:
    """Names of the GPUs of these runs; empty on CPUs, and if they were not recorded."""
    names: set[str] = set()
    for run in runs:
        for rank in run.ranks:
            if rank.device_uuids:
                names.update(rank.devices)
    return frozenset(names)


def measure_planned(groups: Groups, planned: PlannedTraining) -> Measure:
    """The time of a training of this length on every row."""
    return _times(groups, lambda run: planned_seconds(run, planned))


def _inverse(seconds: float | None) -> float | None:
    if not seconds:
        return None
    return 1 / seconds


def _rate_of(basis: Basis) -> Callable[[Run], float | None]:
    """The function that gives the rate of a run; None if it is unknown."""

    def rate(run: Run) -> float | None:
        if basis == "throughput":
            return run.result.throughput
        if basis == "epoch":
            return _inverse(run.epoch_seconds)
        return _inverse(run.result.training_seconds)

    return rate


def _bases(groups: Groups) -> dict[Key, Basis]:
    """Basis of each row's rate, the same for all rows of a variant; our own rows always use throughput."""
    bases: dict[Key, Basis] = dict.fromkeys(groups, "throughput")
    for keys in gather_keys(groups, lambda key: key.variant).values():
        # Our own runs record their samples, so that a missing throughput means something there.
        if not all(all_foreign(groups[key]) for key in keys):
            continue
        # The quantity that most rows of the variant have: a ratio takes the same of both.
        counts: dict[Basis, int] = {}
        for basis in BASES:
            rate = _rate_of(basis)
            known = [key for key in keys if values_of(groups[key], rate)]
            counts[basis] = len(known)
        most = max(counts, key=lambda basis: counts[basis])
        bases |= dict.fromkeys(keys, most)
    return bases


def engines_of(groups: Groups) -> dict[Key, str]:
    """Engine of each row that recorded it."""
    engines = {}
    for key, runs in groups.items():
        if engine := runs[0].result.engine:
            engines[key] = engine
    return engines


def why_oversubscribed(runs: Sequence[Run]) -> str | None:
    """Why the times of these runs cannot be used for speed-up; None if those of one of them can."""
    # Otherwise the times are those of the runs that were not.
    for run in runs:
        if not run.result.oversubscribed:
            return None
    return runs[0].result.oversubscribed


def timed_runs(runs: Sequence[Run]) -> Sequence[Run]:
    """The runs whose times count: without disturbed ones, if there are others."""
    undisturbed = [run for run in runs if not run.disturbed]
    if undisturbed:
        return undisturbed
    return [run for run in runs if not run.result.oversubscribed] or runs


def is_virtual(runs: Sequence[Run]) -> bool:
    """Whether one device computed the workers of these runs in turn."""
    return not is_timed(runs[0].result.implementation)


def is_asynchronous(runs: Sequence[Run]) -> bool:
    """Whether the workers of these runs took no common steps."""
    return not is_synchronous(runs[0].result.implementation)


def times_count(runs: Sequence[Run]) -> bool:
    """Whether times can be compared: not those of oversubscribed, virtual or asynchronous workers."""
    return (
        not why_oversubscribed(runs)
        and not is_virtual(runs)
        and not is_asynchronous(runs)
    )


def find_baseline(key: Key, groups: RunsByRow, timed: bool = False) -> Key | None:
    """The row that `key` is compared with.

    It is the one-worker row of the same strategy, else of plain training. If neither was run, it is the row
    of the same strategy with the fewest workers, provided there are several. Only rows of the same engine
    with the same other swept values count; if `timed`, oversubscribed rows are excluded.
    """
    engine = _engine_of(key, groups)

    def is_usable(row: Key) -> bool:
        return not timed or not why_oversubscribed(groups[row])

    for strategy in (key.strategy, *references(engine)):
        single = replace(key, strategy=strategy, workers=1)
        if single not in groups:
            continue
        # Engines differ in more than their strategies: a speed-up over another one's worker would mix both.
        if groups[single][0].result.engine != engine:
            continue
        if is_usable(single):
            return single
    in_series = groups.by_series.get(key.series, ())
    series = [row for row in in_series if is_usable(row)]
    # A one-worker row that is not usable leaves no baseline: a relative one would hide it.
    if len(series) < 2 or key.on(1) in groups:
        return None
    return min(series, key=lambda row: row.workers)


def _engine_of(key: Key, groups: RunsByRow) -> str | None:
    """Engine of a row; of one without runs, that of any row with its strategy, which belongs to one engine."""
    if key in groups:
        return groups[key][0].result.engine
    for row, runs in groups.items():
        if row.strategy == key.strategy:
            return runs[0].result.engine
    return None


def equal_updates(groups: Mapping[Key, Sequence[Run]]) -> dict[Key, Key]:
    """The first row whose updates each row's equal, according to the first losses of their timing runs.

    With one global batch, synchronous strategies of one engine sum the same gradients on any number of
    workers, unless a layer sees only its worker's share. Rows without timing runs, and those whose losses
    differ, make updates of their own.
    """
    firsts: dict[Key, Key] = {}
    proven: list[Key] = []
    for key, runs in groups.items():
        firsts[key] = key
        own = _losses(runs)
        if not own:
            continue
        for first in proven:
            if first.variant == key.variant and _same_updates(runs, groups[first]):
                firsts[key] = first
                break
        if firsts[key] == key:
            proven.append(key)
    return firsts


def _same_updates(runs: Sequence[Run], others: Sequence[Run]) -> bool:
    if _batch(runs) != _batch(others):
        return False
    if runs[0].result.engine != others[0].result.engine:
        return False
    return _agree(_losses(runs), _losses(others))


def _batch(runs: Sequence[Run]) -> tuple[int | None, int | None]:
    """Global batch; the number of workers stands for one that is not recorded."""
    result = runs[0].result
    if result.global_batch is None:
        return None, result.workers
    return result.global_batch, None


def _losses(runs: Sequence[Run]) -> dict[int | None, Timing]:
    """Timing runs that prove updates, by seed."""
    proving = {}
    for run in runs:
        timing = run.result.timing
        if timing is None or not is_synchronous(run.result.implementation):
            continue
        # Fewer steps may agree though the updates differ.
        if timing.warm_up_steps + timing.steps >= PROVING_STEPS:
            proving[run.result.seed] = timing
    return proving


def _agree(
    ours: Mapping[int | None, Timing], theirs: Mapping[int | None, Timing]
) -> bool:
    """Whether the losses of all common seeds are equal but for rounding."""
    # Other seeds draw other initial weights and batches.
    common = ours.keys() & theirs.keys()
    for seed in common:
        one = ours[seed].losses
        other = theirs[seed].losses
        if len(one) != len(other):
            return False
        for loss, its_loss in zip(one, other, strict=True):
            if not isclose(loss, its_loss, rel_tol=EQUAL):
                return False
    return bool(common)
