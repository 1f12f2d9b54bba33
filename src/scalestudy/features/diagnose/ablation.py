"""A process of a diagnosis: it builds what a run builds, and measures blocks of steps instead of training."""

import socket
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from itertools import repeat
from pathlib import Path

import numpy as np

from scalestudy.cluster.placement import Placement
from scalestudy.data.loading.loader import Loader
from scalestudy.data.loading.order import epoch_order
from scalestudy.data.loading.slices import Call, Slice
from scalestudy.data.splits.split import Split
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.base import Engine, Profiles, Trainer
from scalestudy.engines.registry import engine_of
from scalestudy.features.diagnose.blocks import FEWEST, MOST, WARM, length, timed, warmed
from scalestudy.features.diagnose.marks import Marks
from scalestudy.features.diagnose.silent import silent
from scalestudy.features.diagnose.twin import Ablation, AblationTimes, BlockName, BlockTimes
from scalestudy.imports import without_unused
from scalestudy.machine import cores
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.environment import rank_record
from scalestudy.strategies.join import join
from scalestudy.strategies.replicas import Joined, Replicas
from scalestudy.study.point import Point
from scalestudy.study.run_folder import RunFolder
from scalestudy.training.devices import set_up
from scalestudy.training.reading import loaders

POLL = 0.005
"""Seconds between two looks for another process's word."""
ONE: tuple[BlockName, ...] = ("full", "reference")
"""Blocks of the one-worker run, whatever the point's workers."""
WITH_INPUT: tuple[BlockName, ...] = ("whole", "reference")


def run(
    folder: RunFolder,
    point: Point,
    placement: Placement,
    clock: PhaseClock,
    *,
    device: str,
    gpus: Sequence[str] = (),
    engine: Engine | None = None,
) -> None:
    """Measure a twin's blocks, and write them to `times/RANK.json`.

    Args:
        folder: The twin's own; its `ablation.json` says what is measured.
        point: What is run: the point itself where its workers have joined, else a one-worker run of it.
        placement: This process among the others.
        clock: Where time is counted.
        device: "cpu" or "gpu".
        gpus: Names of the GPUs that it was given.
        engine: What computes; None for the one that the point's strategy works with.
    """
    twin = folder.needed_ablation()
    marks = Marks(clock)
    with marks.phase("framework"), without_unused():
        engine = engine or engine_of(point.traits)
        set_up(engine, point, threads=len(cores.granted()), device=device, gpus=gpus)
    with marks.phase("join"):
        joined = join(
            point.implementation, placement,
            workers=point.workers, device=device, communication=point.launch.communication,
        )  # fmt: skip
    folder.write_rank(
        rank_record(placement, threads=len(cores.granted()), devices=engine.devices(device), build={})
    )
    work = _Work(twin, point, joined, engine, clock, marks)
    blocks = [work.block(name, folder.path) for name in twin.blocks]
    if twin.trace and isinstance(engine, Profiles) and "whole" in twin.blocks:
        work.profile(engine, folder.path.parent.parent / "profile" / f"rank-{placement.rank}")
    folder.write_times(
        AblationTimes(
            rank=placement.rank if twin.worker is None else twin.worker,
            host=socket.gethostname(),
            cpus=tuple(cores.granted()),
            parameters=work.parameters,
            blocks=tuple(blocks),
            marks=tuple(marks.found) if twin.trace else (),
        )
    )
    # None leaves while another may still read from it: a ring's last sum does.
    while len(list((folder.path / "times").glob("[0-9]*.json"))) < placement.size:
        clock.heart.enter("waiting")
        time.sleep(POLL)
    clock.heart.enter("leaving")
    joined.group.close()


