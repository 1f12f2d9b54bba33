"""Expand a study into its points, every combination of the swept values, and order their runs."""

import hashlib
import json
from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any
from urllib.parse import quote

from scalestudy.study.catalog import resolved_data, resolved_train
from scalestudy.study.engines import engine_traits
from scalestudy.study.feasible import Machine, oversubscription, refuse_impossible
from scalestudy.study.file import FEWER, MOST_POINTS, Study
from scalestudy.study.point import Point, Turn
from scalestudy.study.settings import DataSettings, Order, StrictModel, TrainSettings
from scalestudy.study.strategies import traits
from scalestudy.util.errors import UserError


class RunOrder(StrictModel):
    """Randomised blocks, one for each seed and fold, or row by row; stored with the study.

    A block contains every row once, so that slow drift of a machine affects all rows equally and can be
    separated from their differences (Montgomery, Design and Analysis of Experiments, randomised complete
    block design).
    """

    by: Order = "blocks"
    seed: int = 0
    """Seed of the permutations of blocks; drawn once for a study."""

    @classmethod
    def drawn_from(cls, study_text: str) -> "RunOrder":
        """Blocks with a digest of the study file as seed, so that a dry run shows the order of the run."""
        return cls(seed=int(hashlib.sha256(study_text.encode()).hexdigest()[:8], 16))

    def arrange(self, points: Sequence[Point]) -> list[Point]:
        """Return the study's points, given row by row, in the order of their runs, each with its turn.

        Blocks come in the order in which their seeds and folds first occur. Inside a block, points are sorted
        by a digest of the order's seed and their name, so that adding seeds, workers or other values never
        changes the relative order of two points.
        """
        if self.by == "blocks":
            names = dict.fromkeys(point.block for point in points)
            blocks = {name: place for place, name in enumerate(names)}
            points = sorted(points, key=lambda point: (blocks[point.block], self._digest(point)))
        return [
            point.model_copy(update={"turn": Turn(order=self.by, place=place)})
            for place, point in enumerate(points)
        ]

    def _digest(self, point: Point) -> bytes:
        return hashlib.sha256(f"{self.seed} {point.name}".encode()).digest()


def expand(study: Study, **resources: Any) -> list[Point]:
    """Return the points of a study, in the order of its lists: swept keys, strategy, workers, seed (fastest).

    Their runs follow `RunOrder` instead. A strategy that always has one worker (`single`) is left out for
    other numbers of workers. `resources` are the fields of a `Machine`.

    Returns:
        Points with unique names, completed with the task's and the machine's defaults.

    Raises:
        UserError: A combination is impossible; the error names the line.
    """
    _refuse_sweep(study)
    machine = Machine(**resources)
    points = []
    for values in product(*study.sweep.other.values()):
        swept = dict(zip(study.sweep.other, values, strict=True))
        for strategy, workers, seed in product(study.sweep.strategy, study.sweep.workers, study.sweep.seed):
            most = traits(strategy).most_workers
            if most is None or workers <= most:
                point = _point(study, swept, strategy, workers, seed, machine)
                refuse_impossible(point, study.place, machine)
                points.append(point.on(oversubscribed=oversubscription(point, machine)))
    return points


def _point(
    study: Study, swept: dict[str, Any], strategy: str, workers: int, seed: int, machine: Machine
) -> Point:
    sections = {name: getattr(study, name).model_dump() for name in ("train", "launch")}
    sections["data"] = study.data.model_dump(exclude_unset=True)  # a task may set the other keys
    for name, value in swept.items():
        section, key = name.split(".")
        sections[section][key] = value
    launch, kind = sections["launch"], traits(strategy)
    if launch["cpus_per_worker"] is None:
        launch["cpus_per_worker"] = machine.cpus_per_worker(launch["device"])
    environments = launch["environments"] or {}
    known = kind.engine in environments
    launch["environments"] = {kind.engine: environments[kind.engine]} if known else None
    places = max(workers, kind.processes_of(workers))
    nodes = machine.nodes(places, launch["cpus_per_worker"], launch["device"])
    train = TrainSettings.model_validate(sections["train"])
    return Point.model_validate(
        {
            "name": point_name(strategy, workers, seed, swept),
            "study": study.name,
            "task": study.task,
            "engine": kind.engine,
            "strategy": strategy,
            "workers": workers,
            "seed": seed,
            "swept": swept,
            "data": resolved_data(study.task, DataSettings.model_validate(sections["data"])),
            "train": resolved_train(study.task, train, device=machine.device(launch["device"])),
            "terms": {"implementation": kind.implementation(workers, nodes), "launch": launch},
        }
    )


def _refuse_sweep(study: Study) -> None:
    """Refuse too many points, unused collectives, and a one-worker strategy without 1 in workers."""
    sweep = study.sweep
    _refuse_communication(study)
    for strategy in sweep.strategy:
        if traits(strategy).most_workers == 1 and 1 not in sweep.workers:
            raise UserError(
                f'1 among the workers, since strategy "{strategy}" always has one worker',
                f"workers = {list(sweep.workers)}{study.place.of('sweep.workers', 'sweep.strategy')}",
                f'Add 1 to workers, or take "{strategy}" out of strategy.',
            )
    count = prod(map(len, (sweep.strategy, sweep.workers, sweep.seed, *sweep.other.values())))
    if count > MOST_POINTS:
        raise UserError(
            f"at most {MOST_POINTS} points in a study",
            f"{count} combinations of the values under [sweep]{study.place.of('sweep')}",
            FEWER,
        )


def _refuse_communication(study: Study) -> None:
    """Refuse `communication` if no strategy has a choice of collectives."""
    key = "launch.communication"
    by = [name for name in (study.launch.communication, *study.sweep.other.get(key, ())) if name != "auto"]
    means = [name for word in study.sweep.strategy for name in traits(word).stands_for or (word,)]
    if by and not any(engine_traits(traits(name).engine).communications(name) for name in means):
        raise UserError(
            'a strategy to which `communication` applies: "multiworker", or "native" across nodes',
            f'"{by[0]}" for {", ".join(study.sweep.strategy)}{study.place.of(key)}',
            "Remove communication. On GPUs the other strategies use NCCL if their library supports it.",
        )


LONGEST = 200
"""File systems allow 255 bytes; temporary names next to it need some of them."""


def point_name(strategy: str, workers: int, seed: int, swept: dict[str, Any]) -> str:
    """`horovod-w2-s0`, with `-batch_size=8` for every other swept value.

    Different values give different names: floats are written in full, and every character with a meaning for
    folders or shells is percent-encoded. A name too long for a folder ends in a digest of the full name.
    """
    parts = [f"{strategy}-w{workers}-s{seed}"]
    for name, value in swept.items():
        key = name.partition(".")[2]
        parts.append(f"{name if key == 'seed' else key}={_text(value)}")
    full = "-".join(parts)
    if len(full) <= LONGEST:
        return full
    return f"{full[: LONGEST - 17]}-{hashlib.sha256(full.encode()).hexdigest()[:16]}"


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "x".join(map(str, value))
    # Not quoted as JSON, so that "given" becomes given; no key accepts both a text and an equal-looking
    # number.
    text = value if isinstance(value, str) else json.dumps(value)
    return quote(text, safe="")
