"""From a study to its points, every combination of the swept values, and the order of their runs."""

import hashlib
import json
from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any
from urllib.parse import quote

from scalestudy.study.catalog import resolved_data, resolved_train
from scalestudy.study.feasible import Machine, oversubscription, refuse_impossible
from scalestudy.study.file import Study
from scalestudy.study.point import Point, Turn
from scalestudy.study.settings import Order, StrictModel
from scalestudy.study.strategies import traits
from scalestudy.util.errors import UserError

MOST_POINTS = 10_000


class RunOrder(StrictModel):
    """Randomised blocks, one for each seed, or row by row; stored with the study.

    A block holds every row once, so slow drift of a machine falls on all rows alike and can be told from
    their differences (Montgomery, Design and Analysis of Experiments, randomised complete block design).
    """

    by: Order = "blocks"
    seed: int = 0
    """Of the permutations of blocks; drawn once for a study."""

    @classmethod
    def drawn_from(cls, study_text: str) -> "RunOrder":
        """Blocks, with a seed that is a digest of the study file: a dry run shows what a run then takes."""
        return cls(seed=int(hashlib.sha256(study_text.encode()).hexdigest()[:8], 16))

    def arrange(self, points: Sequence[Point]) -> list[Point]:
        """The points in the order of their runs, each with its turn.

        Blocks come in the order in which their seeds first occur. Inside a block points are sorted by a
        digest of order seed and name, so the relative order of two points of a block depends on these alone:
        adding seeds, workers or other values never changes it.

        Args:
            points: All points of the study, row by row.
        """
        if self.by == "blocks":
            blocks = {seed: block for block, seed in enumerate(dict.fromkeys(point.seed for point in points))}
            points = sorted(points, key=lambda point: (blocks[point.seed], self._digest(point)))
        return [
            point.model_copy(update={"turn": Turn(order=self.by, place=place)})
            for place, point in enumerate(points)
        ]

    def _digest(self, point: Point) -> bytes:
        return hashlib.sha256(f"{self.seed} {point.name}".encode()).digest()


def expand(
    study: Study,
    *,
    gpus: int,
    cores: int,
    cluster: bool = False,
    tasks_per_node: int | None = None,
    capability: tuple[int, int] | None = None,
    node_gpus: int | None = None,
) -> list[Point]:
    """Points of a study, in the order of its lists: swept keys, strategy, workers, seed (fastest).

    They are listed so, and run as `RunOrder` says.

    A strategy of one worker by definition (`single`) is taken at 1 worker and left out at the others.

    Args:
        study: What to expand.
        gpus: GPUs of a node.
        cores: Cores of a node.
        cluster: Whether workers may spread over as many nodes as they need (see `Machine`).
        tasks_per_node: Most workers of a node of a cluster.
        capability: Lowest compute capability of the GPUs, where it is known.
        node_gpus: GPUs that share the cores (see `Machine`).

    Returns:
        Points with unique names, the task's and the machine's defaults filled in.

    Raises:
        UserError: If a combination is impossible, naming the line.
    """
    _refuse_single_without_one(study)
    _refuse_too_many(study)
    machine = Machine(gpus, cores, cluster, tasks_per_node, capability, node_gpus)
    points = []
    for values in product(*study.sweep.other.values()):
        swept = dict(zip(study.sweep.other, values, strict=True))
        device = swept.get("launch.device", study.launch.device)
        cpus = swept.get("launch.cpus_per_worker", study.launch.cpus_per_worker)
        cpus = machine.cpus_per_worker(device) if cpus is None else cpus
        for strategy, workers, seed in product(study.sweep.strategy, study.sweep.workers, study.sweep.seed):
            kind = traits(strategy)
            if kind.most_workers is not None and workers > kind.most_workers:
                continue
            nodes = machine.nodes(workers, cpus, device)
            identity = {"strategy": strategy, "workers": workers, "seed": seed}
            implementation = kind.implementation(workers, nodes)
            point = _point(study, swept, identity, implementation, machine.device(device), cpus)
            refuse_impossible(point, study.place, machine)
            points.append(point.on(oversubscribed=oversubscription(point, machine)))
    return points


def _point(
    study: Study,
    swept: dict[str, Any],
    identity: dict[str, Any],
    implementation: str,
    device: str,
    cpus: int,
) -> Point:
    sections = {name: dict(getattr(study, name).model_dump()) for name in ("train", "launch")}
    sections["data"] = study.data.model_dump(exclude_unset=True)  # a task may bring what is not said
    for name, value in swept.items():
        section, key = name.split(".")
        sections[section][key] = value
    sections["launch"]["cpus_per_worker"] = cpus
    data = resolved_data(study.task, type(study.data).model_validate(sections["data"]))
    return Point.model_validate(
        {
            "name": point_name(identity["strategy"], identity["workers"], identity["seed"], swept),
            "study": study.name,
            "task": study.task,
            "engine": traits(identity["strategy"]).engine,
            **identity,
            "swept": swept,
            "data": data,
            "train": resolved_train(
                study.task, type(study.train).model_validate(sections["train"]), device=device
            ),
            "terms": {"implementation": implementation, "launch": sections["launch"]},
        }
    )


def _refuse_too_many(study: Study) -> None:
    lists = {"strategy": study.sweep.strategy, "workers": study.sweep.workers, "seed": study.sweep.seed}
    count = prod(len(values) for values in [*lists.values(), *study.sweep.other.values()])
    if count > MOST_POINTS:
        raise UserError(
            f"at most {MOST_POINTS} points in a study",
            f"{count} combinations of the values under [sweep]{study.place.of('sweep')}",
            "Sweep fewer values at once, or make several studies.",
        )


def _refuse_single_without_one(study: Study) -> None:
    for strategy in study.sweep.strategy:
        most = traits(strategy).most_workers
        if most == 1 and 1 not in study.sweep.workers:
            raise UserError(
                f'1 among the workers, since strategy "{strategy}" has one worker by definition',
                f"workers = {list(study.sweep.workers)}{study.place.of('sweep.workers', 'sweep.strategy')}",
                f'Add 1 to workers, or take "{strategy}" out of strategy.',
            )


LONGEST = 200
"""File systems take 255 bytes; a temporary name beside it needs some of them."""


def point_name(strategy: str, workers: int, seed: int, swept: dict[str, Any]) -> str:
    """`horovod-w2-s0`, with `-batch_size=8` for every other swept value.

    Different values give different names: floats are written in full, and every character that a
    folder or a shell could mistake is percent-encoded. A name too long for a folder ends in a
    digest of the whole instead.
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
    # Not quoted as JSON, so "given" reads given; no key takes both a text and a number of its look.
    text = value if isinstance(value, str) else json.dumps(value)
    return quote(text, safe="")
