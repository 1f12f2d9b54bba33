"""Expand a study into its points, every combination of the swept values."""

import hashlib
import json
import math
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any
from urllib.parse import quote

from scalestudy.config.feasible import oversubscription, refuse_impossible
from scalestudy.config.file import FEWER, MOST_POINTS, Study
from scalestudy.config.machine import Machine
from scalestudy.config.point import Point
from scalestudy.config.settings import (
    WITHOUT_SITE,
    DataSettings,
    TrainSettings,
)
from scalestudy.config.task_sources import digests, source_files
from scalestudy.plugins.engines import engine_traits
from scalestudy.plugins.strategies import traits
from scalestudy.plugins.traits import Traits
from scalestudy.util.errors import UserError

LONGEST = 200
"""File systems allow 255 bytes; temporary names next to it need some of them."""


def expand(study: Study, **resources: Any) -> list[Point]:
    """Return the points of a study, in the order of its lists: swept keys, strategy, workers, seed (fastest).

    Their runs follow `RunOrder` instead. A strategy that always has one worker (`single`) is left out for
    other numbers of workers, and a training that several combinations share is one point; see `Point.also`.
    `resources` are the fields of a `Machine`.

    Returns:
        Points with unique names, completed with the task's and the machine's defaults.

    Raises:
        UserError: A combination is impossible; the error names the line.
    """
    strategies = [traits(name) for name in study.sweep.strategy]
    # Before the points are made, of which there may be millions.
    _refuse_sweep(study, strategies)
    machine = Machine(**resources)
    points = []
    # Parsed once for each `read`, not once for each point.
    sources = cache(lambda read: digests(source_files(study.task, read)))
    for values in product(*study.sweep.other.values()):
        swept = dict(zip(study.sweep.other, values, strict=True))
        for kind, workers, seed in product(
            strategies,
            study.sweep.workers,
            study.sweep.seed,
        ):
            if kind.most_workers is not None and workers > kind.most_workers:
                continue
            point = _point(study, swept, kind, workers, seed, machine)
            point = point.model_copy(update={"sources": sources(point.data.read)})
            refuse_impossible(point, study, machine)
            why = oversubscription(point, machine)
            points.append(point.on(oversubscribed=why))
    return _without_repeated_trainings(points)


def _without_repeated_trainings(points: Sequence[Point]) -> list[Point]:
    """Return the first of all points with the same training, which names the swept values of the others."""
    known: dict[str, Point] = {}
    for point in points:
        key = json.dumps([point.training(), point.terms.timing()], sort_keys=True)
        # The first one is run; the others are its further names.
        first = known.setdefault(key, point)
        if first is not point:
            also = (*first.also, point.swept)
            known[key] = first.model_copy(update={"also": also})
    return list(known.values())


def _point(
    study: Study,
    swept: dict[str, Any],
    kind: Traits,
    workers: int,
    seed: int,
    machine: Machine,
) -> Point:
    sections = {
        "train": study.train.model_dump(),
        "launch": study.launch.model_dump(),
        # A task sets other keys.
        "data": study.data.model_dump(exclude_unset=True),
    }
    for name, value in swept.items():
        section, key = name.split(".")
        sections[section][key] = value
    launch = sections["launch"]
    if launch["cpus_per_worker"] is None:
        launch["cpus_per_worker"] = machine.cpus_per_worker(launch["device"])
    # A point depends on the environment of its own engine alone.
    environments = launch["environments"] or {}
    launch["environments"] = None
    if kind.engine in environments:
        launch["environments"] = {kind.engine: environments[kind.engine]}
    places = max(workers, kind.processes_of(workers))
    nodes = machine.nodes(
        places,
        launch["cpus_per_worker"],
        launch["device"],
        launch["workers_per_node"],
    )
    if launch["workers_per_node"] is not None:
        _refuse_placement(study, launch, places, machine)
        # The actual number, so that equal placements are one point: two workers on one node, whether two or
        # four may be there.
        launch["workers_per_node"] = math.ceil(places / nodes)
    asynchronous = not kind.synchronous and workers > 1
    if asynchronous and sections["train"]["deterministic"] is None:
        # The order of updates depends on who is faster.
        sections["train"]["deterministic"] = False
    train = TrainSettings.model_validate(sections["train"])
    data = DataSettings.model_validate(sections["data"])
    device = machine.device(launch["device"])
    return Point.model_validate(
        {
            "name": point_name(kind.name, workers, seed, swept),
            "study": study.name,
            "task": study.task,
            "engine": kind.engine,
            "strategy": kind.name,
            "workers": workers,
            "seed": seed,
            "swept": swept,
            "data": study.defaults.complete_data(data),
            "train": study.defaults.complete_train(train, device=device),
            "terms": {
                "implementation": kind.implementation(workers, nodes),
                "launch": launch,
            },
        }
    )


