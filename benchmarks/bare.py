"""One rank of the programs that `gpu.py` compares with our loop: a bare loop or plain Keras `model.fit`.

`python bare.py ERRAND`, with ERRAND as JSON: `way` ("fit", "loop" or "fused"), `strategy`, `task`, `arrays`
(an .npz with inputs and targets), `kind`, `classes`, `batch` (per worker), `steps`, `epochs`, `workers`,
`precision`, `device`. The rank is taken from torchrun's variables. Rank 0 prints samples per second over all
ranks.

"loop" is the minimal use of a strategy: one compiled step on one batch that stays on the device, without
loader, metrics or uneven batches. "fused" is the same with one Adam kernel per variable. "fit" is Keras with
the published tf.data pipeline and Keras's default for XLA, without the first epoch.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

WARM_UP = 3


def main(errand: dict[str, Any]) -> None:
    from scalestudy.cluster.resolve import resolve
    from scalestudy.hardware import cores
    from scalestudy.plugins.strategies import traits

    placement, kind = resolve(os.environ), traits(errand["strategy"])
    at_once = kind.workers_at_once(errand["workers"])
    set_variables(errand, placement, kind)

    from scalestudy.engines.tensorflow.engine import (
        configure_tensorflow,
        set_arithmetic,
    )

    configure_tensorflow(
        threads=len(cores.granted()),
        at_once=max(2, at_once) if errand["workers"] > 1 else 1,
        cpu_devices=at_once if errand["device"] == "cpu" else 1,
        deterministic=False,
    )
    set_arithmetic(0, errand["precision"])
    rate = {"fit": fit, "loop": loop, "fused": loop}[errand["way"]](errand, placement)
    if placement.rank == 0:
        print("THROUGHPUT", rate, flush=True)
    if kind.rendezvous and not kind.rendezvous.secret:
        sys.stdin.read()  # another rank's last all-reduce may still read from this one


def set_variables(errand: dict[str, Any], placement: Any, kind: Any) -> None:
    """Set the variables of one of our workers in this process; call before TensorFlow is imported."""
    from scalestudy.cluster.worker_environment import own_gpus, process_environment
    from scalestudy.hardware.devices import visible_gpus
    from scalestudy.plugins.engines import engine_traits

    gpus: list[str] = []
    if errand["device"] == "gpu":
        found, devices = (
            visible_gpus(os.environ),
            kind.workers_at_once(errand["workers"]),
        )
        gpus = own_gpus(
            os.environ, found, local_rank=placement.local_rank, devices=devices
        )
    changes = process_environment(
        os.environ,
        engine_traits(kind.engine),
        gpus=gpus,
        rendezvous=kind.rendezvous,
        placement=placement,
    )
    for (
        name
    ) in changes.unset:  # proxies: with them gRPC would not reach the other ranks
        del os.environ[name]
    os.environ.update(changes.values)


def task_of(errand: dict[str, Any], shape: tuple[int, ...]) -> Any:
    from scalestudy.tasks.load import load_task
    from scalestudy.tasks.task import DataInfo

    return load_task(errand["task"], DataInfo(errand["kind"], shape, errand["classes"]))  # type: ignore[arg-type]


def joined(
    errand: dict[str, Any], placement: Any
) -> tuple[Any, Callable[[list[Any]], list[Any]]]:
    """TensorFlow's strategy or None, and a function that all-reduces gradients if the strategy does not."""
    import tensorflow as tf

    if errand["strategy"] == "mirrored":
        devices = tf.config.list_logical_devices(errand["device"].upper())[
            : errand["workers"]
        ]
        return tf.distribute.MirroredStrategy(
            [each.name for each in devices]
        ), lambda gradients: gradients
    if errand["strategy"] == "multiworker":
        way = tf.distribute.experimental.CommunicationImplementation
        chosen = way.NCCL if errand["device"] == "gpu" else way.RING
        options = tf.distribute.experimental.CommunicationOptions(implementation=chosen)
        return tf.distribute.MultiWorkerMirroredStrategy(
            communication_options=options
        ), lambda given: given
    if errand["strategy"] == "single":
        return None, lambda gradients: gradients
    import horovod.tensorflow as hvd

    from scalestudy.engines.tensorflow import horovod_rendezvous as rendezvous

    rendezvous.join(placement, device=errand["device"])
    hvd.init()
    return None, lambda gradients: list(hvd.grouped_allreduce(gradients, op=hvd.Sum))


