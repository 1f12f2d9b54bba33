"""The largest per-worker batch of a study that fits this machine, tried by processes of their own."""

import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from scalestudy.app.listener import Listener
from scalestudy.app.prepare import prepared
from scalestudy.cluster.environment import process_environment
from scalestudy.cluster.resolve import resolve
from scalestudy.data.splits.split import Split
from scalestudy.features.check.subject import CheckSubject, subject
from scalestudy.hardware.memory import free_memory
from scalestudy.launch.local.reserve import reserved_gpus
from scalestudy.study.engines import engine_traits
from scalestudy.study.point import Point
from scalestudy.study.strategies import references
from scalestudy.training.batch_trial import ENDS_WITH
from scalestudy.util import modules, units
from scalestudy.util.errors import RunError, UserError


@dataclass(frozen=True)
class BatchTrial:
    """Whether a batch of so many samples fits; the bytes that it took where they are known, or why not."""

    batch: int
    fits: bool
    peak: float | None = None
    why: str = ""


def search(attempt: Callable[[int], BatchTrial], *, start: int, most: int) -> list[BatchTrial]:
    """All trials: doubling from `start` until one does not fit, then halving what is left between.

    The largest batch that fits is the largest of them that does; `most` is the whole training set.
    """
    trials: list[BatchTrial] = []

    def fits(batch: int) -> bool:
        trials.append(attempt(batch))
        return trials[-1].fits

    good, bad, batch = 0, most + 1, min(start, most)
    while good < most and bad > most:
        if fits(batch):
            good, batch = batch, min(2 * batch, most)
        else:
            bad = batch
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    return trials


KEPT_FREE = 0.1
"""Share of the free memory that trials leave to all else."""
LOOK_EVERY = 0.02
"""Seconds between two looks at what a trial holds."""
TAIL = 3
"""Lines of a trial's output that a message shows."""


@dataclass(frozen=True)
class LargestBatch:
    """What was found.

    Attributes:
        point: Name of the point whose settings were tried, on one worker.
        device: "cpu" or "gpu".
        budget: Bytes of host memory that a trial might take.
        samples: Of the training set: more are never in a batch.
        trials: In the order in which they were made.
    """

    point: str
    device: str
    budget: int
    samples: int
    trials: tuple[BatchTrial, ...]

    @property
    def largest(self) -> int:
        """Samples of the largest batch that fits; 0 if not even one does."""
        return max((trial.batch for trial in self.trials if trial.fits), default=0)


def largest_batch(
    what: str,
    *,
    on_trial: Callable[[BatchTrial], None] = lambda trial: None,
    listener: Listener | None = None,
) -> LargestBatch:
    """Search for the largest per-worker batch of a study's first point, on one worker here.

    No trial may take more host memory than is free, less a tenth, shared out among the workers that the study
    runs on this machine: what takes more is ended. Data are prepared if they are not.

    Raises:
        UserError: If it is no study, or cannot be tried here.
        RunError: If a trial ends for another reason than memory.
    """
    about = subject(what or None)
    _refuse_elsewhere(about, what)
    point = min(about.points, key=lambda point: point.workers)
    assert about.study is not None
    (ready,) = prepared([point], about.kind, about.base, about.study.place, listener or Listener())
    samples = len(Split.load(ready.needed_files().split).train)
    with contextlib.ExitStack() as held:
        gpus = _own_gpus(held, _alone(ready, 1))
        together = (
            1
            if gpus
            else max(other.workers for other in about.points if other.traits.timed or other is point)
        )
        budget = int(free_memory() * (1 - KEPT_FREE) / together)

        def attempt(batch: int) -> BatchTrial:
            trial = _tried(_alone(ready, batch), gpus, budget)
            on_trial(trial)
            return trial

        trials = search(attempt, start=min(ready.per_worker_batch, samples), most=samples)
    return LargestBatch(point.name, "gpu" if gpus else "cpu", budget, samples, tuple(trials))


def _refuse_elsewhere(about: CheckSubject, what: str) -> None:
    if about.study is None or not about.points:
        raise UserError(
            "a study file beside --largest-batch", what or "none", "Name the study whose batch is asked for."
        )
    if about.queued and resolve(os.environ).source == "alone":
        raise UserError(
            "a node of the site, whose memory is asked for",
            f"this machine, where no job runs, and a study with launch.on = {about.study.launch.on!r}",
            f"Start it in a job, on one node: srun -n 1 scalestudy check {shlex.quote(what)} --largest-batch",
        )


def _own_gpus(held: contextlib.ExitStack, point: Point) -> list[str]:
    """The GPU that trials have for themselves; none on CPUs."""
    waiting = reserved_gpus(held, point)
    while True:
        try:
            next(waiting)
        except StopIteration as end:
            uuids: list[str] = end.value
            return uuids


def _alone(point: Point, batch: int) -> Point:
    """The point with another batch, on one worker."""
    train = point.train.model_copy(update={"batch_size": batch, "batch": "per-worker"})
    alone = references(point.engine)[0]
    changed = point.model_copy(update={"workers": 1, "strategy": alone, "train": train})
    return changed.on(implementation=alone)


def _tried(point: Point, gpus: Sequence[str], budget: int) -> BatchTrial:
    """Try a point's batch in a process, and end that process if it takes more than the budget."""
    with tempfile.TemporaryDirectory(prefix="scalestudy-batch-") as made:
        folder = Path(made)
        (folder / "point.json").write_text(point.model_dump_json())
        device = "gpu" if gpus else "cpu"
        (folder / "trial.json").write_text(json.dumps({"device": device, "gpus": list(gpus)}))
        code, over = _watched(folder, point.engine, gpus, budget)
        batch = point.train.batch_size
        if over:
            return BatchTrial(batch, False, over, f"it took more than {units.size(budget)}")
        try:
            result = json.loads((folder / "result.json").read_text())
        except (OSError, ValueError):
            if code < 0:  # the kernel or the framework ended it
                return BatchTrial(batch, False, None, f"its process was ended by signal {-code}")
            log = (folder / "log").read_text(errors="replace").strip().splitlines()
            raise RunError(
                "a process that tries a batch to say what came of it",
                f"exit code {code}: {' / '.join(log[-TAIL:]) or 'nothing said'}",
                "`scalestudy check` without --largest-batch may say why.",
            ) from None
    if "error" in result:
        raise RunError(*result["error"])
    return BatchTrial(batch, result["fits"], result.get("peak"), result.get("why", ""))


def _watched(folder: Path, engine: str, gpus: Sequence[str], budget: int) -> tuple[int, int]:
    """Exit code of the trial's process; and what it held, in bytes, where that was more than the budget."""
    variables = process_environment(os.environ, engine_traits(engine), gpus=gpus, quiet=True).applied(
        os.environ
    )
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", modules.BATCH_TRIAL, str(folder)],
            stdout=log, stderr=log, env=variables | {ENDS_WITH: str(os.getpid())},
        )  # fmt: skip
        try:
            seen = psutil.Process(process.pid)
            while process.poll() is None:
                with contextlib.suppress(psutil.Error):
                    if (held := seen.memory_info().rss) > budget:
                        return process.returncode or 0, held
                time.sleep(LOOK_EVERY)
            return process.returncode, 0
        finally:
            process.kill()
            process.wait()
