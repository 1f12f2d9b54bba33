"""A worker for the tests of equality: `python steps.py CASES.json OUT_DIR`, once per process.

Each case trains a task for some steps and leaves its weights (before, after, and every copy's
digest) in OUT_DIR; what it computes goes through the same session as a run.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from exchange import exchange, summed_types
from scalestudy.cluster.resolve import resolve
from scalestudy.data.splits.split import Split
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Joined, join
from scalestudy.measure.clock import PhaseClock
from scalestudy.study.point import Point

DEVICES = 4


def main(cases_file: str, out: str) -> None:
    cases = json.loads(Path(cases_file).read_text())
    placement = resolve(os.environ)
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    if cases[0]["point"]["terms"]["implementation"] == "multiworker":
        from scalestudy.engines.tensorflow.traits import tf_config

        os.environ["TF_CONFIG"] = tf_config(placement)
    from scalestudy.util.imports import without_unused

    with without_unused(["sklearn"]):
        import keras

    from scalestudy.engines.tensorflow.setup import begin, set_up

    compiled = any(case["point"]["train"].get("xla") for case in cases)
    set_up(at_once=DEVICES, cpu_devices=DEVICES if placement.size == 1 else 1, deterministic=not compiled)
    known: dict[tuple[str, int], Joined] = {}
    for case in cases:
        point = Point.model_validate(case["point"])
        keras.backend.clear_session()
        begin(point.seed, point.train.precision)
        key = point.implementation, point.workers
        if key not in known:
            known[key] = join(
                point.implementation, placement,
                workers=point.workers, device="cpu", communication=point.launch.communication,
            )  # fmt: skip
        np.savez(
            Path(out) / f"{case['name']}-{placement.rank}.npz",
            **train(point, known[key], case["steps"], case.get("leave")),
        )
    for group, _ in known.values():
        group.close()


class LeftError(Exception):
    """The run was left within an epoch."""


def train(point: Point, joined: Joined, steps: int, leave: int | None) -> dict[str, Any]:
    """Train for so many steps; `leave` is one after which a new session goes on from a checkpoint."""
    from scalestudy.engines.tensorflow.engine import ENGINE
    from scalestudy.training.checkpoint import digests
    from scalestudy.training.result import exchanged_bytes
    from scalestudy.training.session import Session

    files = point.needed_files()
    prepared, split = Prepared.open(files.prepared), Split.load(files.split)
    session = Session(point, ENGINE, joined, prepared, split, PhaseClock())
    before = session.trainer.weights()[0]
    apart: list[str] = []
    if leave is not None:
        left = session

        def watch(moment: Any) -> None:
            if left.updates == leave:
                raise LeftError

        try:
            list(left.epoch_records(watch))
        except LeftError:
            kept = left.checkpoint()
            apart = digests(left.trainer, left.group)
        session = Session(point, ENGINE, joined, prepared, split, PhaseClock())
        session.compile()
        session.go_on(*kept)
    if point.train.steps_per_call:
        session.compile()
    records = []
    for record in session.epoch_records():
        records.append(record)
        if session.updates >= steps:
            break
    proof = session.digests()
    after = session.trainer.weights()[0]
    sums = exchange(session.trainer._train[0])
    return {
        **{f"before_{index}": value for index, value in enumerate(before)},
        **{f"after_{index}": value for index, value in enumerate(after)},
        "loss": np.array([record.loss for record in records]),
        "validation": np.array([record.validation["loss"] for record in records]),
        "digests": np.array(proof),
        "apart": np.array(apart),
        "exchange": np.array([sums.collectives, sums.early]),
        "types": np.array(summed_types(session.trainer._train[0])),
        "bytes": np.array(sum(exchanged_bytes(point, session.trainer))),
    }


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
    sys.stdout.flush()
    os._exit(0)
