"""The two sides of a comparison, and in which settings they differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.measures import is_virtual, why_oversubscribed
from scalestudy.analysis.runs import Key, Run

_ONLY_SPEED = ("launch.", "train.steps_per_call", "data.cache", "data.source")
"""Keys that change the speed of a run or the location of its data, but not what it computes."""


@dataclass(frozen=True)
class Side:
    """A study and its name in the comparison.

    Attributes:
        asked: Its settings by dotted key, as JSON values; empty if unknown.
        withheld: Settings and machine properties that a shared study leaves out.
    """

    name: str
    findings: Findings
    asked: Mapping[str, Any] = field(default_factory=dict)
    withheld: frozenset[str] = frozenset()

    def runs(self, key: Key) -> list[Run]:
        """Return the runs of a row; empty if there are none."""
        return list(self.findings.measures.groups.get(key, ()))

    def timed(self, key: Key) -> bool:
        """Return whether the row's times are meaningful: workers neither oversubscribed nor virtual."""
        runs = self.runs(key)
        if not runs:
            return False
        return not why_oversubscribed(runs) and not is_virtual(runs)


Difference = tuple[str, str, str]
"""A name, and its value in the reference and in the other study; "" if unknown."""


def unlike(
    first: Side,
    second: Side,
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
) -> list[Difference]:
    """Return the names whose values differ and that no side withholds; none if one side knows no values."""
    if not ours or not theirs:
        return []
    withheld = first.withheld | second.withheld
    found = []
    for name in dict.fromkeys((*ours, *theirs)):
        # What was withheld counts neither as equal nor as different.
        if name in withheld:
            continue
        before = _text_of(ours, name)
        after = _text_of(theirs, name)
        if before != after:
            found.append((name, before, after))
    return found


def _text_of(values: Mapping[str, Any], name: str) -> str:
    if values.get(name) is None:
        return ""
    return str(values[name])


def setting_differences(first: Side, second: Side) -> list[Difference]:
    """Return the keys whose settings differ."""
    return unlike(first, second, first.asked, second.asked)


def unpaired_because(first: Side, second: Side) -> str | None:
    """Return why runs with equal seeds cannot be paired; None if they share split and initial weights."""
    if not first.asked or not second.asked:
        return "what was asked for is not known of both"
    withheld = []
    for key in sorted(first.withheld | second.withheld):
        if key.startswith(("task", "data.", "train.")) and key != "data.cache":
            withheld.append(key)
    if withheld:
        return f"not known of both are {', '.join(withheld)}"
    # A seed is one split and one start only where task, data and training are equal. What changes the speed alone,
    # or where prepared data lie, changes neither.
    unlike = []
    for key, *_ in setting_differences(first, second):
        if key.startswith(_ONLY_SPEED):
            continue
        if key.startswith(("task", "data.", "train.")):
            unlike.append(key)
    if unlike:
        return f"not alike are {', '.join(unlike)}"
    return None