class _Work:
    """What this process computes with.

    Args:
        twin: What is measured.
        point: Of this process.
        joined: Its strategy's.
        engine: What computes.
        clock: Is told where the process is.
        marks: Keep when it was where.
    """

    def __init__(
        self, twin: Ablation, point: Point, joined: Joined, engine: Engine, clock: PhaseClock, marks: Marks
    ) -> None:
        self._twin, self._joined, self._clock, self._marks = twin, joined, clock, marks
        self._point = _steady(point)
        files = point.needed_files()
        self._prepared, self._split = Prepared.open(files.prepared), Split.load(files.split)
        self._rates = np.full(1, point.train.learning_rate)
        self._engine = engine
        self._trainers: dict[tuple[bool, int], Trainer] = {}
        self._staged: dict[bool, Call] = {}
        self._turn = 0

    def block(self, name: BlockName, folder: Path) -> BlockTimes:
        """Measure a block, at the same time as all that belong to it."""
        loader, global_batch = self._loader(name)
        train = self._trainer(name, loader).train
        heart = self._clock.heart
        with self._source(name, loader, global_batch) as (call, source):
            with self._marks.phase("warm-up"):
                each = warmed(train, source, heart)
            count = self._agreed(length(self._twin.seconds, each))
            if name == "together":
                self._turn += 1
                self._wait_for_all(folder, f"ready-{self._turn}")
            else:
                self._joined.group.host_sum(np.zeros(1))
            times = timed(train, source, count, heart)
            if name == "together":  # the others are measured beside workers that compute, to the last
                done = f"done-{self._turn}"
                (folder / done).touch()
                while not self._all(folder, done):
                    timed(train, source, 1, heart)
        self._marks.block(name, times)
        part = call[0]
        return BlockTimes(
            name=name, steps_per_call=part.steps, seconds=times.seconds, waits=times.waits,
            samples=int(part.total if self._twin.worker is None else part.count), calls=times.calls,
        )  # fmt: skip

    @contextmanager
    def _source(
        self, name: BlockName, loader: Loader, global_batch: int
    ) -> Iterator[tuple[Call, Iterator[Call]]]:
        """A call of a block, and all of them: read anew, or the one that was staged at its first turn."""
        if name in WITH_INPUT:
            with closing(self._calls(loader, global_batch)) as read:
                yield next(read), read
            return
        key = name in ONE
        if key not in self._staged:
            with closing(self._calls(loader, global_batch)) as read:
                self._staged[key] = next(read)
        yield self._staged[key], repeat(self._staged[key])

    def profile(self, engine: Profiles, folder: Path) -> None:
        """A few calls of the point as it is, under the engine's profiler."""
        loader, global_batch = self._loader("whole")
        train = self._trainer("whole", loader).train
        with closing(self._calls(loader, global_batch)) as source, engine.profiled(str(folder)):
            self._marks.block("profiled", timed(train, source, FEWEST, self._clock.heart))

    @property
    def parameters(self) -> int:
        """Of the model."""
        return self._any.parameters

    @property
    def _any(self) -> Trainer:
        """One of those that there are: a block's is made before its loader begins."""
        return next(iter(self._trainers.values()))

    def _stage(self, part: Slice, device: int) -> Slice:
        return self._any.stage(part, device)

    def _trainer(self, name: BlockName, loader: Loader) -> Trainer:
        """What computes a block: another one for each number of steps of a call, which is compiled in."""
        key = name == "without exchange", loader.steps_per_call
        if key not in self._trainers:
            joined = silent(self._joined) if key[0] else self._joined
            with self._marks.phase("build"):
                made = self._engine.trainer(self._point, self._prepared, self._rates, joined)
            self._trainers[key] = made
        return self._trainers[key]

    def _loader(self, name: BlockName) -> tuple[Loader, int]:
        """What reads the slices of a block, and their global batch."""
        twin, replicas, point = self._twin, self._joined.replicas, self._point
        if twin.worker is not None:
            worker = 0 if name in ONE else twin.worker
            point = point.model_copy(update={"workers": 1 if name in ONE else twin.workers})
            own = [(worker, worker + 1)]
            replicas = Replicas(self._joined.group, point.workers, slices=own, size=1)
        steps = -(-len(self._split.train) // point.global_batch)
        loader, _ = loaders(point, self._prepared, replicas, steps, self._stage, self._split.train)
        return loader, point.global_batch

    def _calls(self, loader: Loader, global_batch: int) -> Generator[Call, None, None]:
        """Full calls without end. The order comes again and again, so that no epoch ends within a block."""
        order = epoch_order(self._split.train, self._point.seed, 0)
        rows = global_batch * loader.steps_per_call * (MOST + 2 * WARM)
        while True:
            yield from loader.epoch(np.resize(order, rows), epoch=0)

    def _agreed(self, count: int) -> int:
        """Rank 0's number of calls, on all ranks."""
        return int(self._joined.group.share(np.array([count]))[0])

    def _wait_for_all(self, folder: Path, word: str) -> None:
        (folder / word).touch()
        with self._marks.phase("waiting") if self._twin.trace else nullcontext():
            while not self._all(folder, word):
                self._clock.heart.enter("waiting")
                time.sleep(POLL)

    def _all(self, folder: Path, word: str) -> bool:
        return all((folder.parent / name / word).exists() for name in self._twin.beside)


def _steady(point: Point) -> Point:
    """The point as it trains for most of its epochs: its layers learn, or are frozen, from the first step."""
    train = point.train
    frozen = int(2 * train.frozen_epochs > train.epochs)
    return point.model_copy(update={"train": train.model_copy(update={"epochs": 1, "frozen_epochs": frozen})})