def _refuse_placement(
    study: Study,
    launch: dict[str, Any],
    workers: int,
    machine: Machine,
) -> None:
    """Refuse a number of workers on a node where there is no queue, or that does not fit."""
    asked, key = launch["workers_per_node"], "launch.workers_per_node"
    if launch["on"] in WITHOUT_SITE:
        raise UserError(
            f"{key} only for a queue, whose jobs get as many nodes as they need",
            f'{asked} with launch.on = "{launch["on"]}"{study.place.of(key)}',
            'Remove it; for hosts, list the workers of each: hosts = ["lab1:2", "lab2:2"].',
        )
    fitting = machine.workers_per_node(launch["cpus_per_worker"], launch["device"])
    if asked > fitting and workers > fitting:
        raise UserError(
            f"at most {fitting} workers on a node, as its GPUs or cores and the site profile allow",
            f"{key} = {asked}{study.place.of(key)}",
            "Lower it, or raise tasks_per_node in the site profile.",
        )


def _refuse_sweep(study: Study, strategies: Sequence[Traits]) -> None:
    """Refuse too many points, unused collectives, and a one-worker strategy without 1 in workers."""
    sweep = study.sweep
    _refuse_communication(study, strategies)
    for kind in strategies:
        if kind.most_workers == 1 and 1 not in sweep.workers:
            raise UserError(
                f'1 among the workers, since strategy "{kind.name}" always has one worker',
                f"workers = {list(sweep.workers)}{study.place.of('sweep.workers', 'sweep.strategy')}",
                f'Add 1 to workers, or take "{kind.name}" out of strategy.',
            )
    lists = (sweep.strategy, sweep.workers, sweep.seed, *sweep.other.values())
    count = math.prod(map(len, lists))
    if count > MOST_POINTS:
        raise UserError(
            f"at most {MOST_POINTS} points in a study",
            f"{count} combinations of the values under [sweep]{study.place.of('sweep')}",
            FEWER,
        )


def _refuse_communication(study: Study, strategies: Sequence[Traits]) -> None:
    """Refuse `communication` if no strategy has a choice of collectives."""
    key = "launch.communication"
    values = (study.launch.communication, *study.sweep.other.get(key, ()))
    asked = [value for value in values if value != "auto"]
    if not asked:
        return
    for kind in strategies:
        engine = engine_traits(kind.engine)
        for name in kind.stands_for or (kind.name,):
            if engine.communications(name):
                return
    raise UserError(
        'a strategy to which `communication` applies: "multiworker", or "native" across nodes',
        f'"{asked[0]}" for {", ".join(study.sweep.strategy)}{study.place.of(key)}',
        "Remove communication. On GPUs the other strategies use NCCL if their library supports it.",
    )


def point_name(
    strategy: str,
    workers: int,
    seed: int,
    swept: dict[str, Any],
) -> str:
    """`horovod-w2-s0`, with `-batch_size=8` for every other swept value.

    Different values give different names: floats are written in full, and every character with a meaning for
    folders or shells is percent-encoded. A name too long for a folder ends in a digest of the full name.
    """
    parts = [f"{strategy}-w{workers}-s{seed}"]
    for name, value in swept.items():
        key = name.partition(".")[2]
        # `data.seed` beside the seed of the point.
        if key == "seed":
            key = name
        parts.append(f"{key}={_text(value)}")
    full = "-".join(parts)
    if len(full) <= LONGEST:
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:16]
    return f"{full[: LONGEST - 1 - len(digest)]}-{digest}"


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "x".join(map(str, value))
    # Not quoted as JSON, so that "given" becomes given; no key accepts both a text and an equal-looking
    # number.
    text = value
    if not isinstance(value, str):
        text = json.dumps(value)
    return quote(text, safe="")
