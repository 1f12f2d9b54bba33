"""`python -m scalestudy.training.batch_trial FOLDER`: whether a point's batch fits, in a process of its own.

FOLDER holds `point.json`, with its data, and `trial.json`: the device and the GPU. What came of it is written
to `result.json`. Two calls of the compiled step are computed, as a run computes them before its first epoch.
"""

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from scalestudy.cluster.placement import Placement
from scalestudy.data.splits.split import Split
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.base import Engine, engine_of
from scalestudy.engines.group import join
from scalestudy.hardware import cores
from scalestudy.hardware.process import end_with
from scalestudy.measure.clock import PhaseClock
from scalestudy.measure.utilisation import peak_memory
from scalestudy.study.engines import engine_traits
from scalestudy.study.point import Point
from scalestudy.training.devices import set_up
from scalestudy.training.session import Session
from scalestudy.util.errors import ScalestudyError
from scalestudy.util.imports import without_unused

ENDS_WITH = "SCALESTUDY_BATCH_TRIAL_OF"
"""Holds the process that asked: the trial ends with it."""
ALONE = Placement(0, 1, 0, 1, 0, ("localhost",), "alone")
OUT_OF_MEMORY = re.compile(
    r"\bOOM\b|out of memory|RESOURCE_EXHAUSTED|failed to allocate|bad_alloc", re.IGNORECASE
)


def tried(point: Point, device: str, gpus: Sequence[str], engine: Engine | None = None) -> int:
    """Compute two calls of a point's step on one worker, and give the most bytes that they took.

    Raises:
        Exception: As the engine does, if memory runs out.
    """
    with without_unused(engine_traits(point.engine).unused):
        engine = engine or engine_of(point.engine)
        set_up(engine, point, threads=len(cores.granted()), device=device, gpus=gpus)
    joined = join(point.implementation, ALONE, workers=1, device=device)
    files = point.needed_files()
    prepared, split = Prepared.open(files.prepared), Split.load(files.split)
    session = Session(point, engine, joined, prepared, split, PhaseClock())
    for _ in range(2):
        session.compile()
    allocated = [each for each in engine.allocated(device) if each is not None]
    return max(allocated, default=peak_memory())


def outcome(error: Exception) -> dict[str, object]:
    """What an error of a trial says: that the batch does not fit, or something else."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, MemoryError) or OUT_OF_MEMORY.search(text):
        return {"fits": False, "why": text[:200]}
    if isinstance(error, ScalestudyError):
        return {"error": [error.expected, error.received, error.action]}
    return {"error": ["a step that can be computed", f"{type(error).__name__}: {text[:500]}", ""]}


def main(path: str) -> None:
    """Try what the folder holds."""
    folder = Path(path)
    end_with(int(os.environ[ENDS_WITH]))
    told = json.loads((folder / "trial.json").read_text())
    point = Point.model_validate_json((folder / "point.json").read_bytes())
    try:
        result: dict[str, object] = {"fits": True, "peak": tried(point, told["device"], told["gpus"])}
    except Exception as error:
        result = outcome(error)
    (folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
    sys.stdout.flush()
    # A framework's threads may take long to end.
    os._exit(0)
