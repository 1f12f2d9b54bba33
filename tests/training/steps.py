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

from scalestudy.cluster.resolve import resolve
from scalestudy.data.prepared import Prepared
from scalestudy.data.split import Split
from scalestudy.measure.clock import PhaseClock
from scalestudy.strategies.base import Strategy
from scalestudy.study.point import Point

DEVICES = 4


def main(cases_file: str, out: str) -> None:
    cases = json.loads(Path(cases_file).read_text())
    placement = resolve(os.environ)
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    if cases[0]["point"]["implementation"] == "multiworker":
        from scalestudy.cluster.tf_config import tf_config

        os.environ["TF_CONFIG"] = tf_config(placement)
    import keras
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * DEVICES
    ) if placement.size == 1 else None
    tf.config.threading.set_inter_op_parallelism_threads(DEVICES)
    if not any(case["point"]["train"].get("xla") for case in cases):
        tf.config.experimental.enable_op_determinism()
    from scalestudy.engines.tensorflow.precision import set_precision

    strategies: dict[str, Strategy] = {}
    for case in cases:
        point = Point.model_validate(case["point"])
        keras.backend.clear_session()
        keras.utils.set_random_seed(point.seed)
        set_precision(point.train.precision)
        if point.implementation not in strategies:
            strategies[point.implementation] = make(point, placement)
        strategy = strategies[point.implementation]
        strategy.sync_batch_norm = point.train.sync_batch_norm
        strategy.workers = point.workers
        np.savez(Path(out) / f"{case['name']}-{placement.rank}.npz", **train(point, strategy, case["steps"]))
    for strategy in strategies.values():
        strategy.close()


def make(point: Point, placement: Any) -> Strategy:
    from scalestudy.strategies.join import make_strategy

    if point.implementation == "mirrored":  # the logical devices are there already
        import tensorflow as tf

        from scalestudy.strategies.distributed import Distributed

        class Mirrored(Distributed):
            def slices(self) -> list[tuple[int, int]]:
                return [(worker, worker + 1) for worker in range(self.workers)]

        devices = [f"/cpu:{index}" for index in range(point.workers)]
        return Mirrored(tf.distribute.MirroredStrategy(devices), point.workers, sync_batch_norm=False)
    return make_strategy(
        point.implementation, placement, workers=point.workers, device="cpu",
        sync_batch_norm=point.train.sync_batch_norm, communication=point.launch.communication,
    )  # fmt: skip


def train(point: Point, strategy: Strategy, steps: int) -> dict[str, Any]:
    from scalestudy.training.session import Session
    from scalestudy.training.weights import snapshot

    files = point.needed_files()
    session = Session(point, strategy, Prepared.open(files.prepared), Split.load(files.split), PhaseClock())
    values = [weight.value for weight in session.task.model.weights]
    before = snapshot(values)
    if point.train.steps_per_call:
        session.compile()
    records = []
    for record in session.epoch_records():
        records.append(record)
        if session.updates >= steps:
            break
    digests = session.digests()
    after = snapshot(values)
    return {
        **{f"before_{index}": value for index, value in enumerate(before)},
        **{f"after_{index}": value for index, value in enumerate(after)},
        "loss": np.array([record.loss for record in records]),
        "validation": np.array([record.validation["loss"] for record in records]),
        "digests": np.array(digests),
    }


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
    sys.stdout.flush()
    os._exit(0)
