"""Rows of one study held against the same rows of another: what is compared, by how much, and is it real."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from scalestudy.analysis.measures import Measure, measured
from scalestudy.analysis.runs import Key, Run, metric_label
from scalestudy.analysis.scales import LINEAR, LOGARITHM, quality_scale
from scalestudy.analysis.statistics import NOTHING, SIGNIFICANT, Estimate, holm
from scalestudy.features.compare.side import Side, unpaired_because

Quantity = Literal["rate", "training_seconds", "quality"]
QUANTITIES: tuple[Quantity, ...] = ("rate", "training_seconds", "quality")


@dataclass(frozen=True)
class Compared:
    """One quantity of one row on two sides.

    Attributes:
        key: The row.
        quantity: "rate" (samples per second; epochs per second where only these are known),
            "training_seconds" or "quality".
        other: Place of the second side among all; the first is the reference.
        values: On the reference and on the other side.
        change: Ratio of the other to the reference (quality: the difference), with its 95 % interval.
        why_not: Why nothing is compared; "" where it is.
        notes: What also differs, and does not forbid it.
        chance: P value of no difference; None for single runs.
        corrected: The same, corrected for the number of comparisons (Holm).
        paired: Whether runs of one seed were held against each other.
    """

    key: Key
    quantity: Quantity
    other: int
    values: tuple[Estimate, Estimate]
    change: Estimate = NOTHING
    why_not: str = ""
    notes: tuple[str, ...] = ()
    chance: float | None = None
    corrected: float | None = None
    paired: bool = False

    @property
    def real(self) -> bool:
        """Whether the difference is more than chance."""
        return self.corrected is not None and self.corrected < SIGNIFICANT


def compared(sides: Sequence[Side]) -> list[Compared]:
    """Every quantity of every row that the first side shares with another, tested together."""
    found = []
    for other in range(1, len(sides)):
        first, second = sides[0], sides[other]
        shared = [key for key in first.findings.measures.groups if second.runs(key)]
        for quantity in QUANTITIES:
            measure, paired = _together(first, second, quantity)
            found += [_row(key, quantity, other, first, second, measure, paired) for key in shared]
    chances = {i: each.chance for i, each in enumerate(found) if each.chance is not None}
    corrected = holm(chances)
    return [replace(each, corrected=corrected.get(i)) for i, each in enumerate(found)]


def _row(
    key: Key, quantity: Quantity, other: int, first: Side, second: Side, measure: Measure, paired: bool
) -> Compared:
    ours, theirs = _tagged(0, key), _tagged(1, key)
    known = measure.values[ours], measure.values[theirs]
    values = tuple(measure.mean(each) if measure.values[each] else NOTHING for each in (ours, theirs))
    made = Compared(key, quantity, other, (values[0], values[1]))
    why_not = _obstacle(key, quantity, first, second) or ("" if all(known) else "not known of both")
    if why_not:
        return replace(made, why_not=why_not)
    pairs = paired and len(known[0].keys() & known[1].keys()) > 1
    change = (measure.difference if quantity == "quality" else measure.ratio)(theirs, ours)
    contrast = measure.contrast(theirs, ours)
    return replace(
        made,
        change=change,
        why_not="" if change.value is not None else "a value is not a finite positive number",
        notes=_notes(first.runs(key), second.runs(key)),
        chance=contrast.p_value if contrast is not None else None,
        paired=pairs and quantity == "quality",
    )


def _together(first: Side, second: Side, quantity: Quantity) -> tuple[Measure, bool]:
    """One measure over the rows of both sides, each side's spreads pooled on their own; and if seeds pair."""
    sides = (first, second)
    values = {
        _tagged(place, key): {} if _is_time(side, key, quantity) else dict(each)
        for place, side in enumerate(sides)
        for key, each in getattr(side.findings.measures, quantity).values.items()
    }
    alike = [
        [_tagged(place, key) for key in side.findings.measures.groups if side.timed(key)]
        for place, side in enumerate(sides)
    ]
    paired = quantity == "quality" and unpaired_because(first, second) is None
    if not paired:  # blocks of one name have nothing in common then
        values = {
            key: {f"{key.variant[0]} {seed}": v for seed, v in each.items()} for key, each in values.items()
        }
    if quantity != "quality":
        return measured(values, dict.fromkeys(values, LOGARITHM), alike, LOGARITHM), False
    senses = [sense for side in sides for sense in side.findings.measures.senses.values()]
    everything = [value for each in values.values() for value in each.values()]
    scale = quality_scale(all(sense.bounded for sense in senses), everything)
    everyone = [list(values)] if paired else [[k for k in values if k.variant[0] == place] for place in "01"]
    return measured(values, dict.fromkeys(values, scale), everyone, LINEAR), paired


def _is_time(side: Side, key: Key, quantity: Quantity) -> bool:
    """Whether a rate is only the inverse of the training time, which is compared beside it."""
    return quantity == "rate" and side.findings.measures.bases[key] == "training"


def _tagged(place: int, key: Key) -> Key:
    """A name for a row of a side, among those of both."""
    return Key(key.strategy, key.workers, f"{place}{key.variant}")


def _obstacle(key: Key, quantity: Quantity, first: Side, second: Side) -> str:
    """Why a quantity of a row cannot be compared; "" where it can. What is not known is taken to be alike."""
    ours, theirs = first.runs(key), second.runs(key)
    checks: list[tuple[str, Callable[[Run], object]]] = [
        ("parameters of the model", lambda run: run.result.parameters),
        ("global batch", lambda run: run.result.global_batch),
    ]
    if quantity != "rate":
        checks.append(("samples processed", lambda run: run.result.samples_processed))
    if quantity == "quality":
        checks += [
            ("metric", lambda run: metric_label(run.result.metric) if run.result.metric else None),
            ("set it is measured on", lambda run: run.result.quality_split),
            ("labels in that set", lambda run: run.result.quality_labels),
            ("training samples", lambda run: run.result.training_samples),
        ]
    elif not first.timed(key) or not second.timed(key):
        return "oversubscribed or virtual workers: their times say nothing"
    elif quantity == "rate" and first.findings.measures.bases[key] != second.findings.measures.bases[key]:
        return "throughput is not known of both"
    for name, value in checks:
        before, after = _common(ours, value), _common(theirs, value)
        if before is not None and after is not None and before != after:
            return f"{name}: {_number(before)} and {_number(after)}"
    return ""


def _notes(ours: Sequence[Run], theirs: Sequence[Run]) -> tuple[str, ...]:
    found = []
    for name, value in (
        ("precision", lambda run: run.result.precision),
        ("implementation", lambda run: run.result.implementation),
        ("exchange", lambda run: run.result.communication),
        ("deterministic", lambda run: run.result.deterministic),
    ):
        before, after = _common(ours, value), _common(theirs, value)
        if before is not None and after is not None and before != after:
            found.append(f"{name}: {before} and {after}")
    return tuple(found)


def _common(runs: Sequence[Run], value: Callable[[Run], object]) -> object | None:
    """A value that all runs share; None where they differ, or nobody knows."""
    found = {value(run) for run in runs}
    return found.pop() if len(found) == 1 else None


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
