"""Reading data in a run: the loaders, and the number of steps per call."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.config.operations import operations_of
from scalestudy.config.point import Point
from scalestudy.data.augment import Augmented
from scalestudy.data.loader import Buffers, Loader, Reader, Stage, reader_of
from scalestudy.data.samples import sample_bytes
from scalestudy.data.store.prepared import Prepared
from scalestudy.engines.group import Replicas
from scalestudy.util.errors import UserError

SMALL_STEP = 2**20
"""Maximum bytes of input of a step for which several steps are computed in one call."""
STEPS_PER_CALL = 8
LARGEST_STATISTICS_BATCH = 32
"""Maximum number of samples of which a worker computes batch-norm statistics at once."""


def loaders(
    point: Point,
    prepared: Prepared,
    replicas: Replicas,
    steps: int,
    stage: Stage,
) -> tuple[Loader, Loader, Loader]:
    """Return the loaders for training, for evaluation and for batch-norm statistics.

    They never run at once, so they share buffers.
    """
    # One set for each device, as each is read for by a thread of its own.
    buffers = [Buffers() for _ in replicas.slices]
    changed, reader = readers(point, prepared)

    def loader(
        reader: Reader,
        global_batch: int,
        steps_per_call: int,
        whole: int | None = None,
    ) -> Loader:
        return Loader(
            reader,
            slices=replicas.slices,
            workers=replicas.workers,
            global_batch=global_batch,
            steps_per_call=steps_per_call,
            stage=stage,
            buffers=buffers,
            whole=whole,
        )

    bytes_of_sample = sample_bytes(reader.forms(np.arange(1))[0])
    together = steps_per_call(point, bytes_of_sample, steps)
    # Each batch is padded to its own longest sequence.
    if point.train.steps_per_call is None and prepared.has_sequences:
        together = 1
    batch = statistics_batch(point)
    return (
        loader(changed, point.update_batch, together),
        loader(reader, point.micro_batch * replicas.size, 1),
        loader(reader, batch * replicas.size, 1, batch),
    )


def statistics_batch(point: Point) -> int:
    """Return the samples of which a worker computes batch-norm statistics at once.

    It is the same for every number of workers and micro-batches, so that equal weights have equal statistics.
    """
    return min(point.train.batch_size, LARGEST_STATISTICS_BATCH)


def readers(point: Point, prepared: Prepared) -> tuple[Reader, Reader]:
    """Return the readers of a point's rows for training, with augmentation if any, and for evaluation."""
    reader = reader_of(prepared)
    operations = operations_of(point.train.augment)
    changed: Reader = reader
    if operations:
        if prepared.scale is None:
            raise UserError(
                "images from a source of images, for train.augment",
                "samples of the task's own read(data)",
                "Remove train.augment, and augment in the model or in training_losses.",
            )
        changed = Augmented(reader, operations, seed=point.seed, scale=prepared.scale)
    return changed, reader


def steps_per_call(point: Point, bytes_of_sample: int, steps: int) -> int:
    """Return the number of steps computed in one call, at most all `steps` of an epoch.

    It depends on the batch given in the study, which is the same for every number of workers; otherwise the
    speed-up would include the overhead of calls. For a strategy whose times are not compared, because one
    device computes all workers in turn, it depends on the global batch.
    """
    if point.train.steps_per_call is not None:
        return min(point.train.steps_per_call, steps)
    # One worker computes each call.
    if not point.traits.synchronous:
        return 1
    batch = point.global_batch
    if point.traits.timed:
        batch = point.train.step_batch
    if bytes_of_sample * batch > SMALL_STEP:
        return 1
    return min(STEPS_PER_CALL, steps)


def in_channels(inputs: NDArray[Any], channels: int) -> NDArray[Any]:
    """Convert inputs [B, H, W, C] to `channels` channels: repeat grey values, or reduce colours to luma.

    Luma follows ITU-R BT.601, as in the reader of images.
    """
    if inputs.shape[-1] == channels:
        return inputs
    if channels == 1:
        grey = inputs[..., :3] @ np.array([0.299, 0.587, 0.114])
        if inputs.dtype.kind != "f":
            grey = np.rint(grey)
        return np.ascontiguousarray(grey.astype(inputs.dtype)[..., None])
    shape = (*inputs.shape[:-1], channels)
    return np.ascontiguousarray(np.broadcast_to(inputs[..., :1], shape))
