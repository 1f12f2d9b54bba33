"""Compare a study with a reference: what differs, by how much, and whether by more than chance."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Literal

from scalestudy.analysis.estimate import NOTHING, SIGNIFICANT, Estimate, holm
from scalestudy.analysis.measures import (
    Measure,
    build_measure,
)
from scalestudy.analysis.runs import Key, Run, metric_label
from scalestudy.analysis.scales import LINEAR, LOGARITHM, quality_scale
from scalestudy.config.metric_senses import Sense
from scalestudy.features.compare.sides import (
    Difference,
    Side,
    setting_differences,
    unpaired_because,
)
from scalestudy.util.errors import UserError

Quantity = Literal["rate", "training_seconds", "quality"]
QUANTITIES: tuple[Quantity, ...] = ("rate", "training_seconds", "quality")


@dataclass(frozen=True)
class Compared:
    """One quantity of one row on two sides.

    Attributes:
        quantity: "rate" (samples per second; epochs per second if only these are known), "training_seconds"
            or "quality".
        values: Values on the reference and on the other side.
        change: Ratio of the other to the reference (quality: the difference), with its 95 % interval.
        why_not: Why the values are not compared; "" if they are.
        chance: P value, assuming no difference; None for single runs.
        corrected: `chance`, corrected for the number of comparisons (Holm).
        paired: Whether runs with equal seeds were paired.
    """

    key: Key
    quantity: Quantity
    values: tuple[Estimate, Estimate]
    change: Estimate = NOTHING
    why_not: str = ""
    chance: float | None = None
    corrected: float | None = None
    paired: bool = False

    @property
    def real(self) -> bool:
        """Whether the difference is more than chance."""
        return self.corrected is not None and self.corrected < SIGNIFICANT


def compare_rows(first: Side, second: Side) -> list[Compared]:
    """Compare every quantity of every row that both sides have; correct all P values."""
    rows = []
    shared = [key for key in first.findings.measures.groups if second.runs(key)]
    for quantity in QUANTITIES:
        measure, paired = _together(first, second, quantity)
        for key in shared:
            rows.append(_row(key, quantity, first, second, measure, paired))
    # One correction over all quantities: a reader takes any of them for a difference.
    chances = {}
    for index, row in enumerate(rows):
        if row.chance is not None:
            chances[index] = row.chance
    corrected = holm(chances)
    for index, row in enumerate(rows):
        rows[index] = replace(row, corrected=corrected.get(index))
    return rows


def _row(
    key: Key,
    quantity: Quantity,
    first: Side,
    second: Side,
    measure: Measure,
    paired: bool,
) -> Compared:
    ours = _tag(0, key)
    theirs = _tag(1, key)
    our_values = measure.values[ours]
    their_values = measure.values[theirs]
    before = NOTHING
    if our_values:
        before = measure.mean(ours)
    after = NOTHING
    if their_values:
        after = measure.mean(theirs)
    made = Compared(key, quantity, (before, after))
    why_not = _obstacle(key, quantity, first, second)
    if not why_not and not (our_values and their_values):
        why_not = "not known of both"
    if why_not:
        return replace(made, why_not=why_not)
    # A single common seed has no spread of differences.
    pairs = paired and len(our_values.keys() & their_values.keys()) > 1
    if quantity == "quality":
        change = measure.difference(theirs, ours)
    else:
        change = measure.ratio(theirs, ours)
    if change.value is None:
        why_not = "a value is not a finite positive number"
    chance = None
    contrast = measure.contrast(theirs, ours)
    if contrast is not None:
        chance = contrast.p_value
    return replace(
        made,
        change=change,
        why_not=why_not,
        chance=chance,
        paired=pairs and quantity == "quality",
    )


def _together(first: Side, second: Side, quantity: Quantity) -> tuple[Measure, bool]:
    """Return one measure of both sides, and whether seeds are paired; else each side pools its spreads."""
    sides = (first, second)
    values: dict[Key, dict[Any, float]] = {}
    for place, side in enumerate(sides):
        for key, by_seed in getattr(side.findings.measures, quantity).values.items():
            if _is_time(side, key, quantity):
                values[_tag(place, key)] = {}
            else:
                values[_tag(place, key)] = dict(by_seed)
    # Rows without times of their own, such as those that shared their cores, would widen the others' intervals.
    alike = []
    for place, side in enumerate(sides):
        timed = filter(side.timed, side.findings.measures.groups)
        alike.append([_tag(place, key) for key in timed])
    paired = quantity == "quality" and unpaired_because(first, second) is None
    if not paired:
        values = _with_blocks_apart(values)
    if quantity != "quality":
        scales = dict.fromkeys(values, LOGARITHM)
        return build_measure(values, scales, alike, LOGARITHM), False
    senses: list[Sense] = []
    for side in sides:
        senses += side.findings.measures.senses.values()
    everything: list[float] = []
    for by_seed in values.values():
        everything += by_seed.values()
    bounded = all(sense.bounded for sense in senses)
    scale = quality_scale(bounded, everything)
    # Differences of pairs are of both sides, so their spreads are moderated over both.
    everyone = [list(values)]
    if not paired:
        by_side: dict[str, list[Key]] = {"0": [], "1": []}
        for key in values:
            by_side[_side_of(key)].append(key)
        everyone = list(by_side.values())
    return build_measure(values, dict.fromkeys(values, scale), everyone, LINEAR), paired


def _with_blocks_apart(
    values: Mapping[Key, Mapping[Any, float]],
) -> dict[Key, dict[Any, float]]:
    """Name the seeds of the sides apart: unless they are paired, equal seeds are different blocks."""
    apart: dict[Key, dict[Any, float]] = {}
    for key, by_seed in values.items():
        side = _side_of(key)
        apart[key] = {f"{side} {seed}": value for seed, value in by_seed.items()}
    return apart


def _is_time(side: Side, key: Key, quantity: Quantity) -> bool:
    """Return whether a rate is only the inverse of the training time, which is compared anyway."""
    return quantity == "rate" and side.findings.measures.bases[key] == "training"


def _tag(place: int, key: Key) -> Key:
    """Return a key for a row that is unique among the rows of both sides."""
    return Key(key.strategy, key.workers, f"{place}{key.variant}")


def _side_of(tagged: Key) -> str:
    """Return "0" for a row of the reference, "1" for one of the other side."""
    return tagged.variant[0]


def _obstacle(
    key: Key,
    quantity: Quantity,
    first: Side,
    second: Side,
) -> str:
    """Return why a quantity of a row cannot be compared, or "". Unknown properties are assumed equal."""
    ours = first.runs(key)
    theirs = second.runs(key)
    checks: list[tuple[str, Callable[[Run], object]]] = [
        ("parameters of the model", lambda run: run.result.parameters),
        ("global batch", lambda run: run.result.global_batch),
    ]
    if quantity != "rate":
        checks.append(("samples processed", lambda run: run.result.samples_processed))
    # A loss over other samples, or by other labels, is another quantity.
    if quantity == "quality":
        checks += [
            ("metric", _metric),
            ("set it is measured on", lambda run: run.result.quality_split),
            ("labels in that set", lambda run: run.result.quality_labels),
            ("training samples", lambda run: run.result.training_samples),
        ]
    elif not first.timed(key) or not second.timed(key):
        return "oversubscribed or virtual workers: their times say nothing"
    elif quantity == "rate" and _basis(first, key) != _basis(second, key):
        # Samples per second of one side, and epochs per second of the other.
        return "throughput is not known of both"
    for name, value in checks:
        why = _unlike(name, value, ours, theirs)
        if why:
            return why
    return ""


def _basis(side: Side, key: Key) -> str:
    return side.findings.measures.bases[key]


def _metric(run: Run) -> str | None:
    if not run.result.metric:
        return None
    return metric_label(run.result.metric)


def _unlike(
    name: str,
    value: Callable[[Run], object],
    ours: Sequence[Run],
    theirs: Sequence[Run],
) -> str:
    """Return how a value differs that all runs of each side agree on, or "": "global batch: 16 and 32"."""
    before = set(map(value, ours))
    after = set(map(value, theirs))
    if len(before) > 1 or len(after) > 1 or before == after:
        return ""
    if None in before or None in after:
        return ""
    return f"{name}: {_text(before.pop())} and {_text(after.pop())}"


def _text(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


@dataclass(frozen=True)
class Comparison:
    """A study compared with a reference.

    Attributes:
        first: The reference.
        second: The other study.
        asked: Keys whose settings differ, with both values.
        rows: Every quantity of every shared row.
        unpaired: Why qualities are not paired by seed; None if they are.
    """

    first: Side
    second: Side
    asked: tuple[Difference, ...]
    rows: tuple[Compared, ...]
    unpaired: str | None


def compare(first: Side, second: Side) -> Comparison:
    """Compare a study with a reference.

    Raises:
        UserError: The studies train different tasks or models.
    """
    # By the file's name: the same task file may lie in another folder on another machine.
    tasks = set()
    for side in (first, second):
        if "task" in side.asked:
            tasks.add(PurePath(str(side.asked["task"])).name)
    if len(tasks) > 1:
        raise UserError(
            "studies of one task",
            ", ".join(sorted(tasks)),
            "Compare studies that train the same model on the same data.",
        )
    rows = tuple(compare_rows(first, second))
    # One row may have another model by its swept value; where all have, the studies have.
    others = [row for row in rows if row.why_not.startswith("parameters of the model")]
    if rows and len(others) == len(rows):
        raise UserError(
            "studies of one model",
            f"different {others[0].why_not}",
            "Compare studies that train the same model.",
        )
    return Comparison(
        first,
        second,
        tuple(setting_differences(first, second)),
        rows,
        unpaired_because(first, second),
    )