def loop(errand: dict[str, Any], placement: Any) -> float:
    """Samples per second of steps on one batch that stays on the device."""
    import keras
    import numpy as np
    import tensorflow as tf

    from scalestudy.engines.tensorflow.optimizers import fuse

    def sum_of_replicas(gradients: list[Any]) -> list[Any]:
        context = tf.distribute.get_replica_context()
        return list(context.all_reduce(tf.distribute.ReduceOp.SUM, gradients))

    strategy, summed = joined(errand, placement)
    stored = np.load(errand["arrays"])
    inputs, targets = (
        stored[name][: errand["batch"]] for name in ("inputs", "targets")
    )
    total = errand["batch"] * errand["workers"]
    with strategy.scope() if strategy else nullcontext():
        task = task_of(errand, inputs.shape[1:])
        variables = task.model.trainable_variables
        optimizer = keras.optimizers.Adam()
        if errand["way"] == "fused":
            fuse(optimizer)
            if strategy:  # as Keras's own update does first
                summed = sum_of_replicas
        optimizer.build(variables)

    def work() -> Any:
        x = tf.cast(tf.constant(inputs), keras.config.floatx()) / 255
        with tf.GradientTape() as tape:
            losses = (
                tf.reduce_sum(
                    task.loss(tf.constant(targets), task.model(x, training=True))
                )
                / total
            )
        gradients = tape.gradient(losses, [variable.value for variable in variables])
        optimizer.apply(summed(gradients), variables)
        return losses

    step = tf.function(
        lambda: strategy.run(work) if strategy else work(), autograph=False
    )
    wait = strategy.experimental_local_results if strategy else lambda value: (value,)
    for _ in range(WARM_UP):
        last = step()
    float(wait(last)[0])
    start = time.perf_counter()
    for _ in range(errand["steps"]):
        last = step()
    float(wait(last)[0])
    return total * errand["steps"] / (time.perf_counter() - start)


def fit(errand: dict[str, Any], placement: Any) -> float:
    """Samples per second of Keras with its default for XLA, without the first epoch."""
    import keras
    import numpy as np
    import tensorflow as tf

    strategy, _ = joined(errand, placement)
    stored = np.load(errand["arrays"])
    inputs, targets = stored["inputs"], stored["targets"]
    masks = errand["kind"] == "masks"

    def decode(x: Any, y: Any) -> Any:
        return tf.cast(x, tf.float32) / 255, (
            tf.cast(y, tf.float32)[..., None] if masks else y
        )

    data = tf.data.Dataset.from_tensor_slices((inputs, targets)).map(
        decode, num_parallel_calls=tf.data.AUTOTUNE
    )
    data = (
        data.cache()
        .shuffle(1000)
        .batch(errand["batch"] * errand["workers"], drop_remainder=True)
    )
    with strategy.scope() if strategy else nullcontext():
        model = task_of(errand, inputs.shape[1:]).model
        model.compile(
            "adam",
            "binary_crossentropy" if masks else "sparse_categorical_crossentropy",
        )
    seconds: list[float] = []

    class Clock(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.start = time.perf_counter()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seconds.append(time.perf_counter() - self.start)

    epochs = errand["epochs"]
    model.fit(
        data.prefetch(tf.data.AUTOTUNE), epochs=epochs, callbacks=[Clock()], verbose=0
    )
    return (
        len(data)
        * errand["batch"]
        * errand["workers"]
        * (epochs - 1)
        / sum(seconds[1:])
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)
