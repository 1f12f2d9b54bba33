"""What to do about lost efficiency, in order of gain: only what follows from a diagnosis's numbers.

A part's share of a step's time is the most that anything against it can gain; of input it is all that input
costs: what one worker loses to it as well lowers no efficiency, and is lost all the same. Doubling the batch
halves what a step costs beside its samples, so that gains half of the share at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scalestudy.analysis.measures import Measures
from scalestudy.analysis.statistics import Estimate
from scalestudy.features.diagnose.diagnosed import slow_rank
from scalestudy.features.diagnose.measured_settings import alternatives
from scalestudy.features.diagnose.records import Diagnosis, Part, PartName
from scalestudy.study.strategies import traits, working_names

LEAST = 0.02
"""Share of a step below which a part is not worth a sentence."""
MEBI = 2**20
KEYS: dict[str, tuple[PartName, ...]] = {
    "launch.cpus_per_worker": ("input", "contention"),
    "train.augment_on": ("input",),
    "train.batch_size": ("exchange", "fixed"),
    "launch.bucket_size": ("exchange",),
    "launch.communication": ("exchange",),
    "strategy": ("exchange",),
    "train.xla": ("fixed",),
    "train.steps_per_call": ("fixed",),
}
"""Keys of the study file, and which parts they are against."""


@dataclass(frozen=True)
class Remedy:
    """Something to change.

    Attributes:
        part: What it is against.
        share: Of a step's time that this part takes.
        key: The key of the study file; "" where none is.
        setting: What to write: "launch.cpus_per_worker = 4"; "" likewise.
        why: What it changes.
        most: Throughput after it over that before, at most.
        measured: What the study measured of it: throughput over the diagnosed point's.
    """

    part: PartName
    share: float
    key: str
    setting: str
    why: str
    most: float
    measured: Estimate | None = None


def remedies(diagnosis: Diagnosis, measures: Measures | None = None) -> list[Remedy]:
    """What to change, by what it gained where the study has measured it, else by the most that it can gain.

    What was measured to gain nothing is not advised.

    Args:
        diagnosis: Of a point.
        measures: Of its study, for settings that it has measured beside.
    """
    makers = {
        "input": _input, "exchange": _exchange, "imbalance": _imbalance, "contention": _contention,
        "fixed": _fixed,
    }  # fmt: skip
    whole_input = Part(name="input", share=diagnosis.input, seconds=0.0)
    against = [whole_input if part.name == "input" else part for part in diagnosis.parts]
    worth = [part for part in against if _counts(part) and part.name in makers]
    seen = alternatives(diagnosis, measures) if measures else {}
    found: list[Remedy] = []
    for part in sorted(worth, key=lambda part: -part.share.value):
        planned = makers[part.name](diagnosis, part)
        if part.name == "exchange":
            planned += _strategies(diagnosis, part, [setting for setting in seen if "strategy" in setting])
        told = {remedy.setting for remedy in planned}
        for setting, (key, ratio) in seen.items():
            if part.name in KEYS.get(key, ()) and (ratio.value or 0) > 1 and setting not in told:
                most = _gain(part.share.value)
                planned.insert(0, Remedy(part.name, part.share.value, key, setting, MEASURED, most, ratio))
        found += [_with_measured(remedy, seen) for remedy in planned]
    known = [each for each in dict.fromkeys(found) if _expected(each) > 1]
    return sorted(known, key=lambda remedy: -_expected(remedy))


MEASURED = "the study has measured it beside this point"


def _expected(remedy: Remedy) -> float:
    """Throughput after it over that before: as measured, else at most."""
    measured = None if remedy.measured is None else remedy.measured.value
    return remedy.most if measured is None else measured


def _counts(part: Part) -> bool:
    low = part.share.low
    return part.share.value >= LEAST and (low is None or low > 0)


def _gain(share: float) -> float:
    """Throughput without that share of a step, over that with it."""
    return 1 / (1 - min(share, 0.99))


def _remedy(part: Part, setting: str, why: str, of_share: float = 1.0) -> Remedy:
    key = setting.partition(" = ")[0]
    return Remedy(part.name, part.share.value, key, setting, why, _gain(part.share.value * of_share))


def _input(diagnosis: Diagnosis, part: Part) -> list[Remedy]:
    terms, found = diagnosis.terms, []
    free = terms.cores // diagnosis.workers
    if terms.encoded:
        found.append(_remedy(part, 'data.storage = "arrays"', "decodes once instead of in every epoch"))
    if terms.augmented_by_loader and terms.device == "gpu":
        found.append(_remedy(part, 'train.augment_on = "device"', "augments on the GPU, not on its cores"))
    if free > terms.cpus_per_worker:
        cores = min(free, 2 * terms.cpus_per_worker)
        why = f"gives loaders cores of this machine that lie idle ({terms.cores} cores)"
        found.append(_remedy(part, f"launch.cpus_per_worker = {cores}", why))
    if terms.augmented_by_loader and not found:
        why = "its operations take the loader's cores; leave out the costliest, such as elastic"
        found.append(_remedy(part, "train.augment", why))
    if not found:
        why = "no core of this machine is left for loaders: take nodes with more cores a worker"
        found.append(_remedy(part, "", why))
    return found


def _exchange(diagnosis: Diagnosis, part: Part) -> list[Remedy]:
    terms = diagnosis.terms
    found = [_doubled(diagnosis, part, "sums gradients half as often for the same samples")]
    bucket, size = terms.bucket_bytes, terms.gradient_bytes
    if size >= 4 * MEBI and (bucket is None or bucket >= size):
        setting = f'launch.bucket_size = "{max(1, size // (4 * MEBI))} MiB"'
        why = f"sums of the {size / MEBI:.0f} MiB of gradients then begin before back-propagation ends"
        found.append(_remedy(part, setting, why))
    by_tensorflow = traits(diagnosis.implementation).meets == "tensorflow"
    if by_tensorflow and terms.device == "gpu" and terms.communication == "ring":
        found.append(_remedy(part, 'launch.communication = "nccl"', "sums between GPUs, not through hosts"))
    return found


def _strategies(diagnosis: Diagnosis, part: Part, measured: Sequence[str]) -> list[Remedy]:
    """Other strategies, but for those that the study has measured (their settings)."""
    others = [
        name
        for name in working_names()
        if name != diagnosis.implementation
        and traits(name).timed
        and (traits(name).most_workers or diagnosis.workers) >= diagnosis.workers
        and f'strategy = "{name}"' not in measured
    ]
    if not others:
        return []
    names = ", ".join(f'"{name}"' for name in (diagnosis.strategy, *others))
    why = "another strategy sums by other means: measure it beside this one"
    return [_remedy(part, f"sweep.strategy = [{names}]", why)]


def _imbalance(diagnosis: Diagnosis, part: Part) -> list[Remedy]:
    slow = slow_rank(diagnosis)
    if slow is None:
        why = (
            "no rank is slow all the time, but in each step one is: leave a core for the system, or a bigger "
            "slice, over which such moments average"
        )
        return [_remedy(part, "", why)]
    cores = ", ".join(map(str, slow.cpus[:8])) + ", …" * (len(slow.cpus) > 8)
    why = (
        f"rank {slow.rank} on {slow.host} (core{'s' * (len(slow.cpus) != 1)} {cores}) takes "
        f"{slow.ratio.value:.2f} times as long as the others: see what else computes there, and its clock"
    )
    return [_remedy(part, "", why)]


def _contention(diagnosis: Diagnosis, part: Part) -> list[Remedy]:
    what = "memory bandwidth, caches and clocks" if diagnosis.terms.device == "cpu" else "the node"
    why = f"workers of a node share {what}: put fewer on each, over more nodes, with idle cores between"
    return [_remedy(part, "", why)]


def _fixed(diagnosis: Diagnosis, part: Part) -> list[Remedy]:
    terms = diagnosis.terms
    found = [_doubled(diagnosis, part, "spreads what a step costs beside its samples over twice as many")]
    if terms.steps_per_call == 1:
        found.append(_remedy(part, "train.steps_per_call = 8", "starts eight steps by one call"))
    if not terms.xla and not (diagnosis.implementation == "horovod" and terms.device == "cpu"):
        found.append(_remedy(part, "train.xla = true", "fuses operations, so that fewer are started"))
    return found


def _doubled(diagnosis: Diagnosis, part: Part, why: str) -> Remedy:
    size = 2 * diagnosis.terms.batch_size
    return _remedy(part, f"train.batch_size = {size}", f"{why}; watch quality", 0.5)


def _with_measured(remedy: Remedy, seen: dict[str, tuple[str, Estimate]]) -> Remedy:
    if remedy.measured is None and remedy.setting in seen:
        return replace(remedy, measured=seen[remedy.setting][1])
    return remedy


def sentence(remedy: Remedy) -> str:
    """One as a line: "input 31 %: `launch.cpus_per_worker = 4`: …"."""
    what = f"`{remedy.setting}`: {remedy.why}" if remedy.setting else remedy.why
    gain = f"at most {100 * (remedy.most - 1):.0f} % more throughput"
    if remedy.measured is not None and remedy.measured.value is not None:
        ends = ""
        if remedy.measured.low is not None and remedy.measured.high is not None:
            ends = f" ({remedy.measured.low:.2f} to {remedy.measured.high:.2f})"
        gain += f"; measured in this study: {remedy.measured.value:.2f} times the throughput{ends}"
    return f"{remedy.part} {100 * remedy.share:.0f} %: {what}; {gain}."
