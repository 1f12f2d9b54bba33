"""The loaders to compare. Each yields the batches of its worker's samples, epoch by epoch.

Every worker shuffles and reads only its own samples. The other libraries get every n-th sample before any
other operation, as their documentation advises, so that they do not decode or hold samples of other workers.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from scalestudy.data.images.form import resize_image

Batch = tuple[Any, Any]


class Task(NamedTuple):
    """What a worker reads.

    Attributes:
        prepared: Our prepared set.
        files: An .npz file, or a list of rows [image, mask or class] as JSON.
        size: Height and width to which images are resized; None for their own.
        batch: Per-worker batch.
        rank: Rank of this worker.
        workers: Number of workers.
        threads: Number of its cores.
    """

    prepared: str
    files: str
    size: list[int] | None
    batch: int
    rank: int
    workers: int
    threads: int


class Ours:
    """The loader as in a run, with the staging of the TensorFlow engine."""

    def __init__(self, task: Task) -> None:
        from scalestudy.data.loader import Loader, reader_of
        from scalestudy.data.store.prepared import Prepared
        from scalestudy.engines.tensorflow.staging import stage

        prepared = Prepared.open(task.prepared)
        self._rows = np.arange(prepared.count)
        self._loader = Loader(
            reader_of(prepared),
            slices=[(task.rank, task.rank + 1)],
            workers=task.workers,
            global_batch=task.batch * task.workers,
            stage=stage,
        )

    def epoch(self, number: int) -> Iterator[Batch]:
        """Tensors [1, b, ...]."""
        from scalestudy.data.samples import epoch_order

        for (part,) in self._loader.epoch(
            epoch_order(self._rows, 0, number), epoch=number
        ):
            if part.count:
                yield part.inputs, part.targets


class TfData:
    """tf.data in the published order: map, cache, shuffle 1000, batch, prefetch; one thread per core."""

    def __init__(self, task: Task, cached: bool = True) -> None:
        import tensorflow as tf

        if task.files.endswith(".npz"):
            whole = tf.data.Dataset.from_tensor_slices(
                of_npz(task)
            )  # already every n-th
            read: Any = lambda image, target: (image[:, :, None], target)  # noqa: E731
        else:
            rows = own(task, json.loads(Path(task.files).read_text()))
            whole = tf.data.Dataset.from_tensor_slices([list(row) for row in rows])
            masks = not rows[0][1].isdecimal()

            def read(row: Any) -> Any:
                image = tf.io.decode_image(
                    tf.io.read_file(row[0]), expand_animations=False
                )
                if task.size is not None:
                    fitted = tf.image.resize_with_pad(image, *task.size, antialias=True)
                    image = tf.cast(tf.round(fitted), tf.uint8)
                if masks:
                    mask = tf.io.decode_image(
                        tf.io.read_file(row[1]), channels=1, expand_animations=False
                    )
                    return image, mask[:, :, 0] // 255
                return image, tf.strings.to_number(row[1], tf.int32)

        data = whole.map(read, num_parallel_calls=tf.data.AUTOTUNE)
        data = data.cache() if cached else data
        options = tf.data.Options()
        options.threading.private_threadpool_size = task.threads
        self._data = (
            data.shuffle(1000)
            .batch(task.batch)
            .prefetch(tf.data.AUTOTUNE)
            .with_options(options)
        )

    def epoch(self, number: int) -> Iterator[Batch]:
        """Tensors [b, ...]."""
        return iter(self._data)


class Rows:
    """Random access to a worker's samples for Grain and PyTorch: arrays in memory, or decoded files."""

    def __init__(self, task: Task) -> None:
        self._size = task.size
        self._arrays = of_npz(task) if task.files.endswith(".npz") else None
        self._rows = (
            [] if self._arrays else own(task, json.loads(Path(task.files).read_text()))
        )

    def __len__(self) -> int:
        return len(self._arrays[0]) if self._arrays else len(self._rows)

    def __getitem__(self, index: int) -> Batch:
        if self._arrays:
            return self._arrays[0][index][:, :, None], self._arrays[1][index]
        image, target = self._rows[index]
        pixels = np.asarray(Image.open(image))
        pixels = pixels if pixels.ndim == 3 else pixels[:, :, None]
        if self._size is not None:
            pixels = resize_image(pixels, (self._size[0], self._size[1]))
        if target.isdecimal():
            return pixels, np.int32(target)
        return pixels, np.asarray(Image.open(target).convert("L")) // 255


class Grain:
    """Grain's MapDataset, shuffled in each epoch; one thread per core, none for arrays in memory."""

    def __init__(self, task: Task) -> None:
        import grain.python as grain

        rows = Rows(task)
        threads = 0 if task.files.endswith(".npz") else task.threads
        self._data = grain.MapDataset.source(rows)
        self._batch = task.batch
        self._options = grain.ReadOptions(
            num_threads=threads, prefetch_buffer_size=4 * task.batch
        )

    def epoch(self, number: int) -> Iterator[Batch]:
        """Arrays [b, ...]."""
        shuffled = self._data.shuffle(seed=number)
        return iter(shuffled.to_iter_dataset(self._options).batch(self._batch))


class PyTorch:
    """PyTorch's DataLoader: one persistent worker process per core, none for arrays in memory."""

    def __init__(self, task: Task) -> None:
        import torch
        from torch.utils.data import DataLoader

        torch.set_num_threads(task.threads)
        processes = 0 if task.files.endswith(".npz") else task.threads
        more: dict[str, Any] = (
            {"prefetch_factor": 2, "persistent_workers": True} if processes else {}
        )
        self._data: Any = DataLoader(
            Rows(task), task.batch, shuffle=True, num_workers=processes, **more
        )  # type: ignore[arg-type]

    def epoch(self, number: int) -> Iterator[Batch]:
        """Tensors [b, ...]."""
        return iter(self._data)


def made(name: str, task: Task) -> Any:
    """Create the loader of that name."""
    if name.startswith("ours"):
        return Ours(task)
    if name.startswith("tf.data"):
        return TfData(task, cached=name == "tf.data")
    return {"Grain": Grain, "PyTorch": PyTorch}[name](task)


def imported(name: str) -> None:
    """Import the libraries of a loader, whose time and memory are not counted.

    Raises:
        ImportError: A library is not installed.
    """
    if name == "Grain":
        import grain.python  # noqa: F401
    elif name == "PyTorch":
        import torch.utils.data  # noqa: F401
    else:
        import tensorflow as tf

        from scalestudy.engines.tensorflow import staging  # noqa: F401
        from scalestudy.training import reading  # noqa: F401

        tf.zeros([1])  # initialize TensorFlow


def own(task: Task, rows: Any) -> Any:
    """The rows of this worker: every n-th."""
    return rows[task.rank :: task.workers]


def of_npz(task: Task) -> tuple[Any, Any]:
    """Images and classes of this worker as arrays."""
    with np.load(task.files) as arrays:
        parts = [name for name in ("train", "test") if f"x_{name}" in arrays]
        images = np.concatenate([arrays[f"x_{part}"] for part in parts])
        classes = np.concatenate([arrays[f"y_{part}"] for part in parts]).astype(
            np.int32
        )
    return np.ascontiguousarray(own(task, images)), np.ascontiguousarray(
        own(task, classes)
    )
