"""Runs out of the facts of all files: told apart, and made into what analysis works on."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite

from scalestudy.analysis.runs import Key, Run, key_of
from scalestudy.features.imported.base import UNNAMED, Facts, Wanted
from scalestudy.study.records import Outcome
from scalestudy.study.usage import GpuUse

SOURCE = "source"
"""Swept key that tells studies apart which hold the same points."""


def runs_of(facts: Sequence[Facts], wanted: Wanted) -> tuple[list[Run], list[str]]:
    """Runs, and what is to be said of them all."""
    named = [replace(each, strategy=each.strategy or wanted.strategy or UNNAMED) for each in facts]
    once, remarks = _once(named)
    if not wanted.strategy and any(each.strategy is None for each in facts):
        remarks.append(f"Runs that say no strategy are called {UNNAMED}: --strategy NAME says it.")
    if _are_studies(once):
        once = [replace(each, swept={**each.swept, SOURCE: each.source.file}) for each in once]
        remarks.append(
            "Files hold the same points, so they are studies of their own: `source` tells them apart."
        )
    keys = [_key(each) for each in once]
    seeds = Counter((key, each.seed) for key, each in zip(keys, once, strict=True) if each.seed is not None)
    doubled = {pair for pair, count in seeds.items() if count > 1}
    if doubled:
        remarks.append("Some runs of one point state one seed: they count as repeats, of no known seed.")
    unseeded = [
        replace(each, seed=None) if (key, each.seed) in doubled else each
        for key, each in zip(keys, once, strict=True)
    ]
    repeated = {key for key, count in Counter(keys).items() if count > 1}
    if repeated and len({each.source.file for each in once}) > 1 and not seeds:
        remarks.append(f"{len(repeated)} points were found more than once: their runs count as repeats.")
    return [_run(each, place) for place, each in enumerate(unseeded)], remarks


def _key(facts: Facts) -> Key:
    return key_of(facts.strategy or UNNAMED, facts.workers or 1, dict(facts.swept))


def _once(facts: Sequence[Facts]) -> tuple[list[Facts], list[str]]:
    """Without lines that were written twice: all alike, in one file, with a measured number."""
    seen: dict[str, Facts] = {}
    kept, doubled = [], []
    for each in facts:
        what = repr(replace(each, source=replace(each.source, lines=None)))
        measured = (each.seconds, each.throughput, each.quality, each.epoch_seconds) != (None,) * 4
        if measured and what in seen and each.source.lines is not None:
            doubled.append(f"{each.source} says what {seen[what].source} does: it counts once.")
        else:
            seen.setdefault(what, each)
            kept.append(each)
    return kept, doubled


def _are_studies(facts: Sequence[Facts]) -> bool:
    """Whether two files with several points each share one."""
    points: Mapping[str, set[Key]] = defaultdict(set)
    for each in facts:
        points[each.source.file].add(_key(each))
    several = [keys for keys in points.values() if len(keys) > 1]
    return any(a & b for place, a in enumerate(several) for b in several[place + 1 :])


def _run(facts: Facts, place: int) -> Run:
    workers = facts.workers or 1
    per_worker = facts.per_worker_batch or (
        facts.global_batch // workers if facts.global_batch and facts.global_batch % workers == 0 else None
    )
    batch = facts.global_batch or (per_worker * workers if per_worker else None)
    curve = [epoch.validation[facts.metric] for epoch in facts.log if facts.metric in epoch.validation]
    outcome = Outcome(
        name=_name(facts, place),
        strategy=facts.strategy or UNNAMED,
        implementation=facts.strategy or UNNAMED,
        workers=workers,
        seed=facts.seed,
        swept=dict(facts.swept),
        per_worker_batch=per_worker or None,
        global_batch=batch,
        epochs=facts.epochs,
        updates=facts.updates,
        samples_processed=facts.updates * batch if facts.updates and batch else None,
        training_samples=facts.samples,
        throughput=_sound(facts.throughput),
        training_seconds=_sound(facts.seconds),
        metric=facts.metric if facts.quality is not None else "",
        better=facts.better,
        quality=facts.quality,
        quality_labels=facts.labels,
        oversubscribed=facts.oversubscribed,
        gpus=[] if facts.gpu_percent is None else [GpuUse(rank=0, device=0, percent=facts.gpu_percent)],
        best_quality=max(curve) if curve and facts.better != "lower" and all(map(isfinite, curve)) else None,
    )  # fmt: skip
    return Run(
        outcome,
        facts.log,
        source=facts.source,
        epoch_seconds=_sound(facts.epoch_seconds),
    )


def _sound(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) and value > 0 else None


def _name(facts: Facts, place: int) -> str:
    """A name that no other run has."""
    seed = "" if facts.seed is None else f"-s{facts.seed}"
    number = f" #{place + 1}" if facts.source.lines is None else ""
    return f"{facts.strategy}-w{facts.workers}{seed} ({facts.source}){number}"
