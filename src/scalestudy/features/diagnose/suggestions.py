"""What to change against the parts of a diagnosis, and what it can gain.

The gain of a change is at most the share of its part in a step's time. For input, this is the total cost of
input, including the loss that one worker has too, which does not lower efficiency. Doubling the batch halves
the cost of a step that does not depend on its samples, so it gains at most half of the share.
"""

from typing import NamedTuple

from scalestudy.features.diagnose.decomposition import slow_rank
from scalestudy.features.diagnose.diagnosis_record import Diagnosis, PartName
from scalestudy.util.text import elide, plural

LEAST = 0.02
"""Share of a step below which a part is ignored."""


class Suggestion(NamedTuple):
    """A suggested change.

    Attributes:
        share: Share of the part in a step's time.
        setting: Setting for the study file, such as `launch.cpus_per_worker = 4`; "" if no key helps.
        why: Effect of the change.
        most: Upper bound of the ratio of throughputs after and before the change.
    """

    part: PartName
    share: float
    setting: str
    why: str
    most: float

    @property
    def sentence(self) -> str:
        """The suggestion in one line: "input 31 %: `launch.cpus_per_worker = 2`: …"."""
        what = self.why
        if self.setting:
            what = f"`{self.setting}`: {self.why}"
        gain = f"at most {100 * (self.most - 1):.0f} % more throughput"
        return f"{self.part} {100 * self.share:.0f} %: {what}; {gain}."


def suggestions(diagnosis: Diagnosis) -> list[Suggestion]:
    """Return suggestions in descending order of their largest possible gain.

    There are none after a single round, whose differences may be chance, and none if workers shared cores.
    """
    if diagnosis.oversubscribed:
        return []

    suggested: list[Suggestion] = []
    for part in diagnosis.parts:
        # Its excess lowers efficiency, but faster input also helps what one worker loses, too.
        share = part.share
        if part.name == "input":
            share = diagnosis.input
        # A part whose interval reaches zero may be nothing.
        if share.value < LEAST or (share.low or 0) <= 0:
            continue
        for setting, why in _against(part.name, diagnosis):
            reduced = share.value
            if setting.startswith("train.batch_size"):
                reduced = 0.5 * share.value
            # Without the bound, a part of all of the time would promise an infinite gain.
            most = 1 / (1 - min(reduced, 0.99))
            suggested.append(Suggestion(part.name, share.value, setting, why, most))
    suggested.sort(key=lambda suggestion: (-suggestion.most, -suggestion.share))
    return suggested


def _against(part: PartName, diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Return settings that reduce a part, each with its effect."""
    terms = diagnosis.terms
    batch = f"train.batch_size = {2 * terms.batch_size}"
    match part:
        case "input":
            return _against_input(diagnosis)
        case "exchange":
            rarer = "sums gradients half as often for the same samples; watch quality"
            others = "other strategies sum by other means: measure them as well"
            return [(batch, rarer), ("sweep.strategy", others)]
        case "imbalance":
            return [("", _imbalance(diagnosis))]
        case "contention":
            what = "the node"
            if terms.device == "cpu":
                what = "memory bandwidth, caches and clocks"
            fewer = (
                f"workers of a node share {what}: put fewer on each, over more nodes"
            )
            return [("", fewer)]
        case "fixed":
            changes = []
            if terms.steps_per_call == 1:
                calls = "starts eight steps by one call"
                changes.append(("train.steps_per_call = 8", calls))
            larger = "spreads what a step costs beside its samples over twice as many; watch quality"
            changes.append((batch, larger))
            return changes
    return []


def _against_input(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    terms = diagnosis.terms
    free = terms.cores // diagnosis.workers
    if free > terms.cpus_per_worker:
        setting = f"launch.cpus_per_worker = {min(free, 2 * terms.cpus_per_worker)}"
        why = f"gives loaders idle cores of this machine ({terms.cores} cores)"
        return [(setting, why)]
    return [("", "no core is left for loaders: use nodes with more cores per worker")]


def _imbalance(diagnosis: Diagnosis) -> str:
    slow = slow_rank(diagnosis)
    if slow is None:
        return "no rank is slow all the time, but in each step one is: leave a core for the system"
    cores = elide(list(map(str, slow.cpus)), 8)
    return (
        f"rank {slow.rank} on {slow.host} ({plural('core', len(slow.cpus))} {cores}) takes "
        f"{slow.ratio.value:.2f} times as long as the others: see what else computes there, and its clock"
    )
