"""A worker of a diagnosis. It builds the same objects as a run, and measures blocks of steps."""

import socket
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import SupportsFloat

import numpy as np

from scalestudy.config.point import Point
from scalestudy.data.loader import Loader
from scalestudy.data.samples import Call, Slice, epoch_order
from scalestudy.data.split import Split
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Joined, Replicas
from scalestudy.engines.interface import Engine, Trainer
from scalestudy.features.diagnose.ablation_record import (
    ABLATION,
    OF_ONE,
    WITH_INPUT,
    Ablation,
    AblationTimes,
    BlockName,
    BlockTimes,
)
from scalestudy.hardware import cores
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.heartbeat import Heartbeat
from scalestudy.measure.rank_environment import rank_record
from scalestudy.plugins.engines import engine_traits
from scalestudy.store.record_file import read_record, write_record
from scalestudy.training.device_setup import OwnPart, join_workers
from scalestudy.training.reading import loaders
from scalestudy.util.errors import UserError

FEWEST, MOST = 4, 400
"""Minimum and maximum number of calls in a block."""
POLL = 0.005
"""Seconds between two checks for a file of another process."""
WARM = 2
"""Calls before a block is timed; the first may compile."""
IN_FLIGHT = 2
"""Calls queued on a device before the host waits for the first: as many as are prefetched."""

Train = Callable[[Call], SupportsFloat]


def run_ablation(part: OwnPart) -> None:
    """Measure the blocks of an ablation, and write their times to `times/RANK.json`.

    This function is called like training's `run`. `ablation.json` in the folder lists the blocks. The workers
    of the point run together if they have joined; otherwise this process is a single worker.

    Raises:
        UserError: If `ablation.json` cannot be read.
    """
    folder = part.folder
    placement = part.placement
    heartbeat = part.clock.heartbeat
    ablation = read_record(folder.path / ABLATION, Ablation).record
    if ablation is None:
        raise UserError(
            "a readable plan",
            f"{folder.path / ABLATION}, unreadable",
            "Diagnose it again.",
        )
    engine, joined = join_workers(part)
    record = rank_record(
        placement,
        engine_traits(part.point.engine),
        threads=len(cores.granted()),
        devices=engine.devices(part.device),
        build={},
    )
    folder.write_rank(record)
    bench = _Bench(ablation, part.point, joined, engine, part.clock)
    blocks = [bench.measure(name, folder.path) for name in ablation.blocks]
    rank = ablation.worker
    if rank is None:
        rank = placement.rank
    times = AblationTimes(
        rank=rank,
        host=socket.gethostname(),
        cpus=tuple(cores.granted()),
        blocks=tuple(blocks),
    )
    written = folder.path / "times"
    written.mkdir(exist_ok=True)
    write_record(written / f"{times.rank}.json", times)
    # Wait for all processes: in the last sum of a ring, another one may still read from this process.
    while len(list(written.glob("[0-9]*.json"))) < placement.size:
        heartbeat.enter("waiting")
        time.sleep(POLL)
    heartbeat.enter("leaving")
    joined.group.close()


