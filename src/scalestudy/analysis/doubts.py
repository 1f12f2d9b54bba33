"""What may speak against a table, each with the rows and figures that raise it (`analysis.plausibility`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.runs import Key

DoubtKind = Literal[
    "unlike-devices",
    "times-do-not-fall",
    "fails-everywhere",
    "gap",
    "super-linear",
    "two-groups-of-times",
    "two-groups-of-qualities",
    "samples-unclear",
]


@dataclass(frozen=True)
class UnlikeGpus:
    """Rows of one variant whose GPUs have different names; `rows` are those of each set of names."""

    kind: ClassVar[DoubtKind] = "unlike-devices"
    rows: Mapping[frozenset[str], tuple[Key, ...]]


@dataclass(frozen=True)
class UnlikeNamedDevices:
    """A choice and a reference that a column tells apart, as running on unlike devices."""

    kind: ClassVar[DoubtKind] = "unlike-devices"
    choice: Key
    reference: Key
    column: str
    device: object


@dataclass(frozen=True)
class FlatTimes:
    """A series whose times do not fall with the workers; `first` is its row with the fewest."""

    kind: ClassVar[DoubtKind] = "times-do-not-fall"
    first: Key


@dataclass(frozen=True)
class FailsEverywhere:
    """A part of every row's runs that learned nothing: how many, of how many."""

    kind: ClassVar[DoubtKind] = "fails-everywhere"
    shares: Mapping[Key, tuple[int, int]]


@dataclass(frozen=True)
class UnmeasuredCounts:
    """Numbers of workers from `least` to `most` that nothing was measured on, between two that were."""

    kind: ClassVar[DoubtKind] = "gap"
    chosen: int
    larger: int
    least: int
    most: int


@dataclass(frozen=True)
class SuperLinear:
    """A row whose speed-up is larger than its number of workers."""

    kind: ClassVar[DoubtKind] = "super-linear"
    key: Key
    speedup: Estimate


@dataclass(frozen=True)
class GroupsOfTimes:
    """A row of which `slow` of `runs` took longer, by the share `slower`, on the `hosts` if these are their own."""

    kind: ClassVar[DoubtKind] = "two-groups-of-times"
    key: Key
    slow: int
    runs: int
    slower: float
    hosts: frozenset[str]


@dataclass(frozen=True)
class GroupsOfQualities:
    """A row of which `low` of `seeds` end at another quality than the others: means of both groups."""

    kind: ClassVar[DoubtKind] = "two-groups-of-qualities"
    key: Key
    metric: str
    low: int
    seeds: int
    low_mean: float
    high_mean: float
    digits: int


@dataclass(frozen=True)
class UnclearSamples:
    """A choice that may need `ratio` times the samples, which would lower its cost efficiency to `efficiency`."""

    kind: ClassVar[DoubtKind] = "samples-unclear"
    key: Key
    ratio: Estimate
    efficiency: Estimate


Doubt = (
    UnlikeGpus
    | UnlikeNamedDevices
    | FlatTimes
    | FailsEverywhere
    | UnmeasuredCounts
    | SuperLinear
    | GroupsOfTimes
    | GroupsOfQualities
    | UnclearSamples
)
