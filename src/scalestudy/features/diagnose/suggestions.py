"""What to change against lost efficiency, in order of gain: only what follows from a diagnosis's numbers.

A part's share of a step's time is the most that a change against it can gain; of input it is all that input
costs: what one worker loses to it as well lowers no efficiency, and is lost all the same. Doubling the batch
halves what a step costs beside its samples, so that gains half of the share at most.
"""

from dataclasses import dataclass

from scalestudy.features.diagnose.decomposition import slow_rank
from scalestudy.features.diagnose.records import Diagnosis, LostPart, PartName
from scalestudy.study.engines import engine_traits
from scalestudy.study.strategies import traits, working_names

LEAST = 0.02
"""Share of a step below which a part is ignored."""
MEBI = 2**20


@dataclass(frozen=True)
class Suggestion:
    """Something to change.

    Attributes:
        part: The part of the lost efficiency that it reduces.
        share: Of a step's time that this part takes.
        setting: What to write into the study file, `launch.cpus_per_worker = 4`; "" where no key helps.
        why: What it changes.
        most: Throughput after it over that before, at most.
    """

    part: PartName
    share: float
    setting: str
    why: str
    most: float

    @property
    def key(self) -> str:
        """The key of the study file; "" where none helps."""
        return self.setting.partition(" = ")[0]

    @property
    def sentence(self) -> str:
        """One line: "input 31 %: `launch.cpus_per_worker = 2`: …"."""
        what = f"`{self.setting}`: {self.why}" if self.setting else self.why
        gain = f"at most {100 * (self.most - 1):.0f} % more throughput"
        return f"{self.part} {100 * self.share:.0f} %: {what}; {gain}."


Settings = list[tuple[str, str]]
"""Settings against a part, each with what it changes."""


def suggestions(diagnosis: Diagnosis) -> list[Suggestion]:
    """What to change, by the most that it can gain.

    Nothing follows from a single round, whose differences may be chance.
    """
    rules = {
        "input": _input, "exchange": _exchange, "imbalance": _imbalance, "contention": _contention,
        "fixed": _fixed,
    }  # fmt: skip
    whole_input = LostPart(name="input", share=diagnosis.input, seconds=0.0)
    found: list[Suggestion] = []
    for part in diagnosis.parts:
        share = (whole_input if part.name == "input" else part).share
        if part.name not in rules or share.value < LEAST or (share.low or 0) <= 0:
            continue
        for setting, why in rules[part.name](diagnosis):
            reduced = 0.5 * share.value if setting.startswith("train.batch_size") else share.value
            most = 1 / (1 - min(reduced, 0.99))
            found.append(Suggestion(part.name, share.value, setting, why, most))
    return sorted(found, key=lambda suggestion: (-suggestion.most, -suggestion.share))


def _input(diagnosis: Diagnosis) -> Settings:
    terms, found = diagnosis.terms, []
    free = terms.cores // diagnosis.workers
    if terms.encoded:
        found.append(('data.storage = "arrays"', "decodes once instead of in every epoch"))
    if terms.augmented_by_loader and terms.device == "gpu":
        found.append(('train.augment_on = "device"', "augments on the GPU, not on its cores"))
    if free > terms.cpus_per_worker:
        setting = f"launch.cpus_per_worker = {min(free, 2 * terms.cpus_per_worker)}"
        found.append((setting, f"gives loaders idle cores of this machine ({terms.cores} cores)"))
    if terms.augmented_by_loader and not found:
        why = "its operations take the loader's cores; leave out the costliest, such as elastic"
        found.append(("train.augment", why))
    return found or [("", "no core is left for loaders: use nodes with more cores per worker")]


def _exchange(diagnosis: Diagnosis) -> Settings:
    terms = diagnosis.terms
    found = [_doubled(diagnosis, "sums gradients half as often for the same samples")]
    bucket, size = terms.bucket_bytes, terms.gradient_bytes
    if size >= 4 * MEBI and (bucket is None or bucket >= size):
        setting = f'launch.bucket_size = "{max(1, size // (4 * MEBI))} MiB"'
        why = f"sums of the {size / MEBI:.0f} MiB of gradients then begin before back-propagation ends"
        found.append((setting, why))
    engine = engine_traits(traits(diagnosis.implementation).engine)
    choices = engine.communications(diagnosis.implementation)
    if "nccl" in choices and terms.device == "gpu" and terms.communication == "ring":
        found.append(('launch.communication = "nccl"', "sums between GPUs, not through hosts"))
    others = [
        name
        for name in working_names()
        if name != diagnosis.implementation
        and traits(name).timed
        and (traits(name).most_workers or diagnosis.workers) >= diagnosis.workers
    ]
    if others:
        names = ", ".join(f'"{name}"' for name in (diagnosis.strategy, *others))
        why = "other strategies sum by other means: measure them as well"
        found.append((f"sweep.strategy = [{names}]", why))
    return found


def _imbalance(diagnosis: Diagnosis) -> Settings:
    slow = slow_rank(diagnosis)
    if slow is None:
        why = (
            "no rank is slow all the time, but in each step one is: leave a core for the system, or use a "
            "bigger slice, over which such moments average"
        )
        return [("", why)]
    cores = ", ".join(map(str, slow.cpus[:8])) + ", …" * (len(slow.cpus) > 8)
    why = (
        f"rank {slow.rank} on {slow.host} (core{'s' * (len(slow.cpus) != 1)} {cores}) takes "
        f"{slow.ratio.value:.2f} times as long as the others: see what else computes there, and its clock"
    )
    return [("", why)]


def _contention(diagnosis: Diagnosis) -> Settings:
    what = "memory bandwidth, caches and clocks" if diagnosis.terms.device == "cpu" else "the node"
    return [
        ("", f"workers of a node share {what}: put fewer on each, over more nodes, with idle cores between")
    ]


def _fixed(diagnosis: Diagnosis) -> Settings:
    terms, found = diagnosis.terms, []
    if terms.steps_per_call == 1:
        found.append(("train.steps_per_call = 8", "starts eight steps by one call"))
    if not terms.xla and not (diagnosis.implementation == "horovod" and terms.device == "cpu"):
        found.append(("train.xla = true", "fuses operations, so that fewer are started"))
    return [*found, _doubled(diagnosis, "spreads what a step costs beside its samples over twice as many")]


def _doubled(diagnosis: Diagnosis, why: str) -> tuple[str, str]:
    return f"train.batch_size = {2 * diagnosis.terms.batch_size}", f"{why}; watch quality"
