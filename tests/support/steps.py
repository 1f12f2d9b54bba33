"""A worker for the equality tests: `python steps.py CASES.json OUT_DIR`, once per process.

Each case trains a task for `steps` steps through the same session as a run, and writes its weights (before,
after, and a digest of every copy) to OUT_DIR. Optional keys of a case: `keep` (a checkpoint to write),
`restore` (a checkpoint to continue from), and `changed_rank` (a rank whose weights are changed).
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from exchange import Exchange, exchange, summed_types
from scalestudy.cluster.resolve import resolve
from scalestudy.config.point import Point
from scalestudy.data.split import Split
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Joined, join
from scalestudy.engines.interface import Engine, engine_of
from scalestudy.measure.clock import PhaseClock
from scalestudy.plugins.engines import engine_traits
from scalestudy.plugins.strategies import traits
from scalestudy.training.checkpoint import read_position, read_values, write_checkpoint
from scalestudy.training.initial_weights import begin_alike
from scalestudy.util.unused_packages import without_unused

DEVICES = 4


def main(cases_file: str, out: str) -> None:
    cases = json.loads(Path(cases_file).read_text())
    placement = resolve(os.environ)
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    first = Point.model_validate(cases[0]["point"])
    strategy = traits(first.implementation)
    environment = engine_traits(strategy.engine).environment(
        os.environ,
        gpus=False,
        rendezvous=strategy.rendezvous,
        process=placement,
        quiet=True,
    )
    os.environ.update(
        {name: value for name, value in environment.items() if value is not None}
    )
    with without_unused(["sklearn"]):
        import keras

        engine = engine_of(strategy.engine)
    from scalestudy.engines.keras.arithmetic import set_seed_and_precision

    compiled = any(case["point"]["train"].get("xla") for case in cases)
    if strategy.engine == "tensorflow":
        from scalestudy.engines.tensorflow.engine import configure_tensorflow

        configure_tensorflow(
            at_once=DEVICES,
            cpu_devices=DEVICES if placement.size == 1 else 1,
            deterministic=not compiled,
        )
    else:
        engine.set_up(first, threads=1, device="cpu")
    known: dict[tuple[str, int], Joined] = {}
    for case in cases:
        point = Point.model_validate(case["point"])
        keras.backend.clear_session()
        set_seed_and_precision(point.seed, point.train.precision)
        key = point.implementation, point.workers
        if key not in known:
            known[key] = join(
                point.implementation,
                placement,
                workers=point.workers,
                device="cpu",
                communication=point.launch.communication,
            )
        np.savez(
            Path(out) / f"{case['name']}-{placement.rank}.npz",
            **train(engine, point, known[key], case),
        )
    for group, _ in known.values():
        group.close()


def train(
    engine: Engine, point: Point, joined: Joined, case: dict[str, Any]
) -> dict[str, Any]:
    """Train a case and return its results as arrays."""
    from scalestudy.training.session import Session

    files = point.needed_files()
    prepared, split = Prepared.open(files.prepared), Split.load(files.split)
    session = Session(point, engine, joined, prepared, split, PhaseClock())
    if files.initial is not None:
        begin_alike(session.trainer, joined.group, Path(files.initial))
    before = session.trainer.state.weights()[0]
    if "restore" in case:
        session.restore(
            read_position(Path(case["restore"]), ""), read_values(Path(case["restore"]))
        )
    if point.train.steps_per_call:
        session.compile()
    records = []
    for record in session.epoch_records():
        records.append(record)
        if session.updates >= case["steps"]:
            break
    if "keep" in case:
        position, values = session.checkpoint()
        if joined.group.rank == 0:
            write_checkpoint(Path(case["keep"]), position, values, "")
    if case.get("changed_rank") == joined.group.rank:
        weight = session.trainer.task.model.trainable_variables[0]
        weight.assign(weight + 1e-6)
    proof = session.digests()
    after = session.trainer.state.weights()[0]
    traced = point.traits.engine == "tensorflow"
    sums = exchange(session.trainer._train[0]) if traced else Exchange(0, 0)
    types = summed_types(session.trainer._train[0]) if traced else []
    return {
        **{f"before_{index}": value for index, value in enumerate(before)},
        **{f"after_{index}": value for index, value in enumerate(after)},
        "loss": np.array([record.loss for record in records]),
        "validation": np.array([record.validation["loss"] for record in records]),
        "digests": np.array(proof),
        "exchange": np.array([sums.collectives, sums.early]),
        "types": np.array(types),
    }


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
    sys.stdout.flush()
    os._exit(0)