@dataclass
class CallTimes:
    """Times of a block's calls, from `time.perf_counter`.

    Attributes:
        begin: When the input of each call was requested.
        arrived: When the input arrived.
        end: When the input of the next call was requested.
        done: When the device finished the last call.
    """

    begin: list[float] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)
    done: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds of the whole block."""
        return self.done - self.begin[0]


def time_steps(
    train: Train,
    calls: Iterator[Call],
    count: int,
    heartbeat: Heartbeat,
) -> CallTimes:
    """Compute `count` calls, with at most `IN_FLIGHT` calls queued on the device."""
    times = CallTimes()
    # A device computes while the host goes on: `float` of a loss waits until it has finished that call.
    pending = deque[SupportsFloat]()
    for _ in range(count):
        times.begin.append(time.perf_counter())
        call = next(calls)
        times.arrived.append(time.perf_counter())
        pending.append(train(call))
        # Its memory is free for the next.
        del call
        if len(pending) > IN_FLIGHT:
            float(pending.popleft())
        heartbeat.enter("step")
        times.end.append(time.perf_counter())
    for losses in pending:
        float(losses)
    times.done = time.perf_counter()
    return times


def calls_of_block(seconds: float, call_seconds: float) -> int:
    """Return the number of calls in a block of `seconds` seconds."""
    fitting = round(seconds / max(call_seconds, 1e-9))
    return min(MOST, max(FEWEST, fitting))


class _Bench:
    """Measures the blocks of this process; the arguments are those in `run`."""

    def __init__(
        self,
        ablation: Ablation,
        point: Point,
        joined: Joined,
        engine: Engine,
        clock: PhaseClock,
    ) -> None:
        # Layers are frozen in all steps if they are frozen in most epochs of the point.
        frozen = int(2 * point.train.frozen_epochs > point.train.epochs)
        train = point.train.model_copy(update={"epochs": 1, "frozen_epochs": frozen})
        self._ablation = ablation
        self._point = point.model_copy(update={"train": train})
        self._joined = joined
        self._engine = engine
        self._clock = clock
        files = point.needed_files()
        self._prepared = Prepared.open(files.prepared)
        self._split = Split.load(files.split)
        self._trainers: dict[tuple[bool, int], Trainer] = {}
        self._staged: dict[bool, Call] = {}
        self._turn = 0

    def measure(self, name: BlockName, folder: Path) -> BlockTimes:
        """Measure a block, at the same time as the other processes of the block."""
        loader, global_batch = self._loader(name)
        train = self._trainer(name, loader).train
        heartbeat = self._clock.heartbeat
        group = self._joined.group
        with self._source(name, loader, global_batch) as (call, source):
            # The first call alone, which may compile, so that it is not part of the time of a call.
            time_steps(train, source, 1, heartbeat)
            warm = time_steps(train, source, WARM - 1, heartbeat)
            call_seconds = warm.seconds / (WARM - 1)
            count = calls_of_block(self._ablation.seconds, call_seconds)
            # All ranks use the count of rank 0: with another, they would wait for each other's exchange.
            count = int(group.share(np.array([count]))[0])
            if name == "together":
                # By files, since processes of this block do not communicate: that is what it measures.
                self._turn += 1
                (folder / f"ready-{self._turn}").touch()
                while not self._all_have(f"ready-{self._turn}", folder):
                    heartbeat.enter("waiting")
                    time.sleep(POLL)
            else:
                # A sum that all ranks wait for, so that they begin at the same time.
                group.host_sum(np.zeros(1))
            times = time_steps(train, source, count, heartbeat)
            if name == "together":
                # Keep computing until all others have been measured: they must not find the node idle.
                (folder / f"done-{self._turn}").touch()
                while not self._all_have(f"done-{self._turn}", folder):
                    time_steps(train, source, 1, heartbeat)
        part = call[0]
        samples = part.count
        if self._ablation.worker is None:
            samples = part.total
        waits = []
        calls = []
        moments = zip(times.begin, times.arrived, times.end, strict=True)
        for begin, arrived, end in moments:
            waits.append(arrived - begin)
            calls.append(end - arrived)
        return BlockTimes(
            name=name,
            steps_per_call=part.steps,
            seconds=times.seconds,
            samples=int(samples),
            waits=tuple(waits),
            calls=tuple(calls),
        )

    @contextmanager
    def _source(
        self,
        name: BlockName,
        loader: Loader,
        global_batch: int,
    ) -> Iterator[tuple[Call, Iterator[Call]]]:
        """Yield a call of a block and an iterator over its calls: read anew, or one staged call repeated."""
        of_one = name in OF_ONE
        if name in WITH_INPUT or of_one not in self._staged:
            with closing(self._calls(loader, global_batch)) as calls:
                first = next(calls)
                if name in WITH_INPUT:
                    yield first, calls
                    return
                self._staged[of_one] = first
        staged = self._staged[of_one]
        yield staged, repeat(staged)

    def _trainer(self, name: BlockName, loader: Loader) -> Trainer:
        """Return the trainer of a block. Each number of steps per call has its own, as it is compiled in."""
        is_without_exchange = name == "without exchange"
        key = (is_without_exchange, loader.steps_per_call)
        if key not in self._trainers:
            joined = self._joined
            if is_without_exchange:
                joined = self._engine.without_exchange(joined)
            rates = np.full(1, self._point.train.learning_rate)
            with self._clock.phase("build"):
                self._trainers[key] = self._engine.trainer(
                    self._point,
                    self._prepared,
                    rates,
                    joined,
                )
        return self._trainers[key]

    def _loader(self, name: BlockName) -> tuple[Loader, int]:
        """Return the loader of a block's slices, and their global batch."""
        point = self._point
        replicas = self._joined.replicas
        # A process that has not joined the others computes one worker's slice, or the batch of the one-worker run.
        worker = self._ablation.worker
        if worker is not None:
            workers = self._ablation.workers
            if name in OF_ONE:
                worker = 0
                workers = 1
            point = point.model_copy(update={"workers": workers})
            replicas = Replicas(
                self._joined.group,
                workers,
                slices=[(worker, worker + 1)],
                size=1,
            )
        steps = -(-len(self._split.train) // point.global_batch)
        loader, *_ = loaders(point, self._prepared, replicas, steps, self._stage)
        return loader, point.global_batch

    def _stage(self, part: Slice, device: int) -> Slice:
        # A block's trainer is built before its loader starts.
        return next(iter(self._trainers.values())).stage(part, device)

    def _calls(self, loader: Loader, global_batch: int) -> Generator[Call, None, None]:
        """Yield full calls endlessly. The order of samples is repeated, so that no epoch ends in a block."""
        # A batch that is smaller, at the end of an epoch, would be compiled and timed as another one.
        order = epoch_order(self._split.train, self._point.seed, 0)
        rows = global_batch * loader.steps_per_call * (MOST + 2 * WARM)
        while True:
            yield from loader.epoch(np.resize(order, rows), epoch=0)

    def _all_have(self, name: str, folder: Path) -> bool:
        for peer in self._ablation.peers:
            if not (folder.parent / peer / name).exists():
                return False
        return True
